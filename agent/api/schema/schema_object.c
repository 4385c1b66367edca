/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of whole objects and their metadata. */
#include "agent/api/schema/schema.h"

static const char bookkeeping[] = "the API server's bookkeeping; dropped";

static const struct api_row owner_reference[] = {
    { .name = "apiVersion", .type = API_STRING },
    { .name = "kind", .type = API_STRING },
    { .name = "name", .type = API_STRING },
    { .name = "uid", .type = API_STRING },
    { .name = "controller", .type = API_BOOL },
    { .name = "blockOwnerDeletion", .type = API_BOOL },
    { 0 },
};
static const struct api_schema owner_reference_schema = { .name = "OwnerReference", .rows = owner_reference };

static const struct api_row managed_fields[] = {
    { .name = "manager", .type = API_STRING },     { .name = "operation", .type = API_STRING },
    { .name = "apiVersion", .type = API_STRING },  { .name = "time", .type = API_STRING },
    { .name = "fieldsType", .type = API_STRING },  { .name = "fieldsV1", .type = API_ANY },
    { .name = "subresource", .type = API_STRING }, { 0 },
};
static const struct api_schema managed_fields_schema = { .name = "ManagedFieldsEntry",
                                                         .rows = managed_fields };

static const struct api_row object_meta[] = {
    { .name = "name",
      .type = API_STRING,
      .slot = AT(api_meta, name),
      .flags = API_REQUIRED,
      .format = API_FMT_SUBDOMAIN },
    { .name = "generateName",
      .type = API_STRING,
      .flags = API_DROP,
      .support = API_ACCEPTED,
      .why = "nothing generates names here: refused without metadata.name, dropped with it" },
    { .name = "namespace",
      .type = API_STRING,
      .slot = AT(api_meta, namespace),
      .format = API_FMT_LABEL,
      .otherwise = "default" },
    { .name = "uid", .type = API_STRING, .slot = AT(api_meta, uid), .format = API_FMT_UID },
    { .name = "labels", .type = API_STRING_MAP, .slot = AT(api_meta, labels) },
    { .name = "annotations", .type = API_STRING_MAP, .slot = AT(api_meta, annotations) },
    { .name = "generation", .type = API_INT64, .slot = AT(api_meta, generation), .flags = API_ZERO_ABSENT },
    { .name = "selfLink",
      .type = API_STRING,
      .flags = API_DROP,
      .support = API_ACCEPTED,
      .why = bookkeeping },
    { .name = "resourceVersion",
      .type = API_STRING,
      .flags = API_DROP,
      .support = API_ACCEPTED,
      .why = bookkeeping },
    { .name = "creationTimestamp",
      .type = API_STRING,
      .flags = API_DROP,
      .support = API_ACCEPTED,
      .why = bookkeeping },
    { .name = "deletionTimestamp",
      .type = API_STRING,
      .flags = API_DROP,
      .support = API_ACCEPTED,
      .why = "a manifest is deleted by removing it; dropped" },
    { .name = "deletionGracePeriodSeconds",
      .type = API_INT64,
      .flags = API_DROP,
      .support = API_ACCEPTED,
      .why = "a manifest is deleted by removing it; dropped" },
    { .name = "ownerReferences",
      .type = API_LIST,
      .nested = &owner_reference_schema,
      .flags = API_DROP,
      .support = API_ACCEPTED,
      .why = "owners are controllers of a control plane; dropped" },
    { .name = "finalizers",
      .type = API_STRINGS,
      .flags = API_DROP,
      .support = API_ACCEPTED,
      .why = "nothing here would remove them; dropped" },
    { .name = "managedFields",
      .type = API_LIST,
      .nested = &managed_fields_schema,
      .flags = API_DROP,
      .support = API_ACCEPTED,
      .why = bookkeeping },
    { 0 },
};
static const struct api_schema object_meta_schema = { .name = "ObjectMeta", .rows = object_meta };

static const struct api_row cluster_meta[] = {
    { .name = "namespace",
      .type = API_STRING,
      .support = API_REFUSED,
      .why = "objects of this kind have no namespace" },
    { 0 },
};
static const struct api_schema cluster_meta_schema = { .name = "ObjectMeta (without namespace)",
                                                       .rows = cluster_meta,
                                                       .base = &object_meta_schema };

