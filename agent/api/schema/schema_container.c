/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Container, its init and ephemeral forms, and their parts. */
#include "agent/api/schema/schema.h"

/* ---- ports ---- */
static const struct api_value protocols[] = { { "TCP", 0 }, { "UDP", 1 }, { "SCTP", 2 }, { NULL, 0 } };

static const struct api_row port[] = {
    { .name = "name", .type = API_STRING, .slot = AT(api_port, name), .format = API_FMT_PORT_NAME },
    { .name = "containerPort",
      .type = API_INT32,
      .slot = AT(api_port, container_port),
      .flags = API_REQUIRED | API_RANGE | API_ZERO_ABSENT,
      .min = 1,
      .max = 65535 },
    { .name = "hostPort",
      .type = API_INT32,
      .slot = AT(api_port, host_port),
      .flags = API_RANGE | API_ZERO_ABSENT,
      .min = 1,
      .max = 65535 },
    { .name = "protocol",
      .type = API_STRING,
      .slot = AT(api_port, protocol),
      .values = protocols,
      .otherwise = "TCP" },
    { .name = "hostIP", .type = API_STRING, .slot = AT(api_port, host_ip), .format = API_FMT_IP },
    { 0 },
};
static const struct api_schema port_schema = { .name = "ContainerPort",
                                               .rows = port,
                                               .size = sizeof(struct api_port) };

/* ---- environment ---- */
static const struct api_row config_map_ref[] = {
    { .name = "name",
      .type = API_STRING,
      .slot = AT(api_env_from, config_map_ref),
      .flags = API_REQUIRED,
      .format = API_FMT_SUBDOMAIN },
    { .name = "optional", .type = API_BOOL, .slot = AT(api_env_from, optional) },
    { 0 },
};
static const struct api_schema config_map_ref_schema = { .name = "ConfigMapEnvSource",
                                                         .rows = config_map_ref };

static const struct api_row secret_ref[] = {
    { .name = "name",
      .type = API_STRING,
      .slot = AT(api_env_from, secret_ref),
      .flags = API_REQUIRED,
      .format = API_FMT_SUBDOMAIN },
    { .name = "optional", .type = API_BOOL, .slot = AT(api_env_from, optional) },
    { 0 },
};
static const struct api_schema secret_ref_schema = { .name = "SecretEnvSource", .rows = secret_ref };

static const struct api_row env_from[] = {
    { .name = "prefix", .type = API_STRING, .slot = AT(api_env_from, prefix), .format = API_FMT_ENV_NAME },
    { .name = "configMapRef", .type = API_OBJECT, .slot = HERE, .nested = &config_map_ref_schema },
    { .name = "secretRef", .type = API_OBJECT, .slot = HERE, .nested = &secret_ref_schema },
    { 0 },
};
static const struct api_schema env_from_schema = { .name = "EnvFromSource",
                                                   .rows = env_from,
                                                   .size = sizeof(struct api_env_from),
                                                   .one_of =
                                                       "only one of configMapRef and secretRef is allowed",
                                                   .one_of_none = "configMapRef or secretRef is required",
                                                   .one_of_first = "configMapRef" };

static const struct api_row field_ref[] = {
    { .name = "apiVersion", .type = API_STRING, .slot = AT(api_field_ref, api_version), .otherwise = "v1" },
    { .name = "fieldPath", .type = API_STRING, .slot = AT(api_field_ref, field_path), .flags = API_REQUIRED },
    { 0 },
};
const struct api_schema api_schema_field_ref = { .name = "ObjectFieldSelector",
                                                 .rows = field_ref,
                                                 .size = sizeof(struct api_field_ref) };

static const struct api_row resource_field_ref[] = {
    { .name = "containerName", .type = API_STRING, .slot = AT(api_resource_field_ref, container_name) },
    { .name = "resource",
      .type = API_STRING,
      .slot = AT(api_resource_field_ref, resource),
      .flags = API_REQUIRED },
    { .name = "divisor",
      .type = API_QUANTITY,
      .slot = AT(api_resource_field_ref, divisor),
      .otherwise = "0" },
    { 0 },
};
const struct api_schema api_schema_resource_field_ref = { .name = "ResourceFieldSelector",
                                                          .rows = resource_field_ref,
                                                          .size = sizeof(struct api_resource_field_ref) };

