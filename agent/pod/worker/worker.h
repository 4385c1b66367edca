/* SPDX-License-Identifier: Apache-2.0 */
/* worker - performs a pod's next step, including its end.  Loop thread only. */
#ifndef AGENT_POD_WORKER_WORKER_H
#define AGENT_POD_WORKER_WORKER_H
#include "agent/pod/core/pod.h"

extern const struct room worker_room;

void pod_reconcile(struct pod *p);
/* True if no operation of the pod is in progress. */
bool pod_idle(const struct pod *p);
void pod_begin_termination(struct pod *p, int64_t grace_seconds, bool finishing, const char *why);
void pod_ending_step(struct pod *p);
void run_queue_clock_set(void *arg); /* the node's boot_timers report */
/* ---- run_queue.c ---- */
void run_queue_add(struct pod *p);
extern const struct pod_upward worker_upward;
#endif
