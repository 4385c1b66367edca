/* SPDX-License-Identifier: Apache-2.0 */
/* worker - what a pod's next step is, and how it ends.  Loop thread only. */
#ifndef AGENT_POD_WORKER_WORKER_H
#define AGENT_POD_WORKER_WORKER_H
#include "agent/pod/core/pod.h"

void pod_reconcile(struct pod *p);
/* True when no operation of the pod is under way. */
bool pod_idle(const struct pod *p);
void pod_begin_termination(struct pod *p, int64_t grace_seconds, bool finishing, const char *why);
void pod_ending_step(struct pod *p);
int64_t clock_jump_offset_ns(void);    /* wall clock less the clock since boot */
void clock_jump_check(struct node *n); /* before pods compare times with "now" */
void clock_jump_pod(struct pod *p, int64_t by_ns);
/* ---- turns.c ---- */
void turns_queue(struct pod *p);
extern const struct pod_upward worker_upward;
#endif
