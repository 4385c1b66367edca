/* SPDX-License-Identifier: Apache-2.0 */
/* validate_job - defaults and rules of Jobs and CronJobs (pkg/apis/batch/validation). */
#include "agent/api/cron.h"
#include "agent/api/index_set.h"
#include "agent/api/manifest/internal.h"
#include "base/codec/json.h"

#include <string.h>
#include <strings.h>

#define CRON_JOB_NAME_MAX 52 /* Kubernetes' rule: eleven more characters name a Job */
#define RULES_MAX 20
#define PATTERNS_MAX 20
#define EXIT_CODES_MAX 255
#define BACKOFF_LIMIT 6
#define INDEXED_MAX 100000 /* of numbers of an Indexed Job, whatever a node can keep */
#define MANAGER_MAX 63

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

/* ---- podFailurePolicy ---- */

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

static void check_count(struct api_check *c, const char *field, size_t n, size_t most)
{
    if (n > most)
        api_fault_at(c, field, "%zu are too many, at most %zu are allowed", n, most);
}

static void check_exit_code(struct api_check *c, const struct api_failure_rule *r, size_t at)
{
    size_t mark = api_enter_index(c, at);
    bool twice = false;

    for (size_t i = 0; i < at; i++)
        twice = twice || r->exit_codes[i] == r->exit_codes[at];
    if (r->exit_codes[at] == 0 && !r->not_in)
        api_fault(c, "must not be 0 for the In operator");
    if (twice)
        api_fault(c, "%lld is given twice", (long long)r->exit_codes[at]);
    api_leave(c, mark);
}

static void check_exit_codes(struct api_check *c, const struct api_workload *w,
                             const struct api_failure_rule *r)
{
    size_t outer = api_enter(c, "onExitCodes"), mark;
    bool ordered = true;

    if (r->container != NULL && w->pods.pod != NULL && !has_container(w->pods.pod, r->container))
        api_fault_at(c, "containerName",
                     "must be one of the container or initContainer names in the pod template");
    check_count(c, "values", r->n_exit_codes, EXIT_CODES_MAX);
    mark = api_enter(c, "values");
    if (r->n_exit_codes == 0)
        api_fault(c, "at least one value is required");
    for (size_t i = 0; i < r->n_exit_codes && r->n_exit_codes <= EXIT_CODES_MAX; i++) {
        check_exit_code(c, r, i);
        ordered = ordered && (i == 0 || r->exit_codes[i] >= r->exit_codes[i - 1]);
    }
    if (!ordered)
        api_fault(c, "must be ordered");
    api_leave(c, mark);
    api_leave(c, outer);
}

static void check_failure_rule(struct api_check *c, const struct api_workload *w,
                               const struct api_failure_rule *r)
{
    if (r->action == API_FAILURE_FAIL_INDEX && !w->has_index_backoff)
        api_fault_at(c, "action", "requires the backoffLimitPerIndex to be set");
    if (r->by_exit)
        check_exit_codes(c, w, r);
    check_count(c, "onPodConditions", r->n_conditions, PATTERNS_MAX);
    if (r->by_exit && r->n_conditions > 0)
        api_fault(c, "only one of onExitCodes and onPodConditions is allowed");
    if (!r->by_exit && r->n_conditions == 0)
        api_fault(c, "one of onExitCodes and onPodConditions is required");
}

static void check_failure_policy(struct api_check *c, const struct api_workload *w)
{
    size_t mark;

    if (w->pods.pod != NULL && w->pods.pod->spec.restart_policy == API_RESTART_ON_FAILURE)
        api_fault_at(c, "template.spec.restartPolicy",
                     "only \"Never\" is supported when podFailurePolicy is specified");
    if (w->has_replacement && !w->replace_failed)
        api_fault_at(c, "podReplacementPolicy",
                     "\"TerminatingOrFailed\" is not supported, allowed are Failed");
    mark = api_enter(c, "podFailurePolicy");
    check_count(c, "rules", w->n_failure_rules, RULES_MAX);
    api_enter(c, "rules");
    for (size_t i = 0; i < w->n_failure_rules; i++) {
        size_t at = api_enter_index(c, i);

        check_failure_rule(c, w, &w->failure_rules[i]);
        api_leave(c, at);
    }
    api_leave(c, mark);
}

/* ---- successPolicy ---- */

