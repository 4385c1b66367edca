/*
 * Resource limits (setrlimit) of a container's processes: those that the agent has for its own work, or that
 * depend on who started it, are the same on every node.  Never above the agent's own hard limits, because the
 * runtime may not be able to raise them (no CAP_SYS_RESOURCE; a further process in a user namespace).
 *
 *     open files     1024, up to 524288   systemd's for services (DefaultLimitNOFILE=), and so what
 * containerd 2 leaves to its containers: older programs use select() or close every possible descriptor, the
 * others raise it themselves locked memory  8 MiB                the kernel's default since 5.16
 *
 * All others are the agent's, that is systemd's defaults, but no core files and any number of processes
 * (coracle.service; the cgroup's pids.max counts them).
 */
#include "agent/runtime/container_internal.h"

#include <sys/resource.h>

static const struct limit {
    const char *type;
    __rlimit_resource_t resource;
    rlim_t soft, hard;
} limits[] = {
    { "RLIMIT_NOFILE", RLIMIT_NOFILE, 1024, 524288 },
    { "RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, 8 << 20, 8 << 20 },
};

json_t *rt_limits_build(void)
{
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < ARRAY_LEN(limits); i++) {
        struct rlimit own = { .rlim_max = 0 };
        rlim_t soft = limits[i].soft, hard = limits[i].hard;

        if (getrlimit(limits[i].resource, &own) != 0)
            continue;
        hard = hard < own.rlim_max ? hard : own.rlim_max;
        soft = soft < hard ? soft : hard;
        if (json_array_append_new(list, json_pack("{s:s,s:I,s:I}", "type", limits[i].type, "soft",
                                                  (json_int_t)soft, "hard", (json_int_t)hard)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
