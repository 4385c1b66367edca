/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Job and CronJob. */
#include "agent/api/generic.h"
#include "agent/api/schema/schema.h"

static const char server_status[] = "the status is what the node reports; one in a manifest is dropped";

/* ---- podFailurePolicy, successPolicy ---- */
static const struct api_value exit_operators[] = { { "In", false }, { "NotIn", true }, { NULL, 0 } };
static const struct api_row exit_codes[] = {
    ROW("containerName", API_STRING, SLOT(api_failure_rule, container), .flags = API_KEEP_EMPTY),
    ROW("operator", API_ENUM, SLOT(api_failure_rule, not_in), .flags = API_REQUIRED | API_BOOL_SLOT,
        .values = exit_operators),
    ROW("values", API_INT32S, SLOTS(api_failure_rule, exit_codes)),
    { 0 },
};
static const struct api_schema exit_codes_schema =
    SCHEMA("PodFailurePolicyOnExitCodesRequirement", exit_codes);
static const struct api_value condition_states[] = {
    { "False", 0 }, { "True", 0 }, { "Unknown", 0 }, { NULL, 0 }
};
static const struct api_row failure_condition[] = {
    ROW("type", API_STRING, SLOT(api_failure_condition, type), .flags = API_REQUIRED,
        .format = API_FMT_LABEL_KEY),
    ROW("status", API_STRING, SLOT(api_failure_condition, status), .values = condition_states,
        .otherwise = "True"),
    { 0 },
};
static const struct api_schema failure_condition_schema =
    SCHEMA("PodFailurePolicyOnPodConditionsPattern", failure_condition,
           .size = sizeof(struct api_failure_condition));
static const struct api_value failure_actions[] = { { "Count", API_FAILURE_COUNT },
                                                    { "FailIndex", API_FAILURE_FAIL_INDEX },
                                                    { "FailJob", API_FAILURE_FAIL_JOB },
                                                    { "Ignore", API_FAILURE_IGNORE },
                                                    { NULL, 0 } };
static const struct api_row failure_rule[] = {
    ROW("action", API_ENUM, SLOT(api_failure_rule, action), .flags = API_REQUIRED, .values = failure_actions),
    ROW("onExitCodes", API_OBJECT, .slot = HERE, .has = AT(api_failure_rule, by_exit),
        .nested = &exit_codes_schema),
    ROW("onPodConditions", API_LIST, SLOTS(api_failure_rule, conditions),
        .nested = &failure_condition_schema),
    { 0 },
};
static const struct api_schema failure_rule_schema =
    SCHEMA("PodFailurePolicyRule", failure_rule, .size = sizeof(struct api_failure_rule));
static const struct api_row failure_policy[] = {
    ROW("rules", API_LIST, SLOTS(api_workload, failure_rules), .nested = &failure_rule_schema),
    { 0 },
};
static const struct api_schema failure_policy_schema = SCHEMA("PodFailurePolicy", failure_policy);

static const struct api_row success_rule[] = {
    ROW("succeededIndexes", API_STRING, SLOT(api_success_rule, indexes), .flags = API_KEEP_EMPTY),
    ROW("succeededCount", API_INT32, SLOT(api_success_rule, count), .has = AT(api_success_rule, has_count),
        RANGE(0, INT32_MAX)),
    { 0 },
};
static const struct api_schema success_rule_schema =
    SCHEMA("SuccessPolicyRule", success_rule, .size = sizeof(struct api_success_rule));
static const struct api_row success_policy[] = {
    ROW("rules", API_LIST, SLOTS(api_workload, success_rules), .nested = &success_rule_schema,
        .flags = API_REQUIRED),
    { 0 },
};
static const struct api_schema success_policy_schema = SCHEMA("SuccessPolicy", success_policy);

/* ---- Job ---- */
static const struct api_value completion_modes[] = { { "NonIndexed", 0 }, { "Indexed", 1 }, { NULL, 0 } };
static const struct api_value replacements[] = { { "Failed", 1 }, { "TerminatingOrFailed", 0 }, { NULL, 0 } };

static const struct api_row job_spec[] = {
    ROW("completions", API_INT32, SLOT(api_workload, completions), .has = AT(api_workload, has_completions),
        RANGE(0, INT32_MAX)),
    ROW("parallelism", API_INT32, SLOT(api_workload, parallelism), .has = AT(api_workload, has_parallelism),
        .otherwise = "1", RANGE(0, INT32_MAX)),
    ROW("backoffLimit", API_INT32, SLOT(api_workload, backoff_limit),
        .has = AT(api_workload, has_backoff_limit), RANGE(0, INT32_MAX)),
    ROW("activeDeadlineSeconds", API_INT64, SLOT(api_workload, deadline_seconds),
        .has = AT(api_workload, has_deadline), RANGE(0, INT64_MAX)),
    ROW("ttlSecondsAfterFinished", API_INT32, SLOT(api_workload, ttl_seconds),
        .has = AT(api_workload, has_ttl), RANGE(0, INT32_MAX),
        ACTED("the Job is deleted: its document is taken out of its file")),
    ROW("suspend", API_BOOL, SLOT(api_workload, suspend), .otherwise = "false"),
    ROW("completionMode", API_ENUM, SLOT(api_workload, indexed), .flags = API_BOOL_SLOT | API_KEEP_EMPTY,
        .values = completion_modes, .otherwise = "NonIndexed"),
    ROW("selector", API_OBJECT, SLOT(api_workload, selector), .nested = &api_schema_label_selector,
        ACCEPTED("pods are found by their owner")),
    ROW("manualSelector", API_BOOL, SLOT(api_workload, manual_selector), .otherwise = "false",
        ACCEPTED("pods are found by their owner")),
    ROW("template", API_OBJECT, .nested = &api_schema_pod_template, .flags = API_REQUIRED | API_ELSEWHERE,
        .support = API_ACTED),
    ROW("podFailurePolicy", API_OBJECT, .slot = HERE, .has = AT(api_workload, has_failure_policy),
        .nested = &failure_policy_schema),
    ROW("successPolicy", API_OBJECT, .slot = HERE, .has = AT(api_workload, has_success_policy),
        .nested = &success_policy_schema),
    ROW("backoffLimitPerIndex", API_INT32, SLOT(api_workload, index_backoff_limit),
        .has = AT(api_workload, has_index_backoff), RANGE(0, INT32_MAX)),
    ROW("maxFailedIndexes", API_INT32, SLOT(api_workload, max_failed_indexes),
        .has = AT(api_workload, has_max_failed_indexes), RANGE(0, INT32_MAX)),
    ROW("podReplacementPolicy", API_ENUM, SLOT(api_workload, replace_failed),
        .has = AT(api_workload, has_replacement), .flags = API_BOOL_SLOT | API_KEEP_EMPTY,
        .values = replacements),
    ROW("managedBy", API_STRING, .flags = API_KEEP_EMPTY, .harmless = "\"kubernetes.io/job-controller\"",
        IGNORED("this node runs the Job")),
    { 0 },
};
const struct api_schema api_schema_job_spec =
    SCHEMA("JobSpec", job_spec, .size = sizeof(struct api_workload));

