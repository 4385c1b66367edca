/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pidns - the PID namespace shared by a pod's containers (shareProcessNamespace): coracle-pause is its first
 * process, and it is pinned by a bind mount next to the pod's other namespaces.
 *
 *     <dir>/pid      the namespace, joined by containers
 *     <dir>/pause    "<pid> <start time>" of its first process, written as soon as it runs
 *
 * The process is in a mount namespace whose only file is its program, read-only, as user and group 65535
 * without capabilities, and in its own cgroup below the pod's; the pod's containers see it as PID 1, "pause".
 * It outlives the agent; when it ends the kernel ends all processes of the namespace. State is not kept in
 * memory: rt_pidns_find() reads it each time.
 */
#ifndef AGENT_RUNTIME_PIDNS_H
#define AGENT_RUNTIME_PIDNS_H
#include "base/presence.h"
#include "base/process/process.h"
#include "cgroups/cgroup.h"

struct rt_pidns_spec {   /* strings must be valid until the call is done */
    const char *dir;     /* exists; used by one pod only */
    const char *program; /* coracle-pause, statically linked */
    /* Pinned namespaces for the process to join; NULL: the host's. */
    const char *netns, *ipcns, *utsns;
    const char *userns; /* owner of the PID namespace; NULL: the host's */
};

/* Starts the process and pins its namespace, in a forked child in the ops cgroup, which also ends an
 * interrupted start. In done: call rt_pidns_place(), or after a failure rt_pidns_remove(). */
void rt_pidns_start(struct proc_call *c, const struct rt_pidns_spec *spec, int ops_cgroup_fd,
                    const char *ops_procs, uv_loop_t *loop, op_done_fn done, void *owner);

/* After a successful call: moves the process to its cgroup below the pod's. */
enum err_code rt_pidns_place(const struct proc_call *c, struct cg_tree *cgroups, const char *pod_cgroup,
                             struct err *e) MUST_CHECK;

/* Whether the process is alive, is not ending, and its namespace is pinned; *ret_pidfd is set if present, and
 * the caller closes it. */
struct presence rt_pidns_find(const char *dir, int *ret_pidfd, struct err *e) MUST_CHECK;

/* Kills the process (and so the whole namespace) and unpins. Idempotent. */
enum err_code rt_pidns_remove(const char *dir, struct cg_tree *cgroups, const char *pod_cgroup,
                              struct err *e) MUST_CHECK;
#endif
