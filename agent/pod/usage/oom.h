/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom - processes that the kernel kills for want of memory.
 *
 * Each running container's count is watched (cgroups/oom_watch.h); when it grows, which process it was is
 * looked up in the kernel's log (cgroups/oom_log.h) and told by an event of the pod, OOMKilling, in the
 * kernel's words, which `coracle describe` shows.  Whether the container ended by it is not decided here: its
 * reason, OOMKilled, comes from the facts when its end is seen (agent/runtime/state.c).  A process of the
 * host that is killed because the machine is out of memory is told as kubelet tells it, by the node's event
 * SystemOOM.
 *
 * Where the log cannot be read, the event says that a process was killed and why it cannot say which;
 * `coracle explain node` has that, too.  What happened while no agent ran is not told.  Loop thread only.
 */
#ifndef AGENT_POD_USAGE_OOM_H
#define AGENT_POD_USAGE_OOM_H
#include "agent/pod/core/pod.h"

void oom_open(struct node *n);
void oom_close(struct node *n);

/* The container runs: it is watched from now on; again and again is fine.  Fails when its count cannot be
 * read. */
enum err_code oom_watch(struct ctr *c, struct err *e) MUST_CHECK;
/* It ended, its cgroup is still there: reports what is not reported yet, and watches no more.  Likewise. */
enum err_code oom_ended(struct ctr *c, struct err *e) MUST_CHECK;
/* Its remains are being removed. */
void oom_forget(struct node *n, const char *cgroup_path);

void oom_explain(const struct node *n, json_t *steps);

/* "Memory cgroup out of memory: Killed process 412 (tail), anon-rss:800kB, ...; the limit of the pod".  Pure.
 */
struct cg_oom_kill;
void oom_describe(const struct cg_oom_kill *kill, const char *ctr_cgroup, char *ret, size_t size);
#endif
