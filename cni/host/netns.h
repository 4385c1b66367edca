/* SPDX-License-Identifier: Apache-2.0 */
/* netns - a pod's namespaces without a pause process: a thread (with a user namespace that owns them: a
 * child) creates network, IPC and UTS namespaces, sets them up and pins them by bind mounts: <dir>/net
 * <dir>/ipc <dir>/uts <dir>/user. */
#ifndef CNI_HOST_NETNS_H
#define CNI_HOST_NETNS_H
#include "base/presence.h"
#include "base/process/process.h"

#include <stdbool.h>

struct netns_sysctl {
    const char *name; /* "net.ipv4.ip_unprivileged_port_start", dots or slashes */
    const char *value;
};

struct netns_spec {     /* a thread reads it: valid, with everything it points to, until done */
    const char *dir;    /* ours, on a mount with shared propagation; created (0700) if missing */
    bool net, ipc, uts; /* which ones to create */
    uint32_t first_id;  /* 0: no user namespace; otherwise its ids 0..n_ids-1 are first_id and up here */
    uint32_t n_ids;
    const char *hostname;               /* set in the new UTS namespace */
    const struct netns_sysctl *sysctls; /* net.* and IPC ones, written inside the namespaces */
    size_t n_sysctls;
};

/*
 * Creates and pins namespaces; brings lo up. Idempotent: if all are pinned already, nothing is done (they
 * were set up before they were pinned); if only some are, they are removed and all are created again. On
 * failure nothing stays pinned, except after ERR_DEADLINE and ERR_CANCELLED: then call netns_remove().
 * Sysctls must be namespaced and belong to a namespace being created: the host's are never written. Sysctls
 * of an interface (net.ipv4.conf.eth0.*) do not exist yet: they are checked here and written by
 * netns_interface_sysctls_start().
 */
void netns_create_start(struct proc_call *c, const struct netns_spec *spec, int ops_cgroup_fd,
                        const char *ops_procs, uv_loop_t *loop, op_done_fn done, void *owner);
/* After ADD: writes the sysctls of interfaces other than all, default and lo, inside <dir>/net. */
void netns_interface_sysctls_start(struct proc_call *c, const struct netns_spec *spec, uv_loop_t *loop,
                                   op_done_fn done, void *owner);
bool netns_has_interface_sysctls(const struct netns_spec *spec); /* whether there are any to write */
/* Unpins everything in dir (umount MNT_DETACH, unlink) and removes dir. Synchronous, local; idempotent. */
enum err_code netns_remove(const char *dir, struct err *e) MUST_CHECK;
/* Whether dir/<which> ("net", "ipc", "uts", "user") is a pinned namespace (nsfs). */
struct presence netns_look_pinned(const char *dir, const char *which, struct err *e) MUST_CHECK;
#endif
