/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/device_place.h"

#include "base/files/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define MODE_FOLDER 0750 /* kubelet's */

static enum err_code make_parent(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    str_auto parent = strndup(path, (size_t)(slash - path));

    return parent != NULL ? fs_mkdirs(parent, MODE_FOLDER, e) : err_nomem(e);
}

enum err_code csi_block_make(const struct csi_paths *p, struct err *e)
{
    if (fs_mkdirs(p->publish, MODE_FOLDER, e) != ERR_OK || make_parent(p->link, e) != ERR_OK)
        return e->code;
    if (symlink(p->target, p->link) == 0 || errno == EEXIST)
        return ERR_OK;
    return err_sys(e, errno, "link %s", p->link);
}

enum err_code csi_block_map(const struct csi_paths *p, struct err *e)
{
    fd_auto fd = -1;

    switch (presence_of(fs_look_mountpoint(p->map, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_PRESENT:
        return ERR_OK;
    case PRESENCE_ABSENT:
        break;
    }
    if (make_parent(p->map, e) != ERR_OK)
        return e->code;
    fd = open(p->map, O_CREAT | O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_sys(e, errno, "create %s", p->map);
    if (mount(p->target, p->map, NULL, MS_BIND, NULL) != 0)
        return err_sys(e, errno, "bind %s to %s", p->target, p->map);
    return ERR_OK;
}

enum err_code csi_block_unmap(const struct csi_paths *p, struct err *e)
{
    for (;;) {
        switch (presence_of(fs_look_mountpoint(p->map, e))) {
        case PRESENCE_UNKNOWN:
            return e->code;
        case PRESENCE_PRESENT:
            if (umount2(p->map, UMOUNT_NOFOLLOW) != 0)
                return err_sys(e, errno, "unmount %s", p->map);
            continue;
        case PRESENCE_ABSENT:
            break;
        }
        break;
    }
    return unlink(p->map) == 0 || errno == ENOENT || errno == ENOTDIR
               ? ERR_OK
               : err_sys(e, errno, "remove %s", p->map);
}

enum err_code csi_block_remove(const struct csi_paths *p, struct err *e)
{
    if (csi_place_remove_target(p->target, e) != ERR_OK)
        return e->code;
    return unlink(p->link) == 0 || errno == ENOENT ? ERR_OK : err_sys(e, errno, "remove %s", p->link);
}
