/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sub_path - mounts a part of a volume, even while the pod changes the volume.
 *
 * The kernel resolves the path once, beneath the volume's root, and the resulting descriptor is bound, so
 * swapping a symlink in between does not help an attacker.
 */
#include "base/files/fs.h"
#include "volumes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define MAKE_TRIES 8 /* for one folder that someone else makes and removes */

/* An absolute symlink inside a hostPath volume may lead back into the volume (/data/current -> /data/v1),
 * which kubelet allows but RESOLVE_BENEATH does not. So such a path is resolved here, and the result opened
 * again beneath the root: a change in between fails like any other path that leads out. */
static int sub_path_open_resolved(int root, const struct vol_sub_path *s, struct err *e)
{
    char path[VOL_PATH_MAX];
    struct err left = *e;

    *e = (struct err){ 0 };
    if (vol_join(path, sizeof(path), e, "%s/%s", s->volume_path, s->sub) != ERR_OK)
        return -1;
    str_auto base = realpath(s->volume_path, NULL);
    str_auto full = realpath(path, NULL);
    size_t n = base != NULL ? strlen(base) : 0;
    if (base == NULL || full == NULL || strncmp(full, base, n) != 0 || (full[n] != '/' && full[n] != '\0')) {
        *e = left; /* it does leave the volume */
        return -1;
    }
    return fs_open_beneath(root, full[n] == '\0' ? "." : full + n + 1, O_PATH, 0, e);
}

static int open_sub(int root, const struct vol_sub_path *s, const char *path, struct err *e)
{
    int fd = fs_open_beneath(root, path, O_PATH, 0, e);

    if (fd < 0 && e->sys == EXDEV && path == s->sub)
        fd = sub_path_open_resolved(root, s, e);
    return fd;
}

/* Makes one missing folder with the mode of the volume's root. */
static enum err_code make_one(int parent, const char *name, mode_t mode, struct err *e)
{
    if (mkdirat(parent, name, 0700) != 0)
        return errno == EEXIST ? ERR_OK : err_sys(e, errno, "mkdir %s", name);
    fd_auto fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, mode) != 0)
        return err_sys(e, errno, "chmod %s", name);
    return ERR_OK;
}

/* Makes the missing part of s->sub, from the front; existing symlinks are followed beneath the root. */
static enum err_code make_missing(int root, const struct vol_sub_path *s, mode_t mode, struct err *e)
{
    char path[VOL_PATH_MAX], name[256];
    fd_auto parent = fs_open_beneath(root, ".", O_PATH | O_DIRECTORY, 0, e);

    if (parent < 0)
        return e->code;
    for (const char *p = s->sub; *p != '\0';) {
        size_t n = strcspn(p, "/");
        snprintf(path, sizeof(path), "%.*s", (int)(p + n - s->sub), s->sub);
        snprintf(name, sizeof(name), "%.*s", (int)n, p);
        int fd = -1;
        for (unsigned i = 0; fd < 0; i++) {
            *e = (struct err){ 0 };
            fd = fs_open_beneath(root, path, O_PATH | O_DIRECTORY, 0, e);
            if (fd < 0 && (e->sys != ENOENT || i == MAKE_TRIES))
                return e->code;
            if (fd < 0) {
                *e = (struct err){ 0 };
                if (make_one(parent, name, mode, e) != ERR_OK)
                    return e->code;
            }
        }
        close(parent);
        parent = fd;
        p += n;
        p += strspn(p, "/");
    }
    return ERR_OK;
}