static const struct api_row key_ref[] = {
    { .name = "name",
      .type = API_STRING,
      .slot = AT(api_key_ref, name),
      .flags = API_REQUIRED,
      .format = API_FMT_SUBDOMAIN },
    { .name = "key",
      .type = API_STRING,
      .slot = AT(api_key_ref, key),
      .flags = API_REQUIRED,
      .format = API_FMT_DATA_KEY },
    { .name = "optional", .type = API_BOOL, .slot = AT(api_key_ref, optional) },
    { 0 },
};
static const struct api_schema key_ref_schema = { .name = "ConfigMapKeySelector, SecretKeySelector",
                                                  .rows = key_ref,
                                                  .size = sizeof(struct api_key_ref) };

static const struct api_row file_key_ref[] = {
    { .name = "volumeName",
      .type = API_STRING,
      .slot = AT(api_file_key_ref, volume_name),
      .flags = API_REQUIRED },
    { .name = "path",
      .type = API_STRING,
      .slot = AT(api_file_key_ref, path),
      .flags = API_REQUIRED,
      .format = API_FMT_FILE_PATH },
    { .name = "key",
      .type = API_STRING,
      .slot = AT(api_file_key_ref, key),
      .flags = API_REQUIRED,
      .format = API_FMT_ENV_NAME },
    { .name = "optional", .type = API_BOOL, .slot = AT(api_file_key_ref, optional) },
    { 0 },
};
static const struct api_schema file_key_ref_schema = { .name = "FileKeySelector",
                                                       .rows = file_key_ref,
                                                       .size = sizeof(struct api_file_key_ref) };

static const struct api_row env_source[] = {
    { .name = "fieldRef",
      .type = API_OBJECT,
      .slot = AT(api_env, field_ref),
      .flags = API_POINTER,
      .nested = &api_schema_field_ref },
    { .name = "resourceFieldRef",
      .type = API_OBJECT,
      .slot = AT(api_env, resource_field_ref),
      .flags = API_POINTER,
      .nested = &api_schema_resource_field_ref },
    { .name = "configMapKeyRef",
      .type = API_OBJECT,
      .slot = AT(api_env, config_map_key_ref),
      .flags = API_POINTER,
      .nested = &key_ref_schema },
    { .name = "secretKeyRef",
      .type = API_OBJECT,
      .slot = AT(api_env, secret_key_ref),
      .flags = API_POINTER,
      .nested = &key_ref_schema },
    { .name = "fileKeyRef",
      .type = API_OBJECT,
      .slot = AT(api_env, file_key_ref),
      .flags = API_POINTER,
      .nested = &file_key_ref_schema },
    { 0 },
};
static const struct api_schema env_source_schema = {
    .name = "EnvVarSource",
    .rows = env_source,
    .one_of = "only one source of the value is allowed",
    .one_of_none = "one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef is "
                   "required",
};

static const struct api_row env[] = {
    { .name = "name",
      .type = API_STRING,
      .slot = AT(api_env, name),
      .flags = API_REQUIRED,
      .format = API_FMT_ENV_NAME },
    { .name = "value", .type = API_STRING, .slot = AT(api_env, value), .flags = API_EMPTY_TEXT },
    { .name = "valueFrom", .type = API_OBJECT, .slot = HERE, .nested = &env_source_schema },
    { 0 },
};
static const struct api_schema env_schema = { .name = "EnvVar", .rows = env, .size = sizeof(struct api_env) };

/* ---- resources ---- */
static const struct api_row claim_ref[] = {
    { .name = "name", .type = API_STRING, .flags = API_REQUIRED },
    { .name = "request", .type = API_STRING, .format = API_FMT_LABEL },
    { 0 },
};
static const struct api_schema claim_ref_schema = { .name = "ResourceClaim", .rows = claim_ref };

/* The supported resource names are in resources.c. */
static const struct api_row resources[] = {
    { .name = "limits", .type = API_RESOURCES, .slot = AT(api_resources, limits) },
    { .name = "requests", .type = API_RESOURCES, .slot = AT(api_resources, requests) },
    { .name = "claims",
      .type = API_LIST,
      .nested = &claim_ref_schema,
      .support = API_REFUSED,
      .why = "dynamic resource allocation needs a control plane and drivers" },
    { 0 },
};
const struct api_schema api_schema_resources = { .name = "ResourceRequirements", .rows = resources };

static const struct api_value resize_resources[] = { { "cpu", API_RESIZE_CPU },
                                                     { "memory", API_RESIZE_MEMORY },
                                                     { NULL, 0 } };
static const struct api_value resize_policies[] = { { "NotRequired", API_RESIZE_NOT_REQUIRED },
                                                    { "RestartContainer", API_RESIZE_RESTART_CONTAINER },
                                                    { NULL, 0 } };
