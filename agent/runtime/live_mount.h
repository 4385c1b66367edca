/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_mount - a bind mount of a running container that shows one file or folder of a volume shows, from one
 * moment to the next, another one: what the same path of the volume leads to now.
 *
 * A mount holds on to its inode, so it must be replaced, and taking it away first would show what lies below
 * for a moment.  Instead the new mount is put beneath the old one, which is then taken off: whoever opens the
 * path gets the old file or the new one, and who has the old one open keeps it.  The kernel does that with
 * MOVE_MOUNT_BENEATH (Linux 6.5).  Before, beneath is where it puts a mount that propagates to a place which
 * is covered already (Linux 4.11): the mount that holds the place becomes, for that time, the slave of a copy
 * of itself in a mount namespace of the child, where nothing covers the place.
 *
 * The container may rename folders and exchange them with symlinks all the while.  So no path decides: a
 * mount is known by its id and by what it shows, mounted and unmounted through a descriptor.  One whose
 * folder has another name by now is found there.
 *
 * Killed halfway, at most the new mount lies unseen beneath the old one; the next call takes off all above.
 * The copy ends with the child, and with it what it did to the mount below.
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
    const char *id; /* of the container, and its first process */
    pid_t pid;
    const char *userns; /* its pod's user namespace, mounts are mapped to it; NULL: none */
    const struct live_mount *v;
    size_t n;
};

#define LIVE_MOUNTS_MAX 1000 /* of one container */

/*
 * For a forked child (proc_call), which it leaves in the container's mount namespace.  A path that the volume
 * does not have any more stays mounted as it was; one that is up to date is not touched.
 * ERR_NOT_FOUND: the container is gone.  ERR_PRECONDITION: something else is mounted there.  Whatever failed
 * may be tried again.
 */
enum err_code live_mounts_follow(const struct live_mounts *l, struct err *e) MUST_CHECK;
#endif
