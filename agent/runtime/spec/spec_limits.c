/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource limits (setrlimit) of a container's processes: equal on every node, however the agent was started.
 *
 * Limits that differ from the agent's own are in the spec. They never exceed the agent's hard limits, because
 * the runtime may not be able to raise them (no CAP_SYS_RESOURCE; an exec in a user namespace); the agent
 * first raises its own if it can. Open files: systemd's for services (DefaultLimitNOFILE=), like containers
 * of containerd 2: older programs use select() or close every possible descriptor, and newer programs raise
 * the limit themselves. Locked memory: the kernel's default since 5.16.
 *
 * The others are inherited: the agent sets its own to the kernel's defaults, except no core files unless a
 * process wants them (the agent's would put Secrets on disk) and an unlimited number of processes (the
 * cgroup's pids.max limits them).
 */
#include "agent/runtime/spec/internal.h"

#include <sys/resource.h>

static const struct limit {
    const char *type; /* in the spec; NULL: the agent's own */
    __rlimit_resource_t resource;
    rlim_t soft, hard;
} limits[] = {
    { "RLIMIT_NOFILE", RLIMIT_NOFILE, 1024, 524288 },
    { "RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, 8 << 20, 8 << 20 },
    { NULL, RLIMIT_CORE, 0, RLIM_INFINITY },
    { NULL, RLIMIT_NPROC, RLIM_INFINITY, RLIM_INFINITY },
    { NULL, RLIMIT_STACK, 8 << 20, RLIM_INFINITY },
    { NULL, RLIMIT_CPU, RLIM_INFINITY, RLIM_INFINITY },
    { NULL, RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY },
    { NULL, RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY },
    { NULL, RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY },
    { NULL, RLIMIT_LOCKS, RLIM_INFINITY, RLIM_INFINITY },
};

void rt_limits_own(void)
{
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        const struct limit *l = &limits[i];
        struct rlimit own, wanted;

        if (getrlimit(l->resource, &own) != 0)
            continue;
        wanted = own;
        if (wanted.rlim_max < l->hard)
            wanted.rlim_max = l->hard;
        if (l->type == NULL)
            wanted = (struct rlimit){ .rlim_cur = l->soft, .rlim_max = l->hard };
        if (setrlimit(l->resource, &wanted) == 0 || l->type != NULL)
            continue;
        /* It cannot be raised: use the maximum. */
        wanted.rlim_max = own.rlim_max;
        wanted.rlim_cur = l->soft < own.rlim_max ? l->soft : own.rlim_max;
        setrlimit(l->resource, &wanted);
    }
}

json_t *rt_limits_build(void)
{
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < ARRAY_LEN(limits); i++) {
        struct rlimit own = { .rlim_max = 0 };
        rlim_t soft = limits[i].soft, hard = limits[i].hard;

        if (limits[i].type == NULL || getrlimit(limits[i].resource, &own) != 0)
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