static const struct api_row resize_policy[] = {
    { .name = "resourceName",
      .type = API_ENUM,
      .slot = AT(api_resize_policy, resource),
      .flags = API_REQUIRED,
      .values = resize_resources },
    { .name = "restartPolicy",
      .type = API_ENUM,
      .slot = AT(api_resize_policy, restart),
      .flags = API_REQUIRED,
      .values = resize_policies },
    { 0 },
};
static const struct api_schema resize_policy_schema = { .name = "ContainerResizePolicy",
                                                        .rows = resize_policy,
                                                        .size = sizeof(struct api_resize_policy) };

/* ---- restart rules ---- */
static const struct api_value exit_code_operators[] = { { "In", 0 }, { "NotIn", 1 }, { NULL, 0 } };
static const struct api_row exit_codes[] = {
    { .name = "operator",
      .type = API_ENUM,
      .slot = AT(api_restart_rule, not_in),
      .flags = API_REQUIRED | API_BOOL_SLOT,
      .values = exit_code_operators },
    { .name = "values",
      .type = API_INT32S,
      .slot = AT(api_restart_rule, exit_codes),
      .count = AT(api_restart_rule, n_exit_codes),
      .flags = API_REQUIRED },
    { 0 },
};
static const struct api_schema exit_codes_schema = { .name = "ContainerRestartRuleOnExitCodes",
                                                     .rows = exit_codes };

static const struct api_value restart_actions[] = { { "Restart", 0 },
                                                    { "RestartAllContainers", 1 },
                                                    { NULL, 0 } };
static const struct api_row restart_rule[] = {
    { .name = "action",
      .type = API_ENUM,
      .slot = AT(api_restart_rule, all),
      .flags = API_REQUIRED | API_BOOL_SLOT,
      .values = restart_actions },
    { .name = "exitCodes",
      .type = API_OBJECT,
      .slot = HERE,
      .flags = API_REQUIRED,
      .nested = &exit_codes_schema },
    { 0 },
};
static const struct api_schema restart_rule_schema = { .name = "ContainerRestartRule",
                                                       .rows = restart_rule,
                                                       .size = sizeof(struct api_restart_rule) };

/* ---- mounts ---- */
static const struct api_value propagations[] = {
    { "None", 0 }, { "HostToContainer", 1 }, { "Bidirectional", 2 }, { NULL, 0 }
};
static const struct api_value recursions[] = {
    { "Disabled", 0 }, { "IfPossible", 1 }, { "Enabled", 2 }, { NULL, 0 }
};

static const struct api_row volume_mount[] = {
    { .name = "name", .type = API_STRING, .slot = AT(api_volume_mount, name), .flags = API_REQUIRED },
    { .name = "mountPath",
      .type = API_STRING,
      .slot = AT(api_volume_mount, mount_path),
      .flags = API_REQUIRED },
    { .name = "readOnly",
      .type = API_BOOL,
      .slot = AT(api_volume_mount, read_only),
      .flags = API_ZERO_ABSENT },
    { .name = "recursiveReadOnly",
      .type = API_STRING,
      .slot = AT(api_volume_mount, recursive_read_only),
      .flags = API_KEEP_EMPTY,
      .values = recursions },
    { .name = "subPath",
      .type = API_STRING,
      .slot = AT(api_volume_mount, sub_path),
      .format = API_FMT_DESCENDING },
    { .name = "subPathExpr",
      .type = API_STRING,
      .slot = AT(api_volume_mount, sub_path_expr),
      .format = API_FMT_DESCENDING },
    { .name = "mountPropagation",
      .type = API_STRING,
      .slot = AT(api_volume_mount, mount_propagation),
      .flags = API_KEEP_EMPTY,
      .values = propagations },
    { 0 },
};
static const struct api_schema volume_mount_schema = { .name = "VolumeMount",
                                                       .rows = volume_mount,
                                                       .size = sizeof(struct api_volume_mount) };

static const struct api_row volume_device[] = {
    { .name = "name", .type = API_STRING, .flags = API_REQUIRED },
    { .name = "devicePath", .type = API_STRING, .flags = API_REQUIRED, .format = API_FMT_NO_BACKSTEPS },
    { 0 },
};
static const struct api_schema volume_device_schema = { .name = "VolumeDevice", .rows = volume_device };

/* ---- containers ---- */
const struct api_value api_values_pull_policy[] = { { "Always", API_PULL_ALWAYS },
                                                    { "IfNotPresent", API_PULL_IF_NOT_PRESENT },
                                                    { "Never", API_PULL_NEVER },
                                                    { NULL, 0 } };
static const struct api_value message_policies[] = { { "File", 0 },
                                                     { "FallbackToLogsOnError", 1 },
                                                     { NULL, 0 } };

