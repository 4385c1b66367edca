/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/node_options.h"
#include "agent/pod/worker/shutdown.h"

/* migrateConfig() in kubelet. */
size_t shutdown_plan_simple(uint64_t whole_ms, uint64_t critical_ms, struct node_shutdown_group ret[2])
{
    if (whole_ms == 0 || critical_ms > whole_ms)
        return 0;
    ret[0] = (struct node_shutdown_group){ .priority = 0, .grace_ms = whole_ms - critical_ms };
    ret[1] = (struct node_shutdown_group){ .priority = SHUTDOWN_CRITICAL_PRIORITY, .grace_ms = critical_ms };
    return 2;
}

size_t shutdown_plan_find(const struct node_shutdown_group *groups, size_t n, int32_t priority)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        if (groups[i].priority <= priority)
            found = i;
    return found;
}

int64_t shutdown_plan_grace(const struct node_shutdown_group *group, int64_t own_seconds)
{
    int64_t most = (int64_t)(group->grace_ms / 1000); /* in whole seconds, as in kubelet */

    if (own_seconds < 0)
        own_seconds = 1; /* the API's rule */
    return own_seconds < most ? own_seconds : most;
}

uint64_t shutdown_plan_wait_ms(const struct node_shutdown_group *group)
{
    uint64_t period = group->grace_ms / 1000 * 1000;

    return (period > SHUTDOWN_GRACE_MIN_MS ? period : SHUTDOWN_GRACE_MIN_MS) + SHUTDOWN_SLACK_MS;
}

uint64_t shutdown_plan_total_ms(const struct node_shutdown_group *groups, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += shutdown_plan_wait_ms(&groups[i]);
    return sum;
}
