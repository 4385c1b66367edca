/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide - the next step of a workload: which pods to create and remove, computed from the desired state and
 * the present pods. Pure: the same facts always give the same result, and in the desired state there is no
 * step. A restart of the agent changes no fact, so it changes no pod.
 *
 * The rules are those of Kubernetes' controllers, as far as they apply to one node:
 * - Deployment: never more than replicas + surge pods at a time, and never fewer available pods than replicas
 *   - unavailable, as long as the old ones are available. Recreate: all old pods have ended before a new one
 *   is created.
 * - DaemonSet: a Deployment of one replica whose old pod has ended before the new one is created, unless
 *   maxSurge is given.
 * - StatefulSet: one pod at a time, lowest number first on the way up, highest first on the way down and in
 *   updates; Parallel: all at a time, except in updates. An old pod that is not ready is replaced at once.
 * - ReplicaSet: an edited template applies to later pods only. job.h has the rules of Jobs.
 */
#ifndef AGENT_WORKLOAD_DECIDE_H
#define AGENT_WORKLOAD_DECIDE_H
#include "agent/api/generic.h"
#include "agent/api/schema/kinds.h"

struct workload_want {
    enum api_kind kind;
    unsigned replicas, first; /* numbers from `first` on */
    unsigned surge, unavailable;
    enum api_update update;
    unsigned partition; /* StatefulSet: so many numbers from `first` on are not updated */
    bool parallel, paused;
};

struct workload_seen {
    unsigned number;
    bool current;   /* created from the current template */
    bool kept;      /* in the store; otherwise it is ending */
    bool available; /* ready for minReadySeconds */
};

struct workload_step {
    bool create;
    unsigned number; /* to create */
    size_t index;    /* of the seen pod to remove */
};

/* The values of a Deployment's maxSurge and maxUnavailable: a number, or a percentage of `replicas`. */
unsigned workload_share(const char *text, const char *otherwise, unsigned replicas, bool up);
/* The desired state of `w`. */
struct workload_want workload_want_of(enum api_kind kind, const struct api_workload *w);
/* Writes up to `max` steps to *ret; returns their number. */
size_t workload_decide(const struct workload_want *w, const struct workload_seen *seen, size_t n,
                       struct workload_step *ret, size_t max);
#endif
