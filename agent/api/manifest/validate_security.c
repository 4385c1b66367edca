/* SPDX-License-Identifier: Apache-2.0 */
/* Security contexts: rules across fields. */
#include "agent/api/manifest/internal.h"

#include <ctype.h>
#include <string.h>

#define PROFILE_NAME_MAX 4095 /* PATH_MAX - 1 */

static void validate_security_check_seccomp(struct api_check *c, const struct api_seccomp *s,
                                            const json_t *profile)
{
    bool named = json_object_get(profile, "localhostProfile") != NULL; /* valid or not */
    size_t mark = api_enter(c, "seccompProfile");

    if (s->type == API_SECCOMP_LOCALHOST && !named)
        api_fault_at(c, "localhostProfile", "required with type Localhost");
    if (s->type != API_SECCOMP_LOCALHOST && s->type != API_SECCOMP_UNSET && named)
        api_fault_at(c, "localhostProfile", "only allowed with type Localhost");
    api_leave(c, mark);
}

void api_validate_apparmor_name(struct api_check *c, const char *name)
{
    size_t n = strlen(name);

    if (isspace((unsigned char)name[0]) || isspace((unsigned char)name[n - 1]))
        api_fault(c, "must not begin or end with white space");
    else if (n > PROFILE_NAME_MAX)
        api_fault(c, "%zu characters are too many, at most %d are allowed", n, PROFILE_NAME_MAX);
}

static void validate_security_check_apparmor(struct api_check *c, const json_t *profile)
{
    const char *type = json_string_value(json_object_get(profile, "type"));
    const char *name = json_string_value(json_object_get(profile, "localhostProfile"));
    size_t mark = api_enter(c, "appArmorProfile");

    if (str_eq(type, "Localhost")) {
        api_enter(c, "localhostProfile");
        if (name == NULL || *name == '\0')
            api_fault(c, "required with type Localhost");
        else
            api_validate_apparmor_name(c, name);
    } else if (type != NULL && name != NULL) {
        api_fault_at(c, "localhostProfile", "only allowed with type Localhost");
    }
    api_leave(c, mark);
}

/* ---- sysctls ---- */
static void check_sysctls(struct api_check *c, const struct api_pod_spec *spec)
{
    size_t outer = api_enter(c, "sysctls");

    for (size_t i = 0; i < spec->security.n_sysctls; i++) {
        char name[260], earlier[260];
        size_t mark = api_enter_index(c, i);
        if (spec->security.sysctls[i].name == NULL) {
            api_leave(c, mark);
            continue;
        }
        api_sysctl_with_dots(spec->security.sysctls[i].name, name, sizeof(name));
        for (size_t k = 0; k < i; k++) {
            if (spec->security.sysctls[k].name == NULL)
                continue;
            api_sysctl_with_dots(spec->security.sysctls[k].name, earlier, sizeof(earlier));
            if (strcmp(name, earlier) == 0) {
                api_fault_at(c, "name", "%s is given twice", QUOTE(name));
                break;
            }
        }
        if (spec->host_network && str_starts(name, "net."))
            api_fault_at(c, "name", "%s may not be specified when 'hostNetwork' is true", QUOTE(name));
        if (spec->host_ipc && (str_starts(name, "kernel.shm") || str_starts(name, "kernel.msg") ||
                               strcmp(name, "kernel.sem") == 0 || str_starts(name, "fs.mqueue.")))
            api_fault_at(c, "name", "%s may not be specified when 'hostIPC' is true", QUOTE(name));
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

void api_validate_pod_security(struct api_check *c, const struct api_pod_spec *spec, const json_t *security)
{
    size_t mark = api_enter(c, "securityContext");

    validate_security_check_seccomp(c, &spec->security.seccomp, json_object_get(security, "seccompProfile"));
    validate_security_check_apparmor(c, json_object_get(security, "appArmorProfile"));
    check_sysctls(c, spec);
    api_leave(c, mark);
}

/* ---- container ---- */
void api_validate_security(struct api_check *c, const struct api_container *container, const json_t *security,
                           const struct api_pod_spec *spec)
{
    const struct api_security *s = &container->security;
    bool host_users = !spec->has_host_users || spec->host_users;
    size_t mark = api_enter(c, "securityContext");

    validate_security_check_seccomp(c, &s->seccomp, json_object_get(security, "seccompProfile"));
    validate_security_check_apparmor(c, json_object_get(security, "appArmorProfile"));
    if (str_eq(s->proc_mount, "Unmasked") && host_users)
        api_fault_at(c, "procMount", "\"Unmasked\" needs hostUsers to be false");
    if (s->has_allow_privilege_escalation && !s->allow_privilege_escalation) {
        if (s->privileged)
            api_fault(c, "allowPrivilegeEscalation cannot be false when privileged is true");
        for (size_t i = 0; i < s->caps_add.n; i++) {
            if (strcmp(s->caps_add.v[i], "CAP_SYS_ADMIN") == 0)
                api_fault(c,
                          "allowPrivilegeEscalation cannot be false when capabilities.add has CAP_SYS_ADMIN");
        }
    }
    api_leave(c, mark);
}
