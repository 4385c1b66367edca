/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_mount - atomically replaces, in a running container, the bind mount of a file or folder of a volume
 * with the current target of the same path in the volume.
 *
 * A mount refers to an inode, so it must be replaced, but unmounting it first would briefly expose the files
 * below. Instead the new mount is placed beneath the old one, which is then unmounted: opening the path
 * yields the old file or the new one, and open files stay valid. The kernel offers this as MOVE_MOUNT_BENEATH
 * (Linux 6.5). On older kernels, a mount that propagates to an already covered place is put beneath (Linux
 * 4.11): so the mount containing the place temporarily becomes the slave of a copy of itself in a mount
 * namespace of the child, where the place is not covered.
 *
 * The container may rename folders and exchange them with symlinks at any time. So paths are not trusted: a
 * mount is identified by its id and its content, and mounted and unmounted by descriptor. A mount whose
 * folder was renamed is found at its new path.
 *
 * If killed halfway, at most the new mount stays hidden beneath the old one; the next call removes everything
 * above. The copy, and its effect on the mount below, ends with the child.
 */
#ifndef AGENT_RUNTIME_LIVE_MOUNT_H
#define AGENT_RUNTIME_LIVE_MOUNT_H
#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

struct live_mount {
    const char *volume_path; /* on the host */
    const char *sub;         /* below it */
    const char *destination; /* in the container */
};

struct live_mounts {
    const char *id; /* of the container, and its main process */
    pid_t pid;
    const char *userns; /* its pod's user namespace, to which mounts are mapped; may be NULL */
    const struct live_mount *v;
    size_t n;
};

#define LIVE_MOUNTS_MAX 1000 /* per container */

/* For a forked child (proc_call), which is left in the container's mount namespace. If a path no longer
 * exists in the volume, its mount is kept; a mount that is up to date is not touched. ERR_NOT_FOUND: the
 * container no longer exists. ERR_PRECONDITION: another mount is at the destination. Failed mounts may be
 * retried. */
enum err_code live_mounts_follow(const struct live_mounts *l, struct err *e) MUST_CHECK;
#endif
