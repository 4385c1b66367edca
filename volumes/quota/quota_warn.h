/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota_warn - the kernel's warnings about quotas (generic netlink, family VFS_DQUOT, group "events"): a
 * project has passed its soft limit or reached its hard one. So nothing has to be polled. Warnings can be
 * lost when the socket's buffer is full; that is reported as a warning about everything. Loop thread.
 */
#ifndef VOLUMES_QUOTA_QUOTA_WARN_H
#define VOLUMES_QUOTA_QUOTA_WARN_H
#include "base/error.h"

#include <sys/types.h>
#include <uv.h>

struct quota_warn;
struct quota_warning {
    bool lost; /* some were lost: look at everything */
    dev_t device;
    uint32_t project;
    unsigned type; /* QUOTA_NL_BSOFTWARN, ... (linux/quota.h) */
};
/* ERR_PRECONDITION: this kernel has no such family (CONFIG_QUOTA_NETLINK_INTERFACE). */
enum err_code quota_warn_open(struct quota_warn **ret, uv_loop_t *loop,
                              void (*fn)(const struct quota_warning *w, void *arg), void *arg,
                              struct err *e) MUST_CHECK;
/* `closed` is called when its handles are closed; may be NULL. */
void quota_warn_close(struct quota_warn *w, void (*closed)(void *arg), void *arg);
#endif
