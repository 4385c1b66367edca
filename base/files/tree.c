/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "base/files/fs.h"

#include "base/log.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Needs two descriptors at any depth: the current folder and the one that holds the top. Going up is
 * openat(".."), checked against the device and inode noted on the way down, so that a folder moved meanwhile
 * cannot lead the removal out of the tree. */
enum { MAX_DEPTH = 100000 }; /* levels; limits the memory used */

struct level {
    dev_t dev;
    ino_t ino;
    char *name; /* in the level above; NULL for the top */
};

struct remover {
    struct level *levels;
    size_t depth, cap;
    const char *top; /* for messages */
    DIR *dir;        /* the deepest level */
};

static void remover_done(struct remover *r)
{
    if (r->dir != NULL)
        closedir(r->dir);
    while (r->depth > 0)
        free(r->levels[--r->depth].name);
    free(r->levels);
}

/* "remove <top>/a/b/<name>: ..." */
static enum err_code base_tree_fail(struct remover *r, int sys, const char *name, struct err *e)
{
    buf_auto where = BUF_INIT(4096);
    size_t i;

    buf_adds(&where, r->top);
    for (i = 1; i < r->depth; i++)
        buf_addf(&where, "/%s", r->levels[i].name);
    if (name != NULL)
        buf_addf(&where, "/%s", name);
    if (sys == EBUSY) {
        err_set(e, ERR_PRECONDITION, "remove %s: is a mount point", where.p);
        e->sys = EBUSY;
        return e->code;
    }
    return err_sys(e, sys, "remove %s", where.p);
}

/* Takes ownership of `fd`, opened with O_NOFOLLOW, as the next deeper level; 0 or an errno. */
static int base_tree_push(struct remover *r, int fd, const char *name)
{
    fd_auto owned = fd;
    char *copy = NULL;
    struct stat st;
    DIR *dir;

    if (fstat(fd, &st) != 0)
        return errno;
    if (r->depth == MAX_DEPTH)
        return ENAMETOOLONG;
    if (r->depth == r->cap) {
        if (!array_room(r->levels, r->cap))
            return ENOMEM;
        r->cap++;
    }
    if (name != NULL && (copy = strdup(name)) == NULL)
        return ENOMEM;
    dir = fdopendir(fd);
    if (dir == NULL) {
        int saved = errno;

        free(copy);
        return saved;
    }
    take_fd(&owned);
    if (r->dir != NULL)
        closedir(r->dir);
    r->dir = dir;
    r->levels[r->depth++] = (struct level){ .dev = st.st_dev, .ino = st.st_ino, .name = copy };
    return 0;
}

/* Opens a folder to descend into; for a mount point returns -1 and EBUSY. */
static int base_tree_enter(int parent, const char *name)
{
    fd_auto fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct statx sx;

    if (fd < 0)
        return -1;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &sx) != 0)
        return -1;
    if ((sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) {
        errno = EBUSY;
        return -1;
    }
    return take_fd(&fd);
}

