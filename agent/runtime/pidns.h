/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pidns - the PID namespace that a pod's containers share (shareProcessNamespace): coracle-pause is its first
 * process, pinned by a bind mount beside the pod's other namespaces.
 *
 *     <dir>/pid      the namespace; what containers join
 *     <dir>/pause    "<pid> <start time>" of its first process, written as soon as it runs
 *
 * The process lives in a mount namespace whose only file is itself, read-only, as user and group 65535
 * without capabilities, and in a cgroup of its own below the pod's; the pod's containers see it as PID 1,
 * "pause". It outlives the agent; when it ends the kernel ends all processes of the namespace.  Facts, not
 * memory: rt_pidns_look() reads them each time.
 */
#ifndef AGENT_RUNTIME_PIDNS_H
#define AGENT_RUNTIME_PIDNS_H
#include "base/presence.h"
#include "base/process.h"
#include "cgroups/cgroup.h"

struct rt_pidns_spec {   /* strings valid until the call is done */
    const char *dir;     /* exists; not the one of another pod */
    const char *program; /* coracle-pause, statically linked */
    /* Pinned namespaces that the process joins; NULL: the host's. */
    const char *netns, *ipcns, *utsns;
    const char *userns; /* that the PID namespace belongs to; NULL: the host's */
};

/*
 * Starts the process and pins its namespace, in a forked child within the ops cgroup: what is cut off there
 * goes with it.  In done: rt_pidns_place(), or after a failure rt_pidns_remove().
 */
void rt_pidns_start(struct proc_call *c, const struct rt_pidns_spec *spec, int ops_cgroup_fd,
                    const char *ops_procs, uv_loop_t *loop, op_done_fn done, void *owner);

/* After a call that succeeded: moves the process into its cgroup below the pod's. */
enum err_code rt_pidns_place(const struct proc_call *c, struct cg_tree *cgroups, const char *pod_cgroup,
                             struct err *e) MUST_CHECK;

/*
 * Whether the process lives, is not about to end and its namespace is pinned; *ret_pidfd is set when present,
 * and the caller closes it.
 */
struct presence rt_pidns_look(const char *dir, int *ret_pidfd, struct err *e) MUST_CHECK;

/* Kills the process (and with it all of the namespace) and unpins.  Idempotent. */
enum err_code rt_pidns_remove(const char *dir, struct cg_tree *cgroups, const char *pod_cgroup,
                              struct err *e) MUST_CHECK;
#endif
