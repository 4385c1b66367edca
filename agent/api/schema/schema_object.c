/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of whole objects and their metadata. */
#include "agent/api/schema/schema.h"

static const char bookkeeping[] = "the API server's bookkeeping; dropped";

static const struct api_row owner_reference[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("name", API_STRING),
    ROW("uid", API_STRING),
    ROW("controller", API_BOOL),
    ROW("blockOwnerDeletion", API_BOOL),
    { 0 },
};
static const struct api_schema owner_reference_schema =
    SCHEMA("OwnerReference", owner_reference, .atomic = true);

static const struct api_row managed_fields[] = {
    ROW("manager", API_STRING),     ROW("operation", API_STRING),
    ROW("apiVersion", API_STRING),  ROW("time", API_STRING),
    ROW("fieldsType", API_STRING),  ROW("fieldsV1", API_ANY),
    ROW("subresource", API_STRING), { 0 },
};
static const struct api_schema managed_fields_schema = SCHEMA("ManagedFieldsEntry", managed_fields);

static const struct api_row object_meta[] = {
    ROW("name", API_STRING, SLOT(api_meta, name), .flags = API_REQUIRED, .format = API_FMT_SUBDOMAIN),
    ROW("generateName", API_STRING, .flags = API_DROP,
        ACCEPTED("nothing generates names here: refused without metadata.name, dropped with it")),
    ROW("namespace", API_STRING, SLOT(api_meta, namespace), .format = API_FMT_LABEL, .otherwise = "default"),
    ROW("uid", API_STRING, SLOT(api_meta, uid), .format = API_FMT_UID),
    ROW("labels", API_STRING_MAP, SLOT(api_meta, labels)),
    ROW("annotations", API_STRING_MAP, SLOT(api_meta, annotations)),
    ROW("generation", API_INT64, SLOT(api_meta, generation), .flags = API_ZERO_ABSENT),
    ROW("selfLink", API_STRING, .flags = API_DROP, ACCEPTED(bookkeeping)),
    ROW("resourceVersion", API_STRING, .flags = API_DROP, ACCEPTED(bookkeeping)),
    ROW("creationTimestamp", API_STRING, .flags = API_DROP, ACCEPTED(bookkeeping)),
    ROW("deletionTimestamp", API_STRING, .flags = API_DROP,
        ACCEPTED("a manifest is deleted by removing it; dropped")),
    ROW("deletionGracePeriodSeconds", API_INT64, .flags = API_DROP,
        ACCEPTED("a manifest is deleted by removing it; dropped")),
    ROW("ownerReferences", API_LIST, .nested = &owner_reference_schema, .flags = API_DROP | API_KEPT_EXPANDED,
        .merge_key = "uid", ACCEPTED("owners are controllers of a control plane; dropped")),
    ROW("finalizers", API_STRINGS, .flags = API_DROP | API_SET | API_MERGED,
        ACCEPTED("nothing here would remove them; dropped")),
    ROW("managedFields", API_LIST, .nested = &managed_fields_schema, .flags = API_DROP,
        ACCEPTED(bookkeeping)),
    { 0 },
};
const struct api_schema api_schema_object_meta = SCHEMA("ObjectMeta", object_meta);

static const struct api_row cluster_meta[] = {
    ROW("namespace", API_STRING, REFUSED("objects of this kind have no namespace")),
    { 0 },
};
const struct api_schema api_schema_cluster_meta =
    SCHEMA("ObjectMeta (without namespace)", cluster_meta, .base = &api_schema_object_meta);

static const struct api_row list_meta[] = {
    ROW("selfLink", API_STRING),
    ROW("resourceVersion", API_STRING),
    ROW("continue", API_STRING),
    ROW("remainingItemCount", API_INT64),
    { 0 },
};
static const struct api_schema list_meta_schema = SCHEMA("ListMeta", list_meta);

static const struct api_row list[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &list_meta_schema),
    ROW("items", API_ANY),
    { 0 },
};
const struct api_schema api_schema_list = SCHEMA("List", list);

static const struct api_row pod[] = {
    ROW("apiVersion", API_STRING, .support = API_ACTED),
    ROW("kind", API_STRING, .support = API_ACTED),
    ROW("metadata", API_OBJECT, SLOT(api_pod, meta), .nested = &api_schema_object_meta, .otherwise = "{}"),
    ROW("spec", API_OBJECT, SLOT(api_pod, spec), .nested = &api_schema_pod_spec, .otherwise = "{}"),
    ROW("status", API_ANY, .flags = API_DROP,
        ACCEPTED("the status is what the node reports; one in a manifest is dropped")),
    { 0 },
};
const struct api_schema api_schema_pod = SCHEMA("Pod", pod, .size = sizeof(struct api_pod));

