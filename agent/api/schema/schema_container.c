/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Container, its init and ephemeral forms, and their parts. */
#include "agent/api/schema/schema.h"

/* ---- ports ---- */
static const struct api_value protocols[] = { { "TCP", 0 }, { "UDP", 1 }, { "SCTP", 2 }, { NULL, 0 } };

static const struct api_row port[] = {
    ROW("name", API_STRING, SLOT(api_port, name), .format = API_FMT_PORT_NAME),
    ROW("containerPort", API_INT32, SLOT(api_port, container_port), .flags = API_REQUIRED | API_ZERO_ABSENT,
        RANGE(1, 65535)),
    ROW("hostPort", API_INT32, SLOT(api_port, host_port), .flags = API_ZERO_ABSENT, RANGE(1, 65535)),
    ROW("protocol", API_STRING, SLOT(api_port, protocol), .values = protocols, .otherwise = "TCP"),
    ROW("hostIP", API_STRING, SLOT(api_port, host_ip), .format = API_FMT_IP),
    { 0 },
};
static const struct api_schema port_schema = SCHEMA("ContainerPort", port, .size = sizeof(struct api_port));

/* ---- environment ---- */
static const struct api_row config_map_ref[] = {
    ROW("name", API_STRING, SLOT(api_env_from, config_map_ref), .flags = API_REQUIRED,
        .format = API_FMT_SUBDOMAIN),
    ROW("optional", API_BOOL, SLOT(api_env_from, optional)),
    { 0 },
};
static const struct api_schema config_map_ref_schema = SCHEMA("ConfigMapEnvSource", config_map_ref);

static const struct api_row secret_ref[] = {
    ROW("name", API_STRING, SLOT(api_env_from, secret_ref), .flags = API_REQUIRED,
        .format = API_FMT_SUBDOMAIN),
    ROW("optional", API_BOOL, SLOT(api_env_from, optional)),
    { 0 },
};
static const struct api_schema secret_ref_schema = SCHEMA("SecretEnvSource", secret_ref);

static const struct api_row env_from[] = {
    ROW("prefix", API_STRING, SLOT(api_env_from, prefix), .format = API_FMT_ENV_NAME),
    ROW("configMapRef", API_OBJECT, .slot = HERE, .nested = &config_map_ref_schema),
    ROW("secretRef", API_OBJECT, .slot = HERE, .nested = &secret_ref_schema),
    { 0 },
};
static const struct api_schema env_from_schema =
    SCHEMA("EnvFromSource", env_from, .size = sizeof(struct api_env_from),
           .one_of = "only one of configMapRef and secretRef is allowed",
           .one_of_none = "configMapRef or secretRef is required", .one_of_first = "configMapRef");

static const struct api_row field_ref[] = {
    ROW("apiVersion", API_STRING, SLOT(api_field_ref, api_version), .otherwise = "v1"),
    ROW("fieldPath", API_STRING, SLOT(api_field_ref, field_path), .flags = API_REQUIRED),
    { 0 },
};
const struct api_schema api_schema_field_ref =
    SCHEMA("ObjectFieldSelector", field_ref, .atomic = true, .size = sizeof(struct api_field_ref));

static const struct api_row resource_field_ref[] = {
    ROW("containerName", API_STRING, SLOT(api_resource_field_ref, container_name)),
    ROW("resource", API_STRING, SLOT(api_resource_field_ref, resource), .flags = API_REQUIRED),
    ROW("divisor", API_QUANTITY, SLOT(api_resource_field_ref, divisor), .otherwise = "0"),
    { 0 },
};
const struct api_schema api_schema_resource_field_ref =
    SCHEMA("ResourceFieldSelector", resource_field_ref, .atomic = true,
           .size = sizeof(struct api_resource_field_ref));

