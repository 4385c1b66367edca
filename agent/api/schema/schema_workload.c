/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the workloads that keep pods running: Deployment, ReplicaSet, StatefulSet, DaemonSet. */
#include "agent/api/generic.h"
#include "agent/api/schema/schema.h"

static const char one_node[] = "there is one node: it says nothing here";

/* ---- the template ---- */
static const struct api_row template_meta[] = {
    ROW("name", API_STRING, ACCEPTED("pods are named after their workload")),
    ROW("namespace", API_STRING, ACCEPTED("pods are in the namespace of their workload")),
    ROW("uid", API_STRING, .flags = API_DROP, ACCEPTED("each pod has its own; dropped")),
    { 0 },
};
static const struct api_schema template_meta_schema =
    SCHEMA("ObjectMeta", template_meta, .base = &api_schema_object_meta);

static const struct api_row pod_template[] = {
    ROW("metadata", API_OBJECT, SLOT(api_pod, meta), .nested = &template_meta_schema, .otherwise = "{}"),
    ROW("spec", API_OBJECT, SLOT(api_pod, spec), .nested = &api_schema_pod_spec, .otherwise = "{}"),
    { 0 },
};
const struct api_schema api_schema_pod_template = SCHEMA("PodTemplateSpec", pod_template);

#define SELECTOR(...)                                                                                        \
    ROW("selector", API_OBJECT, SLOT(api_workload, selector), .nested = &api_schema_label_selector,          \
        __VA_ARGS__)
#define TEMPLATE                                                                                             \
    ROW("template", API_OBJECT, .nested = &api_schema_pod_template, .flags = API_REQUIRED | API_ELSEWHERE,   \
        .support = API_ACTED)
#define REPLICAS                                                                                             \
    ROW("replicas", API_INT32, SLOT(api_workload, replicas), .otherwise = "1", RANGE(0, INT32_MAX))
#define MIN_READY                                                                                            \
    ROW("minReadySeconds", API_INT32, SLOT(api_workload, min_ready_seconds), .flags = API_ZERO_ABSENT,       \
        RANGE(0, INT32_MAX))
#define HISTORY(...)                                                                                         \
    ROW("revisionHistoryLimit", API_INT32, SLOT(api_workload, revision_history_limit), .otherwise = "10",    \
        __VA_ARGS__)

/* The object around a spec. */
#define OBJECT(name_, spec_)                                                                                 \
    ROW("apiVersion", API_STRING, .support = API_ACTED), ROW("kind", API_STRING, .support = API_ACTED),      \
        ROW("metadata", API_OBJECT, SLOT(api_generic, meta), .nested = &api_schema_object_meta,              \
            .otherwise = "{}"),                                                                              \
        ROW("spec", API_OBJECT, SLOT(api_generic, workload), .nested = &(spec_),                             \
            .flags = API_POINTER | API_REQUIRED),                                                            \
        ROW("status", API_ANY, .flags = API_DROP,                                                            \
            ACCEPTED("the status is what the node reports; one in a manifest is dropped")),                  \
    {                                                                                                        \
        0                                                                                                    \
    }

/* ---- Deployment ---- */
static const struct api_row rolling_deployment[] = {
    ROW("maxUnavailable", API_INT_OR_STRING, SLOT(api_workload, max_unavailable), .format = API_FMT_PERCENT,
        RANGE(0, INT32_MAX)),
    ROW("maxSurge", API_INT_OR_STRING, SLOT(api_workload, max_surge), .format = API_FMT_PERCENT,
        RANGE(0, INT32_MAX)),
    { 0 },
};
static const struct api_schema rolling_deployment_schema =
    SCHEMA("RollingUpdateDeployment", rolling_deployment);

static const struct api_value deployment_strategies[] = { { "Recreate", API_UPDATE_RECREATE },
                                                          { "RollingUpdate", API_UPDATE_ROLLING },
                                                          { NULL, 0 } };
