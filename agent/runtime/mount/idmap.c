/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/mount/idmap.h"

#include "base/arena.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define PARTS_MAX 256 /* the host's mounts below volumes */

int idmap_open(const char *userns, struct err *e)
{
    int fd = open(userns, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        err_sys(e, errno, "open %s", userns);
    return fd;
}

/* ---- one mount, or a tree ---- */

struct place {
    const char *path;
    size_t length; /* of the mount point found so far */
    char point[256], fstype[64];
};

static bool note_place(const struct fs_mount *m, void *arg)
{
    struct place *p = arg;
    size_t n = strcmp(m->point, "/") == 0 ? 0 : strlen(m->point);

    if (strncmp(m->point, p->path, n) != 0 || (p->path[n] != '/' && p->path[n] != '\0') || n < p->length)
        return true;
    p->length = n; /* of two mounts at the same point, the later one is on top */
    snprintf(p->point, sizeof(p->point), "%s", m->point);
    snprintf(p->fstype, sizeof(p->fstype), "%s", m->fstype);
    return true;
}

static enum err_code cannot_map(const char *path, struct err *e)
{
    str_auto real = realpath(path, NULL);
    struct place p = { .path = real != NULL ? real : path, .fstype = "unknown" };

    if (fs_each_mount(NULL, note_place, &p, ERR_IGNORED) != ERR_OK)
        snprintf(p.fstype, sizeof(p.fstype), "unknown");
    return err_set(e, ERR_UNIMPLEMENTED,
                   "hostUsers: false: the file system %s at %s cannot be mapped to the pod's users", p.fstype,
                   p.point);
}

static int copy_mapped(const char *path, int userns_fd, uint64_t propagation, bool recursive, struct err *e)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP,
                               .propagation = propagation,
                               .userns_fd = (uint64_t)userns_fd };
    unsigned all = recursive ? AT_RECURSIVE : 0;
    fd_auto fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | all);

    if (fd < 0) {
        err_sys(e, errno, "clone the mount of %s", path);
        return -1;
    }
    if (mount_setattr(fd, "", AT_EMPTY_PATH | all, &attr, sizeof(attr)) == 0)
        return take_fd(&fd);
    if (errno == EINVAL || errno == EPERM) /* EPERM: already mapped */
        cannot_map(path, e);
    else
        err_sys(e, errno, "map %s to the pod's users", path);
    return -1;
}

int idmap_mount(const char *path, int userns_fd, struct err *e)
{
    return copy_mapped(path, userns_fd, MS_PRIVATE, false, e);
}

struct below {
    int userns_fd;
    struct err *e;
};

static bool try_one(const struct fs_mount *m, void *arg)
{
    const struct below *below = arg;
    struct err e = { 0 };
    fd_auto fd = copy_mapped(m->point, below->userns_fd, MS_PRIVATE, false, &e);

    if (fd >= 0 || e.code != ERR_UNIMPLEMENTED)
        return true;
    *below->e = e;
    return false;
}

int idmap_tree(const char *path, int userns_fd, uint64_t propagation, struct err *e)
{
    int fd = copy_mapped(path, userns_fd, propagation, true, e);
    str_auto real = fd < 0 && e->code == ERR_UNIMPLEMENTED ? realpath(path, NULL) : NULL;
    struct below below = { userns_fd, e };

    /* With several mounts the error does not identify the failed one, so each is tried by itself. */
    if (real != NULL && fs_each_mount(real, try_one, &below, ERR_IGNORED) != ERR_OK)
        return fd; /* the error then names the top one */
    return fd;
}

/* ---- all mounts of a container ---- */

/* The mount point must be a file or a folder, like the source. */
static enum err_code make_point(int tree, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(tree, &st) != 0)
        return err_sys(e, errno, "stat the mount on %s", path);
    if (S_ISDIR(st.st_mode))
        return mkdir(path, 0700) == 0 ? ERR_OK : err_sys(e, errno, "create %s", path);
    return mknod(path, S_IFREG | 0600, 0) == 0 ? ERR_OK : err_sys(e, errno, "create %s", path);
}

