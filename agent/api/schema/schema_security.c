/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the two security contexts. */
#include "agent/api/schema/schema.h"

#define ID RANGE(0, INT32_MAX)

static const char no_selinux[] = "SELinux labels are not set, as by containerd without enable_selinux";

/* ---- seccomp, AppArmor, SELinux, Windows ---- */
static const struct api_value seccomp_types[] = { { "Unconfined", API_SECCOMP_UNCONFINED },
                                                  { "RuntimeDefault", API_SECCOMP_RUNTIME_DEFAULT },
                                                  { "Localhost", API_SECCOMP_LOCALHOST },
                                                  { NULL, 0 } };
static const struct api_row seccomp[] = {
    ROW("type", API_ENUM, SLOT(api_seccomp, type), .flags = API_REQUIRED, .values = seccomp_types),
    ROW("localhostProfile", API_STRING, SLOT(api_seccomp, localhost_profile), .flags = API_KEEP_EMPTY,
        .format = API_FMT_DESCENDING),
    { 0 },
};
static const struct api_schema seccomp_schema = SCHEMA("SeccompProfile", seccomp);

static const struct api_value apparmor_types[] = {
    { "Unconfined", 0 }, { "RuntimeDefault", 1 }, { "Localhost", 2 }, { NULL, 0 }
};
static const struct api_row apparmor[] = {
    ROW("type", API_STRING, SLOT(api_apparmor, type), .flags = API_REQUIRED, .values = apparmor_types),
    ROW("localhostProfile", API_STRING, SLOT(api_apparmor, localhost_profile), .flags = API_KEEP_EMPTY),
    { 0 },
};
static const struct api_schema apparmor_schema = SCHEMA("AppArmorProfile", apparmor);

static const struct api_row selinux[] = {
    ROW("user", API_STRING),
    ROW("role", API_STRING),
    ROW("type", API_STRING),
    ROW("level", API_STRING),
    { 0 },
};
static const struct api_schema selinux_schema = SCHEMA("SELinuxOptions", selinux);

#define SELINUX                                                                                              \
    ROW("seLinuxOptions", API_OBJECT, .nested = &selinux_schema, IGNORED(no_selinux), .harmless = "{}")
#define APPARMOR(type_) ROW("appArmorProfile", API_OBJECT, SLOT(type_, apparmor), .nested = &apparmor_schema)
#define WINDOWS ROW("windowsOptions", API_ANY, REFUSED("this is a Linux node"), .harmless = "{}")

/* ---- pod ---- */
static const struct api_row sysctl[] = {
    ROW("name", API_STRING, SLOT(api_sysctl, name), .flags = API_REQUIRED, .format = API_FMT_SYSCTL),
    ROW("value", API_STRING, SLOT(api_sysctl, value), .flags = API_EMPTY_TEXT),
    { 0 },
};
static const struct api_schema sysctl_schema = SCHEMA("Sysctl", sysctl, .size = sizeof(struct api_sysctl));

static const struct api_value groups_policies[] = { { "Merge", 0 }, { "Strict", 1 }, { NULL, 0 } };
static const struct api_value change_policies[] = { { "Always", 0 }, { "OnRootMismatch", 1 }, { NULL, 0 } };
static const struct api_value selinux_policies[] = { { "Recursive", 0 }, { "MountOption", 1 }, { NULL, 0 } };

static const struct api_row pod_security[] = {
    ROW("runAsUser", API_INT64, SLOT(api_pod_security, run_as_user),
        .has = AT(api_pod_security, has_run_as_user), ID),
    ROW("runAsGroup", API_INT64, SLOT(api_pod_security, run_as_group),
        .has = AT(api_pod_security, has_run_as_group), ID),
    ROW("runAsNonRoot", API_BOOL, SLOT(api_pod_security, run_as_non_root),
        .has = AT(api_pod_security, has_run_as_non_root)),
    ROW("fsGroup", API_INT64, SLOT(api_pod_security, fs_group), .has = AT(api_pod_security, has_fs_group),
        ID),
    ROW("fsGroupChangePolicy", API_STRING, SLOT(api_pod_security, fs_group_change_policy),
        .flags = API_KEEP_EMPTY, .values = change_policies,
        ACTED("it applies to volumes of storage drivers; others always get the group, as in kubelet")),
    ROW("supplementalGroups", API_INT64S, SLOTS(api_pod_security, supplemental_groups), ID),
    ROW("supplementalGroupsPolicy", API_STRING, SLOT(api_pod_security, supplemental_groups_policy),
        .flags = API_KEEP_EMPTY, .values = groups_policies),
    ROW("seccompProfile", API_OBJECT, SLOT(api_pod_security, seccomp), .nested = &seccomp_schema),
    ROW("sysctls", API_LIST, SLOTS(api_pod_security, sysctls), .nested = &sysctl_schema),
    SELINUX,
    ROW("seLinuxChangePolicy", API_STRING, .flags = API_KEEP_EMPTY, .values = selinux_policies,
        IGNORED(no_selinux)),
    APPARMOR(api_pod_security),
    WINDOWS,
    { 0 },
};
const struct api_schema api_schema_pod_security = SCHEMA("PodSecurityContext", pod_security);

/* ---- container ---- */
/* An API server leaves the names to the engine, and engines differ. */
#define CAP_NAMES                                                                                            \
    "names with or without CAP_ (as in CRI-O), in upper or lower case; an unknown name is an error. "        \
    "containerd puts CAP_ before every name, so CAP_NET_ADMIN is unknown there, and has no effect"

static const struct api_row capabilities[] = {
    ROW("add", API_STRINGS, SLOT(api_security, caps_add), ACTED(CAP_NAMES)),
    ROW("drop", API_STRINGS, SLOT(api_security, caps_drop), ACTED(CAP_NAMES)),
    { 0 },
};
static const struct api_schema capabilities_schema = SCHEMA("Capabilities", capabilities);

static const struct api_value proc_mounts[] = { { "Default", 0 }, { "Unmasked", 1 }, { NULL, 0 } };

static const struct api_row security[] = {
    ROW("runAsUser", API_INT64, SLOT(api_security, run_as_user), .has = AT(api_security, has_run_as_user),
        ID),
    ROW("runAsGroup", API_INT64, SLOT(api_security, run_as_group), .has = AT(api_security, has_run_as_group),
        ID),
    ROW("runAsNonRoot", API_BOOL, SLOT(api_security, run_as_non_root),
        .has = AT(api_security, has_run_as_non_root)),
    ROW("privileged", API_BOOL, SLOT(api_security, privileged), .has = AT(api_security, has_privileged)),
    ROW("allowPrivilegeEscalation", API_BOOL, SLOT(api_security, allow_privilege_escalation),
        .has = AT(api_security, has_allow_privilege_escalation)),
    ROW("readOnlyRootFilesystem", API_BOOL, SLOT(api_security, read_only_root_filesystem),
        .has = AT(api_security, has_read_only_root_filesystem)),
    ROW("capabilities", API_OBJECT, .slot = HERE, .nested = &capabilities_schema),
    ROW("seccompProfile", API_OBJECT, SLOT(api_security, seccomp), .nested = &seccomp_schema),
    ROW("procMount", API_STRING, SLOT(api_security, proc_mount), .flags = API_KEEP_EMPTY,
        .values = proc_mounts),
    SELINUX,
    APPARMOR(api_security),
    WINDOWS,
    { 0 },
};
const struct api_schema api_schema_security = SCHEMA("SecurityContext", security);
