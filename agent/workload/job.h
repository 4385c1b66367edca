/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job - the next step of a Job: whether it is over, and which pods to create and remove, computed from the
 * desired state and the present pods. Pure: the same facts always give the same result.
 *
 * The rules are those of Kubernetes' Job controller:
 * - `parallelism` pods at a time, until `completions` have succeeded or more than `backoffLimit` have failed.
 *   Without completions, one success completes the Job once the other pods have ended.
 * - Indexed: each index has to succeed. With a limit per index, an index whose pods fail more often has
 *   failed; the Job is over when every index has succeeded or failed.
 * - The first matching rule of the policy determines how a failed pod counts (job_policy.h).
 * - After a failure no pod is created for ten seconds, doubling to six minutes; with a limit per index, this
 *   applies to that index only.
 * - A Job that is over ends its running pods. Ended pods are kept.
 * - After an edit of its template the Job starts again.
 */
#ifndef AGENT_WORKLOAD_JOB_H
#define AGENT_WORKLOAD_JOB_H
#include "agent/api/generic.h"
#include "agent/api/index_set.h"

struct job_want {
    const struct api_workload *spec; /* borrowed */
    int64_t now_ns;                  /* wall clock */
    int64_t deadline_left_ns;        /* INT64_MAX: no deadline */
    bool restarts_in_place;          /* restartPolicy OnFailure */
};

enum job_pod_state { JOB_POD_ACTIVE, JOB_POD_SUCCEEDED, JOB_POD_FAILED };

struct job_seen {
    unsigned number, index;
    bool current; /* created from the current template */
    bool kept;    /* in the store; otherwise it is being removed and not counted otherwise */
    bool ready;
    enum job_pod_state state;
    unsigned restarts;              /* of its containers */
    enum api_failure_action action; /* of a failed pod */
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
    size_t at;              /* of the seen pod to remove */
};

struct job_plan {
    enum job_end end;
    size_t culprit; /* JOB_FAILURE_POLICY: index of the seen pod; JOB_SUCCESS_POLICY: of the rule */
    unsigned active, ready, terminating, succeeded, failed;
    struct api_index_set completed, failed_indexes;
    int64_t again_ns; /* time until a pause or the deadline ends; -1: only after an event */
    struct job_step *steps;
    size_t n_steps, max_steps;
};

/* Computes the plan. `known_end`: the Job is over already, and its pods are removed. The steps are written to
 * plan->steps, at most plan->max_steps. */
void job_decide(const struct job_want *w, const struct job_seen *seen, size_t n, enum job_end known_end,
                struct job_plan *plan);
#endif