static const struct api_row container[] = {
    { .name = "name",
      .type = API_STRING,
      .slot = AT(api_container, name),
      .flags = API_REQUIRED,
      .format = API_FMT_LABEL },
    { .name = "image",
      .type = API_STRING,
      .slot = AT(api_container, image),
      .flags = API_REQUIRED,
      .format = API_FMT_IMAGE },
    { .name = "imagePullPolicy",
      .type = API_ENUM,
      .slot = AT(api_container, pull_policy),
      .values = api_values_pull_policy },
    { .name = "command", .type = API_STRINGS, .slot = AT(api_container, command) },
    { .name = "args", .type = API_STRINGS, .slot = AT(api_container, args) },
    { .name = "workingDir", .type = API_STRING, .slot = AT(api_container, working_dir) },
    { .name = "ports",
      .type = API_LIST,
      .slot = AT(api_container, ports),
      .count = AT(api_container, n_ports),
      .nested = &port_schema },
    { .name = "envFrom",
      .type = API_LIST,
      .slot = AT(api_container, env_from),
      .count = AT(api_container, n_env_from),
      .nested = &env_from_schema },
    { .name = "env",
      .type = API_LIST,
      .slot = AT(api_container, env),
      .count = AT(api_container, n_env),
      .nested = &env_schema },
    { .name = "resources",
      .type = API_OBJECT,
      .slot = AT(api_container, resources),
      .nested = &api_schema_resources,
      .otherwise = "{}" },
    { .name = "resizePolicy",
      .type = API_LIST,
      .slot = AT(api_container, resize_policies),
      .count = AT(api_container, n_resize_policies),
      .nested = &resize_policy_schema },
    { .name = "restartPolicy",
      .type = API_ENUM,
      .slot = AT(api_container, restart_policy),
      .flags = API_KEEP_EMPTY,
      .values = api_values_restart_policy },
    { .name = "restartPolicyRules",
      .type = API_LIST,
      .slot = AT(api_container, restart_rules),
      .count = AT(api_container, n_restart_rules),
      .nested = &restart_rule_schema },
    { .name = "volumeMounts",
      .type = API_LIST,
      .slot = AT(api_container, mounts),
      .count = AT(api_container, n_mounts),
      .nested = &volume_mount_schema },
    { .name = "volumeDevices",
      .type = API_LIST,
      .nested = &volume_device_schema,
      .support = API_REFUSED,
      .why = "block devices come from persistentVolumeClaims, which need a control plane" },
    { .name = "livenessProbe",
      .type = API_OBJECT,
      .slot = AT(api_container, liveness),
      .flags = API_POINTER,
      .nested = &api_schema_probe },
    { .name = "readinessProbe",
      .type = API_OBJECT,
      .slot = AT(api_container, readiness),
      .flags = API_POINTER,
      .nested = &api_schema_probe },
    { .name = "startupProbe",
      .type = API_OBJECT,
      .slot = AT(api_container, startup),
      .flags = API_POINTER,
      .nested = &api_schema_probe },
    { .name = "lifecycle", .type = API_OBJECT, .slot = HERE, .nested = &api_schema_lifecycle },
    { .name = "terminationMessagePath",
      .type = API_STRING,
      .slot = AT(api_container, termination_message_path),
      .otherwise = "/dev/termination-log" },
    { .name = "terminationMessagePolicy",
      .type = API_ENUM,
      .slot = AT(api_container, message_fallback_to_logs),
      .flags = API_BOOL_SLOT,
      .values = message_policies,
      .otherwise = "File" },
    { .name = "securityContext",
      .type = API_OBJECT,
      .slot = AT(api_container, security),
      .nested = &api_schema_security },
    { .name = "stdin", .type = API_BOOL, .slot = AT(api_container, stdin_open), .flags = API_ZERO_ABSENT },
    { .name = "stdinOnce",
      .type = API_BOOL,
      .slot = AT(api_container, stdin_once),
      .flags = API_ZERO_ABSENT },
    { .name = "tty", .type = API_BOOL, .slot = AT(api_container, tty), .flags = API_ZERO_ABSENT },
    { 0 },
};
const struct api_schema api_schema_container = { .name = "Container",
                                                 .rows = container,
                                                 .size = sizeof(struct api_container) };
static const struct api_row ephemeral_container[] = {
    { .name = "targetContainerName", .type = API_STRING },
    { 0 },
};
const struct api_schema api_schema_ephemeral_container = { .name = "EphemeralContainer",
                                                           .rows = ephemeral_container,
                                                           .base = &api_schema_container };
