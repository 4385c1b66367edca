/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Node, Namespace, Event and ServiceAccount. */
#include "agent/api/patch/kinds/tables.h"

static const struct api_row config_map_node_config_source[] = {
    ROW("kubeletConfigKey", API_STRING), ROW("name", API_STRING), ROW("namespace", API_STRING),
    ROW("resourceVersion", API_STRING),  ROW("uid", API_STRING),  { 0 },
};
static const struct api_schema config_map_node_config_source_schema =
    SCHEMA("ConfigMapNodeConfigSource", config_map_node_config_source);

static const struct api_row node_config_source[] = {
    ROW("configMap", API_OBJECT, .nested = &config_map_node_config_source_schema),
    { 0 },
};
static const struct api_schema node_config_source_schema = SCHEMA("NodeConfigSource", node_config_source);

static const struct api_row taint[] = {
    ROW("effect", API_STRING),
    ROW("key", API_STRING),
    ROW("timeAdded", API_STRING),
    ROW("value", API_STRING),
    { 0 },
};
static const struct api_schema taint_schema = SCHEMA("Taint", taint);

static const struct api_row node_spec[] = {
    ROW("configSource", API_OBJECT, .nested = &node_config_source_schema),
    ROW("externalID", API_STRING),
    ROW("podCIDR", API_STRING),
    ROW("podCIDRs", API_STRINGS, .flags = API_SET | API_MERGED),
    ROW("providerID", API_STRING),
    ROW("taints", API_LIST, .nested = &taint_schema),
    ROW("unschedulable", API_BOOL, .flags = API_ZERO_ABSENT),
    { 0 },
};
static const struct api_schema node_spec_schema = SCHEMA("NodeSpec", node_spec);

