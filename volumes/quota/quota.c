/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/quota/quota.h"

#include "volumes/quota/internal.h"

#include <errno.h>
#include <linux/dqblk_xfs.h>
#include <linux/quota.h>

#define UNIT 512u                     /* basic blocks of dqblk_xfs.h */
#define LIMIT_MAX (UINT64_C(1) << 62) /* ext4 takes 2^63 - 1 bytes */

static uint64_t to_bytes(uint64_t units)
{
    return units > UINT64_MAX / UNIT ? UINT64_MAX : units * UNIT;
}

static uint64_t to_units(uint64_t bytes)
{
    return (bytes + UNIT - 1) / UNIT;
}

static struct quota_usage usage_of(const struct fs_disk_quota *d)
{
    return (struct quota_usage){ .bytes = to_bytes(d->d_bcount),
                                 .inodes = d->d_icount,
                                 .hard_bytes = to_bytes(d->d_blk_hardlimit),
                                 .soft_bytes = to_bytes(d->d_blk_softlimit),
                                 .hard_inodes = d->d_ino_hardlimit };
}

static bool is_unused(const struct quota_usage *u)
{
    return u->bytes == 0 && u->inodes == 0 && u->hard_bytes == 0 && u->soft_bytes == 0 && u->hard_inodes == 0;
}

static enum err_code failed(const struct quota_fs *f, int sys, const char *doing, uint32_t project,
                            struct err *e)
{
    if (quota_is_off(sys))
        return err_set(e, ERR_PRECONDITION, "%s of project %u: %s is without project quotas now", doing,
                       project, f->type);
    return err_sys(e, sys, "%s of project %u", doing, project);
}

enum err_code quota_get(const struct quota_fs *f, uint32_t project, struct quota_usage *ret, struct err *e)
{
    struct fs_disk_quota d = { .d_version = FS_DQUOT_VERSION };
    int sys = f->call(f, Q_XGETQUOTA, project, &d);

    if (sys == ENOENT) { /* XFS: it never had anything */
        *ret = (struct quota_usage){ 0 };
        return ERR_OK;
    }
    if (sys != 0)
        return failed(f, sys, "read usage", project, e);
    *ret = usage_of(&d);
    return ERR_OK;
}

static enum err_code check_limits(const struct quota_fs *f, uint32_t project, const struct quota_limits *l,
                                  struct err *e)
{
    if (project == 0)
        return err_set(e, ERR_INVALID, "set limits: project 0 is everything without a project");
    if (l->hard_bytes > LIMIT_MAX || l->soft_bytes > LIMIT_MAX || l->hard_inodes > LIMIT_MAX)
        return err_set(e, ERR_INVALID, "set limits of project %u: at most 2^62 is possible", project);
    if (l->hard_bytes != 0 && l->soft_bytes > l->hard_bytes)
        return err_set(e, ERR_INVALID, "set limits of project %u: the soft one is above the hard one",
                       project);
    if (l->soft_bytes != 0 && !f->warns)
        return err_set(e, ERR_PRECONDITION,
                       "set limits of project %u: soft ones would be enforced within %d s, or do not warn",
                       project, QUOTA_GRACE_MIN_S);
    return ERR_OK;
}

enum err_code quota_set(const struct quota_fs *f, uint32_t project, const struct quota_limits *l,
                        struct err *e)
{
    struct fs_disk_quota d = { .d_version = FS_DQUOT_VERSION,
                               .d_flags = FS_PROJ_QUOTA,
                               .d_fieldmask = FS_DQ_BHARD | FS_DQ_BSOFT | FS_DQ_IHARD | FS_DQ_ISOFT,
                               .d_id = project,
                               .d_blk_hardlimit = to_units(l->hard_bytes),
                               .d_blk_softlimit = to_units(l->soft_bytes),
                               .d_ino_hardlimit = l->hard_inodes };
    int sys;

    if (check_limits(f, project, l, e) != ERR_OK)
        return e->code;
    if (l->soft_bytes != 0) {
        /* When a soft limit is enforced, in seconds since 1970: in 2174. Kernels before 5.10 do not know the
         * upper byte and see 2038; XFS without big time stamps limits it to 2106. Ignored below the limit. */
        d.d_fieldmask |= FS_DQ_BTIMER | FS_DQ_BIGTIME;
        d.d_btimer = INT32_MAX;
        d.d_btimer_hi = 1;
    }
    sys = f->call(f, Q_XSETQLIM, project, &d);
    return sys == 0 ? ERR_OK : failed(f, sys, "set limits", project, e);
}

enum err_code quota_each(const struct quota_fs *f,
                         void (*fn)(uint32_t project, const struct quota_usage *u, void *arg), void *arg,
                         struct err *e)
{
    for (uint32_t id = 0;;) {
        struct fs_disk_quota d = { .d_version = FS_DQUOT_VERSION };
        struct quota_usage u;
        int sys = f->call(f, Q_XGETNEXTQUOTA, id, &d);

        if (sys == ENOENT)
            return ERR_OK;
        if (sys != 0)
            return failed(f, sys, "list usage", id, e);
        if (d.d_id < id)
            return err_set(e, ERR_INTERNAL, "list usage: project %u after %u", d.d_id, id);
        u = usage_of(&d);
        if (!is_unused(&u))
            fn(d.d_id, &u, arg);
        if (d.d_id == UINT32_MAX)
            return ERR_OK;
        id = d.d_id + 1;
    }
}
