/* SPDX-License-Identifier: Apache-2.0 */
/* message - kubelet's text about an eviction, and the annotations of its event. Pure. */
#ifndef AGENT_EVICTION_MESSAGE_H
#define AGENT_EVICTION_MESSAGE_H
#include "agent/eviction/rank.h"
#include "agent/eviction/settings.h"
#include "base/buf.h"

struct ev_crossing { /* what was found: a threshold and the values at that time */
    const struct ev_threshold *threshold;
    struct ev_value value;
    uint64_t line; /* the threshold in numbers */
};

/* "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Ki. Container c was ... "
 * with a blank at its end. */
void ev_message(const struct ev_crossing *c, enum ev_layout layout, const struct ev_pod *p, struct buf *ret);
/* {"offending_containers": "a,b", "offending_containers_usage": "...", "starved_resource": "memory"}, new. */
json_t *ev_annotations(const struct ev_crossing *c, enum ev_layout layout, const struct ev_pod *p);
/* "Attempting to reclaim memory": the node's event EvictionThresholdMet. */
void ev_attempt_message(const struct ev_crossing *c, struct buf *ret);
#endif
