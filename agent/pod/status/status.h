/* SPDX-License-Identifier: Apache-2.0 */
/* status - a pod's status in the API. Loop thread only. */
#ifndef AGENT_POD_STATUS_STATUS_H
#define AGENT_POD_STATUS_STATUS_H
#include "agent/pod/core/pod.h"

extern const struct room status_room;

json_t *pod_status_json(struct pod *p); /* the whole Pod object */
/* Its condition Ready, and since when (wall clock). */
bool pod_is_ready(const struct pod *p, int64_t *ret_since_ns);
void pod_note_conditions(
    struct pod *p); /* their transition times are those of the change, not of the first request */
void pod_show(struct pod *p, const char *type); /* notifies watchers if anything visible changed */
#endif
