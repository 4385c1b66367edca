/* SPDX-License-Identifier: Apache-2.0 */
/* admit - whether a pod may run here, and when a refused one is tried again.  Loop thread only. */
#ifndef AGENT_POD_ADMIT_ADMIT_H
#define AGENT_POD_ADMIT_ADMIT_H
#include "agent/pod/core/pod.h"

extern const struct room admit_room;

/* What one pod held may be what another waits for, or was refused for. */
void pods_wake_pending(struct node *n);
/*
 * ERR_OK: admitted.  ERR_UNAVAILABLE: wait (a terminating pod holds what it needs).  Else it is refused, with
 * reason and message; ERR_EXHAUSTED: only for want of resources, which preempt.h may help against.
 */
enum err_code admit_pod(struct pod *p, char reason[64], struct err *e) MUST_CHECK;
bool readmit_waits(const struct pod *p); /* to be admitted, be it for the first time */
/* Whose turn it is: higher priority, then age, then name. */
bool readmit_before(const struct pod *a, const struct pod *b);
/* Terminated: when it could be admitted now it becomes its own successor. */
void readmit_step(struct pod *p);
#endif
