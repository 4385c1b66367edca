/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for the scheduler's fields: affinity, tolerations, spreading, gates, groups. */
#include "agent/api/schema/schema.h"

static const char scheduler[] = "for the scheduler; this pod is already on its node";

/* ---- selectors ---- */
static const struct api_value label_operators[] = {
    { "In", API_NODE_IN },
    { "NotIn", API_NODE_NOT_IN },
    { "Exists", API_NODE_EXISTS },
    { "DoesNotExist", API_NODE_ABSENT },
    { NULL, 0 },
};
static const struct api_row label_requirement[] = {
    ROW("key", API_STRING, SLOT(api_node_requirement, key), .flags = API_REQUIRED,
        .format = API_FMT_LABEL_KEY),
    ROW("operator", API_ENUM, SLOT(api_node_requirement, op), .flags = API_REQUIRED,
        .values = label_operators),
    ROW("values", API_STRINGS, SLOT(api_node_requirement, values), .format = API_FMT_LABEL_VALUE),
    { 0 },
};
static const struct api_schema label_requirement_schema =
    SCHEMA("LabelSelectorRequirement", label_requirement, .size = sizeof(struct api_node_requirement));

static const struct api_row label_selector[] = {
    ROW("matchLabels", API_STRING_MAP, SLOT(api_label_selector, labels)),
    ROW("matchExpressions", API_LIST, SLOTS(api_label_selector, expressions),
        .nested = &label_requirement_schema),
    { 0 },
};
const struct api_schema api_schema_label_selector =
    SCHEMA("LabelSelector", label_selector, .atomic = true, .size = sizeof(struct api_label_selector));

static const struct api_value node_operators[] = { { "In", API_NODE_IN },
                                                   { "NotIn", API_NODE_NOT_IN },
                                                   { "Exists", API_NODE_EXISTS },
                                                   { "DoesNotExist", API_NODE_ABSENT },
                                                   { "Gt", API_NODE_GREATER },
                                                   { "Lt", API_NODE_LESS },
                                                   { NULL, 0 } };
static const struct api_row node_requirement[] = {
    ROW("key", API_STRING, SLOT(api_node_requirement, key), .flags = API_REQUIRED,
        .format = API_FMT_LABEL_KEY),
    ROW("operator", API_ENUM, SLOT(api_node_requirement, op), .flags = API_REQUIRED,
        .values = node_operators),
    ROW("values", API_STRINGS, SLOT(api_node_requirement, values)),
    { 0 },
};
static const struct api_schema node_requirement_schema =
    SCHEMA("NodeSelectorRequirement", node_requirement, .size = sizeof(struct api_node_requirement));

static const struct api_row node_term[] = {
    ROW("matchExpressions", API_LIST, SLOTS(api_node_term, labels), .nested = &node_requirement_schema),
    ROW("matchFields", API_LIST, SLOTS(api_node_term, fields), .nested = &node_requirement_schema),
    { 0 },
};
const struct api_schema api_schema_node_term =
    SCHEMA("NodeSelectorTerm", node_term, .atomic = true, .size = sizeof(struct api_node_term));

static const struct api_row node_selector[] = {
    ROW("nodeSelectorTerms", API_LIST, SLOTS(api_pod_spec, node_terms), .flags = API_REQUIRED,
        .nested = &api_schema_node_term),
    { 0 },
};
const struct api_schema api_schema_node_selector = SCHEMA("NodeSelector", node_selector, .atomic = true);

/* ---- affinity ---- */
static const struct api_row preferred_term[] = {
    ROW("weight", API_INT32, .flags = API_REQUIRED, RANGE(1, 100)),
    ROW("preference", API_OBJECT, .nested = &api_schema_node_term),
    { 0 },
};
static const struct api_schema preferred_term_schema = SCHEMA("PreferredSchedulingTerm", preferred_term);

static const struct api_row node_affinity[] = {
    ROW("requiredDuringSchedulingIgnoredDuringExecution", API_OBJECT, .slot = HERE,
        .has = AT(api_pod_spec, has_node_terms), .nested = &api_schema_node_selector,
        ACTED("checked when the pod is admitted")),
    ROW("preferredDuringSchedulingIgnoredDuringExecution", API_LIST, .nested = &preferred_term_schema,
        ACCEPTED(scheduler)),
    { 0 },
};
static const struct api_schema node_affinity_schema = SCHEMA("NodeAffinity", node_affinity);

