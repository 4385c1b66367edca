/* SPDX-License-Identifier: Apache-2.0 */
/* validate_job - defaults and rules of Jobs and CronJobs (pkg/apis/batch/validation). */
#include "agent/api/cron.h"
#include "agent/api/index_set.h"
#include "agent/api/manifest/internal.h"
#include "base/codec/json.h"

#include <string.h>

#define CRON_JOB_NAME_MAX 52 /* Kubernetes' rule: eleven more characters name a Job */
#define RULES_MAX 20
#define PATTERNS_MAX 20
#define EXIT_CODES_MAX 255
#define BACKOFF_LIMIT 6

/* ---- defaults ---- */

static void set(struct api_check *c, json_t *spec, const char *name, json_t *v)
{
    if (json_object_get(spec, name) != NULL)
        json_decref(v);
    else if (json_object_set_new(spec, name, v) != 0)
        c->no_memory = true;
}

void api_job_defaults(struct api_check *c, json_t *spec)
{
    const bool by_index = json_object_get(spec, "backoffLimitPerIndex") != NULL,
               policy = json_object_get(spec, "podFailurePolicy") != NULL,
               indexed = str_eq(json_str(spec, "completionMode"), "Indexed");

    if (!json_is_object(spec))
        return;
    if (!indexed && json_object_get(spec, "parallelism") == NULL)
        set(c, spec, "completions", json_integer(1));
    set(c, spec, "backoffLimit", json_integer(by_index ? INT32_MAX : BACKOFF_LIMIT));
    set(c, spec, "podReplacementPolicy", json_string(policy ? "Failed" : "TerminatingOrFailed"));
}

/* ---- rules ---- */

static bool has_container(const struct api_pod *pod, const char *name)
{
    for (size_t i = 0; i < pod->spec.n_containers; i++)
        if (str_eq(pod->spec.containers[i].name, name))
            return true;
    for (size_t i = 0; i < pod->spec.n_init_containers; i++)
        if (str_eq(pod->spec.init_containers[i].name, name))
            return true;
    return false;
}

static void check_exit_codes(struct api_check *c, const struct api_workload *w,
                             const struct api_failure_rule *r)
{
    size_t mark = api_enter(c, "onExitCodes");

    if (r->container != NULL && w->pods.pod != NULL && !has_container(w->pods.pod, r->container))
        api_fault_at(c, "containerName", "the template has no container %s", QUOTE(r->container));
    if (r->n_exit_codes > EXIT_CODES_MAX)
        api_fault_at(c, "values", "at most %d are allowed", EXIT_CODES_MAX);
    for (size_t i = 0; i < r->n_exit_codes; i++) {
        if (r->exit_codes[i] == 0 && !r->not_in)
            api_fault_at(c, "values", "must not be 0 for the In operator: that is success");
        if (i > 0 && r->exit_codes[i] <= r->exit_codes[i - 1])
            api_fault_at(c, "values", "must be ordered, each once");
    }
    api_leave(c, mark);
}

static void check_failure_rule(struct api_check *c, const struct api_workload *w,
                               const struct api_failure_rule *r)
{
    if (r->action == API_FAILURE_FAIL_INDEX && !w->has_index_backoff)
        api_fault_at(c, "action", "FailIndex needs backoffLimitPerIndex");
    if (r->by_exit == (r->n_conditions > 0))
        api_fault(c, "either onExitCodes or onPodConditions is required");
    if (r->n_conditions > PATTERNS_MAX)
        api_fault_at(c, "onPodConditions", "at most %d are allowed", PATTERNS_MAX);
    if (r->by_exit)
        check_exit_codes(c, w, r);
}

static void check_failure_policy(struct api_check *c, const struct api_workload *w)
{
    size_t mark = api_enter(c, "podFailurePolicy"), rules = api_enter(c, "rules");

    if (w->pods.pod != NULL && w->pods.pod->spec.restart_policy != API_RESTART_NEVER)
        api_fault(c, "only with restartPolicy Never: otherwise no pod fails");
    if (w->has_replacement && !w->replace_failed)
        api_fault(c, "only with podReplacementPolicy Failed");
    if (w->n_failure_rules > RULES_MAX)
        api_fault(c, "at most %d are allowed", RULES_MAX);
    (void)rules;
    for (size_t i = 0; i < w->n_failure_rules; i++) {
        size_t at = api_enter_index(c, i);

        check_failure_rule(c, w, &w->failure_rules[i]);
        api_leave(c, at);
    }
    api_leave(c, mark);
}