static const struct api_row list_meta[] = {
    { .name = "selfLink", .type = API_STRING },
    { .name = "resourceVersion", .type = API_STRING },
    { .name = "continue", .type = API_STRING },
    { .name = "remainingItemCount", .type = API_INT64 },
    { 0 },
};
static const struct api_schema list_meta_schema = { .name = "ListMeta", .rows = list_meta };

static const struct api_row list[] = {
    { .name = "apiVersion", .type = API_STRING },
    { .name = "kind", .type = API_STRING },
    { .name = "metadata", .type = API_OBJECT, .nested = &list_meta_schema },
    { .name = "items", .type = API_ANY },
    { 0 },
};
const struct api_schema api_schema_list = { .name = "List", .rows = list };

static const struct api_row pod[] = {
    { .name = "apiVersion", .type = API_STRING, .support = API_ACTED },
    { .name = "kind", .type = API_STRING, .support = API_ACTED },
    { .name = "metadata",
      .type = API_OBJECT,
      .slot = AT(api_pod, meta),
      .nested = &object_meta_schema,
      .otherwise = "{}" },
    { .name = "spec",
      .type = API_OBJECT,
      .slot = AT(api_pod, spec),
      .nested = &api_schema_pod_spec,
      .otherwise = "{}" },
    { .name = "status",
      .type = API_ANY,
      .flags = API_DROP,
      .support = API_ACCEPTED,
      .why = "the status is what the node reports; one in a manifest is dropped" },
    { 0 },
};
const struct api_schema api_schema_pod = { .name = "Pod", .rows = pod, .size = sizeof(struct api_pod) };

static const struct api_row config_map[] = {
    { .name = "apiVersion", .type = API_STRING, .support = API_ACTED },
    { .name = "kind", .type = API_STRING, .support = API_ACTED },
    { .name = "metadata",
      .type = API_OBJECT,
      .slot = AT(api_config, meta),
      .nested = &object_meta_schema,
      .otherwise = "{}" },
    { .name = "data", .type = API_STRING_MAP, .support = API_ACTED },
    { .name = "binaryData", .type = API_BYTES_MAP, .support = API_ACTED },
    { .name = "immutable", .type = API_BOOL, .slot = AT(api_config, immutable) },
    { 0 },
};
const struct api_schema api_schema_config_map = { .name = "ConfigMap", .rows = config_map };

static const struct api_row secret[] = {
    { .name = "apiVersion", .type = API_STRING, .support = API_ACTED },
    { .name = "kind", .type = API_STRING, .support = API_ACTED },
    { .name = "metadata",
      .type = API_OBJECT,
      .slot = AT(api_config, meta),
      .nested = &object_meta_schema,
      .otherwise = "{}" },
    { .name = "data", .type = API_BYTES_MAP, .support = API_ACTED },
    { .name = "stringData", .type = API_STRING_MAP, .support = API_ACTED },
    { .name = "type", .type = API_STRING, .slot = AT(api_config, type), .otherwise = "Opaque" },
    { .name = "immutable", .type = API_BOOL, .slot = AT(api_config, immutable) },
    { .name = "sizes",
      .type = API_ANY,
      .support = API_REFUSED,
      .why = "a placeholder shown instead of the values, which are never shown; set data" },
    { 0 },
};
const struct api_schema api_schema_secret = { .name = "Secret", .rows = secret };

static const struct api_value preemption_policies[] = { { "PreemptLowerPriority", 0 },
                                                        { "Never", 1 },
                                                        { NULL, 0 } };

static const struct api_row priority_class[] = {
    { .name = "apiVersion", .type = API_STRING, .support = API_ACTED },
    { .name = "kind", .type = API_STRING, .support = API_ACTED },
    { .name = "metadata",
      .type = API_OBJECT,
      .slot = AT(api_priority_class, meta),
      .nested = &cluster_meta_schema,
      .otherwise = "{}" },
    { .name = "value", .type = API_INT32, .slot = AT(api_priority_class, value) },
    { .name = "globalDefault", .type = API_BOOL, .slot = AT(api_priority_class, global_default) },
    { .name = "description", .type = API_STRING, .slot = AT(api_priority_class, description) },
    { .name = "preemptionPolicy",
      .type = API_STRING,
      .slot = AT(api_priority_class, preemption_policy),
      .values = preemption_policies,
      .otherwise = "PreemptLowerPriority" },
    { 0 },
};
const struct api_schema api_schema_priority_class = { .name = "PriorityClass", .rows = priority_class };
