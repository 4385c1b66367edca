/* SPDX-License-Identifier: Apache-2.0 */
/* What record keeps of the node for itself. */
#ifndef AGENT_POD_RECORD_INTERNAL_H
#define AGENT_POD_RECORD_INTERNAL_H
#include "agent/pod/core/pod.h"

struct record_node {
    TAILQ_HEAD(, pod) unsynced; /* whose newest record is not in a batch yet */
    bool syncing;
    bool due; /* those that may wait have waited */
    uv_timer_t timer;
};

static inline struct record_node *record_node(const struct node *n)
{
    return n->parts[ROOM_RECORD];
}
#endif
