/* SPDX-License-Identifier: Apache-2.0 */
/* Limits how many containers are created at the same time: more than the CPUs can handle only makes each
 * slower. Containers that exceed the limit wait in a queue. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/pod.h"
#include "base/clock.h"

#define CREATE_LIMIT_HOLD_MS 500 /* a create takes 20 to 100 ms of two processors */

/* A create that holds a slot for longer does not use the processor but waits for something that hangs: the
 * others need not wait with it. */
static void create_limit_on_timer(uv_timer_t *timer)
{
    struct node *n = timer->data;
    uint64_t now = clock_mono_ms(), next_ms = CREATE_LIMIT_HOLD_MS;

    pods_each (n, p)
        for (size_t i = 0; i < p->n_ctrs; i++) {
            struct ctr *c = p->ctrs[i];
            struct ctr_own *own = own_of(c);
            uint64_t held_ms = now - own->create_since_ms;
            if (!own->create_held)
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
    struct ctr_own *own = own_of(c);
    struct node *n = c->pod->node;
    struct container_node *part = container_node(n);

    if (own->create_held)
        return true;
    if (part->create_used < part->create_max) {
        part->create_used++;
        own->create_held = true;
        own->create_since_ms = clock_mono_ms();
        return true;
    }
    if (!own->create_waiting) {
        own->create_waiting = true;
        own->create_ctr = c;
        TAILQ_INSERT_TAIL(&part->create_queue, own, create_link);
        if (!uv_is_active((uv_handle_t *)&part->create_timer))
            uv_timer_start(&part->create_timer, create_limit_on_timer, 1, 0);
    }
    return false;
}

void create_limit_release(struct ctr *c)
{
    struct ctr_own *own = own_of(c);
    struct node *n = c->pod->node;
    struct container_node *part = container_node(n);
    struct ctr_own *next;

    if (own->create_waiting) {
        TAILQ_REMOVE(&part->create_queue, own, create_link);
        own->create_waiting = false;
    }
    if (!own->create_held)
        return;
    own->create_held = false;
    part->create_used--;
    next = TAILQ_FIRST(&part->create_queue);
    if (next != NULL) {
        TAILQ_REMOVE(&part->create_queue, next, create_link);
        next->create_waiting = false;
        pod_wake(next->create_ctr->pod, "a create may begin");
    }
}

void create_limit_pump(struct node *n)
{
    struct container_node *part = container_node(n);
    unsigned free_places = part->create_max > part->create_used ? part->create_max - part->create_used : 0;
    struct ctr_own *next;

    while (free_places-- > 0 && (next = TAILQ_FIRST(&part->create_queue)) != NULL) {
        TAILQ_REMOVE(&part->create_queue, next, create_link);
        next->create_waiting = false;
        pod_wake(next->create_ctr->pod, "a create may begin");
    }
}
