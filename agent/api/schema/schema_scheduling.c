/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for the scheduler's fields: affinity, tolerations, spreading, gates, groups. */
#include "agent/api/schema/schema.h"

/* ---- selectors ---- */
static const struct api_value label_operators[] = {
    { "In", 0 }, { "NotIn", 1 }, { "Exists", 2 }, { "DoesNotExist", 3 }, { NULL, 0 }
};
static const struct api_row label_requirement[] = {
    { .name = "key", .type = API_STRING, .flags = API_REQUIRED, .format = API_FMT_LABEL_KEY },
    { .name = "operator", .type = API_STRING, .flags = API_REQUIRED, .values = label_operators },
    { .name = "values", .type = API_STRINGS, .format = API_FMT_LABEL_VALUE },
    { 0 },
};
static const struct api_schema label_requirement_schema = { .name = "LabelSelectorRequirement",
                                                            .rows = label_requirement };

static const struct api_row label_selector[] = {
    { .name = "matchLabels", .type = API_STRING_MAP },
    { .name = "matchExpressions", .type = API_LIST, .nested = &label_requirement_schema },
    { 0 },
};
const struct api_schema api_schema_label_selector = { .name = "LabelSelector", .rows = label_selector };

static const struct api_value node_operators[] = { { "In", API_NODE_IN },
                                                   { "NotIn", API_NODE_NOT_IN },
                                                   { "Exists", API_NODE_EXISTS },
                                                   { "DoesNotExist", API_NODE_ABSENT },
                                                   { "Gt", API_NODE_GREATER },
                                                   { "Lt", API_NODE_LESS },
                                                   { NULL, 0 } };
static const struct api_row node_requirement[] = {
    { .name = "key",
      .type = API_STRING,
      .slot = AT(api_node_requirement, key),
      .flags = API_REQUIRED,
      .format = API_FMT_LABEL_KEY },
    { .name = "operator",
      .type = API_ENUM,
      .slot = AT(api_node_requirement, op),
      .flags = API_REQUIRED,
      .values = node_operators },
    { .name = "values", .type = API_STRINGS, .slot = AT(api_node_requirement, values) },
    { 0 },
};
static const struct api_schema node_requirement_schema = { .name = "NodeSelectorRequirement",
                                                           .rows = node_requirement,
                                                           .size = sizeof(struct api_node_requirement) };

static const struct api_row node_term[] = {
    { .name = "matchExpressions",
      .type = API_LIST,
      .slot = AT(api_node_term, labels),
      .count = AT(api_node_term, n_labels),
      .nested = &node_requirement_schema },
    { .name = "matchFields",
      .type = API_LIST,
      .slot = AT(api_node_term, fields),
      .count = AT(api_node_term, n_fields),
      .nested = &node_requirement_schema },
    { 0 },
};
static const struct api_schema node_term_schema = { .name = "NodeSelectorTerm",
                                                    .rows = node_term,
                                                    .size = sizeof(struct api_node_term) };

static const struct api_row node_selector[] = {
    { .name = "nodeSelectorTerms",
      .type = API_LIST,
      .slot = AT(api_pod_spec, node_terms),
      .count = AT(api_pod_spec, n_node_terms),
      .flags = API_REQUIRED,
      .nested = &node_term_schema },
    { 0 },
};
static const struct api_schema node_selector_schema = { .name = "NodeSelector", .rows = node_selector };

/* ---- affinity ---- */
static const struct api_row preferred_term[] = {
    { .name = "weight", .type = API_INT32, .flags = API_REQUIRED | API_RANGE, .min = 1, .max = 100 },
    { .name = "preference", .type = API_OBJECT, .nested = &node_term_schema },
    { 0 },
};
static const struct api_schema preferred_term_schema = { .name = "PreferredSchedulingTerm",
                                                         .rows = preferred_term };

static const struct api_row node_affinity[] = {
    { .name = "requiredDuringSchedulingIgnoredDuringExecution",
      .type = API_OBJECT,
      .slot = HERE,
      .has = AT(api_pod_spec, has_node_terms),
      .nested = &node_selector_schema },
    { .name = "preferredDuringSchedulingIgnoredDuringExecution",
      .type = API_LIST,
      .nested = &preferred_term_schema },
    { 0 },
};
static const struct api_schema node_affinity_schema = { .name = "NodeAffinity", .rows = node_affinity };

static const struct api_row pod_term[] = {
    { .name = "labelSelector", .type = API_OBJECT, .nested = &api_schema_label_selector },
    { .name = "namespaces", .type = API_STRINGS, .format = API_FMT_LABEL },
    { .name = "namespaceSelector", .type = API_OBJECT, .nested = &api_schema_label_selector },
    { .name = "topologyKey", .type = API_STRING, .flags = API_REQUIRED, .format = API_FMT_LABEL_KEY },
    { .name = "matchLabelKeys", .type = API_STRINGS, .format = API_FMT_LABEL_KEY },
    { .name = "mismatchLabelKeys", .type = API_STRINGS, .format = API_FMT_LABEL_KEY },
    { 0 },
};
static const struct api_schema pod_term_schema = { .name = "PodAffinityTerm", .rows = pod_term };

