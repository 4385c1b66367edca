/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota - project quotas of the kernel on XFS and ext4: usage of a tree in bytes and inodes, exact and at
 * once, with removed files that are still open; and limits that the kernel enforces.
 *
 * A project is a number that a folder and everything made below it carries (FS_XFLAG_PROJINHERIT). The kernel
 * keeps the usage of each number on each file system. Calls take microseconds and never walk a tree, except
 * quota_assign() for a folder that has content already. quotactl_fd(2) (Linux 5.14) is used where the kernel
 * has it, else quotactl(2) with the device of the mount.
 *
 * Sources: quotactl(2), linux/dqblk_xfs.h (sizes in units of 512 bytes), linux/fs.h (struct fsxattr);
 * kubelet's pkg/volume/util/fsquota for names and the first id. Blocking: local file systems, quick. Any
 * thread.
 */
#ifndef VOLUMES_QUOTA_QUOTA_H
#define VOLUMES_QUOTA_QUOTA_H
#include "base/error.h"
#include "base/presence.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct quota_fs; /* one file system on which project quotas work */

/*
 * The file system of `path`. Keeps a descriptor of it open. ERR_PRECONDITION: it has no project quotas; the
 * text says why ("ext4 is mounted without prjquota", "xfs: project quotas are accounted but not enforced" is
 * no error, see quota_fs_enforces()). Other codes: it could not be found out.
 */
enum err_code quota_fs_open(struct quota_fs **ret, const char *path, struct err *e) MUST_CHECK;
void quota_fs_close(struct quota_fs *f); /* NULL is fine */
dev_t quota_fs_device(const struct quota_fs *f);
const char *quota_fs_type(const struct quota_fs *f); /* "xfs", "ext4" */
bool quota_fs_enforces(const struct quota_fs *f);    /* limits act; otherwise usage is only counted */
/* It still counts: quotas can be switched off at any time. ERR_PRECONDITION: not any more. */
enum err_code quota_fs_check(const struct quota_fs *f, struct err *e) MUST_CHECK;

struct quota_usage {
    uint64_t bytes, inodes;
    uint64_t hard_bytes, soft_bytes, hard_inodes; /* 0: no limit */
};
/* A project that nothing uses has zeros. */
enum err_code quota_get(const struct quota_fs *f, uint32_t project, struct quota_usage *ret,
                        struct err *e) MUST_CHECK;

struct quota_limits { /* 0: no limit. Multiples of 512 bytes, rounded up */
    uint64_t hard_bytes, soft_bytes, hard_inodes;
};
/* A soft limit only warns (quota_warn.h): its time is set so far away that it is never enforced. */
enum err_code quota_set(const struct quota_fs *f, uint32_t project, const struct quota_limits *l,
                        struct err *e) MUST_CHECK;

/* The project of a folder, 0: none. Follows no symlink. */
struct presence quota_project_of(const char *dir, uint32_t *ret_project, struct err *e) MUST_CHECK;
/* Gives an empty folder (content below it: each entry is visited, without leaving the file system or
 * following symlinks) its project. */
enum err_code quota_assign(int dir_fd, uint32_t project, struct err *e) MUST_CHECK;

/* Calls fn for each project of the file system with usage or limits (Q_XGETNEXTQUOTA). */
enum err_code quota_each(const struct quota_fs *f,
                         void (*fn)(uint32_t project, const struct quota_usage *u, void *arg), void *arg,
                         struct err *e) MUST_CHECK;
#endif
