/* SPDX-License-Identifier: Apache-2.0 */
/* tree - creates and removes cgroups, one hierarchy at a time. */
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define CG_REMOVE_STEPS 100000 /* more cgroups below one pod are removed in several calls */

bool cg_is_at_or_below(const char *path, const char *root, const char *sub)
{
    size_t n = strlen(root), k = strlen(sub);

    return strncmp(path, root, n) == 0 && strncmp(path + n, sub, k) == 0 &&
           (path[n + k] == '\0' || path[n + k] == '/');
}

bool cg_path_is_ours(const struct cg_tree *t, const char *path)
{
    return path[0] == '/' && strlen(path) < CG_PATH_MAX && fs_path_is_safe(path + 1) &&
           (cg_is_at_or_below(path, t->root, "/kubepods") || cg_is_at_or_below(path, t->root, "/coracle"));
}

int cg_open_dir(const struct cg_hier *h, const char *path)
{
    while (*path == '/')
        path++;
    return openat(h->fd, *path == '\0' ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* One level: creates `name` in `parent`, and prepares it if `prepare` is set or if it is new. */
static enum err_code make_level(const struct cg_hier *h, int parent, const char *name, bool prepare,
                                bool *ret_fresh, int *ret_dir, struct err *e)
{
    bool fresh = mkdirat(parent, name, 0755) == 0;

    if (!fresh && errno != EEXIST)
        return err_sys(e, errno, "create %s", name);
    fd_auto dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return err_sys(e, errno, "open %s", name);
    if (prepare && h->backend->prepare(h, dir, parent, e) != ERR_OK)
        return err_wrap(e, "%s", name);
    *ret_fresh = fresh;
    *ret_dir = take_fd(&dir);
    return ERR_OK;
}

/* Opens the parent of <root><sub> if it exists, otherwise <root>; *ret_sub: the part to create in it.
 * Existing levels are prepared already: cg_open() creates the skeleton level by level, and a pod's own cgroup
 * is created before everything in it. */
static int open_above(const struct cg_tree *t, const struct cg_hier *h, const char *sub, const char **ret_sub)
{
    const char *last = strrchr(sub, '/');
    char path[CG_PATH_MAX];
    int dir = -1;

    if (last != NULL && last > sub) {
        snprintf(path, sizeof(path), "%s%.*s", t->root, (int)(last - sub), sub);
        dir = cg_open_dir(h, path);
    }
    *ret_sub = dir >= 0 ? last : sub;
    return dir >= 0 ? dir : cg_open_dir(h, t->root);
}

enum err_code cg_make(const struct cg_tree *t, struct cg_hier *h, const char *sub, bool inner,
                      bool *ret_fresh, int *ret_dir, struct err *e)
{
    const char *missing = sub;
    char path[CG_PATH_MAX];
    char *saved = NULL;
    bool fresh = false;
    fd_auto dir = open_above(t, h, sub, &missing);

    if (dir < 0)
        return err_sys(e, errno, "open cgroup %s%s", h->point, t->root);
    snprintf(path, sizeof(path), "%s", missing);
    for (char *name = strtok_r(path, "/", &saved); name != NULL;) {
        char *next = strtok_r(NULL, "/", &saved);
        int below = -1;
        /*
         * v1 needs the cpuset of every level to be filled.  v2 prepares inner levels only, because leaves
         * hold processes.
         */
        bool prepare = next != NULL || inner || !h->backend->v2;
        if (make_level(h, dir, name, prepare, &fresh, &below, e) != ERR_OK)
            return err_wrap(e, "cgroup %s%s%s", h->point, t->root, sub);
        close(dir);
        dir = below;
        name = next;
    }
    *ret_fresh = fresh;
    if (ret_dir != NULL)
        *ret_dir = take_fd(&dir);
    return ERR_OK;
}

/* Creates <root> and its missing ancestors. h->root_existing is the part that existed before. */
enum err_code cg_make_root(const struct cg_tree *t, struct cg_hier *h, struct err *e)
{
    char path[CG_PATH_MAX];
    char *saved = NULL;
    bool fresh = false;
    fd_auto dir = cg_open_dir(h, "/");

    if (dir < 0)
        return err_sys(e, errno, "open cgroup %s", h->point);
    h->root_existing = 0;
    snprintf(path, sizeof(path), "%s", t->root);
    for (char *name = strtok_r(path, "/", &saved), *next; name != NULL; name = next) {
        int below = -1;
        bool was_fresh = fresh;
        next = strtok_r(NULL, "/", &saved);
        if (make_level(h, dir, name, false, &fresh, &below, e) != ERR_OK)
            return err_wrap(e, "cgroup %s%s", h->point, t->root);
        fd_auto parent = dir;
        dir = below;
        fresh = fresh || was_fresh;
        if ((fresh || next == NULL) && !h->backend->v2 && h->backend->prepare(h, dir, parent, e) != ERR_OK)
            return err_wrap(e, "cgroup %s%s", h->point, t->root);
        if (!fresh)
            h->root_existing = (size_t)(name - path) + strlen(name);
    }
    /* Leftovers in <root> mean that an earlier run was killed before it could remove them, so that run
     * created the last element. */
    if (t->root[0] != '\0' && h->root_existing == strlen(t->root) && faccessat(dir, "coracle", F_OK, 0) == 0)
        h->root_existing = (size_t)(strrchr(t->root, '/') - t->root);
    if (h->backend->prepare_root(h, t->root, e) != ERR_OK)
        return err_wrap(e, "cgroup %s%s", h->point, t->root);
    return ERR_OK;
}

/* Opens the first subdirectory of `dir`; -1 with *ret_end if there is none. */
static int first_child(int dir, char ret_name[256], bool *ret_end)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with its own offset */
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    int child = -1;

    *ret_end = false;
    if (list == NULL) {
        scope_close_p(&copy);
        return -1;
    }
    *ret_end = true;
    for (struct dirent *d = readdir(list); d != NULL && child < 0; d = readdir(list)) {
        if (d->d_type != DT_DIR || strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        child = openat(dir, d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        snprintf(ret_name, 256, "%s", d->d_name);
        if (child < 0 && errno != ENOENT)
            *ret_end = false;
    }
    int saved = errno;
    closedir(list);
    errno = saved;
    return child;
}

/* Removes leaf cgroups until none is left. Holds only two descriptors, so deeply nested cgroups cost time,
 * not stack; the number of steps is bounded. */
enum err_code cg_remove_below(const struct cg_hier *h, const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    char above[CG_PATH_MAX];

    if (slash == NULL || slash[1] == '\0')
        return err_set(e, ERR_INVALID, "cgroup %s: not a path that can be removed", path);
    snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
    for (unsigned step = 0; step < CG_REMOVE_STEPS; step++) {
        char name[256], below[256];
        bool end = false;
        fd_auto parent = cg_open_dir(h, above);
        if (parent < 0)
            return errno == ENOENT ? ERR_OK : err_sys(e, errno, "open cgroup %s%s", h->point, above);
        snprintf(name, sizeof(name), "%s", slash + 1);
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return ERR_OK; /* the common case: no children */
        int first_errno = errno;
        fd_auto dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        bool is_top = true;
        for (;;) { /* down to a leaf */
            int child = dir < 0 ? -1 : first_child(dir, below, &end);
            if (child < 0)
                break;
            close(parent);
            parent = dir;
            dir = child;
            is_top = false;
            snprintf(name, sizeof(name), "%s", below);
        }
        if (is_top && end) /* no children, so it has processes itself */
            return err_set(e, ERR_UNAVAILABLE, "remove cgroup %s%s: %s", h->point, path,
                           first_errno == EBUSY ? "processes are left in it" : strerror(first_errno));
        if (unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
            return err_set(e, ERR_UNAVAILABLE, "remove cgroup %s%s: in its child %s: %s", h->point, path,
                           name, errno == EBUSY ? "processes are left" : strerror(errno));
    }
    return err_set(e, ERR_UNAVAILABLE, "remove cgroup %s%s: more than %d children, try again", h->point, path,
                   CG_REMOVE_STEPS);
}