static void check_success_rule(struct api_check *c, const struct api_workload *w,
                               const struct api_success_rule *r, const json_t *rule)
{
    struct api_index_set set = { 0 };
    struct err e = { 0 };

    if (json_object_size(rule) == 0)
        api_fault(c, "required: at least one of succeededCount or succeededIndexes must be specified");
    if (r->indexes != NULL && api_index_set_parse(r->indexes, w->completions, &set, &e) != ERR_OK)
        api_fault_at(c, "succeededIndexes", "error parsing succeededIndexes: %s", e.text);
    if (r->has_count && r->count > w->completions)
        api_fault_at(c, "succeededCount",
                     "must be less than or equal to %d (the number of specified completions)",
                     (int)w->completions);
    if (r->has_count && r->indexes != NULL && r->count > (int32_t)api_index_set_count(&set))
        api_fault_at(c, "succeededCount",
                     "must be less than or equal to %u (the number of indexes in the specified "
                     "succeededIndexes field)",
                     api_index_set_count(&set));
}

static void check_success_policy(struct api_check *c, const struct api_workload *w, const json_t *rules)
{
    size_t mark = api_enter(c, "successPolicy");

    if (!w->indexed)
        api_fault(c, "requires indexed completion mode");
    check_count(c, "rules", w->n_success_rules, RULES_MAX);
    api_enter(c, "rules");
    for (size_t i = 0; w->indexed && i < w->n_success_rules; i++) {
        size_t at = api_enter_index(c, i);

        check_success_rule(c, w, &w->success_rules[i], json_array_get(rules, i));
        api_leave(c, at);
    }
    api_leave(c, mark);
}

/* ---- indexes ---- */

static void check_indexed(struct api_check *c, const struct api_workload *w, const json_t *spec)
{
    if (json_object_get(spec, "completions") == NULL)
        api_fault_at(c, "completions", "required: when completion mode is Indexed");
    if (w->parallelism > INDEXED_MAX)
        api_fault_at(c, "parallelism", "must be less than or equal to %d when completion mode is Indexed",
                     INDEXED_MAX);
    if (w->has_max_failed_indexes && w->max_failed_indexes > w->completions)
        api_fault_at(c, "maxFailedIndexes", "must be less than or equal to completions");
    if (w->has_max_failed_indexes && w->max_failed_indexes > INDEXED_MAX)
        api_fault_at(c, "maxFailedIndexes", "must be less than or equal to %d", INDEXED_MAX);
}

static void check_indexes(struct api_check *c, const struct api_workload *w, const json_t *spec)
{
    if (w->has_max_failed_indexes && !w->has_index_backoff)
        api_fault_at(c, "backoffLimitPerIndex", "required: when maxFailedIndexes is specified");
    if (w->indexed)
        check_indexed(c, w, spec);
    else if (str_eq(json_str(spec, "completionMode"), "NonIndexed") && w->has_index_backoff)
        api_fault_at(c, "backoffLimitPerIndex", "requires indexed completion mode");
    if (w->has_completions && w->completions > API_INDEXES_MAX)
        api_fault_at(c, "completions", "%d are too many, at most %d are allowed: a node keeps their pods",
                     (int)w->completions, API_INDEXES_MAX);
}

/* ---- names, labels, selectors ---- */

static void check_label(struct api_check *c, const char *field, const char *value)
{
    const char *rule = api_format_rule(API_FMT_LABEL_VALUE, value);

    if (rule != NULL)
        api_fault_at(c, field, "%s %s", QUOTE(value), rule);
}

/* A Job has the labels of its template if it has none itself. */
static void check_labels(struct api_check *c, const struct api_workload *w, const char *name,
                         const json_t *object)
{
    const bool none = json_object_size(json_at(object, "metadata.labels")) == 0;
    const char *key;
    json_t *v;

    if (!w->manual_selector && none)
        check_label(c, "metadata.labels", name);
    if (!w->manual_selector)
        check_label(c, "spec.template.labels", name);
    json_object_foreach (json_at(object, "spec.template.metadata.labels"), key, v)
        if (none && json_is_string(v))
            check_label(c, "metadata.labels", json_string_value(v));
}

void api_validate_job_name(struct api_check *c, const struct api_generic *job, const json_t *object)
{
    const struct api_workload *w = job->workload;
    const char *name = json_str(json_object_get(object, "metadata"), "name");
    str_auto last = NULL;

    if (name == NULL || w == NULL)
        return;
    check_labels(c, w, name, object);
    if (!w->indexed || w->completions <= 0) /* pods are called after an index, too */
        return;
    last = str_printf("%s-%d", name, (int)w->completions - 1);
    if (last != NULL && api_format_rule(API_FMT_LABEL, last) != NULL)
        api_fault_at(c, "metadata.name", "will not able to create pod with invalid DNS label: %.300s", last);
}

