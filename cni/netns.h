/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netns - a pod's namespaces without a pause process: a thread (with a user namespace that owns them: a
 * child) creates network, IPC and UTS namespaces, sets them up and pins them by bind mounts: <dir>/net
 * <dir>/ipc  <dir>/uts  <dir>/user.
 */
#ifndef CNI_NETNS_H
#define CNI_NETNS_H
#include "base/presence.h"
#include "base/process.h"

#include <stdbool.h>

struct netns_sysctl {
    const char *name; /* "net.ipv4.ip_unprivileged_port_start", dots or slashes */
    const char *value;
};

struct netns_spec {     /* valid, with all it points to, until done: a thread reads it */
    const char *dir;    /* ours, on a mount with shared propagation; made (0700) when missing */
    bool net, ipc, uts; /* which ones to create */
    uint32_t
        first_id; /* 0: no user namespace; else its users and groups 0..n_ids-1 are first_id and on here */
    uint32_t n_ids;
    const char *hostname;               /* set in the new UTS namespace */
    const struct netns_sysctl *sysctls; /* net.* and IPC ones, written inside the namespaces */
    size_t n_sysctls;
};

/*
 * Creates and pins; brings lo up.  Idempotent: when all that is asked for is pinned already, nothing is done
 * (it was set up before it was pinned); when only some of it is, that is removed and all is made anew.
 * Result in done: ERR_OK or what failed; a failed one leaves nothing pinned, except after ERR_DEADLINE and
 * ERR_CANCELLED: then netns_remove().  Sysctls must be namespaced and belong to a namespace that is being
 * created: the host's are never written.  Those of one interface (net.ipv4.conf.eth0.*) cannot exist yet:
 * they are checked here and written by netns_interface_sysctls_start().
 */
void netns_create_start(struct proc_call *c, const struct netns_spec *spec, int ops_cgroup_fd,
                        const char *ops_procs, uv_loop_t *loop, op_done_fn done, void *owner);
/* After ADD: the sysctls of spec that name an interface other than all, default and lo, inside <dir>/net. */
void netns_interface_sysctls_start(struct proc_call *c, const struct netns_spec *spec, uv_loop_t *loop,
                                   op_done_fn done, void *owner);
bool netns_has_interface_sysctls(const struct netns_spec *spec); /* whether there is anything for it to do */
/* Unpins (umount MNT_DETACH, unlink) everything in dir and removes dir. Synchronous, local; idempotent. */
enum err_code netns_remove(const char *dir, struct err *e) MUST_CHECK;
/* Whether dir/<which> ("net", "ipc", "uts", "user") is a pinned namespace (nsfs). */
struct presence netns_look_pinned(const char *dir, const char *which, struct err *e) MUST_CHECK;
#endif
