/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities of a container: the default set of containerd and CRI-O, then add and drop. */
#include "agent/runtime/spec/internal.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* By number; the kernel's linux/capability.h. */
static const char *const cap_names[] = {
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
};
_Static_assert(ARRAY_LEN(cap_names) == 41,
               "one name for each capability up to CHECKPOINT_RESTORE (Linux 5.9)");

static uint64_t default_caps(void)
{
    return RT_CAP_BIT(CAP_CHOWN) | RT_CAP_BIT(CAP_DAC_OVERRIDE) | RT_CAP_BIT(CAP_FSETID) |
           RT_CAP_BIT(CAP_FOWNER) | RT_CAP_BIT(CAP_MKNOD) | RT_CAP_BIT(CAP_NET_RAW) | RT_CAP_BIT(CAP_SETGID) |
           RT_CAP_BIT(CAP_SETUID) | RT_CAP_BIT(CAP_SETFCAP) | RT_CAP_BIT(CAP_SETPCAP) |
           RT_CAP_BIT(CAP_NET_BIND_SERVICE) | RT_CAP_BIT(CAP_SYS_CHROOT) | RT_CAP_BIT(CAP_KILL) |
           RT_CAP_BIT(CAP_AUDIT_WRITE);
}

int rt_cap_number(const char *name)
{
    size_t i;

    if (strncasecmp(name, "CAP_", 4) == 0)
        name += 4;
    for (i = 0; i < ARRAY_LEN(cap_names); i++)
        if (strcasecmp(name, cap_names[i]) == 0)
            return (int)i;
    return -1;
}

static bool is_all(const char *name)
{
    return strcasecmp(name, "ALL") == 0 || strcasecmp(name, "CAP_ALL") == 0;
}

/* The single capabilities of a list as a mask; ALL only sets *ret_all. */
static enum err_code read_list(const struct api_strs *list, uint64_t *ret, bool *ret_all, struct err *e)
{
    size_t i;

    for (i = 0; i < list->n; i++) {
        int number = rt_cap_number(list->v[i]);

        if (is_all(list->v[i]))
            *ret_all = true;
        else if (number < 0)
            return err_set(e, ERR_UNIMPLEMENTED, "unknown capability \"%.64s\"", list->v[i]);
        else
            *ret |= RT_CAP_BIT(number);
    }
    return ERR_OK;
}

/* containerd's order: ALL in add, ALL in drop, single ones added, single ones dropped. ALL (and privileged)
 * means the agent's own set, because the agent cannot grant more. */
enum err_code rt_caps_resolve(const struct rt_host *host, const struct api_security *s, uint64_t *ret,
                              struct err *e)
{
    uint64_t caps = default_caps(), add = 0, drop = 0;
    bool add_all = false, drop_all = false;

    if (s != NULL && s->has_privileged && s->privileged) {
        *ret = host->own_caps;
        return ERR_OK;
    }
    if (s != NULL && (read_list(&s->caps_add, &add, &add_all, e) != ERR_OK ||
                      read_list(&s->caps_drop, &drop, &drop_all, e) != ERR_OK))
        return e->code;
    if (add_all)
        caps = host->own_caps;
    if (drop_all)
        caps = 0;
    *ret = (caps | add) & ~drop;
    return ERR_OK;
}

json_t *rt_caps_names(uint64_t caps)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; list != NULL && i < ARRAY_LEN(cap_names); i++) {
        char name[32];

        if ((caps & RT_CAP_BIT(i)) == 0)
            continue;
        snprintf(name, sizeof(name), "CAP_%s", cap_names[i]);
        if (json_array_append_new(list, json_string(name)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