/* Goes back to the parent of the current folder; *ret_name (malloc'ed) is the folder it came from. */
static int up(struct remover *r, char **ret_name)
{
    const struct level *above = &r->levels[r->depth - 2];
    fd_auto fd = openat(dirfd(r->dir), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    DIR *dir;

    if (fd < 0 || fstat(fd, &st) != 0)
        return errno;
    if (st.st_dev != above->dev || st.st_ino != above->ino)
        return ESTALE; /* moved while we were in it */
    dir = fdopendir(fd);
    if (dir == NULL)
        return errno;
    take_fd(&fd);
    closedir(r->dir);
    r->dir = dir;
    *ret_name = r->levels[--r->depth].name;
    return 0;
}

static bool base_tree_is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Removes entries of the current folder until one is a non-empty folder, which becomes the current folder.
 * *ret_empty: the end was reached. *ret_removed counts. */
static enum err_code sweep(struct remover *r, bool *ret_empty, size_t *ret_removed, struct err *e)
{
    struct dirent *d;
    int fd, sys;

    assert(r->dir != NULL && r->depth > 0);
    *ret_empty = false;
    for (;;) {
        int at = dirfd(r->dir);

        errno = 0;
        d = readdir(r->dir);
        if (d == NULL && errno != 0)
            return base_tree_fail(r, errno, NULL, e);
        if (d == NULL) {
            *ret_empty = true;
            return ERR_OK;
        }
        if (base_tree_is_dot(d->d_name))
            continue;
        if (d->d_type != DT_DIR) {
            if (unlinkat(at, d->d_name, 0) == 0 || errno == ENOENT) {
                ++*ret_removed;
                continue;
            }
            /* EISDIR (EPERM on some file systems): a folder after all (DT_UNKNOWN). */
            if (errno != EISDIR && errno != EPERM)
                return base_tree_fail(r, errno, d->d_name, e);
            sys = errno;
        } else {
            sys = 0;
        }
        if (unlinkat(at, d->d_name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
            ++*ret_removed;
            continue;
        }
        if (errno == ENOTDIR && sys != 0)
            return base_tree_fail(r, sys, d->d_name, e);
        if (errno != ENOTEMPTY && errno != EEXIST)
            return base_tree_fail(r, errno, d->d_name, e);
        fd = base_tree_enter(at, d->d_name);
        if (fd < 0)
            return base_tree_fail(r, errno, d->d_name, e);
        sys = base_tree_push(r, fd, d->d_name);
        return sys == 0 ? ERR_OK : base_tree_fail(r, sys, d->d_name, e);
    }
}

static enum err_code remove_levels(struct remover *r, struct err *e)
{
    size_t removed = 0, before = 0;
    bool empty;
    int sys;

    for (;;) {
        str_auto name = NULL;

        if (sweep(r, &empty, &removed, e) != ERR_OK)
            return e->code;
        if (!empty)
            continue;
        /* The listing changed while we read it and may have skipped entries: read it again. */
        if (removed != before) {
            before = removed;
            rewinddir(r->dir);
            continue;
        }
        if (r->depth == 1)
            return ERR_OK;
        sys = up(r, &name);
        if (sys != 0)
            return base_tree_fail(r, sys, NULL, e);
        assert(name != NULL); /* only the top has none */
        if (unlinkat(dirfd(r->dir), name, AT_REMOVEDIR) != 0 && errno != ENOENT)
            return base_tree_fail(r, errno, name, e);
        removed++;
    }
}

/* Opens the parent folder; *ret_name, the last element, points into path. */
static int open_parent(int dirfd, const char *path, char name[256])
{
    char parent[4096];
    size_t n = strlen(path), end;

    while (n > 1 && path[n - 1] == '/')
        n--;
    end = n;
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (end - n > 255 || n >= sizeof(parent)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, path + n, end - n);
    name[end - n] = '\0';
    if (*name == '\0' || base_tree_is_dot(name)) {
        errno = EINVAL;
        return -1;
    }
    memcpy(parent, path, n);
    parent[n] = '\0';
    return openat(dirfd, n == 0 ? "." : parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

enum err_code fs_remove_tree(int dirfd, const char *path, struct err *e)
{
    struct remover r = { .top = path };
    fd_auto parent = -1;
    fd_auto fd = -1;
    char name[256];
    struct stat st;
    int sys;

    parent = open_parent(dirfd, path, name);
    if (parent < 0)
        return errno == ENOENT ? ERR_OK : err_sys(e, errno, "remove %s", path);
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return ERR_OK;
    if (errno == ENOTDIR) {
        if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
            return ERR_OK;
        return base_tree_fail(&r, errno, NULL, e);
    }
    if (errno != ENOTEMPTY && errno != EEXIST)
        return base_tree_fail(&r, errno, NULL, e);

    if (fstat(parent, &st) != 0)
        return err_sys(e, errno, "stat folder of %s", path);
    fd = base_tree_enter(parent, name);
    if (fd < 0)
        return errno == ENOENT ? ERR_OK : base_tree_fail(&r, errno, NULL, e);
    sys = base_tree_push(&r, take_fd(&fd), NULL);
    if (sys != 0)
        base_tree_fail(&r, sys, NULL, e);
    else
        sys = remove_levels(&r, e) == ERR_OK ? 0 : -1;
    remover_done(&r);
    if (sys != 0)
        return e->code;
    r = (struct remover){ .top = path };
    if (unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        return base_tree_fail(&r, errno, NULL, e);
    return ERR_OK;
}

void fs_remove_quietly(int dirfd, const char *path)
{
    struct err e = { 0 };

    if (unlinkat(dirfd, path, 0) == 0 || errno == ENOENT)
        return;
    if ((errno == EISDIR || errno == EPERM) && (unlinkat(dirfd, path, AT_REMOVEDIR) == 0 || errno == ENOENT))
        return;
    err_sys(&e, errno, "remove %s", path);
    log_debug("not removed", F_ERR(&e));
}
