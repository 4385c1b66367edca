/* SPDX-License-Identifier: Apache-2.0 */
/* wake - schedules a pod to be reconciled, soon or at a time. The queue itself is the worker's. */
#include "agent/pod/core/pod.h"
#include "base/scope.h"

void pod_wake(struct pod *p, const char *why)
{
    struct node *n = p->node;

    if (p->freed || p->dirty_queued)
        return;
    p->dirty_queued = true;
    p->woken_why = why;
    n->upward.queue(p);
}

static void wake_on_timer(struct boot_timer *timer)
{
    struct pod *p = container_of(timer, struct pod, timer);

    pod_wake(p, p->timer_why);
}

void pod_wake_at(struct pod *p, struct boot_time at, const char *why)
{
    if (clock_boot_is_set(p->timer.at) && !clock_boot_is_before(at, p->timer.at))
        return;
    p->timer_why = why;
    boot_timer_start(&p->timer, at, wake_on_timer);
}