static const struct api_row key_ref[] = {
    ROW("name", API_STRING, SLOT(api_key_ref, name), .flags = API_REQUIRED, .format = API_FMT_SUBDOMAIN),
    ROW("key", API_STRING, SLOT(api_key_ref, key), .flags = API_REQUIRED, .format = API_FMT_DATA_KEY),
    ROW("optional", API_BOOL, SLOT(api_key_ref, optional)),
    { 0 },
};
static const struct api_schema key_ref_schema = SCHEMA("ConfigMapKeySelector, SecretKeySelector", key_ref,
                                                       .atomic = true, .size = sizeof(struct api_key_ref));

static const struct api_row file_key_ref[] = {
    ROW("volumeName", API_STRING, SLOT(api_file_key_ref, volume_name), .flags = API_REQUIRED),
    ROW("path", API_STRING, SLOT(api_file_key_ref, path), .flags = API_REQUIRED, .format = API_FMT_FILE_PATH),
    ROW("key", API_STRING, SLOT(api_file_key_ref, key), .flags = API_REQUIRED, .format = API_FMT_ENV_NAME),
    ROW("optional", API_BOOL, SLOT(api_file_key_ref, optional)),
    { 0 },
};
static const struct api_schema file_key_ref_schema =
    SCHEMA("FileKeySelector", file_key_ref, .atomic = true, .size = sizeof(struct api_file_key_ref));

static const struct api_row env_source[] = {
    ROW("fieldRef", API_OBJECT, SLOT(api_env, field_ref), .flags = API_POINTER,
        .nested = &api_schema_field_ref),
    ROW("resourceFieldRef", API_OBJECT, SLOT(api_env, resource_field_ref), .flags = API_POINTER,
        .nested = &api_schema_resource_field_ref),
    ROW("configMapKeyRef", API_OBJECT, SLOT(api_env, config_map_key_ref), .flags = API_POINTER,
        .nested = &key_ref_schema),
    ROW("secretKeyRef", API_OBJECT, SLOT(api_env, secret_key_ref), .flags = API_POINTER,
        .nested = &key_ref_schema),
    ROW("fileKeyRef", API_OBJECT, SLOT(api_env, file_key_ref), .flags = API_POINTER,
        .nested = &file_key_ref_schema),
    { 0 },
};
static const struct api_schema env_source_schema = SCHEMA(
    "EnvVarSource", env_source, .one_of = "only one source of the value is allowed",
    .one_of_none = "one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef is "
                   "required");

static const struct api_row env[] = {
    ROW("name", API_STRING, SLOT(api_env, name), .flags = API_REQUIRED, .format = API_FMT_ENV_NAME),
    ROW("value", API_STRING, SLOT(api_env, value), .flags = API_EMPTY_TEXT),
    ROW("valueFrom", API_OBJECT, .slot = HERE, .nested = &env_source_schema),
    { 0 },
};
static const struct api_schema env_schema = SCHEMA("EnvVar", env, .size = sizeof(struct api_env));

/* ---- resources ---- */
static const struct api_row claim_ref[] = {
    ROW("name", API_STRING, .flags = API_REQUIRED),
    ROW("request", API_STRING, .format = API_FMT_LABEL),
    { 0 },
};
static const struct api_schema claim_ref_schema = SCHEMA("ResourceClaim", claim_ref);

/* The supported resource names are in resources.c. */
static const struct api_row resources[] = {
    ROW("limits", API_RESOURCES, SLOT(api_resources, limits)),
    ROW("requests", API_RESOURCES, SLOT(api_resources, requests)),
    ROW("claims", API_LIST, .nested = &claim_ref_schema, .list_keys = "name",
        REFUSED("dynamic resource allocation needs a control plane and drivers")),
    { 0 },
};
const struct api_schema api_schema_resources = SCHEMA("ResourceRequirements", resources);

static const struct api_value resize_resources[] = { { "cpu", API_RESIZE_CPU },
                                                     { "memory", API_RESIZE_MEMORY },
                                                     { NULL, 0 } };
static const struct api_value resize_policies[] = { { "NotRequired", API_RESIZE_NOT_REQUIRED },
                                                    { "RestartContainer", API_RESIZE_RESTART_CONTAINER },
                                                    { NULL, 0 } };
