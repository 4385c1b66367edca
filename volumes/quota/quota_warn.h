/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota_warn - the kernel's warnings about quotas (generic netlink, family VFS_DQUOT, group "events"): a
 * project has passed its soft limit or reached its hard one. So nothing has to be polled.
 *
 * ext4 sends one warning when usage passes the limit, XFS one for each allocation above it. A turn of the
 * loop reports each project and type once, but a writer that continues would wake the agent repeatedly: on
 * QUOTA_NL_BSOFTWARN, remove the limit or raise it (quota_set()). Writes that a hard limit refuses warn as
 * well on XFS, as often as a program tries: a flood is read with pauses of 50 to 400 ms. Warnings can be lost
 * when the socket's buffer is full; that is reported as a warning about everything. Loop thread, in the
 * initial network namespace: the kernel sends them there only.
 */
#ifndef VOLUMES_QUOTA_QUOTA_WARN_H
#define VOLUMES_QUOTA_QUOTA_WARN_H
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct quota_warn;
struct quota_warning {
    bool lost; /* some were lost: check everything; the other members are 0 */
    dev_t device;
    uint32_t project;
    unsigned type; /* QUOTA_NL_BSOFTWARN, QUOTA_NL_BHARDWARN, QUOTA_NL_IHARDWARN ... (linux/quota.h) */
};
/* fn must not close. ERR_PRECONDITION: this kernel has no such family (CONFIG_QUOTA_NETLINK_INTERFACE). */
enum err_code quota_warn_open(struct quota_warn **ret, uv_loop_t *loop,
                              void (*fn)(const struct quota_warning *w, void *arg), void *arg,
                              struct err *e) MUST_CHECK;
/* NULL is fine. `closed` is called when its handles are closed; may be NULL. */
void quota_warn_close(struct quota_warn *q, void (*closed)(void *arg), void *arg);
#endif
