/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the kinds of apps/v1: Deployment, ReplicaSet, StatefulSet, DaemonSet. */
#include "agent/api/patch/kinds/tables.h"

static const struct api_row rolling_update_deployment[] = {
    ROW("maxSurge", API_INT_OR_STRING),
    ROW("maxUnavailable", API_INT_OR_STRING),
    { 0 },
};
static const struct api_schema rolling_update_deployment_schema =
    SCHEMA("RollingUpdateDeployment", rolling_update_deployment);

static const struct api_row deployment_strategy[] = {
    ROW("rollingUpdate", API_OBJECT, .nested = &rolling_update_deployment_schema),
    ROW("type", API_STRING, .otherwise = "RollingUpdate"),
    { 0 },
};
static const struct api_schema deployment_strategy_schema = SCHEMA("DeploymentStrategy", deployment_strategy);

static const struct api_row pod_template_spec[] = {
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &api_schema_pod_spec),
    { 0 },
};
static const struct api_schema pod_template_spec_schema = SCHEMA("PodTemplateSpec", pod_template_spec);

static const struct api_row deployment_spec[] = {
    ROW("minReadySeconds", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("paused", API_BOOL, .flags = API_ZERO_ABSENT),
    ROW("progressDeadlineSeconds", API_INT32, .otherwise = "600"),
    ROW("replicas", API_INT32, .otherwise = "1"),
    ROW("revisionHistoryLimit", API_INT32, .otherwise = "10"),
    ROW("selector", API_OBJECT, .nested = &api_schema_label_selector),
    ROW("strategy", API_OBJECT, .flags = API_RETAIN_KEYS, .otherwise = "{}",
        .nested = &deployment_strategy_schema),
    ROW("template", API_OBJECT, .nested = &pod_template_spec_schema),
    { 0 },
};
static const struct api_schema deployment_spec_schema = SCHEMA("DeploymentSpec", deployment_spec);

static const struct api_row deployment_condition[] = {
    ROW("lastTransitionTime", API_STRING, .otherwise = "null"),
    ROW("lastUpdateTime", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("reason", API_STRING),
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema deployment_condition_schema =
    SCHEMA("DeploymentCondition", deployment_condition);

static const struct api_row deployment_status[] = {
    ROW("availableReplicas", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("collisionCount", API_INT32),
    ROW("conditions", API_LIST, .merge_key = "type", .nested = &deployment_condition_schema),
    ROW("observedGeneration", API_INT64, .flags = API_ZERO_ABSENT),
    ROW("readyReplicas", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("replicas", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("terminatingReplicas", API_INT32),
    ROW("unavailableReplicas", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("updatedReplicas", API_INT32, .flags = API_ZERO_ABSENT),
    { 0 },
};
static const struct api_schema deployment_status_schema = SCHEMA("DeploymentStatus", deployment_status);

static const struct api_row deployment[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &deployment_spec_schema),
    ROW("status", API_OBJECT, .nested = &deployment_status_schema),
    { 0 },
};
const struct api_schema patch_schema_deployment = SCHEMA("Deployment", deployment);

static const struct api_row replica_set_spec[] = {
    ROW("minReadySeconds", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("replicas", API_INT32, .otherwise = "1"),
    ROW("selector", API_OBJECT, .nested = &api_schema_label_selector),
    ROW("template", API_OBJECT, .nested = &pod_template_spec_schema),
    { 0 },
};
static const struct api_schema replica_set_spec_schema = SCHEMA("ReplicaSetSpec", replica_set_spec);

static const struct api_row replica_set_condition[] = {
    ROW("lastTransitionTime", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("reason", API_STRING),
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema replica_set_condition_schema =
    SCHEMA("ReplicaSetCondition", replica_set_condition);

static const struct api_row replica_set_status[] = {
    ROW("availableReplicas", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("conditions", API_LIST, .merge_key = "type", .nested = &replica_set_condition_schema),
    ROW("fullyLabeledReplicas", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("observedGeneration", API_INT64, .flags = API_ZERO_ABSENT),
    ROW("readyReplicas", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("replicas", API_INT32, .otherwise = "0"),
    ROW("terminatingReplicas", API_INT32),
    { 0 },
};
static const struct api_schema replica_set_status_schema = SCHEMA("ReplicaSetStatus", replica_set_status);

static const struct api_row replica_set[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &replica_set_spec_schema),
    ROW("status", API_OBJECT, .nested = &replica_set_status_schema),
    { 0 },
};
const struct api_schema patch_schema_replica_set = SCHEMA("ReplicaSet", replica_set);

static const struct api_row stateful_set_ordinals[] = {
    ROW("start", API_INT32, .otherwise = "0"),
    { 0 },
};
static const struct api_schema stateful_set_ordinals_schema =
    SCHEMA("StatefulSetOrdinals", stateful_set_ordinals);

static const struct api_row stateful_set_persistent_volume_claim_retention_policy[] = {
    ROW("whenDeleted", API_STRING, .otherwise = "Retain"),
    ROW("whenScaled", API_STRING, .otherwise = "Retain"),
    { 0 },
};
static const struct api_schema stateful_set_persistent_volume_claim_retention_policy_schema = SCHEMA(
    "StatefulSetPersistentVolumeClaimRetentionPolicy", stateful_set_persistent_volume_claim_retention_policy);

static const struct api_row rolling_update_stateful_set_strategy[] = {
    ROW("maxUnavailable", API_INT_OR_STRING),
    ROW("partition", API_INT32),
    { 0 },
};
static const struct api_schema rolling_update_stateful_set_strategy_schema =
    SCHEMA("RollingUpdateStatefulSetStrategy", rolling_update_stateful_set_strategy);

static const struct api_row stateful_set_update_strategy[] = {
    ROW("rollingUpdate", API_OBJECT, .nested = &rolling_update_stateful_set_strategy_schema),
    ROW("type", API_STRING, .otherwise = "RollingUpdate"),
    { 0 },
};
static const struct api_schema stateful_set_update_strategy_schema =
    SCHEMA("StatefulSetUpdateStrategy", stateful_set_update_strategy);

/* With what an apiserver writes into templates, although it says nothing there. */
static const struct api_row claim_template[] = {
    ROW("apiVersion", API_STRING, .otherwise = "v1"),
    ROW("kind", API_STRING, .otherwise = "PersistentVolumeClaim"),
    ROW("status", API_OBJECT, .otherwise = "{}", .nested = &patch_schema_claim_status),
    { 0 },
};
static const struct api_schema claim_template_schema =
    SCHEMA("PersistentVolumeClaim", claim_template, .base = &patch_schema_claim);

static const struct api_row stateful_set_spec[] = {
    ROW("minReadySeconds", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("ordinals", API_OBJECT, .nested = &stateful_set_ordinals_schema),
    ROW("persistentVolumeClaimRetentionPolicy", API_OBJECT, .otherwise = "{}",
        .nested = &stateful_set_persistent_volume_claim_retention_policy_schema),
    ROW("podManagementPolicy", API_STRING, .otherwise = "OrderedReady"),
    ROW("replicas", API_INT32, .otherwise = "1"),
    ROW("revisionHistoryLimit", API_INT32, .otherwise = "10"),
    ROW("selector", API_OBJECT, .nested = &api_schema_label_selector),
    ROW("serviceName", API_STRING, .flags = API_KEEP_EMPTY, .otherwise = ""),
    ROW("template", API_OBJECT, .nested = &pod_template_spec_schema),
    ROW("updateStrategy", API_OBJECT, .otherwise = "{}", .nested = &stateful_set_update_strategy_schema),
    ROW("volumeClaimTemplates", API_LIST, .nested = &claim_template_schema),
    { 0 },
};
static const struct api_schema stateful_set_spec_schema = SCHEMA("StatefulSetSpec", stateful_set_spec);

static const struct api_row stateful_set_condition[] = {
    ROW("lastTransitionTime", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("reason", API_STRING),
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema stateful_set_condition_schema =
    SCHEMA("StatefulSetCondition", stateful_set_condition);

static const struct api_row stateful_set_status[] = {
    ROW("availableReplicas", API_INT32, .otherwise = "0"),
    ROW("collisionCount", API_INT32),
    ROW("conditions", API_LIST, .merge_key = "type", .nested = &stateful_set_condition_schema),
    ROW("currentReplicas", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("currentRevision", API_STRING),
    ROW("observedGeneration", API_INT64, .flags = API_ZERO_ABSENT),
    ROW("readyReplicas", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("replicas", API_INT32, .otherwise = "0"),
    ROW("updateRevision", API_STRING),
    ROW("updatedReplicas", API_INT32, .flags = API_ZERO_ABSENT),
    { 0 },
};
static const struct api_schema stateful_set_status_schema = SCHEMA("StatefulSetStatus", stateful_set_status);

static const struct api_row stateful_set[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &stateful_set_spec_schema),
    ROW("status", API_OBJECT, .nested = &stateful_set_status_schema),
    { 0 },
};
const struct api_schema patch_schema_stateful_set = SCHEMA("StatefulSet", stateful_set);

static const struct api_row rolling_update_daemon_set[] = {
    ROW("maxSurge", API_INT_OR_STRING),
    ROW("maxUnavailable", API_INT_OR_STRING),
    { 0 },
};
static const struct api_schema rolling_update_daemon_set_schema =
    SCHEMA("RollingUpdateDaemonSet", rolling_update_daemon_set);

static const struct api_row daemon_set_update_strategy[] = {
    ROW("rollingUpdate", API_OBJECT, .nested = &rolling_update_daemon_set_schema),
    ROW("type", API_STRING, .otherwise = "RollingUpdate"),
    { 0 },
};
static const struct api_schema daemon_set_update_strategy_schema =
    SCHEMA("DaemonSetUpdateStrategy", daemon_set_update_strategy);

static const struct api_row daemon_set_spec[] = {
    ROW("minReadySeconds", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("revisionHistoryLimit", API_INT32, .otherwise = "10"),
    ROW("selector", API_OBJECT, .nested = &api_schema_label_selector),
    ROW("template", API_OBJECT, .nested = &pod_template_spec_schema),
    ROW("updateStrategy", API_OBJECT, .otherwise = "{}", .nested = &daemon_set_update_strategy_schema),
    { 0 },
};
static const struct api_schema daemon_set_spec_schema = SCHEMA("DaemonSetSpec", daemon_set_spec);

static const struct api_row daemon_set_condition[] = {
    ROW("lastTransitionTime", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("reason", API_STRING),
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema daemon_set_condition_schema =
    SCHEMA("DaemonSetCondition", daemon_set_condition);

static const struct api_row daemon_set_status[] = {
    ROW("collisionCount", API_INT32),
    ROW("conditions", API_LIST, .merge_key = "type", .nested = &daemon_set_condition_schema),
    ROW("currentNumberScheduled", API_INT32, .otherwise = "0"),
    ROW("desiredNumberScheduled", API_INT32, .otherwise = "0"),
    ROW("numberAvailable", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("numberMisscheduled", API_INT32, .otherwise = "0"),
    ROW("numberReady", API_INT32, .otherwise = "0"),
    ROW("numberUnavailable", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("observedGeneration", API_INT64, .flags = API_ZERO_ABSENT),
    ROW("updatedNumberScheduled", API_INT32, .flags = API_ZERO_ABSENT),
    { 0 },
};
static const struct api_schema daemon_set_status_schema = SCHEMA("DaemonSetStatus", daemon_set_status);

static const struct api_row daemon_set[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &daemon_set_spec_schema),
    ROW("status", API_OBJECT, .nested = &daemon_set_status_schema),
    { 0 },
};
const struct api_schema patch_schema_daemon_set = SCHEMA("DaemonSet", daemon_set);
