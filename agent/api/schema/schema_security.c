/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the two security contexts. */
#include "agent/api/schema/schema.h"

#define ID .flags = API_RANGE, .min = 0, .max = INT32_MAX

static const char no_selinux[] = "SELinux labels are not set, as by containerd without enable_selinux";

/* ---- seccomp, AppArmor, SELinux, Windows ---- */
static const struct api_value seccomp_types[] = { { "Unconfined", API_SECCOMP_UNCONFINED },
                                                  { "RuntimeDefault", API_SECCOMP_RUNTIME_DEFAULT },
                                                  { "Localhost", API_SECCOMP_LOCALHOST },
                                                  { NULL, 0 } };
static const struct api_row seccomp[] = {
    { .name = "type",
      .type = API_ENUM,
      .slot = AT(api_seccomp, type),
      .flags = API_REQUIRED,
      .values = seccomp_types },
    { .name = "localhostProfile",
      .type = API_STRING,
      .slot = AT(api_seccomp, localhost_profile),
      .flags = API_KEEP_EMPTY,
      .format = API_FMT_DESCENDING },
    { 0 },
};
static const struct api_schema seccomp_schema = { .name = "SeccompProfile", .rows = seccomp };

static const struct api_value apparmor_types[] = {
    { "Unconfined", 0 }, { "RuntimeDefault", 1 }, { "Localhost", 2 }, { NULL, 0 }
};
static const struct api_row apparmor[] = {
    { .name = "type",
      .type = API_STRING,
      .slot = AT(api_apparmor, type),
      .flags = API_REQUIRED,
      .values = apparmor_types },
    { .name = "localhostProfile",
      .type = API_STRING,
      .slot = AT(api_apparmor, localhost_profile),
      .flags = API_KEEP_EMPTY },
    { 0 },
};
static const struct api_schema apparmor_schema = { .name = "AppArmorProfile", .rows = apparmor };

static const struct api_row selinux[] = {
    { .name = "user", .type = API_STRING },
    { .name = "role", .type = API_STRING },
    { .name = "type", .type = API_STRING },
    { .name = "level", .type = API_STRING },
    { 0 },
};
static const struct api_schema selinux_schema = { .name = "SELinuxOptions", .rows = selinux };

static const struct api_row windows[] = {
    { .name = "gmsaCredentialSpecName", .type = API_STRING },
    { .name = "gmsaCredentialSpec", .type = API_STRING },
    { .name = "runAsUserName", .type = API_STRING },
    { .name = "hostProcess", .type = API_BOOL },
    { 0 },
};
static const struct api_schema windows_schema = { .name = "WindowsSecurityContextOptions", .rows = windows };

#define SELINUX                                                                                              \
    {                                                                                                        \
        .name = "seLinuxOptions", .type = API_OBJECT, .nested = &selinux_schema, .support = API_IGNORED,     \
        .harmless = "{}", .why = no_selinux                                                                  \
    }
#define APPARMOR(type_)                                                                                      \
    {                                                                                                        \
        .name = "appArmorProfile", .type = API_OBJECT, .slot = AT(type_, apparmor),                          \
        .nested = &apparmor_schema                                                                           \
    }
#define WINDOWS                                                                                              \
    {                                                                                                        \
        .name = "windowsOptions", .type = API_OBJECT, .nested = &windows_schema, .support = API_REFUSED,     \
        .harmless = "{}", .why = "this is a Linux node"                                                      \
    }

/* ---- pod ---- */
static const struct api_row sysctl[] = {
    { .name = "name",
      .type = API_STRING,
      .slot = AT(api_sysctl, name),
      .flags = API_REQUIRED,
      .format = API_FMT_SYSCTL },
    { .name = "value", .type = API_STRING, .slot = AT(api_sysctl, value), .flags = API_EMPTY_TEXT },
    { 0 },
};
static const struct api_schema sysctl_schema = { .name = "Sysctl",
                                                 .rows = sysctl,
                                                 .size = sizeof(struct api_sysctl) };

static const struct api_value groups_policies[] = { { "Merge", 0 }, { "Strict", 1 }, { NULL, 0 } };
static const struct api_value change_policies[] = { { "Always", 0 }, { "OnRootMismatch", 1 }, { NULL, 0 } };
static const struct api_value selinux_policies[] = { { "Recursive", 0 }, { "MountOption", 1 }, { NULL, 0 } };

