/* SPDX-License-Identifier: Apache-2.0 */
/* message - kubelet's text about an eviction, and the annotations of its event. Pure. */
#ifndef AGENT_EVICTION_MESSAGE_H
#define AGENT_EVICTION_MESSAGE_H
#include "agent/eviction/rank.h"
#include "agent/eviction/settings.h"
#include "base/buf.h"

struct ev_crossing { /* a crossed threshold and the values at that time */
    struct ev_threshold threshold;
    struct ev_value value;
    uint64_t line; /* the threshold in numbers */
    uint64_t goal; /* including its minimum reclaim: the amount that must be available again */
    bool urgent; /* a hard threshold, victims get no grace period: at the observed rate nothing would be left
                    at its end, or less than half of the threshold is left of memory */
};

/* "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Ki. Container c was ... "
 * with a blank at its end. Names containers that exceed their requests, in the order of the pod's figures. */
void ev_message(const struct ev_crossing *c, const struct ev_pod *p, struct buf *ret);
/* {"offending_containers": "a,b", "offending_containers_usage": "...", "starved_resource": "memory"}, with
 * requests of the pod also offending_pod and offending_pod_usage. New; NULL: no memory. */
json_t *ev_annotations(const struct ev_crossing *c, const struct ev_pod *p);
/* "Attempting to reclaim memory": the node's event EvictionThresholdMet. */
void ev_attempt_message(const struct ev_crossing *c, struct buf *ret);
#endif