static const struct api_row node_address[] = {
    ROW("address", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema node_address_schema = SCHEMA("NodeAddress", node_address);

static const struct api_row node_condition[] = {
    ROW("lastHeartbeatTime", API_STRING, .otherwise = "null"),
    ROW("lastTransitionTime", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("reason", API_STRING),
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema node_condition_schema = SCHEMA("NodeCondition", node_condition);

static const struct api_row node_config_status[] = {
    ROW("active", API_OBJECT, .nested = &node_config_source_schema),
    ROW("assigned", API_OBJECT, .nested = &node_config_source_schema),
    ROW("error", API_STRING),
    ROW("lastKnownGood", API_OBJECT, .nested = &node_config_source_schema),
    { 0 },
};
static const struct api_schema node_config_status_schema = SCHEMA("NodeConfigStatus", node_config_status);

static const struct api_row daemon_endpoint[] = {
    ROW("Port", API_INT32),
    { 0 },
};
static const struct api_schema daemon_endpoint_schema = SCHEMA("DaemonEndpoint", daemon_endpoint);

static const struct api_row node_daemon_endpoints[] = {
    ROW("kubeletEndpoint", API_OBJECT, .nested = &daemon_endpoint_schema),
    { 0 },
};
static const struct api_schema node_daemon_endpoints_schema =
    SCHEMA("NodeDaemonEndpoints", node_daemon_endpoints);

static const struct api_row node_features[] = {
    ROW("supplementalGroupsPolicy", API_BOOL),
    { 0 },
};
static const struct api_schema node_features_schema = SCHEMA("NodeFeatures", node_features);

static const struct api_row container_image[] = {
    ROW("names", API_STRINGS),
    ROW("sizeBytes", API_INT64, .flags = API_ZERO_ABSENT),
    { 0 },
};
static const struct api_schema container_image_schema = SCHEMA("ContainerImage", container_image);

static const struct api_row node_swap_status[] = {
    ROW("capacity", API_INT64),
    { 0 },
};
static const struct api_schema node_swap_status_schema = SCHEMA("NodeSwapStatus", node_swap_status);

static const struct api_row node_system_info[] = {
    ROW("architecture", API_STRING),
    ROW("bootID", API_STRING),
    ROW("containerRuntimeVersion", API_STRING),
    ROW("kernelVersion", API_STRING),
    ROW("kubeProxyVersion", API_STRING),
    ROW("kubeletVersion", API_STRING),
    ROW("machineID", API_STRING),
    ROW("operatingSystem", API_STRING),
    ROW("osImage", API_STRING),
    ROW("swap", API_OBJECT, .nested = &node_swap_status_schema),
    ROW("systemUUID", API_STRING),
    { 0 },
};
static const struct api_schema node_system_info_schema = SCHEMA("NodeSystemInfo", node_system_info);

static const struct api_row node_runtime_handler_features[] = {
    ROW("recursiveReadOnlyMounts", API_BOOL),
    ROW("userNamespaces", API_BOOL),
    { 0 },
};
static const struct api_schema node_runtime_handler_features_schema =
    SCHEMA("NodeRuntimeHandlerFeatures", node_runtime_handler_features);

static const struct api_row node_runtime_handler[] = {
    ROW("features", API_OBJECT, .nested = &node_runtime_handler_features_schema),
    ROW("name", API_STRING),
    { 0 },
};
static const struct api_schema node_runtime_handler_schema =
    SCHEMA("NodeRuntimeHandler", node_runtime_handler);

static const struct api_row attached_volume[] = {
    ROW("devicePath", API_STRING),
    ROW("name", API_STRING),
    { 0 },
};
static const struct api_schema attached_volume_schema = SCHEMA("AttachedVolume", attached_volume);

static const struct api_row node_status[] = {
    ROW("addresses", API_LIST, .merge_key = "type", .nested = &node_address_schema),
    ROW("allocatable", API_RESOURCES),
    ROW("capacity", API_RESOURCES),
    ROW("conditions", API_LIST, .merge_key = "type", .nested = &node_condition_schema),
    ROW("config", API_OBJECT, .nested = &node_config_status_schema),
    ROW("daemonEndpoints", API_OBJECT, .otherwise = "{}", .nested = &node_daemon_endpoints_schema),
    ROW("declaredFeatures", API_STRINGS),
    ROW("features", API_OBJECT, .nested = &node_features_schema),
    ROW("images", API_LIST, .nested = &container_image_schema),
    ROW("nodeInfo", API_OBJECT, .otherwise = "{}", .nested = &node_system_info_schema),
    ROW("phase", API_STRING),
    ROW("runtimeHandlers", API_LIST, .nested = &node_runtime_handler_schema),
    ROW("volumesAttached", API_LIST, .nested = &attached_volume_schema),
    ROW("volumesInUse", API_STRINGS),
    { 0 },
};
static const struct api_schema node_status_schema = SCHEMA("NodeStatus", node_status);

static const struct api_row node[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &node_spec_schema),
    ROW("status", API_OBJECT, .nested = &node_status_schema),
    { 0 },
};
const struct api_schema patch_schema_node = SCHEMA("Node", node);

static const struct api_row namespace_spec[] = {
    ROW("finalizers", API_STRINGS),
    { 0 },
};
static const struct api_schema namespace_spec_schema = SCHEMA("NamespaceSpec", namespace_spec);

static const struct api_row namespace_condition[] = {
    ROW("lastTransitionTime", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("reason", API_STRING),
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema namespace_condition_schema = SCHEMA("NamespaceCondition", namespace_condition);

static const struct api_row namespace_status[] = {
    ROW("conditions", API_LIST, .merge_key = "type", .nested = &namespace_condition_schema),
    ROW("phase", API_STRING),
    { 0 },
};
static const struct api_schema namespace_status_schema = SCHEMA("NamespaceStatus", namespace_status);

static const struct api_row namespace[] = {
    ROW("apiVersion", API_STRING),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("spec", API_OBJECT, .nested = &namespace_spec_schema),
    ROW("status", API_OBJECT, .nested = &namespace_status_schema),
    { 0 },
};
const struct api_schema patch_schema_namespace = SCHEMA("Namespace", namespace);

static const struct api_row object_reference[] = {
    ROW("apiVersion", API_STRING), ROW("fieldPath", API_STRING),
    ROW("kind", API_STRING),       ROW("name", API_STRING),
    ROW("namespace", API_STRING),  ROW("resourceVersion", API_STRING),
    ROW("uid", API_STRING),        { 0 },
};
static const struct api_schema object_reference_schema =
    SCHEMA("ObjectReference", object_reference, .atomic = true);

static const struct api_row event_series[] = {
    ROW("count", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("lastObservedTime", API_STRING, .otherwise = "null"),
    { 0 },
};
static const struct api_schema event_series_schema = SCHEMA("EventSeries", event_series);

static const struct api_row event_source[] = {
    ROW("component", API_STRING),
    ROW("host", API_STRING),
    { 0 },
};
static const struct api_schema event_source_schema = SCHEMA("EventSource", event_source);

static const struct api_row event[] = {
    ROW("action", API_STRING),
    ROW("apiVersion", API_STRING),
    ROW("count", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("eventTime", API_STRING, .otherwise = "null"),
    ROW("firstTimestamp", API_STRING, .otherwise = "null"),
    ROW("involvedObject", API_OBJECT, .otherwise = "{}", .nested = &object_reference_schema),
    ROW("kind", API_STRING),
    ROW("lastTimestamp", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("reason", API_STRING),
    ROW("related", API_OBJECT, .nested = &object_reference_schema),
    ROW("reportingComponent", API_STRING, .otherwise = ""),
    ROW("reportingInstance", API_STRING, .otherwise = ""),
    ROW("series", API_OBJECT, .nested = &event_series_schema),
    ROW("source", API_OBJECT, .nested = &event_source_schema),
    ROW("type", API_STRING),
    { 0 },
};
const struct api_schema patch_schema_event = SCHEMA("Event", event);

static const struct api_row local_object_reference[] = {
    ROW("name", API_STRING),
    { 0 },
};
static const struct api_schema local_object_reference_schema =
    SCHEMA("LocalObjectReference", local_object_reference, .atomic = true);

static const struct api_row service_account[] = {
    ROW("apiVersion", API_STRING),
    ROW("automountServiceAccountToken", API_BOOL),
    ROW("imagePullSecrets", API_LIST, .nested = &local_object_reference_schema),
    ROW("kind", API_STRING),
    ROW("metadata", API_OBJECT, .nested = &api_schema_object_meta),
    ROW("secrets", API_LIST, .merge_key = "name", .nested = &object_reference_schema),
    { 0 },
};
const struct api_schema patch_schema_service_account = SCHEMA("ServiceAccount", service_account);
