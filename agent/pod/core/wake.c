/* SPDX-License-Identifier: Apache-2.0 */
/* wake - a pod is to be looked at, soon or at a time.  The queue itself is the worker's. */
#include "agent/pod/core/pod.h"
#include "base/clock.h"

void pod_wake(struct pod *p)
{
    struct node *n = p->node;

    if (p->freed || p->dirty_queued)
        return;
    p->dirty_queued = true;
    n->upward.queue(p);
}

static void wake_on_timer(uv_timer_t *timer)
{
    struct pod *p = timer->data;

    pod_wake(p);
}

void pod_wake_at(struct pod *p, int64_t at_ns)
{
    int64_t in_ms = (at_ns - clock_wall_ns()) / 1000000 + 1;
    uint64_t ms = in_ms > 0 ? (uint64_t)in_ms : 0;

    if (ms > 24 * 3600 * 1000)
        ms = 24 * 3600 * 1000; /* a clock that was set back must not strand the pod: look again once a day */
    if (uv_is_active((uv_handle_t *)&p->timer) && uv_timer_get_due_in(&p->timer) <= ms)
        return;
    uv_timer_start(&p->timer, wake_on_timer, ms, 0);
}