static const struct api_row job[] = {
    ROW("apiVersion", API_STRING, .support = API_ACTED),
    ROW("kind", API_STRING, .support = API_ACTED),
    ROW("metadata", API_OBJECT, SLOT(api_generic, meta), .nested = &api_schema_object_meta,
        .otherwise = "{}"),
    ROW("spec", API_OBJECT, SLOT(api_generic, workload), .nested = &api_schema_job_spec,
        .flags = API_POINTER | API_REQUIRED),
    ROW("status", API_ANY, .flags = API_DROP, ACCEPTED(server_status)),
    { 0 },
};
const struct api_schema api_schema_job = SCHEMA("Job", job);

/* ---- CronJob ---- */
static const struct api_row job_template_meta[] = {
    ROW("name", API_STRING, ACCEPTED("Jobs are named after their CronJob")),
    ROW("namespace", API_STRING, ACCEPTED("Jobs are in the namespace of their CronJob")),
    ROW("uid", API_STRING, .flags = API_DROP, ACCEPTED("each Job has its own; dropped")),
    { 0 },
};
static const struct api_schema job_template_meta_schema =
    SCHEMA("ObjectMeta", job_template_meta, .base = &api_schema_object_meta);
static const struct api_row job_template[] = {
    ROW("metadata", API_OBJECT, SLOT(api_generic, meta), .nested = &job_template_meta_schema,
        .otherwise = "{}"),
    ROW("spec", API_OBJECT, SLOT(api_generic, workload), .nested = &api_schema_job_spec,
        .flags = API_POINTER | API_REQUIRED),
    { 0 },
};
const struct api_schema api_schema_job_template = SCHEMA("JobTemplateSpec", job_template);

static const struct api_value concurrency_policies[] = { { "Allow", API_CONCURRENCY_ALLOW },
                                                         { "Forbid", API_CONCURRENCY_FORBID },
                                                         { "Replace", API_CONCURRENCY_REPLACE },
                                                         { NULL, 0 } };
static const struct api_row cron_job_spec[] = {
    ROW("schedule", API_STRING, SLOT(api_workload, schedule), .flags = API_REQUIRED),
    ROW("timeZone", API_STRING, SLOT(api_workload, time_zone), .flags = API_KEEP_EMPTY),
    ROW("startingDeadlineSeconds", API_INT64, SLOT(api_workload, starting_deadline_seconds),
        .has = AT(api_workload, has_starting_deadline), RANGE(0, INT64_MAX)),
    ROW("concurrencyPolicy", API_ENUM, SLOT(api_workload, concurrency), .values = concurrency_policies,
        .otherwise = "Allow"),
    ROW("suspend", API_BOOL, SLOT(api_workload, suspend), .otherwise = "false"),
    ROW("jobTemplate", API_OBJECT, .nested = &api_schema_job_template, .flags = API_REQUIRED | API_ELSEWHERE,
        .support = API_ACTED),
    ROW("successfulJobsHistoryLimit", API_INT32, SLOT(api_workload, keep_successful), .otherwise = "3",
        RANGE(0, INT32_MAX)),
    ROW("failedJobsHistoryLimit", API_INT32, SLOT(api_workload, keep_failed), .otherwise = "1",
        RANGE(0, INT32_MAX)),
    { 0 },
};
static const struct api_schema cron_job_spec_schema =
    SCHEMA("CronJobSpec", cron_job_spec, .size = sizeof(struct api_workload));

static const struct api_row cron_job[] = {
    ROW("apiVersion", API_STRING, .support = API_ACTED),
    ROW("kind", API_STRING, .support = API_ACTED),
    ROW("metadata", API_OBJECT, SLOT(api_generic, meta), .nested = &api_schema_object_meta,
        .otherwise = "{}"),
    ROW("spec", API_OBJECT, SLOT(api_generic, workload), .nested = &cron_job_spec_schema,
        .flags = API_POINTER | API_REQUIRED),
    ROW("status", API_ANY, .flags = API_DROP, ACCEPTED(server_status)),
    { 0 },
};
const struct api_schema api_schema_cron_job = SCHEMA("CronJob", cron_job);
