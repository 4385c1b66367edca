/* SPDX-License-Identifier: Apache-2.0 */
/* readiness - whether a container is running, started and ready, and the phase of its pod. Loop thread
 * only. */
#ifndef AGENT_POD_CONTAINER_READINESS_H
#define AGENT_POD_CONTAINER_READINESS_H
#include "agent/pod/core/pod.h"

const char *pod_phase(const struct pod *p);
bool ctr_ready(const struct ctr *c);
bool ctr_started(const struct ctr *c); /* running, and its postStart hook and startup probe have succeeded */
bool ctr_shown_running(const struct ctr *c);
bool ctr_is_hidden(const struct ctr *c); /* running, but its postStart hook has not finished */
#endif
