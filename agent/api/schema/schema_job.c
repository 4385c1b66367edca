/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Job and CronJob. */
#include "agent/api/generic.h"
#include "agent/api/schema/schema.h"

static const char server_status[] = "the status is what the node reports; one in a manifest is dropped";
static const char per_index[] = "failures are counted for the whole Job (backoffLimit)";

/* ---- podFailurePolicy, successPolicy: known, not acted on ---- */
static const struct api_row exit_codes[] = {
    ROW("containerName", API_STRING),
    ROW("operator", API_STRING, .flags = API_REQUIRED),
    ROW("values", API_INT32S),
    { 0 },
};
static const struct api_schema exit_codes_schema =
    SCHEMA("PodFailurePolicyOnExitCodesRequirement", exit_codes);
static const struct api_row failure_condition[] = {
    ROW("type", API_STRING, .flags = API_REQUIRED),
    ROW("status", API_STRING),
    { 0 },
};
static const struct api_schema failure_condition_schema =
    SCHEMA("PodFailurePolicyOnPodConditionsPattern", failure_condition);
static const struct api_row failure_rule[] = {
    ROW("action", API_STRING, .flags = API_REQUIRED),
    ROW("onExitCodes", API_OBJECT, .nested = &exit_codes_schema),
    ROW("onPodConditions", API_LIST, .nested = &failure_condition_schema),
    { 0 },
};
static const struct api_schema failure_rule_schema = SCHEMA("PodFailurePolicyRule", failure_rule);
static const struct api_row failure_policy[] = {
    ROW("rules", API_LIST, .nested = &failure_rule_schema, .flags = API_REQUIRED),
    { 0 },
};
static const struct api_schema failure_policy_schema = SCHEMA("PodFailurePolicy", failure_policy);

static const struct api_row success_rule[] = {
    ROW("succeededIndexes", API_STRING),
    ROW("succeededCount", API_INT32),
    { 0 },
};
static const struct api_schema success_rule_schema = SCHEMA("SuccessPolicyRule", success_rule);
static const struct api_row success_policy[] = {
    ROW("rules", API_LIST, .nested = &success_rule_schema, .flags = API_REQUIRED),
    { 0 },
};
static const struct api_schema success_policy_schema = SCHEMA("SuccessPolicy", success_policy);

/* ---- Job ---- */
static const struct api_value completion_modes[] = { { "NonIndexed", 0 }, { "Indexed", 1 }, { NULL, 0 } };
static const struct api_value replacements[] = { { "TerminatingOrFailed", 0 }, { "Failed", 1 }, { NULL, 0 } };

static const struct api_row job_spec[] = {
    ROW("completions", API_INT32, SLOT(api_workload, completions), .has = AT(api_workload, has_completions),
        RANGE(0, INT32_MAX)),
    ROW("parallelism", API_INT32, SLOT(api_workload, parallelism), .has = AT(api_workload, has_parallelism),
        .otherwise = "1", RANGE(0, INT32_MAX)),
    ROW("backoffLimit", API_INT32, SLOT(api_workload, backoff_limit), .otherwise = "6", RANGE(0, INT32_MAX)),
    ROW("activeDeadlineSeconds", API_INT64, SLOT(api_workload, deadline_seconds),
        .has = AT(api_workload, has_deadline), RANGE(0, INT32_MAX)),
    ROW("ttlSecondsAfterFinished", API_INT32, SLOT(api_workload, ttl_seconds),
        .has = AT(api_workload, has_ttl), RANGE(0, INT32_MAX),
        IGNORED("a Job and its pods are there as long as its manifest")),
    ROW("suspend", API_BOOL, SLOT(api_workload, suspend), .otherwise = "false"),
    ROW("completionMode", API_ENUM, SLOT(api_workload, indexed), .flags = API_BOOL_SLOT,
        .values = completion_modes, .otherwise = "NonIndexed"),
    ROW("selector", API_OBJECT, .nested = &api_schema_label_selector,
        ACCEPTED("pods are found by their owner")),
    ROW("manualSelector", API_BOOL, ACCEPTED("pods are found by their owner")),
    ROW("template", API_OBJECT, .nested = &api_schema_pod_template, .flags = API_REQUIRED | API_ELSEWHERE,
        .support = API_ACTED),
    ROW("podFailurePolicy", API_OBJECT, .nested = &failure_policy_schema,
        IGNORED("every failure counts for backoffLimit")),
    ROW("successPolicy", API_OBJECT, .nested = &success_policy_schema,
        IGNORED("a Job succeeds when all completions have")),
    ROW("backoffLimitPerIndex", API_INT32, RANGE(0, INT32_MAX), IGNORED(per_index)),
    ROW("maxFailedIndexes", API_INT32, RANGE(0, INT32_MAX), IGNORED(per_index)),
    ROW("podReplacementPolicy", API_STRING, .values = replacements,
        ACCEPTED("a failed pod is replaced when it has ended")),
    ROW("managedBy", API_STRING, .format = API_FMT_LABEL_KEY, .harmless = "\"kubernetes.io/job-controller\"",
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
    ROW("timeZone", API_STRING, SLOT(api_workload, time_zone)),
    ROW("startingDeadlineSeconds", API_INT64, SLOT(api_workload, starting_deadline_seconds),
        .has = AT(api_workload, has_starting_deadline), RANGE(0, INT32_MAX)),
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