static const struct api_row resize_policy[] = {
    ROW("resourceName", API_ENUM, SLOT(api_resize_policy, resource), .flags = API_REQUIRED,
        .values = resize_resources),
    ROW("restartPolicy", API_ENUM, SLOT(api_resize_policy, restart), .flags = API_REQUIRED,
        .values = resize_policies),
    { 0 },
};
static const struct api_schema resize_policy_schema =
    SCHEMA("ContainerResizePolicy", resize_policy, .size = sizeof(struct api_resize_policy));

/* ---- restart rules ---- */
static const struct api_value exit_code_operators[] = { { "In", 0 }, { "NotIn", 1 }, { NULL, 0 } };
static const struct api_row exit_codes[] = {
    ROW("operator", API_ENUM, SLOT(api_restart_rule, not_in), .flags = API_REQUIRED | API_BOOL_SLOT,
        .values = exit_code_operators),
    ROW("values", API_INT32S, SLOTS(api_restart_rule, exit_codes), .flags = API_REQUIRED | API_SET),
    { 0 },
};
static const struct api_schema exit_codes_schema = SCHEMA("ContainerRestartRuleOnExitCodes", exit_codes);

static const struct api_value restart_actions[] = { { "Restart", 0 },
                                                    { "RestartAllContainers", 1 },
                                                    { NULL, 0 } };
static const struct api_row restart_rule[] = {
    ROW("action", API_ENUM, SLOT(api_restart_rule, all), .flags = API_REQUIRED | API_BOOL_SLOT,
        .values = restart_actions),
    ROW("exitCodes", API_OBJECT, .slot = HERE, .flags = API_REQUIRED, .nested = &exit_codes_schema),
    { 0 },
};
static const struct api_schema restart_rule_schema =
    SCHEMA("ContainerRestartRule", restart_rule, .size = sizeof(struct api_restart_rule));

/* ---- mounts ---- */
static const struct api_value propagations[] = {
    { "None", 0 }, { "HostToContainer", 1 }, { "Bidirectional", 2 }, { NULL, 0 }
};
static const struct api_value recursions[] = {
    { "Disabled", 0 }, { "IfPossible", 1 }, { "Enabled", 2 }, { NULL, 0 }
};

static const struct api_row volume_mount[] = {
    ROW("name", API_STRING, SLOT(api_volume_mount, name), .flags = API_REQUIRED),
    ROW("mountPath", API_STRING, SLOT(api_volume_mount, mount_path), .flags = API_REQUIRED),
    ROW("readOnly", API_BOOL, SLOT(api_volume_mount, read_only), .flags = API_ZERO_ABSENT),
    ROW("recursiveReadOnly", API_STRING, SLOT(api_volume_mount, recursive_read_only), .flags = API_KEEP_EMPTY,
        .values = recursions),
    ROW("subPath", API_STRING, SLOT(api_volume_mount, sub_path), .format = API_FMT_DESCENDING),
    ROW("subPathExpr", API_STRING, SLOT(api_volume_mount, sub_path_expr), .format = API_FMT_DESCENDING),
    ROW("mountPropagation", API_STRING, SLOT(api_volume_mount, mount_propagation), .flags = API_KEEP_EMPTY,
        .values = propagations),
    { 0 },
};
static const struct api_schema volume_mount_schema =
    SCHEMA("VolumeMount", volume_mount, .size = sizeof(struct api_volume_mount));

static const struct api_row volume_device[] = {
    ROW("name", API_STRING, SLOT(api_volume_device, name), .flags = API_REQUIRED),
    ROW("devicePath", API_STRING, SLOT(api_volume_device, path), .flags = API_REQUIRED,
        .format = API_FMT_NO_BACKSTEPS),
    { 0 },
};
static const struct api_schema volume_device_schema =
    SCHEMA("VolumeDevice", volume_device, .size = sizeof(struct api_volume_device));

/* ---- containers ---- */
const struct api_value api_values_pull_policy[] = { { "Always", API_PULL_ALWAYS },
                                                    { "IfNotPresent", API_PULL_IF_NOT_PRESENT },
                                                    { "Never", API_PULL_NEVER },
                                                    { NULL, 0 } };
