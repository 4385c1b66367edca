/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evict - a pod ends because of what it or the node uses: phase Failed, reason Evicted, whatever its
 * containers return. Used for limits of local storage and for pressure of the node. Loop thread only.
 */
#ifndef AGENT_POD_CORE_EVICT_H
#define AGENT_POD_CORE_EVICT_H
#include "agent/pod/core/pod.h"

struct pod_eviction {
    char *message;       /* kubelet's; taken */
    char *measured;      /* what it used, for people; taken; may be NULL */
    int64_t grace_s;     /* 0: killed at once */
    bool disruption;     /* pressure of the node: condition DisruptionTarget, reason TerminationByKubelet */
    json_t *annotations; /* of its event; borrowed; may be NULL */
};
/* Does nothing to a pod that ends already; false then. */
bool pod_evict(struct pod *p, const struct pod_eviction *e);
#endif
