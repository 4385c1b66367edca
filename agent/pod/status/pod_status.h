/* SPDX-License-Identifier: Apache-2.0 */
/* pod_status - a pod's status in the API, in parts (pkg/kubelet/kubelet_pods.go, status/generate.go). The
 * whole object, the phase and readiness are in pod.h. Loop thread only. */
#ifndef AGENT_POD_STATUS_POD_STATUS_H
#define AGENT_POD_STATUS_POD_STATUS_H
#include "agent/pod/core/pod.h"

/* ---- pod_status.c ---- the object that it all goes into */
void status_put_time(json_t *o, const char *key, int64_t ns); /* whole seconds, as everywhere in the API */

/* observedGeneration, if the manifest has a generation: nothing counts its edits otherwise. */
void status_put_generation(json_t *o, const struct api_pod *api);

/* ---- ctr_status.c ---- */
/* Running and reported as such: a postStart hook is part of the start. */
void ctr_statuses_put(struct pod *p, json_t *status); /* the three lists */

/* ---- pod_conditions.c ---- */
json_t *pod_conditions_json(struct pod *p);
bool pod_network_shown(const struct pod *p); /* its addresses, too */
#endif
