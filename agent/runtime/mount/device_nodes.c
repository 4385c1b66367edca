/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/mount/device_nodes.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEFAULT_MODE 0666 /* of the OCI runtimes */

/* An id outside the pod's range becomes the host's root, which is "nobody" in the pod. */
static uid_t owner_of(const struct rt_config *c, bool given, uint32_t id)
{
    uint32_t own = given ? id : 0;

    return own < c->n_ids ? c->first_id + own : 0;
}

static enum err_code make_node(const struct rt_config *c, const struct rt_node *node, const char *path,
                               struct err *e)
{
    mode_t type = node->type == 'b' ? S_IFBLK : node->type == 'p' ? S_IFIFO : S_IFCHR;
    mode_t mode = (node->has_mode ? node->mode : DEFAULT_MODE) & 0777;

    if (mknod(path, type | 0600, makedev((unsigned)node->major, (unsigned)node->minor)) != 0 ||
        chown(path, owner_of(c, node->has_uid, node->uid), owner_of(c, node->has_gid, node->gid)) != 0 ||
        chmod(path, mode) != 0)
        return err_sys(e, errno, "create device node %s for the pod's users", node->path);
    return ERR_OK;
}

static enum err_code make_all(const struct rt_config *c, const struct rt_nodes *nodes, const char *dir,
                              struct arena *arena, struct rt_config *ret, struct err *e)
{
    struct rt_mount *list = arena_alloc(arena, (c->n_mounts + nodes->n) * sizeof(*list));
    size_t n = c->n_mounts;

    if (list == NULL)
        return err_nomem(e);
    if (n > 0)
        memcpy(list, c->mounts, n * sizeof(*list));
    for (size_t i = 0; i < nodes->n; i++) {
        const char *source = arena_printf(arena, "%s/%zu", dir, i);
        const char *destination = arena_strdup(arena, nodes->v[i].path);

        if (source == NULL || destination == NULL)
            return err_nomem(e);
        if (nodes->v[i].of_host)
            continue;
        if (make_node(c, &nodes->v[i], source, e) != ERR_OK)
            return e->code;
        list[n++] = (struct rt_mount){
            .source = source, .destination = destination, .device = true, .propagation = "rprivate"
        };
    }
    ret->mounts = list;
    ret->n_mounts = n;
    ret->nodes_mounted = true;
    return ERR_OK;
}

enum err_code device_nodes_make(const struct rt_config *c, int rootfs_fd, const char *folder,
                                struct arena *arena, struct rt_config *ret, struct err *e)
{
    const char *dir = arena_printf(arena, "%s/dev", folder);
    struct rt_nodes nodes;
    enum err_code code;

    *ret = *c;
    if (dir == NULL)
        return err_nomem(e);
    if (c->n_devices == 0 && (c->edits == NULL || c->edits->n_nodes == 0))
        return ERR_OK;
    if (rt_nodes_collect(c, rootfs_fd, &nodes, e) != ERR_OK)
        return e->code;
    if (mkdir(dir, 0711) != 0)
        code = err_sys(e, errno, "create %s", dir);
    else if (mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0711,size=64k") != 0)
        code = err_sys(e, errno, "mount a tmpfs on %s", dir);
    else
        code = make_all(c, &nodes, dir, arena, ret, e);
    rt_nodes_done(&nodes);
    return code;
}
