/* SPDX-License-Identifier: Apache-2.0 */
/* wake - schedules a pod to be reconciled, soon or at a time. The queue itself is the worker's. */
#include "agent/pod/core/pod.h"
#include "base/scope.h"

void pod_wake(struct pod *p)
{
    struct node *n = p->node;

    if (p->freed || p->dirty_queued)
        return;
    p->dirty_queued = true;
    n->upward.queue(p);
}

static void wake_on_timer(struct boot_timer *timer)
{
    pod_wake(container_of(timer, struct pod, timer));
}

void pod_wake_at(struct pod *p, struct boot_time at)
{
    if (clock_boot_is_set(p->timer.at) && !clock_boot_is_before(at, p->timer.at))
        return;
    boot_timer_start(&p->timer, at, wake_on_timer);
}
