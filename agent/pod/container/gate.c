/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many containers are created at the same time: more than the processors can do at once only makes each
 * slower.  Who must wait stands in a queue.
 */
#include "agent/pod/container/container.h"
#include "agent/pod/core/pod.h"
#include "base/clock.h"

#define GATE_HOLD_MS 500 /* a create takes 20 to 100 ms of two processors */

/* Who holds a place for longer does not use the processor but waits for something that hangs: the others need
 * not wait with it. */
static void on_gate_timer(uv_timer_t *timer)
{
    struct node *n = timer->data;
    uint64_t now = clock_mono_ms(), next_ms = GATE_HOLD_MS;
    struct pod *p, *tmp;

    HASH_ITER (hh, n->pods, p, tmp)
        for (size_t i = 0; i < p->n_ctrs; i++) {
            struct ctr *c = &p->ctrs[i];
            uint64_t held_ms = now - c->gate_since_ms;
            if (!c->gate_held)
                continue;
            if (held_ms >= GATE_HOLD_MS)
                ctr_gate_release(c);
            else if (GATE_HOLD_MS - held_ms < next_ms)
                next_ms = GATE_HOLD_MS - held_ms;
        }
    if (!TAILQ_EMPTY(&n->gate_queue))
        uv_timer_start(timer, on_gate_timer, next_ms, 0);
}

void ctr_gate_init(struct node *n)
{
    TAILQ_INIT(&n->gate_queue);
    uv_timer_init(n->o.loop, &n->gate_timer);
    n->gate_timer.data = n;
}

bool ctr_gate_take(struct ctr *c)
{
    struct node *n = c->pod->node;

    if (c->gate_held)
        return true;
    if (n->gate_used < n->gate_max) {
        n->gate_used++;
        c->gate_held = true;
        c->gate_since_ms = clock_mono_ms();
        return true;
    }
    if (!c->gate_waiting) {
        c->gate_waiting = true;
        TAILQ_INSERT_TAIL(&n->gate_queue, c, gate_link);
        if (!uv_is_active((uv_handle_t *)&n->gate_timer))
            uv_timer_start(&n->gate_timer, on_gate_timer, 1, 0);
    }
    return false;
}

void ctr_gate_release(struct ctr *c)
{
    struct node *n = c->pod->node;
    struct ctr *next;

    if (c->gate_waiting) {
        TAILQ_REMOVE(&n->gate_queue, c, gate_link);
        c->gate_waiting = false;
    }
    if (!c->gate_held)
        return;
    c->gate_held = false;
    n->gate_used--;
    next = TAILQ_FIRST(&n->gate_queue);
    if (next != NULL) {
        TAILQ_REMOVE(&n->gate_queue, next, gate_link);
        next->gate_waiting = false;
        pod_wake(next->pod);
    }
}

void ctr_gate_pump(struct node *n)
{
    unsigned free_places = n->gate_max > n->gate_used ? n->gate_max - n->gate_used : 0;
    struct ctr *c;

    while (free_places-- > 0 && (c = TAILQ_FIRST(&n->gate_queue)) != NULL) {
        TAILQ_REMOVE(&n->gate_queue, c, gate_link);
        c->gate_waiting = false;
        pod_wake(c->pod);
    }
}
