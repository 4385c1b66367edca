/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job - the next step of a Job: whether it is over, which pods to make and which to take away, from what is
 * wanted and the pods there are. Pure: repeated with the same facts it says the same.
 *
 * Rules, as Kubernetes' Job controller has them:
 * - `parallelism` pods at a time, until `completions` have succeeded or more than `backoffLimit` have failed.
 *   Without completions one success ends it, when the other pods have ended.
 * - Indexed: each index has to succeed. With a limit for each index, one whose pods failed more often has
 *   failed; the Job is over when every index has succeeded or failed.
 * - A failed pod counts as the policy's first rule that matches says (job_policy.h).
 * - After a failure no pod is made for ten seconds, doubling to six minutes; with a limit for each index, of
 *   that index.
 * - A Job that is over ends its pods that run. Pods that ended are kept.
 * - With an edited template it begins anew.
 */
#ifndef AGENT_WORKLOAD_JOB_H
#define AGENT_WORKLOAD_JOB_H
#include "agent/api/generic.h"
#include "agent/api/index_set.h"

struct job_want {
    const struct api_workload *spec; /* borrowed */
    int64_t now_ns;                  /* wall clock */
    int64_t deadline_left_ns;        /* INT64_MAX: it has none */
    bool restarts_in_place;          /* restartPolicy OnFailure */
};

enum job_pod_state { JOB_POD_ACTIVE, JOB_POD_SUCCEEDED, JOB_POD_FAILED };

struct job_seen {
    unsigned number, index;
    bool current; /* of the template in force */
    bool kept;    /* in the store; otherwise it is being removed, and counts for nothing else */
    bool ready;
    enum job_pod_state state;
    unsigned restarts;              /* of its containers */
    enum api_failure_action action; /* of a failed one */
    int64_t ended_ns;               /* wall clock */
};

enum job_end {
    JOB_RUNS,
    JOB_COMPLETE,
    JOB_SUCCESS_POLICY,
    /* failed: */
    JOB_FAILURE_POLICY,
    JOB_BACKOFF_LIMIT,
    JOB_DEADLINE,
    JOB_FAILED_INDEXES,
    JOB_MAX_FAILED_INDEXES,
};
static inline bool job_end_is_failure(enum job_end end)
{
    return end >= JOB_FAILURE_POLICY;
}

struct job_step {
    bool create;
    unsigned number, index; /* to create */
    size_t at;              /* of the seen one to remove */
};

struct job_plan {
    enum job_end end;
    size_t culprit; /* JOB_FAILURE_POLICY: of the seen ones; JOB_SUCCESS_POLICY: the rule */
    unsigned active, ready, terminating, succeeded, failed;
    struct api_index_set completed, failed_indexes;
    int64_t again_ns; /* from now, when a pause or the deadline is over; -1: not by itself */
    struct job_step *steps;
    size_t n_steps, max_steps;
};

/* What a pod ended before counts for: nothing here. `known_end`: it is over already, its pods go. The steps
 * are written to plan->steps, of which there are plan->max_steps. */
void job_decide(const struct job_want *w, const struct job_seen *seen, size_t n, enum job_end known_end,
                struct job_plan *plan);
#endif
