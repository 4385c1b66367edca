/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evict - ends a pod because of its own usage or that of the node: phase Failed, reason Evicted, whatever its
 * containers return (in kubelet, a pod whose containers all exit with 0 silently ends as Succeeded). Used for
 * limits of local storage and for pressure of the node. The decision is recorded with the pod before its
 * containers are signalled, so it survives the end of the agent. Loop thread only.
 */
#ifndef AGENT_POD_CORE_EVICT_H
#define AGENT_POD_CORE_EVICT_H
#include "agent/pod/core/pod.h"

#define POD_EVICTED "Evicted" /* the reason; of a pod that was not admitted under pressure as well */

struct pod_eviction {
    char *message;   /* kubelet's; taken */
    char *measured;  /* its usage, for users; takes ownership; may be NULL */
    int64_t grace_s; /* 0: killed at once, without being asked and without preStop hooks */
    bool disruption; /* pressure of the node: condition DisruptionTarget, reason TerminationByKubelet */
    const json_t *annotations; /* of its event; borrowed; may be NULL */
};
/* Does nothing to a pod that is not active, or ends already; false then. */
bool pod_evict(struct pod *p, const struct pod_eviction *e);
/* When a pod that was evicted under pressure may come back: not at once, and later each time, or the same
 * pressure would return with it. It also waits until there is none (admit/readmit.c). */
#define EVICTED_WAIT_NS (30 * INT64_C(1000000000)) /* doubled with each eviction in a row */
#define EVICTED_WAIT_MAX_NS (1800 * INT64_C(1000000000))
#define EVICTED_CALM_NS (600 * INT64_C(1000000000)) /* one that ran for longer begins anew */
struct boot_time pod_evicted_until(const struct pod *p);
/* The rest of an ending pod's grace period is cancelled: its containers are killed. */
void pod_evict_faster(struct pod *p);
#endif