/* Opens the object to bind, as O_PATH. */
static int sub_path_resolve(const struct vol_sub_path *s, struct err *e)
{
    fd_auto root = open(s->volume_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (root < 0 || fstat(root, &st) != 0) {
        err_sys(e, errno, "open volume %s", s->volume_path);
        return -1;
    }
    int fd = open_sub(root, s, s->sub, e);
    if (fd < 0 && e->sys == ENOENT) {
        *e = (struct err){ 0 };
        if (make_missing(root, s, st.st_mode & 02777, e) != ERR_OK)
            return -1;
        fd = open_sub(root, s, s->sub, e);
    }
    return fd;
}

/* Makes the empty folder or file to mount over. */
static enum err_code make_target(int parent, const char *name, bool is_dir, struct err *e)
{
    struct stat st;

    switch (presence_of(fs_look_at(parent, name, &st, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_PRESENT:
        if (S_ISDIR(st.st_mode) == is_dir)
            return ERR_OK;
        if (unlinkat(parent, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) != 0)
            return err_sys(e, errno, "remove %s", name);
        break;
    case PRESENCE_ABSENT:
        break;
    }
    if (is_dir)
        return mkdirat(parent, name, 0750) != 0 ? err_sys(e, errno, "mkdir %s", name) : ERR_OK;
    fd_auto fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
    return fd < 0 ? err_sys(e, errno, "create %s", name) : ERR_OK;
}

/* Removes another mount at the target. */
static enum err_code look_at_target(const char *target, const struct stat *wanted, bool *ret_bound,
                                    struct err *e)
{
    struct presence mounted = fs_look_mountpoint(target, e);
    struct stat st;

    *ret_bound = false;
    if (presence_is_unknown(mounted))
        return e->code;
    if (presence_is_absent(mounted))
        return ERR_OK;
    if (stat(target, &st) != 0)
        return err_sys(e, errno, "stat %s", target);
    *ret_bound = st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino;
    return *ret_bound ? ERR_OK : fs_unmount_below(target, e);
}

enum err_code vol_sub_path_bind(struct vol_node *n, const struct vol_sub_path *s, char *ret_path, size_t size,
                                struct err *e)
{
    char parent[900], target[VOL_PATH_MAX], name[16], source[40];
    struct stat st;

    if (vol_check_name("pod uid", s->uid, e) != ERR_OK || vol_check_name("volume", s->volume, e) != ERR_OK ||
        vol_check_name("container", s->container, e) != ERR_OK)
        return e->code;
    if (!fs_path_is_safe(s->sub))
        return err_set(e, ERR_INVALID, "subPath \"%.256s\": must be a relative path without '..'", s->sub);
    snprintf(name, sizeof(name), "%u", s->index);
    if (vol_join(parent, sizeof(parent), e, "%s/volume-subpaths/%s/%s", s->uid, s->volume, s->container) !=
            ERR_OK ||
        vol_join(target, sizeof(target), e, "%s/%s/%s", n->pods, parent, name) != ERR_OK)
        return err_wrap(e, "subPath %.256s", s->sub);

    fd_auto found = sub_path_resolve(s, e);
    if (found < 0)
        return err_wrap(e, "subPath %.256s", s->sub);
    if (fstat(found, &st) != 0)
        return err_sys(e, errno, "subPath %.256s: stat", s->sub);
    if (S_ISLNK(st.st_mode)) /* if bind-mounted, it could lead anywhere; sub_path_resolve() never returns
                              * one */
        return err_set(e, ERR_INTERNAL, "subPath %.256s: is a symlink", s->sub);
    bool bound;
    if (look_at_target(target, &st, &bound, e) != ERR_OK)
        return err_wrap(e, "subPath %.256s", s->sub);
    if (bound)
        return vol_join(ret_path, size, e, "%s", target);
    /* By path: the forked child that runs this has none of the node's descriptors. */
    fd_auto pods = open(n->pods, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (pods < 0)
        return err_sys(e, errno, "subPath %.256s: open %s", s->sub, n->pods);
    if (fs_mkdirs_beneath(pods, parent, 0750, e) != ERR_OK)
        return err_wrap(e, "subPath %.256s", s->sub);
    fd_auto dir = openat(pods, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, errno, "subPath %.256s: open %s", s->sub, parent);
    if (make_target(dir, name, S_ISDIR(st.st_mode), e) != ERR_OK)
        return err_wrap(e, "subPath %.256s", s->sub);
    snprintf(source, sizeof(source), "/proc/self/fd/%d", found);
    if (mount(source, target, NULL, MS_BIND, NULL) != 0)
        return err_sys(e, errno, "subPath %.256s: bind to %s", s->sub, target);
    if (!s->shared && mount(NULL, target, NULL, MS_SLAVE, NULL) != 0)
        return err_sys(e, errno, "subPath %.256s: set the propagation of %s", s->sub, target);
    return vol_join(ret_path, size, e, "%s", target);
}
