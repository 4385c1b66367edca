/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/sysctls.h"
#include "base/buf.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_LENGTH 253 /* SysctlMaxLength of the API */
#define PATTERN_REGEX "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]"

enum owner { OWNER_UNKNOWN, OWNER_IPC, OWNER_NET };

void api_sysctl_with_dots(const char *name, char *ret, size_t size)
{
    const char *first = strpbrk(name, "./");
    bool slashes = first != NULL && *first == '/';
    size_t n = 0;

    for (; name[n] != '\0' && n + 1 < size; n++) {
        ret[n] = name[n];
        if (slashes && name[n] == '/')
            ret[n] = '.';
        else if (slashes && name[n] == '.')
            ret[n] = '/';
    }
    ret[n] = '\0';
}

/* Sysctls that need a newer kernel than 4.15 are not on the list of the kubelet version we follow. */
static const char *const safe[] = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
};

static enum owner owner_of(const char *name)
{
    if (str_starts(name, "net."))
        return OWNER_NET;
    if (strcmp(name, "kernel.sem") == 0 || str_starts(name, "kernel.shm") || str_starts(name, "kernel.msg") ||
        str_starts(name, "fs.mqueue."))
        return OWNER_IPC;
    return OWNER_UNKNOWN;
}

/* ---- patterns ---- */

static bool sysctls_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool matches_regex(const char *s)
{
    if (strlen(s) > NAME_MAX_LENGTH)
        return false;
    for (;;) {
        size_t n = strcspn(s, "./");
        bool last = s[n] == '\0';

        if (n == 0 || (!sysctls_is_word(s[0]) && !(last && n == 1 && s[0] == '*')))
            return false;
        for (size_t i = 0; i + 1 < n; i++)
            if (!sysctls_is_word(s[i]) && s[i] != '-' && s[i] != '_')
                return false;
        if (!sysctls_is_word(s[n - 1]) && !(last && s[n - 1] == '*'))
            return false;
        if (last)
            return true;
        s += n + 1;
    }
}

/* With dots and without the star; *ret_prefix: whether there was one. */
static void read_pattern(const char *pattern, char ret[NAME_MAX_LENGTH + 1], bool *ret_prefix)
{
    size_t n;

    api_sysctl_with_dots(pattern, ret, NAME_MAX_LENGTH + 1);
    n = strlen(ret);
    *ret_prefix = n > 0 && ret[n - 1] == '*';
    if (*ret_prefix)
        ret[n - 1] = '\0';
}

enum err_code sysctls_check_patterns(const char *const *patterns, struct err *e)
{
    for (; patterns != NULL && *patterns != NULL; patterns++) {
        char name[NAME_MAX_LENGTH + 1];
        bool prefix;

        if (!matches_regex(*patterns))
            return err_set(e, ERR_INVALID,
                           "sysctl \"%.253s\" must have at most %d characters and match regex " PATTERN_REGEX,
                           *patterns, NAME_MAX_LENGTH);
        read_pattern(*patterns, name, &prefix);
        if (owner_of(name) == OWNER_UNKNOWN)
            return err_set(e, ERR_INVALID, "the sysctl%s \"%s%s\" are not known to be namespaced",
                           prefix ? "s" : "", name, prefix ? "*" : "");
    }
    return ERR_OK;
}

/* ---- admission ---- */

static bool is_allowed(const char *name, const char *const *patterns)
{
    for (size_t i = 0; i < ARRAY_LEN(safe); i++)
        if (strcmp(name, safe[i]) == 0)
            return true;
    for (; patterns != NULL && *patterns != NULL; patterns++) {
        char allowed[NAME_MAX_LENGTH + 1];
        bool prefix;

        read_pattern(*patterns, allowed, &prefix);
        if (prefix ? str_starts(name, allowed) : strcmp(name, allowed) == 0)
            return true;
    }
    return false;
}

enum err_code sysctls_admit(const struct api_pod_spec *spec, const char *const *patterns, struct err *e)
{
    for (size_t i = 0; i < spec->security.n_sysctls; i++) {
        char name[NAME_MAX_LENGTH + 1];
        enum owner owner;

        api_sysctl_with_dots(spec->security.sysctls[i].name, name, sizeof(name));
        owner = owner_of(name);
        if (!is_allowed(name, patterns))
            return err_set(e, ERR_PRECONDITION, "forbidden sysctl: \"%s\" not allowlisted", name);
        if (owner == OWNER_IPC && spec->host_ipc)
            return err_set(e, ERR_PRECONDITION, "forbidden sysctl: \"%s\" not allowed with host ipc enabled",
                           name);
        if (owner == OWNER_NET && spec->host_network)
            return err_set(e, ERR_PRECONDITION, "forbidden sysctl: \"%s\" not allowed with host net enabled",
                           name);
    }
    return ERR_OK;
}
