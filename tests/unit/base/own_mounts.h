/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_mounts - a mount namespace of this program's own: the host sees nothing that a test mounts.  runc takes
 * any cgroup mount that it sees, also another program's that is about to go.
 */
#ifndef TESTS_UNIT_BASE_OWN_MOUNTS_H
#define TESTS_UNIT_BASE_OWN_MOUNTS_H
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>

static inline bool own_mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}
#endif
