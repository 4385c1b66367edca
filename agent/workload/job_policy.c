/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/job_policy.h"

#include "base/strs.h"

#include <string.h>

static bool names(const struct api_failure_rule *r, int code)
{
    for (size_t i = 0; i < r->n_exit_codes; i++)
        if (r->exit_codes[i] == code)
            return true;
    return false;
}

/* An exit code of 0 matches no rule, not even NotIn. */
static const struct job_exit *exit_of(const struct api_failure_rule *r, const struct job_failure *f)
{
    for (size_t i = 0; i < f->n_exits; i++) {
        const struct job_exit *one = &f->exits[i];

        if (one->code != 0 && (r->container == NULL || strcmp(r->container, one->container) == 0) &&
            names(r, one->code) != r->not_in)
            return one;
    }
    return NULL;
}

static const char *condition_of(const struct api_failure_rule *r, const struct job_failure *f)
{
    for (size_t i = 0; i < f->n_conditions; i++)
        for (size_t k = 0; k < r->n_conditions; k++)
            if (strcmp(f->conditions[i].type, r->conditions[k].type) == 0 &&
                strcmp(f->conditions[i].status, r->conditions[k].status) == 0)
                return f->conditions[i].type;
    return NULL;
}

struct job_verdict job_policy_judge(const struct api_workload *spec, const struct job_failure *failure)
{
    struct job_verdict v = { .action = API_FAILURE_COUNT, .rule = SIZE_MAX };

    for (size_t i = 0; i < spec->n_failure_rules; i++) {
        const struct api_failure_rule *r = &spec->failure_rules[i];

        v.exit = r->by_exit ? exit_of(r, failure) : NULL;
        v.condition = r->by_exit ? NULL : condition_of(r, failure);
        if (v.exit == NULL && v.condition == NULL)
            continue;
        v.action = r->action;
        v.rule = i;
        return v;
    }
    return v;
}
