/* SPDX-License-Identifier: Apache-2.0 */
/* admit - whether a pod may run here, and when a rejected one is retried. Loop thread only. */
#ifndef AGENT_POD_ADMIT_ADMIT_H
#define AGENT_POD_ADMIT_ADMIT_H
#include "agent/pod/core/pod.h"

extern const struct room admit_room;

/* Resources of one pod may be what another waits for, or was rejected for. */
void pods_wake_pending(struct node *n, const char *why);
/* ERR_OK: admitted. ERR_UNAVAILABLE: wait (a terminating pod holds what it needs). Otherwise it is rejected,
 * with reason and message; ERR_EXHAUSTED: only for lack of resources, so preempt.h may help. */
enum err_code admit_pod(struct pod *p, char reason[64], struct err *e) MUST_CHECK;
bool readmit_waits(const struct pod *p); /* it waits for admission, perhaps for the first time */
/* The order of admission: higher priority, then age, then name. */
bool readmit_before(const struct pod *a, const struct pod *b);
/* Terminated: if it could be admitted now, it becomes its own successor. */
void readmit_step(struct pod *p);
#endif
