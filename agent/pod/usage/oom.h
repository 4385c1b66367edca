/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom - processes that the kernel kills out of memory.
 *
 * Each running container's counter is watched (cgroups/oom_watch.h); when it grows, the process is looked up
 * in the kernel log (cgroups/oom_log.h) and reported by a pod event, OOMKilling, in the kernel's words, which
 * `coracle describe` shows. Whether the container ended because of it is not decided here: its reason,
 * OOMKilled, is determined when its end is seen (agent/runtime/state.c). A process of the host killed because
 * the machine is out of memory is reported like in kubelet, by the node's event SystemOOM.
 *
 * If the log cannot be read, the event says that a process was killed and why it is unknown which one;
 * `coracle explain node` has that, too. Kills while no agent was running are not reported. Loop thread only.
 */
#ifndef AGENT_POD_USAGE_OOM_H
#define AGENT_POD_USAGE_OOM_H
#include "agent/pod/usage/usage.h"

void oom_open(struct node *n);
void oom_close(struct node *n);

/* "Memory cgroup out of memory: Killed process 412 (tail), anon-rss:800kB, ...; the limit of the pod".  Pure.
 */
struct cg_oom_kill;
void oom_describe(const struct cg_oom_kill *kill, const char *ctr_cgroup, char *ret, size_t size);
#endif
