/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide - the next step of a workload: which pods to make and which to take away, from what is wanted and
 * what there is. Pure: repeated with the same facts it says the same, and once everything is as wanted it
 * says nothing. A restart of the agent changes no fact, so it changes no pod.
 *
 * Rules, as Kubernetes' controllers have them where one node leaves a choice:
 * - Deployment: never more than replicas + surge pods at a time, never fewer than replicas - unavailable that
 *   are available, as far as the old ones are. Recreate: the old ones are gone before a new one is made.
 * - DaemonSet: a Deployment of one replica, whose old pod is gone before the new one is made unless maxSurge
 *   is given.
 * - StatefulSet: one pod at a time, lowest number first on the way up, highest first on the way down and in
 *   updates; Parallel: all at a time, but in updates. An old pod that is not ready is replaced at once.
 * - ReplicaSet: an edited template applies to later pods only.
 * Jobs have rules of their own: job.h.
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
    unsigned partition; /* StatefulSet: lower numbers stay as they are */
    bool parallel, paused;
};

struct workload_seen {
    unsigned number;
    bool current;   /* of the template in force */
    bool kept;      /* wanted: in the store; otherwise it is ending */
    bool available; /* ready for minReadySeconds */
};

struct workload_step {
    bool create;
    unsigned number; /* to create */
    size_t index;    /* of the seen one to remove */
};

/* The values of a Deployment's maxSurge and maxUnavailable: a number, or a percentage of `replicas`. */
unsigned workload_share(const char *text, const char *otherwise, unsigned replicas, bool up);
/* What `w` wants. */
struct workload_want workload_want_of(enum api_kind kind, const struct api_workload *w);
/* Up to `max` steps into *ret; their number. */
size_t workload_decide(const struct workload_want *w, const struct workload_seen *seen, size_t n,
                       struct workload_step *ret, size_t max);
#endif
