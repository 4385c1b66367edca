#include "agent/runtime/idmap.h"

#include "base/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int idmap_open(const struct rt_config *c, struct err *e)
{
    int fd = open(c->userns, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        err_sys(e, errno, "open %s", c->userns);
    return fd;
}

int idmap_tree(const char *path, int userns_fd, uint64_t propagation, struct err *e)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP,
                               .propagation = propagation,
                               .userns_fd = (uint64_t)userns_fd };
    fd_auto fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    if (fd < 0) {
        err_sys(e, errno, "clone the mount of %s", path);
        return -1;
    }
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) == 0)
        return take_fd(&fd);
    if (errno == EINVAL || errno == ENOSYS || errno == EPERM)
        err_set(e, ERR_UNIMPLEMENTED,
                "hostUsers: false: %s cannot be mapped to the pod's users: this kernel has no idmapped "
                "mounts for its "
                "file system, or for one that is mounted below it (%s)",
                path, strerror(errno));
    else
        err_sys(e, errno, "map %s to the pod's users", path);
    return -1;
}

/* What is mounted must find a file or a folder as it is one itself. */
static enum err_code make_point(int tree, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(tree, &st) != 0)
        return err_sys(e, errno, "stat what is mounted on %s", path);
    if (S_ISDIR(st.st_mode))
        return mkdir(path, 0700) == 0 ? ERR_OK : err_sys(e, errno, "create %s", path);
    return mknod(path, S_IFREG | 0600, 0) == 0 ? ERR_OK : err_sys(e, errno, "create %s", path);
}

static enum err_code bind_mapped(const char *source, int userns_fd, const char *target, struct err *e)
{
    fd_auto tree = idmap_tree(source, userns_fd, 0, e);

    if (tree < 0 || make_point(tree, target, e) != ERR_OK)
        return e->code;
    if (move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return err_sys(e, errno, "mount on %s", target);
    return ERR_OK;
}

enum err_code idmap_mounts(const struct rt_config *c, int userns_fd, const char *folder,
                           struct rt_config *ret, struct rt_mount **ret_mounts, struct err *e)
{
    size_t n = c->n_mounts + 1, path_size = strlen(folder) + 16;
    struct rt_mount *m = calloc(1, n * (sizeof(*m) + path_size));
    char *path = m != NULL ? (char *)(m + n) : NULL;

    if (m == NULL)
        return err_nomem(e);
    *ret_mounts = m;
    *ret = *c;
    ret->mounts = m;
    if (mkdir(folder, 0711) != 0)
        return err_sys(e, errno, "create %s", folder);
    for (size_t i = 0; i < n; i++, path += path_size) {
        bool shm = i == c->n_mounts;
        const char *source = shm ? c->shm_path : c->mounts[i].source;

        if (source == NULL)
            continue;
        snprintf(path, path_size, "%s/%zu", folder, i);
        if (bind_mapped(source, userns_fd, path, e) != ERR_OK)
            return shm ? e->code : err_wrap(e, "mount at %s", c->mounts[i].destination);
        if (shm) {
            ret->shm_path = path;
        } else {
            m[i] = c->mounts[i];
            m[i].source = path;
        }
    }
    return ERR_OK;
}
