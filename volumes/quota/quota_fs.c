/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/quota/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/magic.h>
#include <linux/quota.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* struct xfs_fsop_geom_v1 of xfs_fs.h, whose package is not needed otherwise. The kernel writes 112 bytes. */
struct geometry {
    uint32_t sizes[8];
    uint64_t counts[4];
    unsigned char uuid[16];
    uint32_t rest[8];
};
#define GEOMETRY _IOR('X', 100, struct geometry)

/* The fsid of ext4 comes from its UUID, that of XFS from the device's number. */
static enum err_code identify(struct quota_fs *f, const struct statfs *fs, struct err *e)
{
    struct geometry g = { 0 };
    uint32_t id[2];
    size_t n;

    _Static_assert(sizeof(g) == 112, "as in the kernel");
    if (strcmp(f->type, "xfs") != 0) {
        memcpy(id, &fs->f_fsid, sizeof(id));
        snprintf(f->identity, sizeof(f->identity), "%s-%08x%08x", f->type, id[1], id[0]);
        return ERR_OK;
    }
    if (ioctl(f->fd, GEOMETRY, &g) != 0)
        return err_sys(e, errno, "read the UUID");
    n = (size_t)snprintf(f->identity, sizeof(f->identity), "%s-", f->type);
    for (size_t i = 0; i < sizeof(g.uuid); i++)
        n += (size_t)snprintf(f->identity + n, sizeof(f->identity) - n, "%02x", g.uuid[i]);
    return ERR_OK;
}

enum err_code quota_fs_check(struct quota_fs *f, struct err *e)
{
    struct fs_quota_stat state = { .qs_version = FS_QSTAT_VERSION };
    struct if_dqinfo info = { 0 };
    int sys = f->call(f, Q_XGETQSTAT, 0, &state);

    if (sys != 0 && !quota_is_off(sys))
        return err_sys(e, sys, "read the state of quotas");
    if (sys != 0 || (state.qs_flags & FS_QUOTA_PDQ_ACCT) == 0)
        return err_set(e, ERR_PRECONDITION, "%s without project quotas", f->type);
    f->enforces = (state.qs_flags & FS_QUOTA_PDQ_ENFD) != 0;
    f->warns = f->enforces && f->call(f, Q_GETINFO, 0, &info) == 0 && info.dqi_bgrace >= QUOTA_GRACE_MIN_S;
    return ERR_OK;
}

static enum err_code look(struct quota_fs *f, struct err *e)
{
    struct statfs fs;
    struct stat st;

    if (fstat(f->fd, &st) != 0 || fstatfs(f->fd, &fs) != 0)
        return err_sys(e, errno, "stat");
    if (fs.f_type != XFS_SUPER_MAGIC && fs.f_type != EXT4_SUPER_MAGIC)
        return err_set(e, ERR_PRECONDITION, "not XFS or ext4");
    f->type = fs.f_type == XFS_SUPER_MAGIC ? "xfs" : "ext4";
    f->device = st.st_dev;
    f->call = quota_call_fd_exists() ? quota_call_fd : quota_call_device;
    if (f->call == quota_call_device && quota_find_device(f, e) != ERR_OK)
        return e->code;
    if (quota_fs_check(f, e) != ERR_OK)
        return e->code;
    return identify(f, &fs, e);
}

enum err_code quota_fs_open(struct quota_fs **ret, const char *path, struct err *e)
{
    scoped(quota_fs_close) struct quota_fs *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return err_nomem(e);
    f->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->fd < 0)
        return err_sys(e, errno, "open %s", path);
    if (look(f, e) != ERR_OK)
        return err_wrap(e, "%s", path);
    *ret = take_ptr(&f);
    return ERR_OK;
}

void quota_fs_close(struct quota_fs *f)
{
    if (f == NULL)
        return;
    if (f->fd >= 0)
        close(f->fd);
    free(f->source);
    free(f);
}

dev_t quota_fs_device(const struct quota_fs *f)
{
    return f->device;
}

const char *quota_fs_type(const struct quota_fs *f)
{
    return f->type;
}

const char *quota_fs_identity(const struct quota_fs *f)
{
    return f->identity;
}

bool quota_fs_enforces(const struct quota_fs *f)
{
    return f->enforces;
}

bool quota_fs_warns(const struct quota_fs *f)
{
    return f->warns;
}