/* Of the form that is made for a Job: one that was copied from a cluster. */
static bool is_made(const json_t *selector)
{
    const json_t *labels = json_object_get(selector, "matchLabels");

    return json_object_size(selector) == 1 && json_object_size(labels) == 1 &&
           (json_object_get(labels, "controller-uid") != NULL ||
            json_object_get(labels, "batch.kubernetes.io/controller-uid") != NULL);
}

static void check_selector(struct api_check *c, const struct api_workload *w, const json_t *spec)
{
    const json_t *selector = json_object_get(spec, "selector");
    size_t mark = api_enter(c, "selector");
    const bool valid = selector == NULL || api_validate_selector(c, selector);

    if (w->manual_selector && selector == NULL)
        api_fault(c, "required");
    if (!w->manual_selector && valid && selector != NULL && !is_made(selector))
        api_fault(c, "`selector` not auto-generated");
    api_leave(c, mark);
    if (valid && (w->manual_selector || (selector != NULL && !is_made(selector))))
        api_validate_selected(c, selector != NULL ? &w->selector : NULL, json_object_get(spec, "template"));
}

static void check_template_selector(struct api_check *c, const struct api_workload *w, const json_t *spec)
{
    if (json_object_get(spec, "selector") != NULL)
        api_fault_at(c, "selector", "`selector` will be auto-generated");
    if (w->manual_selector)
        api_fault_at(c, "manualSelector", "true is not supported, allowed are nil and false");
}

/* "example.com/controller" */
static void check_manager(struct api_check *c, const char *name)
{
    const char *slash = name != NULL ? strchr(name, '/') : NULL;
    str_auto domain = slash != NULL ? strndup(name, (size_t)(slash - name)) : NULL;

    if (name == NULL)
        return;
    if (name[0] == '\0')
        api_fault_at(c, "managedBy", "required");
    else if (domain == NULL || domain[0] == '\0' || slash[1] == '\0')
        api_fault_at(c, "managedBy", "must be a domain-prefixed path (such as \"acme.io/foo\")");
    else if (api_format_rule(API_FMT_SUBDOMAIN, domain) != NULL)
        api_fault_at(c, "managedBy", "%s %s", QUOTE(domain), api_format_rule(API_FMT_SUBDOMAIN, domain));
    if (name != NULL && strlen(name) > MANAGER_MAX)
        api_fault_at(c, "managedBy", "%zu bytes are too many, at most %d are allowed", strlen(name),
                     MANAGER_MAX);
}

/* ---- whole specs ---- */

void api_validate_job(struct api_check *c, const struct api_generic *job, const json_t *spec,
                      bool of_cron_job)
{
    const struct api_workload *w = job->workload;
    const char *policy = json_str(json_at(spec, "template.spec"), "restartPolicy");

    check_manager(c, json_str(spec, "managedBy"));
    check_indexes(c, w, spec);
    if (w->has_success_policy)
        check_success_policy(c, w, json_at(spec, "successPolicy.rules"));
    if (of_cron_job)
        check_template_selector(c, w, spec);
    else
        check_selector(c, w, spec);
    if (policy == NULL || policy[0] == '\0' || strcmp(policy, "Always") == 0)
        api_fault_at(c, "template.spec.restartPolicy",
                     "Always (the default) is not allowed for a Job, allowed are OnFailure and Never");
    if (w->has_failure_policy)
        check_failure_policy(c, w);
}

static void check_time_zone(struct api_check *c, const char *name)
{
    if (name[0] == '\0')
        api_fault_at(c, "timeZone", "timeZone must be nil or non-empty string");
    else if (strcasecmp(name, "Local") == 0)
        api_fault_at(c, "timeZone",
                     "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
    if (name[0] != '\0' && strcmp(name, "Local") != 0 && !zone_is_known(name))
        api_fault_at(c, "timeZone", "unknown time zone %.100s", name);
}

void api_validate_cron_job(struct api_check *c, const struct api_generic *o)
{
    const struct api_workload *w = o->workload;
    struct api_cron cron;
    struct err e = { 0 };

    if (w->schedule != NULL && api_cron_parse(w->schedule, &cron, &e) != ERR_OK)
        api_fault_at(c, "schedule", "%s", e.text);
    if (w->time_zone != NULL)
        check_time_zone(c, w->time_zone);
}

void api_validate_cron_job_name(struct api_check *c, const struct api_meta *meta)
{
    if (meta->name != NULL && strlen(meta->name) > CRON_JOB_NAME_MAX)
        api_fault_at(c, "metadata.name", "must be no more than %d characters", CRON_JOB_NAME_MAX);
}
