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
 * Limits of projects:
 * - It does not bind the owner of a file. A process in the initial user namespace may give its own files
 *   another project, or none, without a capability (FS_IOC_FSSETXATTR, FS_IOC_SETFLAGS, file_setattr(2)). The
 *   kernel refuses that in any other user namespace. README.md has the consequences.
 * - rename(2) and link(2) from one project into another one fail with EXDEV, so folders between which files
 *   are renamed (an overlay's upper and work folder) need one project, given to the folder above both.
 * - On ext4, processes with CAP_SYS_RESOURCE pass hard limits. XFS makes no exception.
 *
 * Sources: quotactl(2), linux/dqblk_xfs.h (sizes in units of 512 bytes), linux/fs.h (struct fsxattr);
 * kubelet's pkg/volume/util/fsquota for the first id. Blocking: local file systems, quick. Any thread.
 */
#ifndef VOLUMES_QUOTA_QUOTA_H
#define VOLUMES_QUOTA_QUOTA_H
#include "base/error.h"
#include "base/presence.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct quota_fs; /* one file system on which project quotas work */

/*
 * The file system of `path`, a folder. Keeps a descriptor of it open. ERR_PRECONDITION: it has no project
 * quotas; the text says why ("/data: ext4 without project quotas", "/run: not XFS or ext4"). Other codes: it
 * could not be found out.
 */
enum err_code quota_fs_open(struct quota_fs **ret, const char *path, struct err *e) MUST_CHECK;
void quota_fs_close(struct quota_fs *f); /* NULL is fine */
SCOPE_DEFINE(struct quota_fs, quota_fs_close)

dev_t quota_fs_device(const struct quota_fs *f);
const char *quota_fs_type(const struct quota_fs *f); /* "xfs", "ext4" */
/* Names the file system itself, the same after a reboot and below any device: "xfs-<uuid>", "ext4-<fsid>". */
const char *quota_fs_identity(const struct quota_fs *f);
/* Limits act; otherwise usage is only counted, and there are no warnings. As quota_fs_check() saw it last. */
bool quota_fs_enforces(const struct quota_fs *f);
/* Soft limits may be set: they have at least QUOTA_GRACE_MIN_S until they are enforced, and quota_set()
 * prevents that. The time is a setting of the whole file system, also for projects of others, and therefore
 * not changed. */
#define QUOTA_GRACE_MIN_S 3600 /* the kernel's default is 7 days */
bool quota_fs_warns(const struct quota_fs *f);
/* It still counts: quotas can be switched off at any time. ERR_PRECONDITION: not any more. */
enum err_code quota_fs_check(struct quota_fs *f, struct err *e) MUST_CHECK;

struct quota_usage {
    uint64_t bytes, inodes;
    uint64_t hard_bytes, soft_bytes, hard_inodes; /* 0: no limit */
};
/* A project that nothing uses has zeros. ERR_PRECONDITION: quotas were switched off. */
enum err_code quota_get(const struct quota_fs *f, uint32_t project, struct quota_usage *ret,
                        struct err *e) MUST_CHECK;

struct quota_limits { /* 0: no limit. Multiples of 512 bytes, rounded up; a soft one is at most the hard one
                       */
    uint64_t hard_bytes, soft_bytes, hard_inodes;
};
/*
 * Replaces the project's limits. A soft limit only warns (quota_warn.h). The kernel would enforce it when a
 * project has been above it for the file system's grace time; a call while the project is above it sets that
 * moment to 2038 or later. So after a warning, repeat the call or remove the limit. A limit that is already
 * exceeded when it is set causes no warning: read the usage after the call.
 *
 * ERR_PRECONDITION: quotas are off, or a soft limit without quota_fs_warns(). ERR_INVALID: project 0 (on XFS
 * the defaults of all projects), or numbers out of range.
 */
enum err_code quota_set(const struct quota_fs *f, uint32_t project, const struct quota_limits *l,
                        struct err *e) MUST_CHECK;

/* The project of a folder, 0: none. Follows no symlink. */
struct presence quota_project_of(const char *dir, uint32_t *ret_project, struct err *e) MUST_CHECK;
/*
 * Sets the project of a folder and everything below it: visits each folder and regular file, without leaving
 * the file system or following symlinks. Symlinks, sockets, pipes and devices keep their project, and in a
 * folder with another one they can no longer be renamed; so set the project of folders while they are empty.
 * May be repeated after a crash. Before limits are set: usage moves with the files and is refused beyond
 * them. ERR_EXHAUSTED: folders are nested more than QUOTA_DEPTH_MAX deep.
 */
#define QUOTA_DEPTH_MAX 128 /* two descriptors each */
enum err_code quota_assign(int dir_fd, uint32_t project, struct err *e) MUST_CHECK;

/* Calls fn for each project of the file system with usage or limits, in ascending order (Q_XGETNEXTQUOTA),
 * also for 0: everything without a project. */
enum err_code quota_each(const struct quota_fs *f,
                         void (*fn)(uint32_t project, const struct quota_usage *u, void *arg), void *arg,
                         struct err *e) MUST_CHECK;
#endif
