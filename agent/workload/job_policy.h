/* SPDX-License-Identifier: Apache-2.0 */
/* job_policy - the rule of a Job's podFailurePolicy that a failed pod matches. Pure. */
#ifndef AGENT_WORKLOAD_JOB_POLICY_H
#define AGENT_WORKLOAD_JOB_POLICY_H
#include "agent/api/generic.h"

struct job_exit { /* of a container */
    const char *container;
    int code;
};

struct job_failure { /* of a pod; borrowed */
    const struct job_exit *exits;
    size_t n_exits;
    const struct api_failure_condition *conditions;
    size_t n_conditions;
};

struct job_verdict {
    enum api_failure_action action; /* Count: also when no rule matches */
    size_t rule;                    /* index; SIZE_MAX: none */
    const struct job_exit *exit;    /* the exit that matched; NULL: a condition matched */
    const char *condition;
};

struct job_verdict job_policy_judge(const struct api_workload *spec, const struct job_failure *failure);
#endif