static void check_success_policy(struct api_check *c, const struct api_workload *w)
{
    size_t mark = api_enter(c, "successPolicy");

    api_enter(c, "rules");
    if (!w->indexed)
        api_fault(c, "only with completionMode Indexed");
    if (w->n_success_rules > RULES_MAX)
        api_fault(c, "at most %d are allowed", RULES_MAX);
    for (size_t i = 0; i < w->n_success_rules; i++) {
        const struct api_success_rule *r = &w->success_rules[i];
        size_t at = api_enter_index(c, i);
        struct api_index_set set = { 0 };

        if (r->indexes == NULL && !r->has_count)
            api_fault(c, "succeededCount or succeededIndexes is required");
        if (r->indexes != NULL && !api_index_set_parse(r->indexes, (unsigned)w->completions, &set))
            api_fault_at(c, "succeededIndexes",
                         "must be ascending numbers and ranges below completions, such as \"1,3-5\"");
        if (r->has_count &&
            r->count > (r->indexes != NULL ? (int32_t)api_index_set_count(&set) : w->completions))
            api_fault_at(c, "succeededCount", "%d are more than there are", (int)r->count);
        api_leave(c, at);
    }
    api_leave(c, mark);
}

static void check_indexes(struct api_check *c, const struct api_generic *job)
{
    const struct api_workload *w = job->workload;
    const bool never = w->pods.pod == NULL || w->pods.pod->spec.restart_policy == API_RESTART_NEVER;

    if (w->indexed && !w->has_completions)
        api_fault_at(c, "completions", "required with completionMode Indexed");
    if (w->has_index_backoff && !w->indexed)
        api_fault_at(c, "backoffLimitPerIndex", "only with completionMode Indexed");
    if (w->has_index_backoff && !never)
        api_fault_at(c, "backoffLimitPerIndex", "only with restartPolicy Never: otherwise no pod fails");
    if (w->has_max_failed_indexes && !w->has_index_backoff)
        api_fault_at(c, "maxFailedIndexes", "only with backoffLimitPerIndex");
    if (w->has_max_failed_indexes && w->has_completions && w->max_failed_indexes > w->completions)
        api_fault_at(c, "maxFailedIndexes", "must not be more than completions");
}

void api_validate_job(struct api_check *c, const struct api_generic *job)
{
    const struct api_workload *w = job->workload;

    if (w->pods.pod != NULL && w->pods.pod->spec.restart_policy == API_RESTART_ALWAYS)
        api_fault_at(c, "template.spec.restartPolicy",
                     "Always (the default) is not allowed for a Job, allowed are OnFailure and Never");
    if (w->has_completions && w->completions > API_INDEXES_MAX)
        api_fault_at(c, "completions", "%d are too many, at most %d are allowed: a node keeps their pods",
                     (int)w->completions, API_INDEXES_MAX);
    check_indexes(c, job);
    if (w->has_failure_policy)
        check_failure_policy(c, w);
    if (w->has_success_policy)
        check_success_policy(c, w);
}

void api_validate_cron_job(struct api_check *c, const struct api_generic *o)
{
    const struct api_workload *w = o->workload;
    struct api_cron cron;
    struct err e = { 0 };

    if (w->schedule != NULL && api_cron_parse(w->schedule, &cron, &e) != ERR_OK)
        api_fault_at(c, "schedule", "%s", e.text);
    if (w->time_zone != NULL && !zone_name_is_valid(w->time_zone))
        api_fault_at(
            c, "timeZone",
            "%s is no name of a time zone such as Europe/Berlin; without it, the node's zone applies",
            QUOTE(w->time_zone));
    if (o->meta.name != NULL && strlen(o->meta.name) > CRON_JOB_NAME_MAX)
        api_fault_at(c, "schedule", "metadata.name has %zu characters, a CronJob's may have at most %d",
                     strlen(o->meta.name), CRON_JOB_NAME_MAX);
}