static const struct api_row deployment_strategy[] = {
    ROW("type", API_ENUM, SLOT(api_workload, update), .values = deployment_strategies,
        .otherwise = "RollingUpdate"),
    ROW("rollingUpdate", API_OBJECT, .slot = HERE, .nested = &rolling_deployment_schema),
    { 0 },
};
static const struct api_schema deployment_strategy_schema = SCHEMA("DeploymentStrategy", deployment_strategy);

static const struct api_row deployment_spec[] = {
    REPLICAS,
    SELECTOR(.flags = API_REQUIRED),
    TEMPLATE,
    ROW("strategy", API_OBJECT, .slot = HERE, .nested = &deployment_strategy_schema, .otherwise = "{}"),
    MIN_READY,
    HISTORY(RANGE(0, INT32_MAX)),
    ROW("paused", API_BOOL, SLOT(api_workload, paused), .flags = API_ZERO_ABSENT),
    ROW("progressDeadlineSeconds", API_INT32, SLOT(api_workload, progress_deadline_seconds),
        .otherwise = "600", RANGE(0, INT32_MAX)),
    { 0 },
};
static const struct api_schema deployment_spec_schema =
    SCHEMA("DeploymentSpec", deployment_spec, .size = sizeof(struct api_workload));
static const struct api_row deployment[] = { OBJECT("Deployment", deployment_spec_schema) };
const struct api_schema api_schema_deployment = SCHEMA("Deployment", deployment);

/* ---- ReplicaSet ---- */
static const struct api_row replica_set_spec[] = {
    REPLICAS, SELECTOR(.flags = API_REQUIRED), TEMPLATE, MIN_READY, { 0 }
};
static const struct api_schema replica_set_spec_schema =
    SCHEMA("ReplicaSetSpec", replica_set_spec, .size = sizeof(struct api_workload));
static const struct api_row replica_set[] = { OBJECT("ReplicaSet", replica_set_spec_schema) };
const struct api_schema api_schema_replica_set = SCHEMA("ReplicaSet", replica_set);

/* ---- StatefulSet ---- */
static const struct api_row rolling_stateful_set[] = {
    ROW("partition", API_INT32, SLOT(api_workload, partition), .otherwise = "0", RANGE(0, INT32_MAX)),
    ROW("maxUnavailable", API_INT_OR_STRING, .format = API_FMT_PERCENT, RANGE(0, INT32_MAX),
        IGNORED("pods are replaced one by one")),
    { 0 },
};
static const struct api_schema rolling_stateful_set_schema =
    SCHEMA("RollingUpdateStatefulSetStrategy", rolling_stateful_set);

static const struct api_value set_updates[] = { { "RollingUpdate", API_UPDATE_ROLLING },
                                                { "OnDelete", API_UPDATE_ON_DELETE },
                                                { NULL, 0 } };
static const struct api_row stateful_set_update[] = {
    ROW("type", API_ENUM, SLOT(api_workload, update), .values = set_updates, .otherwise = "RollingUpdate"),
    ROW("rollingUpdate", API_OBJECT, .slot = HERE, .nested = &rolling_stateful_set_schema),
    { 0 },
};
static const struct api_schema stateful_set_update_schema =
    SCHEMA("StatefulSetUpdateStrategy", stateful_set_update);

static const struct api_value management_policies[] = { { "OrderedReady", 0 },
                                                        { "Parallel", 1 },
                                                        { NULL, 0 } };
static const struct api_value retention_policies[] = { { "Retain", 0 }, { "Delete", 1 }, { NULL, 0 } };
static const struct api_row retention[] = {
    ROW("whenDeleted", API_ENUM, SLOT(api_workload, claims_go_with_set), .flags = API_BOOL_SLOT,
        .values = retention_policies, .otherwise = "Retain"),
    ROW("whenScaled", API_ENUM, SLOT(api_workload, claims_go_with_pods), .flags = API_BOOL_SLOT,
        .values = retention_policies, .otherwise = "Retain"),
    { 0 },
};
static const struct api_schema retention_schema =
    SCHEMA("StatefulSetPersistentVolumeClaimRetentionPolicy", retention);
