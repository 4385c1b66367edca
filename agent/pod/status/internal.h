/* SPDX-License-Identifier: Apache-2.0 */
/* The room's own data of a pod. */
#ifndef AGENT_POD_STATUS_INTERNAL_H
#define AGENT_POD_STATUS_INTERNAL_H
#include "agent/pod/core/pod.h"

struct pod_shown {
    struct {
        char status[8];
        int64_t since_ns;
    } conditions[6];     /* in the order in which they are shown */
    uint64_t shown_hash; /* of the status last sent to watchers */
};

static inline struct pod_shown *shown_of(const struct pod *p)
{
    return p->parts[ROOM_STATUS];
}
#endif
