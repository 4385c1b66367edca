/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the kinds of batch/v1 and of Scale. */
#include "agent/api/patch/kinds/tables.h"

static const struct api_row pod_failure_policy_on_exit_codes_requirement[] = {
    ROW("containerName", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("operator", API_STRING),
    ROW("values", API_INT32S, .flags = API_SET),
    { 0 },
};
static const struct api_schema pod_failure_policy_on_exit_codes_requirement_schema =
    SCHEMA("PodFailurePolicyOnExitCodesRequirement", pod_failure_policy_on_exit_codes_requirement);

static const struct api_row pod_failure_policy_on_pod_conditions_pattern[] = {
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema pod_failure_policy_on_pod_conditions_pattern_schema =
    SCHEMA("PodFailurePolicyOnPodConditionsPattern", pod_failure_policy_on_pod_conditions_pattern);

static const struct api_row pod_failure_policy_rule[] = {
    ROW("action", API_STRING),
    ROW("onExitCodes", API_OBJECT, .nested = &pod_failure_policy_on_exit_codes_requirement_schema),
    ROW("onPodConditions", API_LIST, .nested = &pod_failure_policy_on_pod_conditions_pattern_schema),
    { 0 },
};
static const struct api_schema pod_failure_policy_rule_schema =
    SCHEMA("PodFailurePolicyRule", pod_failure_policy_rule);

static const struct api_row pod_failure_policy[] = {
    ROW("rules", API_LIST, .otherwise = "null", .nested = &pod_failure_policy_rule_schema),
    { 0 },
};
static const struct api_schema pod_failure_policy_schema = SCHEMA("PodFailurePolicy", pod_failure_policy);

static const struct api_row success_policy_rule[] = {
    ROW("succeededCount", API_INT32),
    ROW("succeededIndexes", API_STRING, .flags = API_KEEP_EMPTY),
    { 0 },
};
static const struct api_schema success_policy_rule_schema = SCHEMA("SuccessPolicyRule", success_policy_rule);

static const struct api_row success_policy[] = {
    ROW("rules", API_LIST, .nested = &success_policy_rule_schema),
    { 0 },
};
static const struct api_schema success_policy_schema = SCHEMA("SuccessPolicy", success_policy);

static const struct api_row pod_template_spec[] = {
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &api_schema_pod_spec),
    { 0 },
};
static const struct api_schema pod_template_spec_schema = SCHEMA("PodTemplateSpec", pod_template_spec);

static const struct api_row job_spec[] = {
    ROW("activeDeadlineSeconds", API_INT64),
    ROW("backoffLimit", API_INT32),
    ROW("backoffLimitPerIndex", API_INT32),
    ROW("completionMode", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("completions", API_INT32),
    ROW("managedBy", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("manualSelector", API_BOOL),
    ROW("maxFailedIndexes", API_INT32),
    ROW("parallelism", API_INT32),
    ROW("podFailurePolicy", API_OBJECT, .nested = &pod_failure_policy_schema),
    ROW("podReplacementPolicy", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("selector", API_OBJECT, .nested = &api_schema_label_selector),
    ROW("successPolicy", API_OBJECT, .nested = &success_policy_schema),
    ROW("suspend", API_BOOL),
    ROW("template", API_OBJECT, .nested = &pod_template_spec_schema),
    ROW("ttlSecondsAfterFinished", API_INT32),
    { 0 },
};
static const struct api_schema job_spec_schema = SCHEMA("JobSpec", job_spec);

static const struct api_row job_condition[] = {
    ROW("lastProbeTime", API_STRING, .otherwise = "null"),
    ROW("lastTransitionTime", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("reason", API_STRING),
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema job_condition_schema = SCHEMA("JobCondition", job_condition);

static const struct api_row uncounted_terminated_pods[] = {
    ROW("failed", API_STRINGS, .flags = API_SET),
    ROW("succeeded", API_STRINGS, .flags = API_SET),
    { 0 },
};
static const struct api_schema uncounted_terminated_pods_schema =
    SCHEMA("UncountedTerminatedPods", uncounted_terminated_pods);

static const struct api_row job_status[] = {
    ROW("active", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("completedIndexes", API_STRING),
    ROW("completionTime", API_STRING),
    ROW("conditions", API_LIST, .merge_key = "type", .list_keys = "", .nested = &job_condition_schema),
    ROW("failed", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("failedIndexes", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("ready", API_INT32),
    ROW("startTime", API_STRING),
    ROW("succeeded", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("terminating", API_INT32),
    ROW("uncountedTerminatedPods", API_OBJECT, .nested = &uncounted_terminated_pods_schema),
    { 0 },
};
static const struct api_schema job_status_schema = SCHEMA("JobStatus", job_status);

static const struct api_row job[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &job_spec_schema),
    ROW("status", API_OBJECT, .nested = &job_status_schema),
    { 0 },
};
const struct api_schema patch_schema_job = SCHEMA("Job", job);

static const struct api_row job_template_spec[] = {
    ROW("metadata", API_OBJECT, .otherwise = "{}", .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &job_spec_schema),
    { 0 },
};
static const struct api_schema job_template_spec_schema = SCHEMA("JobTemplateSpec", job_template_spec);

static const struct api_row cron_job_spec[] = {
    ROW("concurrencyPolicy", API_STRING, .otherwise = "Allow"),
    ROW("failedJobsHistoryLimit", API_INT32, .otherwise = "1"),
    ROW("jobTemplate", API_OBJECT, .otherwise = "{}", .nested = &job_template_spec_schema),
    ROW("schedule", API_STRING),
    ROW("startingDeadlineSeconds", API_INT64),
    ROW("successfulJobsHistoryLimit", API_INT32, .otherwise = "3"),
    ROW("suspend", API_BOOL, .otherwise = "false"),
    ROW("timeZone", API_STRING, .flags = API_KEEP_EMPTY),
    { 0 },
};
static const struct api_schema cron_job_spec_schema = SCHEMA("CronJobSpec", cron_job_spec);

static const struct api_row object_reference[] = {
    ROW("apiVersion", API_STRING), ROW("fieldPath", API_STRING),
    ROW("kind", API_STRING),       ROW("name", API_STRING),
    ROW("namespace", API_STRING),  ROW("resourceVersion", API_STRING),
    ROW("uid", API_STRING),        { 0 },
};
static const struct api_schema object_reference_schema =
    SCHEMA("ObjectReference", object_reference, .atomic = true);

static const struct api_row cron_job_status[] = {
    ROW("active", API_LIST, .nested = &object_reference_schema),
    ROW("lastScheduleTime", API_STRING),
    ROW("lastSuccessfulTime", API_STRING),
    { 0 },
};
static const struct api_schema cron_job_status_schema = SCHEMA("CronJobStatus", cron_job_status);

static const struct api_row cron_job[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &cron_job_spec_schema),
    ROW("status", API_OBJECT, .nested = &cron_job_status_schema),
    { 0 },
};
const struct api_schema patch_schema_cron_job = SCHEMA("CronJob", cron_job);

static const struct api_row scale_spec[] = {
    ROW("replicas", API_INT32, .flags = API_ZERO_ABSENT),
    { 0 },
};
static const struct api_schema scale_spec_schema = SCHEMA("ScaleSpec", scale_spec);

static const struct api_row scale_status[] = {
    ROW("replicas", API_INT32, .otherwise = "0"),
    ROW("selector", API_STRING),
    { 0 },
};
static const struct api_schema scale_status_schema = SCHEMA("ScaleStatus", scale_status);

static const struct api_row scale[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &scale_spec_schema),
    ROW("status", API_OBJECT, .nested = &scale_status_schema),
    { 0 },
};
const struct api_schema patch_schema_scale = SCHEMA("Scale", scale);