static const struct api_row ordinals[] = {
    ROW("start", API_INT32, SLOT(api_workload, first_ordinal), .otherwise = "0", RANGE(0, INT32_MAX)),
    { 0 },
};
static const struct api_schema ordinals_schema = SCHEMA("StatefulSetOrdinals", ordinals);

static const struct api_row stateful_set_spec[] = {
    REPLICAS,
    SELECTOR(.flags = API_REQUIRED),
    TEMPLATE,
    ROW("volumeClaimTemplates", API_LIST, .nested = &api_schema_claim_template, .support = API_ACTED),
    ROW("serviceName", API_STRING, SLOT(api_workload, service_name), .flags = API_KEEP_EMPTY, .otherwise = "",
        ACTED("the subdomain of the pods; nothing here answers DNS for it")),
    ROW("podManagementPolicy", API_ENUM, SLOT(api_workload, parallel), .flags = API_BOOL_SLOT,
        .values = management_policies, .otherwise = "OrderedReady"),
    ROW("updateStrategy", API_OBJECT, .slot = HERE, .nested = &stateful_set_update_schema, .otherwise = "{}"),
    HISTORY(.min = 0), /* not checked by an apiserver: below 0 none are kept */
    MIN_READY,
    ROW("persistentVolumeClaimRetentionPolicy", API_OBJECT, .slot = HERE, .nested = &retention_schema),
    ROW("ordinals", API_OBJECT, .slot = HERE, .nested = &ordinals_schema),
    { 0 },
};
static const struct api_schema stateful_set_spec_schema =
    SCHEMA("StatefulSetSpec", stateful_set_spec, .size = sizeof(struct api_workload));
static const struct api_row stateful_set[] = { OBJECT("StatefulSet", stateful_set_spec_schema) };
const struct api_schema api_schema_stateful_set = SCHEMA("StatefulSet", stateful_set);

/* ---- DaemonSet ---- */
static const struct api_row rolling_daemon_set[] = {
    ROW("maxUnavailable", API_INT_OR_STRING, .format = API_FMT_PERCENT, RANGE(0, INT32_MAX),
        ACCEPTED(one_node)),
    ROW("maxSurge", API_INT_OR_STRING, SLOT(api_workload, max_surge), .format = API_FMT_PERCENT,
        RANGE(0, INT32_MAX)),
    { 0 },
};
static const struct api_schema rolling_daemon_set_schema =
    SCHEMA("RollingUpdateDaemonSet", rolling_daemon_set);
static const struct api_row daemon_set_update[] = {
    ROW("type", API_ENUM, SLOT(api_workload, update), .values = set_updates, .otherwise = "RollingUpdate"),
    ROW("rollingUpdate", API_OBJECT, .slot = HERE, .nested = &rolling_daemon_set_schema),
    { 0 },
};
static const struct api_schema daemon_set_update_schema =
    SCHEMA("DaemonSetUpdateStrategy", daemon_set_update);

static const struct api_row daemon_set_spec[] = {
    SELECTOR(.flags = API_REQUIRED),
    TEMPLATE,
    ROW("updateStrategy", API_OBJECT, .slot = HERE, .nested = &daemon_set_update_schema, .otherwise = "{}"),
    MIN_READY,
    HISTORY(RANGE(0, INT32_MAX)),
    { 0 },
};
static const struct api_schema daemon_set_spec_schema =
    SCHEMA("DaemonSetSpec", daemon_set_spec, .size = sizeof(struct api_workload));
static const struct api_row daemon_set[] = { OBJECT("DaemonSet", daemon_set_spec_schema) };
const struct api_schema api_schema_daemon_set = SCHEMA("DaemonSet", daemon_set);