static const struct api_row pod_term[] = {
    ROW("labelSelector", API_OBJECT, .nested = &api_schema_label_selector),
    ROW("namespaces", API_STRINGS, .format = API_FMT_LABEL),
    ROW("namespaceSelector", API_OBJECT, .nested = &api_schema_label_selector),
    ROW("topologyKey", API_STRING, .flags = API_REQUIRED, .format = API_FMT_LABEL_KEY),
    ROW("matchLabelKeys", API_STRINGS, .format = API_FMT_LABEL_KEY),
    ROW("mismatchLabelKeys", API_STRINGS, .format = API_FMT_LABEL_KEY),
    { 0 },
};
static const struct api_schema pod_term_schema = SCHEMA("PodAffinityTerm", pod_term);

static const struct api_row weighted_term[] = {
    ROW("weight", API_INT32, .flags = API_REQUIRED, RANGE(1, 100)),
    ROW("podAffinityTerm", API_OBJECT, .flags = API_REQUIRED, .nested = &pod_term_schema),
    { 0 },
};
static const struct api_schema weighted_term_schema = SCHEMA("WeightedPodAffinityTerm", weighted_term);

static const struct api_row pod_affinity[] = {
    ROW("requiredDuringSchedulingIgnoredDuringExecution", API_LIST, .nested = &pod_term_schema),
    ROW("preferredDuringSchedulingIgnoredDuringExecution", API_LIST, .nested = &weighted_term_schema),
    { 0 },
};
static const struct api_schema pod_affinity_schema = SCHEMA("PodAffinity, PodAntiAffinity", pod_affinity);

static const struct api_row affinity[] = {
    ROW("nodeAffinity", API_OBJECT, .slot = HERE, .nested = &node_affinity_schema),
    ROW("podAffinity", API_OBJECT, .nested = &pod_affinity_schema, ACCEPTED(scheduler)),
    ROW("podAntiAffinity", API_OBJECT, .nested = &pod_affinity_schema, ACCEPTED(scheduler)),
    { 0 },
};
const struct api_schema api_schema_affinity = SCHEMA("Affinity", affinity);

/* ---- tolerations, spreading, gates, groups ---- */
static const struct api_value toleration_operators[] = { { "Equal", API_TOLERATE_EQUAL },
                                                         { "Exists", API_TOLERATE_EXISTS },
                                                         { NULL, 0 } };
static const struct api_value taint_effects[] = {
    { "NoSchedule", 0 }, { "PreferNoSchedule", 1 }, { "NoExecute", 2 }, { NULL, 0 }
};
static const struct api_row toleration[] = {
    ROW("key", API_STRING, SLOT(api_toleration, key), .format = API_FMT_LABEL_KEY),
    ROW("operator", API_ENUM, SLOT(api_toleration, op), .values = toleration_operators),
    ROW("value", API_STRING, SLOT(api_toleration, value)),
    ROW("effect", API_STRING, SLOT(api_toleration, effect), .values = taint_effects),
    ROW("tolerationSeconds", API_INT64, SLOT(api_toleration, seconds),
        .has = AT(api_toleration, has_seconds)),
    { 0 },
};
const struct api_schema api_schema_toleration =
    SCHEMA("Toleration", toleration, .size = sizeof(struct api_toleration));

static const struct api_value unsatisfiable[] = { { "DoNotSchedule", 0 },
                                                  { "ScheduleAnyway", 1 },
                                                  { NULL, 0 } };
static const struct api_value node_policies[] = { { "Honor", 0 }, { "Ignore", 1 }, { NULL, 0 } };
static const struct api_row topology_spread[] = {
    ROW("maxSkew", API_INT32, .flags = API_REQUIRED, RANGE(1, INT32_MAX)),
    ROW("topologyKey", API_STRING, .flags = API_REQUIRED),
    ROW("whenUnsatisfiable", API_STRING, .flags = API_REQUIRED, .values = unsatisfiable),
    ROW("labelSelector", API_OBJECT, .nested = &api_schema_label_selector),
    ROW("minDomains", API_INT32, RANGE(1, INT32_MAX)),
    ROW("nodeAffinityPolicy", API_STRING, .flags = API_KEEP_EMPTY, .values = node_policies),
    ROW("nodeTaintsPolicy", API_STRING, .flags = API_KEEP_EMPTY, .values = node_policies),
    ROW("matchLabelKeys", API_STRINGS, .format = API_FMT_LABEL_KEY),
    { 0 },
};
const struct api_schema api_schema_topology_spread = SCHEMA("TopologySpreadConstraint", topology_spread);

static const struct api_row scheduling_gate[] = {
    ROW("name", API_STRING, .flags = API_REQUIRED, .format = API_FMT_LABEL_KEY, .support = API_ACTED),
    { 0 },
};
const struct api_schema api_schema_scheduling_gate = SCHEMA("PodSchedulingGate", scheduling_gate);

static const struct api_row scheduling_group[] = {
    ROW("podGroupName", API_STRING),
    { 0 },
};
const struct api_schema api_schema_scheduling_group = SCHEMA("PodSchedulingGroup", scheduling_group);