static const struct api_value message_policies[] = { { "File", 0 },
                                                     { "FallbackToLogsOnError", 1 },
                                                     { NULL, 0 } };

static const struct api_row container[] = {
    ROW("name", API_STRING, SLOT(api_container, name), .flags = API_REQUIRED, .format = API_FMT_LABEL),
    ROW("image", API_STRING, SLOT(api_container, image), .flags = API_REQUIRED, .format = API_FMT_IMAGE),
    ROW("imagePullPolicy", API_ENUM, SLOT(api_container, pull_policy), .values = api_values_pull_policy),
    ROW("command", API_STRINGS, SLOT(api_container, command)),
    ROW("args", API_STRINGS, SLOT(api_container, args)),
    ROW("workingDir", API_STRING, SLOT(api_container, working_dir)),
    ROW("ports", API_LIST, SLOTS(api_container, ports), .nested = &port_schema, .merge_key = "containerPort",
        .list_keys = "containerPort,protocol"),
    ROW("envFrom", API_LIST, SLOTS(api_container, env_from), .nested = &env_from_schema),
    ROW("env", API_LIST, SLOTS(api_container, env), .nested = &env_schema, .merge_key = "name"),
    ROW("resources", API_OBJECT, SLOT(api_container, resources), .nested = &api_schema_resources,
        .otherwise = "{}"),
    ROW("resizePolicy", API_LIST, SLOTS(api_container, resize_policies), .nested = &resize_policy_schema),
    ROW("restartPolicy", API_ENUM, SLOT(api_container, restart_policy), .flags = API_KEEP_EMPTY,
        .values = api_values_restart_policy),
    ROW("restartPolicyRules", API_LIST, SLOTS(api_container, restart_rules), .nested = &restart_rule_schema),
    ROW("volumeMounts", API_LIST, SLOTS(api_container, mounts), .nested = &volume_mount_schema,
        .merge_key = "mountPath"),
    ROW("volumeDevices", API_LIST, SLOTS(api_container, devices), .nested = &volume_device_schema,
        .merge_key = "devicePath"),
    ROW("livenessProbe", API_OBJECT, SLOT(api_container, liveness), .flags = API_POINTER,
        .nested = &api_schema_probe),
    ROW("readinessProbe", API_OBJECT, SLOT(api_container, readiness), .flags = API_POINTER,
        .nested = &api_schema_probe),
    ROW("startupProbe", API_OBJECT, SLOT(api_container, startup), .flags = API_POINTER,
        .nested = &api_schema_probe),
    ROW("lifecycle", API_OBJECT, .slot = HERE, .nested = &api_schema_lifecycle),
    ROW("terminationMessagePath", API_STRING, SLOT(api_container, termination_message_path),
        .otherwise = "/dev/termination-log"),
    ROW("terminationMessagePolicy", API_ENUM, SLOT(api_container, message_fallback_to_logs),
        .flags = API_BOOL_SLOT, .values = message_policies, .otherwise = "File"),
    ROW("securityContext", API_OBJECT, SLOT(api_container, security), .nested = &api_schema_security),
    ROW("stdin", API_BOOL, SLOT(api_container, stdin_open), .flags = API_ZERO_ABSENT),
    ROW("stdinOnce", API_BOOL, SLOT(api_container, stdin_once), .flags = API_ZERO_ABSENT),
    ROW("tty", API_BOOL, SLOT(api_container, tty), .flags = API_ZERO_ABSENT),
    { 0 },
};
const struct api_schema api_schema_container =
    SCHEMA("Container", container, .size = sizeof(struct api_container));
static const struct api_row ephemeral_container[] = {
    ROW("targetContainerName", API_STRING, SLOT(api_container, target)),
    { 0 },
};
const struct api_schema api_schema_ephemeral_container =
    SCHEMA("EphemeralContainer", ephemeral_container, .base = &api_schema_container,
           .size = sizeof(struct api_container));
