/* SPDX-License-Identifier: Apache-2.0 */
/* Limits how many containers are created at the same time: more than the CPUs can handle only makes each
 * slower. Containers that exceed the limit wait in a queue. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/pod.h"
#include "base/clock.h"

#define CREATE_LIMIT_HOLD_MS 500 /* a create takes 20 to 100 ms of two processors */

/* Who holds a place for longer does not use the processor but waits for something that hangs: the others need
 * not wait with it. */
static void create_limit_on_timer(uv_timer_t *timer)
{
    struct node *n = timer->data;
    uint64_t now = clock_mono_ms(), next_ms = CREATE_LIMIT_HOLD_MS;

    pods_each (n, p)
        for (size_t i = 0; i < p->n_ctrs; i++) {
            struct ctr *c = &p->ctrs[i];
            uint64_t held_ms = now - c->create_since_ms;
            if (!c->create_held)
                continue;
            if (held_ms >= CREATE_LIMIT_HOLD_MS)
                create_limit_release(c);
            else if (CREATE_LIMIT_HOLD_MS - held_ms < next_ms)
                next_ms = CREATE_LIMIT_HOLD_MS - held_ms;
        }
    if (!TAILQ_EMPTY(&container_node(n)->create_queue))
        uv_timer_start(timer, create_limit_on_timer, next_ms, 0);
}

void create_limit_init(struct node *n)
{
    struct container_node *part = container_node(n);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    part->create_max =
        cpus > 2 ? (unsigned)cpus * 2 : 4; /* pods start side by side, bounded by the processors */
    TAILQ_INIT(&part->create_queue);
    uv_timer_init(n->o.loop, &part->create_timer);
    part->create_timer.data = n;
}

bool create_limit_take(struct ctr *c)
{
    struct node *n = c->pod->node;
    struct container_node *part = container_node(n);

    if (c->create_held)
        return true;
    if (part->create_used < part->create_max) {
        part->create_used++;
        c->create_held = true;
        c->create_since_ms = clock_mono_ms();
        return true;
    }
    if (!c->create_waiting) {
        c->create_waiting = true;
        TAILQ_INSERT_TAIL(&part->create_queue, c, create_link);
        if (!uv_is_active((uv_handle_t *)&part->create_timer))
            uv_timer_start(&part->create_timer, create_limit_on_timer, 1, 0);
    }
    return false;
}

void create_limit_release(struct ctr *c)
{
    struct node *n = c->pod->node;
    struct container_node *part = container_node(n);
    struct ctr *next;

    if (c->create_waiting) {
        TAILQ_REMOVE(&part->create_queue, c, create_link);
        c->create_waiting = false;
    }
    if (!c->create_held)
        return;
    c->create_held = false;
    part->create_used--;
    next = TAILQ_FIRST(&part->create_queue);
    if (next != NULL) {
        TAILQ_REMOVE(&part->create_queue, next, create_link);
        next->create_waiting = false;
        pod_wake(next->pod, "a create may begin");
    }
}

void create_limit_pump(struct node *n)
{
    struct container_node *part = container_node(n);
    unsigned free_places = part->create_max > part->create_used ? part->create_max - part->create_used : 0;
    struct ctr *c;

    while (free_places-- > 0 && (c = TAILQ_FIRST(&part->create_queue)) != NULL) {
        TAILQ_REMOVE(&part->create_queue, c, create_link);
        c->create_waiting = false;
        pod_wake(c->pod, "a create may begin");
    }
}