static const struct api_row pod_security[] = {
    { .name = "runAsUser",
      .type = API_INT64,
      .slot = AT(api_pod_security, run_as_user),
      .has = AT(api_pod_security, has_run_as_user),
      ID },
    { .name = "runAsGroup",
      .type = API_INT64,
      .slot = AT(api_pod_security, run_as_group),
      .has = AT(api_pod_security, has_run_as_group),
      ID },
    { .name = "runAsNonRoot",
      .type = API_BOOL,
      .slot = AT(api_pod_security, run_as_non_root),
      .has = AT(api_pod_security, has_run_as_non_root) },
    { .name = "fsGroup",
      .type = API_INT64,
      .slot = AT(api_pod_security, fs_group),
      .has = AT(api_pod_security, has_fs_group),
      ID },
    { .name = "fsGroupChangePolicy",
      .type = API_STRING,
      .flags = API_KEEP_EMPTY,
      .values = change_policies,
      .support = API_ACCEPTED,
      .why = "it applies to storage drivers; the volumes of this node always get the group, as in kubelet" },
    { .name = "supplementalGroups",
      .type = API_INT64S,
      .slot = AT(api_pod_security, supplemental_groups),
      .count = AT(api_pod_security, n_supplemental_groups),
      ID },
    { .name = "supplementalGroupsPolicy",
      .type = API_STRING,
      .slot = AT(api_pod_security, supplemental_groups_policy),
      .flags = API_KEEP_EMPTY,
      .values = groups_policies },
    { .name = "seccompProfile",
      .type = API_OBJECT,
      .slot = AT(api_pod_security, seccomp),
      .nested = &seccomp_schema },
    { .name = "sysctls",
      .type = API_LIST,
      .slot = AT(api_pod_security, sysctls),
      .count = AT(api_pod_security, n_sysctls),
      .nested = &sysctl_schema },
    SELINUX,
    { .name = "seLinuxChangePolicy",
      .type = API_STRING,
      .flags = API_KEEP_EMPTY,
      .values = selinux_policies,
      .support = API_IGNORED,
      .why = no_selinux },
    APPARMOR(api_pod_security),
    WINDOWS,
    { 0 },
};
const struct api_schema api_schema_pod_security = { .name = "PodSecurityContext", .rows = pod_security };

/* ---- container ---- */
static const struct api_row capabilities[] = {
    { .name = "add", .type = API_STRINGS, .slot = AT(api_security, caps_add) },
    { .name = "drop", .type = API_STRINGS, .slot = AT(api_security, caps_drop) },
    { 0 },
};
static const struct api_schema capabilities_schema = { .name = "Capabilities", .rows = capabilities };

static const struct api_value proc_mounts[] = { { "Default", 0 }, { "Unmasked", 1 }, { NULL, 0 } };

static const struct api_row security[] = {
    { .name = "runAsUser",
      .type = API_INT64,
      .slot = AT(api_security, run_as_user),
      .has = AT(api_security, has_run_as_user),
      ID },
    { .name = "runAsGroup",
      .type = API_INT64,
      .slot = AT(api_security, run_as_group),
      .has = AT(api_security, has_run_as_group),
      ID },
    { .name = "runAsNonRoot",
      .type = API_BOOL,
      .slot = AT(api_security, run_as_non_root),
      .has = AT(api_security, has_run_as_non_root) },
    { .name = "privileged",
      .type = API_BOOL,
      .slot = AT(api_security, privileged),
      .has = AT(api_security, has_privileged) },
    { .name = "allowPrivilegeEscalation",
      .type = API_BOOL,
      .slot = AT(api_security, allow_privilege_escalation),
      .has = AT(api_security, has_allow_privilege_escalation) },
    { .name = "readOnlyRootFilesystem",
      .type = API_BOOL,
      .slot = AT(api_security, read_only_root_filesystem),
      .has = AT(api_security, has_read_only_root_filesystem) },
    { .name = "capabilities", .type = API_OBJECT, .slot = HERE, .nested = &capabilities_schema },
    { .name = "seccompProfile",
      .type = API_OBJECT,
      .slot = AT(api_security, seccomp),
      .nested = &seccomp_schema },
    { .name = "procMount",
      .type = API_STRING,
      .slot = AT(api_security, proc_mount),
      .flags = API_KEEP_EMPTY,
      .values = proc_mounts },
    SELINUX,
    APPARMOR(api_security),
    WINDOWS,
    { 0 },
};
const struct api_schema api_schema_security = { .name = "SecurityContext", .rows = security };
