/* SPDX-License-Identifier: Apache-2.0 */
/* Table of a Pod's members besides its manifest: the status. */
#include "agent/api/patch/kinds/tables.h"

static const struct api_row pod_condition[] = {
    ROW("lastProbeTime", API_STRING, .otherwise = "null"),
    ROW("lastTransitionTime", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("observedGeneration", API_INT64, .flags = API_ZERO_ABSENT),
    ROW("reason", API_STRING),
    ROW("status", API_STRING),
    ROW("type", API_STRING),
    { 0 },
};
static const struct api_schema pod_condition_schema = SCHEMA("PodCondition", pod_condition);

static const struct api_row resource_health[] = {
    ROW("health", API_STRING),
    ROW("message", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("resourceID", API_STRING),
    { 0 },
};
static const struct api_schema resource_health_schema = SCHEMA("ResourceHealth", resource_health);

static const struct api_row resource_status[] = {
    ROW("name", API_STRING),
    ROW("resources", API_LIST, .list_keys = "resourceID", .nested = &resource_health_schema),
    { 0 },
};
static const struct api_schema resource_status_schema = SCHEMA("ResourceStatus", resource_status);

static const struct api_row container_state_running[] = {
    ROW("startedAt", API_STRING, .otherwise = "null"),
    { 0 },
};
static const struct api_schema container_state_running_schema =
    SCHEMA("ContainerStateRunning", container_state_running);

static const struct api_row container_state_terminated[] = {
    ROW("containerID", API_STRING),
    ROW("exitCode", API_INT32),
    ROW("finishedAt", API_STRING, .otherwise = "null"),
    ROW("message", API_STRING),
    ROW("reason", API_STRING),
    ROW("signal", API_INT32, .flags = API_ZERO_ABSENT),
    ROW("startedAt", API_STRING, .otherwise = "null"),
    { 0 },
};
static const struct api_schema container_state_terminated_schema =
    SCHEMA("ContainerStateTerminated", container_state_terminated);

static const struct api_row container_state_waiting[] = {
    ROW("message", API_STRING),
    ROW("reason", API_STRING),
    { 0 },
};
static const struct api_schema container_state_waiting_schema =
    SCHEMA("ContainerStateWaiting", container_state_waiting);

static const struct api_row container_state[] = {
    ROW("running", API_OBJECT, .nested = &container_state_running_schema),
    ROW("terminated", API_OBJECT, .nested = &container_state_terminated_schema),
    ROW("waiting", API_OBJECT, .nested = &container_state_waiting_schema),
    { 0 },
};
static const struct api_schema container_state_schema = SCHEMA("ContainerState", container_state);

static const struct api_row linux_container_user[] = {
    ROW("gid", API_INT64),
    ROW("supplementalGroups", API_INT64S),
    ROW("uid", API_INT64),
    { 0 },
};
static const struct api_schema linux_container_user_schema =
    SCHEMA("LinuxContainerUser", linux_container_user);

static const struct api_row container_user[] = {
    ROW("linux", API_OBJECT, .nested = &linux_container_user_schema),
    { 0 },
};
static const struct api_schema container_user_schema = SCHEMA("ContainerUser", container_user);

static const struct api_row image_volume_status[] = {
    ROW("imageRef", API_STRING),
    { 0 },
};
static const struct api_schema image_volume_status_schema = SCHEMA("ImageVolumeStatus", image_volume_status);

static const struct api_row volume_status[] = {
    ROW("image", API_OBJECT, .nested = &image_volume_status_schema),
    { 0 },
};
static const struct api_schema volume_status_schema = SCHEMA("VolumeStatus", volume_status);

static const struct api_row volume_mount_status[] = {
    ROW("mountPath", API_STRING),
    ROW("name", API_STRING),
    ROW("readOnly", API_BOOL, .flags = API_ZERO_ABSENT),
    ROW("recursiveReadOnly", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("volumeStatus", API_OBJECT, .nested = &volume_status_schema),
    { 0 },
};
static const struct api_schema volume_mount_status_schema = SCHEMA("VolumeMountStatus", volume_mount_status);

static const struct api_row container_status[] = {
    ROW("allocatedResources", API_RESOURCES),
    ROW("allocatedResourcesStatus", API_LIST, .merge_key = "name", .nested = &resource_status_schema),
    ROW("containerID", API_STRING),
    ROW("image", API_STRING),
    ROW("imageID", API_STRING),
    ROW("lastState", API_OBJECT, .otherwise = "{}", .nested = &container_state_schema),
    ROW("name", API_STRING),
    ROW("ready", API_BOOL, .otherwise = "false"),
    ROW("resources", API_OBJECT, .nested = &api_schema_resources),
    ROW("restartCount", API_INT32, .otherwise = "0"),
    ROW("started", API_BOOL),
    ROW("state", API_OBJECT, .otherwise = "{}", .nested = &container_state_schema),
    ROW("stopSignal", API_STRING, .flags = API_KEEP_EMPTY),
    ROW("user", API_OBJECT, .nested = &container_user_schema),
    ROW("volumeMounts", API_LIST, .merge_key = "mountPath", .nested = &volume_mount_status_schema),
    { 0 },
};
static const struct api_schema container_status_schema = SCHEMA("ContainerStatus", container_status);

static const struct api_row container_extended_resource_request[] = {
    ROW("containerName", API_STRING),
    ROW("requestName", API_STRING),
    ROW("resourceName", API_STRING),
    { 0 },
};
static const struct api_schema container_extended_resource_request_schema =
    SCHEMA("ContainerExtendedResourceRequest", container_extended_resource_request);

static const struct api_row pod_extended_resource_claim_status[] = {
    ROW("requestMappings", API_LIST, .nested = &container_extended_resource_request_schema),
    ROW("resourceClaimName", API_STRING),
    { 0 },
};
static const struct api_schema pod_extended_resource_claim_status_schema =
    SCHEMA("PodExtendedResourceClaimStatus", pod_extended_resource_claim_status);

static const struct api_row host_ip[] = {
    ROW("ip", API_STRING),
    { 0 },
};
static const struct api_schema host_ip_schema = SCHEMA("HostIP", host_ip);

static const struct api_row node_allocatable_resource_claim_status[] = {
    ROW("containers", API_STRINGS, .flags = API_SET),
    ROW("resourceClaimName", API_STRING),
    ROW("resources", API_RESOURCES),
    { 0 },
};
static const struct api_schema node_allocatable_resource_claim_status_schema =
    SCHEMA("NodeAllocatableResourceClaimStatus", node_allocatable_resource_claim_status);

static const struct api_row pod_ip[] = {
    ROW("ip", API_STRING),
    { 0 },
};
static const struct api_schema pod_ip_schema = SCHEMA("PodIP", pod_ip);

static const struct api_row pod_resource_claim_status[] = {
    ROW("name", API_STRING),
    ROW("resourceClaimName", API_STRING, .flags = API_KEEP_EMPTY),
    { 0 },
};
static const struct api_schema pod_resource_claim_status_schema =
    SCHEMA("PodResourceClaimStatus", pod_resource_claim_status);

static const struct api_row pod_status[] = {
    ROW("allocatedResources", API_RESOURCES),
    ROW("conditions", API_LIST, .merge_key = "type", .nested = &pod_condition_schema),
    ROW("containerStatuses", API_LIST, .nested = &container_status_schema),
    ROW("ephemeralContainerStatuses", API_LIST, .nested = &container_status_schema),
    ROW("extendedResourceClaimStatus", API_OBJECT, .nested = &pod_extended_resource_claim_status_schema),
    ROW("hostIP", API_STRING),
    ROW("hostIPs", API_LIST, .merge_key = "ip", .list_keys = "", .nested = &host_ip_schema),
    ROW("initContainerStatuses", API_LIST, .nested = &container_status_schema),
    ROW("message", API_STRING),
    ROW("nodeAllocatableResourceClaimStatuses", API_LIST,
        .nested = &node_allocatable_resource_claim_status_schema),
    ROW("nominatedNodeName", API_STRING),
    ROW("observedGeneration", API_INT64, .flags = API_ZERO_ABSENT),
    ROW("phase", API_STRING),
    ROW("podIP", API_STRING),
    ROW("podIPs", API_LIST, .merge_key = "ip", .nested = &pod_ip_schema),
    ROW("qosClass", API_STRING),
    ROW("reason", API_STRING),
    ROW("resize", API_STRING),
    ROW("resourceClaimStatuses", API_LIST, .flags = API_RETAIN_KEYS, .merge_key = "name",
        .nested = &pod_resource_claim_status_schema),
    ROW("resources", API_OBJECT, .nested = &api_schema_resources),
    ROW("startTime", API_STRING),
    { 0 },
};
const struct api_schema patch_schema_pod_status = SCHEMA("PodStatus", pod_status);
