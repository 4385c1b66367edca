/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/usage/claim_usage.h"

#include "agent/pod/core/claim_link.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/project/project.h"
#include "agent/pod/volume/volumes.h"
#include "base/clock.h"
#include "volumes/csi/messages.h"

#include <sys/statvfs.h>

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

bool fs_usage_read(const char *path, int64_t at_ns, struct fs_usage *ret)
{
    struct statvfs v;

    if (statvfs(path, &v) != 0)
        return false;
    *ret = (struct fs_usage){
        .at_ns = at_ns,
        .sized = true,
        .capacity_bytes = (uint64_t)v.f_blocks * v.f_frsize,
        .available_bytes = (uint64_t)v.f_bavail * v.f_frsize,
        .used_bytes = (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize,
        .inodes = v.f_files,
        .inodes_free = v.f_ffree,
        .inodes_used = less(v.f_files, v.f_ffree),
    };
    return true;
}

/* Values that the driver does not report are 0, as in kubelet. */
bool driver_usage(const struct pod *p, const char *volume, struct fs_usage *ret)
{
    struct csi_usage u;
    int64_t at_ns;

    if (!volumes_driver_usage(p, volume, &u, &at_ns))
        return false;
    *ret = (struct fs_usage){
        .at_ns = at_ns,
        .sized = true,
        .capacity_bytes = u.total_bytes,
        .available_bytes = u.available_bytes,
        .used_bytes = u.used_bytes,
        .inodes = u.total_inodes,
        .inodes_free = u.available_inodes,
        .inodes_used = u.used_inodes,
        .has_health = u.has_condition && p->node->o.resources.volume_health,
        .abnormal = u.abnormal,
    };
    return true;
}

bool mounted_usage(const struct pod *p, const char *volume, struct fs_usage *ret)
{
    struct volume_space v;

    if (!volumes_space(p, volume, &v))
        return false;
    *ret = (struct fs_usage){
        .at_ns = v.at_ns,
        .sized = true,
        .capacity_bytes = v.capacity_bytes,
        .available_bytes = v.available_bytes,
        .used_bytes = v.used_bytes,
        .inodes = v.inodes,
        .inodes_free = v.inodes_free,
        .inodes_used = less(v.inodes, v.inodes_free),
    };
    return true;
}

/* A folder that a quota counts has the quota's figures. */
static void count_quota(const struct pod *p, const char *path, struct fs_usage *ret)
{
    struct quota_usage used;

    if (!project_usage(p->node, path, &used))
        return;
    ret->used_bytes = used.bytes;
    ret->inodes_used = used.inodes;
    if (used.hard_bytes > 0) {
        ret->capacity_bytes = used.hard_bytes;
        ret->available_bytes = less(used.hard_bytes, used.bytes);
    }
}

bool claim_usage(const struct pod *p, const struct api_volume *v, struct fs_usage *ret)
{
    struct claim_place at;
    int64_t now_ns = clock_wall_ns();

    if (v->kind != API_VOL_CLAIM || claim_place(p, v, &at, ERR_IGNORED) != ERR_OK)
        return false;
    if (volumes_is_driver(p, v->name))
        return driver_usage(p, v->name, ret);
    if (mounted_usage(p, v->name, ret))
        return true;
    if (!claim_place_is_own(&at)) {
        *ret = (struct fs_usage){ .at_ns = now_ns };
        return true;
    }
    if (!fs_usage_read(at.path, now_ns, ret))
        return false;
    count_quota(p, at.path, ret);
    return true;
}