static const struct api_row config_map[] = {
    ROW("apiVersion", API_STRING, .support = API_ACTED),
    ROW("kind", API_STRING, .support = API_ACTED),
    ROW("metadata", API_OBJECT, SLOT(api_config, meta), .nested = &api_schema_object_meta, .otherwise = "{}"),
    ROW("data", API_STRING_MAP, .support = API_ACTED),
    ROW("binaryData", API_BYTES_MAP, .support = API_ACTED),
    ROW("immutable", API_BOOL, SLOT(api_config, immutable)),
    { 0 },
};
const struct api_schema api_schema_config_map = SCHEMA("ConfigMap", config_map);

static const struct api_row secret[] = {
    ROW("apiVersion", API_STRING, .support = API_ACTED),
    ROW("kind", API_STRING, .support = API_ACTED),
    ROW("metadata", API_OBJECT, SLOT(api_config, meta), .nested = &api_schema_object_meta, .otherwise = "{}"),
    ROW("data", API_BYTES_MAP, .support = API_ACTED),
    ROW("stringData", API_STRING_MAP, .support = API_ACTED),
    ROW("type", API_STRING, SLOT(api_config, type), .otherwise = "Opaque"),
    ROW("immutable", API_BOOL, SLOT(api_config, immutable)),
    ROW("sizes", API_ANY,
        REFUSED("a placeholder shown instead of the values, which are never shown; set data")),
    { 0 },
};
const struct api_schema api_schema_secret = SCHEMA("Secret", secret);

static const struct api_value preemption_policies[] = { { "PreemptLowerPriority", 0 },
                                                        { "Never", 1 },
                                                        { NULL, 0 } };

static const struct api_row priority_class[] = {
    ROW("apiVersion", API_STRING, .support = API_ACTED),
    ROW("kind", API_STRING, .support = API_ACTED),
    ROW("metadata", API_OBJECT, SLOT(api_priority_class, meta), .nested = &api_schema_cluster_meta,
        .otherwise = "{}"),
    ROW("value", API_INT32, SLOT(api_priority_class, value)),
    ROW("globalDefault", API_BOOL, SLOT(api_priority_class, global_default)),
    ROW("description", API_STRING, SLOT(api_priority_class, description)),
    ROW("preemptionPolicy", API_STRING, SLOT(api_priority_class, preemption_policy),
        .values = preemption_policies, .otherwise = "PreemptLowerPriority"),
    { 0 },
};
const struct api_schema api_schema_priority_class = SCHEMA("PriorityClass", priority_class);

static const char admission[] = "applied by an admission plugin of the apiserver";

static const struct api_row runtime_overhead[] = {
    ROW("podFixed", API_RESOURCES, SLOT(api_runtime_class, overhead),
        ACCEPTED("copied to the pods' overhead by an admission plugin of the apiserver; without one, "
                 "spec.overhead of the pod says it")),
    { 0 },
};
static const struct api_schema runtime_overhead_schema = SCHEMA("Overhead", runtime_overhead);

static const struct api_row runtime_scheduling[] = {
    ROW("nodeSelector", API_STRING_MAP, .flags = API_ATOMIC, ACCEPTED(admission)),
    ROW("tolerations", API_LIST, .nested = &api_schema_toleration, ACCEPTED(admission)),
    { 0 },
};
static const struct api_schema runtime_scheduling_schema = SCHEMA("Scheduling", runtime_scheduling);

static const struct api_row runtime_class[] = {
    ROW("apiVersion", API_STRING, .support = API_ACTED),
    ROW("kind", API_STRING, .support = API_ACTED),
    ROW("metadata", API_OBJECT, SLOT(api_runtime_class, meta), .nested = &api_schema_cluster_meta,
        .otherwise = "{}"),
    ROW("handler", API_STRING, SLOT(api_runtime_class, handler), .flags = API_REQUIRED,
        .format = API_FMT_LABEL),
    ROW("overhead", API_OBJECT, .slot = HERE, .nested = &runtime_overhead_schema),
    ROW("scheduling", API_OBJECT, .nested = &runtime_scheduling_schema, ACCEPTED(admission)),
    { 0 },
};
const struct api_schema api_schema_runtime_class = SCHEMA("RuntimeClass", runtime_class);