static const struct api_row weighted_term[] = {
    { .name = "weight", .type = API_INT32, .flags = API_REQUIRED | API_RANGE, .min = 1, .max = 100 },
    { .name = "podAffinityTerm", .type = API_OBJECT, .flags = API_REQUIRED, .nested = &pod_term_schema },
    { 0 },
};
static const struct api_schema weighted_term_schema = { .name = "WeightedPodAffinityTerm",
                                                        .rows = weighted_term };

static const struct api_row pod_affinity[] = {
    { .name = "requiredDuringSchedulingIgnoredDuringExecution",
      .type = API_LIST,
      .nested = &pod_term_schema },
    { .name = "preferredDuringSchedulingIgnoredDuringExecution",
      .type = API_LIST,
      .nested = &weighted_term_schema },
    { 0 },
};
static const struct api_schema pod_affinity_schema = { .name = "PodAffinity, PodAntiAffinity",
                                                       .rows = pod_affinity };

static const struct api_row affinity[] = {
    { .name = "nodeAffinity", .type = API_OBJECT, .slot = HERE, .nested = &node_affinity_schema },
    { .name = "podAffinity", .type = API_OBJECT, .nested = &pod_affinity_schema },
    { .name = "podAntiAffinity", .type = API_OBJECT, .nested = &pod_affinity_schema },
    { 0 },
};
const struct api_schema api_schema_affinity = { .name = "Affinity", .rows = affinity };

/* ---- tolerations, spreading, gates, groups ---- */
static const struct api_value toleration_operators[] = { { "Equal", API_TOLERATE_EQUAL },
                                                         { "Exists", API_TOLERATE_EXISTS },
                                                         { NULL, 0 } };
static const struct api_value taint_effects[] = {
    { "NoSchedule", 0 }, { "PreferNoSchedule", 1 }, { "NoExecute", 2 }, { NULL, 0 }
};
static const struct api_row toleration[] = {
    { .name = "key", .type = API_STRING, .slot = AT(api_toleration, key), .format = API_FMT_LABEL_KEY },
    { .name = "operator", .type = API_ENUM, .slot = AT(api_toleration, op), .values = toleration_operators },
    { .name = "value", .type = API_STRING, .slot = AT(api_toleration, value) },
    { .name = "effect", .type = API_STRING, .slot = AT(api_toleration, effect), .values = taint_effects },
    { .name = "tolerationSeconds",
      .type = API_INT64,
      .support = API_ACCEPTED,
      .why = "taints are checked when a pod is admitted; running pods are left alone" },
    { 0 },
};
const struct api_schema api_schema_toleration = { .name = "Toleration",
                                                  .rows = toleration,
                                                  .size = sizeof(struct api_toleration) };

static const struct api_value unsatisfiable[] = { { "DoNotSchedule", 0 },
                                                  { "ScheduleAnyway", 1 },
                                                  { NULL, 0 } };
static const struct api_value node_policies[] = { { "Honor", 0 }, { "Ignore", 1 }, { NULL, 0 } };
static const struct api_row topology_spread[] = {
    { .name = "maxSkew", .type = API_INT32, .flags = API_REQUIRED | API_RANGE, .min = 1, .max = INT32_MAX },
    { .name = "topologyKey", .type = API_STRING, .flags = API_REQUIRED },
    { .name = "whenUnsatisfiable", .type = API_STRING, .flags = API_REQUIRED, .values = unsatisfiable },
    { .name = "labelSelector", .type = API_OBJECT, .nested = &api_schema_label_selector },
    { .name = "minDomains", .type = API_INT32, .flags = API_RANGE, .min = 1, .max = INT32_MAX },
    { .name = "nodeAffinityPolicy", .type = API_STRING, .flags = API_KEEP_EMPTY, .values = node_policies },
    { .name = "nodeTaintsPolicy", .type = API_STRING, .flags = API_KEEP_EMPTY, .values = node_policies },
    { .name = "matchLabelKeys", .type = API_STRINGS, .format = API_FMT_LABEL_KEY },
    { 0 },
};
const struct api_schema api_schema_topology_spread = { .name = "TopologySpreadConstraint",
                                                       .rows = topology_spread };

static const struct api_row scheduling_gate[] = {
    { .name = "name", .type = API_STRING, .flags = API_REQUIRED, .format = API_FMT_LABEL_KEY },
    { 0 },
};
const struct api_schema api_schema_scheduling_gate = { .name = "PodSchedulingGate", .rows = scheduling_gate };

static const struct api_row scheduling_group[] = {
    { .name = "podGroupName", .type = API_STRING },
    { 0 },
};
const struct api_schema api_schema_scheduling_group = { .name = "PodSchedulingGroup",
                                                        .rows = scheduling_group };