/* overlayfs cannot be mapped; the layers of an image can. */
static int copy_image(const char *path, struct err *e)
{
    struct mount_attr attr = { .propagation = MS_PRIVATE };
    fd_auto fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (fd >= 0 && mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
        return take_fd(&fd);
    err_sys(e, errno, "clone the mount of %s", path);
    return -1;
}

/* Mounts and unmounts in the copy never propagate to its source. */
static enum err_code bind_mapped(const struct rt_mount *m, int userns_fd, const char *target, struct err *e)
{
    uint64_t propagation = str_eq(m->propagation, "rslave") ? MS_SLAVE : MS_PRIVATE;
    fd_auto tree = m->image ? copy_image(m->source, e) : idmap_tree(m->source, userns_fd, propagation, e);

    if (tree < 0 || make_point(tree, target, e) != ERR_OK)
        return e->code;
    if (move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return err_sys(e, errno, "mount on %s", target);
    return ERR_OK;
}

struct parts {
    const char *folder;
    struct arena *arena;
    struct rt_mount *list; /* the config's, then the additional ones */
    size_t n;
    size_t left; /* room */
    struct err *e;
};

/* The copy of a mount at `rest` below a volume gets its own mount point. Its path is not used later, because
 * running containers of the pod may have replaced its folders with links. */
static enum err_code copy_part(const struct fs_mount *m, const char *rest, const char *target,
                               bool *ret_hidden, struct err *e)
{
    str_auto volume = strndup(m->point, (size_t)(rest - m->point));
    struct statx st;

    *ret_hidden = false;
    if (volume == NULL)
        return err_nomem(e);
    fd_auto root = open(volume, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_sys(e, errno, "open %s", volume);
    fd_auto found = fs_open_in_root_plain(root, rest + 1, O_PATH, 0, e);
    if (found < 0 && (e->sys == ENOENT || e->sys == ENOTDIR)) {
        *e = (struct err){ 0 };
        *ret_hidden = true;
    }
    if (found < 0)
        return e->code;
    if (statx(found, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &st) != 0)
        return err_sys(e, errno, "statx %s", m->point);
    *ret_hidden = (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 && st.stx_mnt_id != m->id;
    if (*ret_hidden)
        return ERR_OK;
    if ((st.stx_mask & STATX_MNT_ID) == 0 || st.stx_mnt_id != m->id)
        return err_set(e, ERR_UNAVAILABLE, "%s was renamed in the meantime", m->point);
    fd_auto tree = open_tree(found, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        return err_sys(e, errno, "clone the mount of %s", m->point);
    if (make_point(tree, target, e) != ERR_OK)
        return e->code;
    return move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) == 0
               ? ERR_OK
               : err_sys(e, errno, "mount on %s", target);
}

/* Records <folder>/<i>/<rest>, a mount below the i-th. */
static bool note_part(const struct fs_mount *m, void *arg)
{
    struct parts *p = arg;
    const char *number = m->point + strlen(p->folder);
    const char *rest = *number == '/' ? strchr(number + 1, '/') : NULL;
    struct rt_mount *to = &p->list[p->n];
    bool hidden;

    if (rest == NULL)
        return true;
    if (p->left == 0) {
        err_set(p->e, ERR_EXHAUSTED, "more than %d mounts below the volumes of a container", PARTS_MAX);
        return false;
    }
    *to = p->list[strtoul(number + 1, NULL, 10)];
    to->destination = arena_printf(p->arena, "%s%s", to->destination, rest);
    to->source = arena_printf(p->arena, "%s/part-%zu", p->folder, p->n);
    if (to->source == NULL || to->destination == NULL) {
        err_nomem(p->e);
        return false;
    }
    if (copy_part(m, rest, to->source, &hidden, p->e) != ERR_OK)
        return false;
    if (hidden) /* hidden by another mount, which is also listed */
        return true;
    p->n++;
    p->left--;
    return true;
}

enum err_code idmap_mounts(const struct rt_config *c, int userns_fd, const char *folder, bool each,
                           struct arena *arena, struct rt_config *ret, struct err *e)
{
    size_t n = c->n_mounts;
    struct rt_mount *m = arena_alloc(arena, (n + 1 + PARTS_MAX) * sizeof(*m));
    struct parts parts = { folder, arena, m, n, PARTS_MAX, e };

    if (m == NULL)
        return err_nomem(e);
    if (mkdir(folder, 0711) != 0)
        return err_sys(e, errno, "create %s", folder);
    for (size_t i = 0; i <= n; i++) {
        const struct rt_mount shm = { .source = c->shm_path, .destination = "/dev/shm" };
        const struct rt_mount *from = i == n ? &shm : &c->mounts[i];
        char *path = arena_printf(arena, "%s/%zu", folder, i);

        if (path == NULL)
            return err_nomem(e);
        m[i] = *from;
        if (from->source == NULL || !rt_mount_is_bind(from))
            continue;
        m[i].source = path;
        if (bind_mapped(from, userns_fd, path, e) == ERR_UNIMPLEMENTED && from->device) {
            *e = (struct err){ 0 };
            m[i].source = from->source;
        }
        if (e->code != ERR_OK)
            return from->volume != NULL ? err_wrap(e, "volume \"%s\"", from->volume)
                                        : err_wrap(e, "mount at %s", from->destination);
    }
    *ret = *c;
    ret->shm_path = m[n].source;
    if (each && fs_each_mount(folder, note_part, &parts, e) != ERR_OK)
        return e->code;
    ret->mounts = m;
    ret->n_mounts = parts.n;
    return e->code;
}
