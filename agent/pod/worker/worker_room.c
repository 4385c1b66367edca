/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/worker/internal.h"
#include "agent/pod/worker/shutdown.h"
#include "agent/pod/worker/worker.h"

static void worker_open(struct node *n)
{
    struct worker_node *part = worker_node(n);

    TAILQ_INIT(&part->dirty);
    uv_idle_init(n->o.loop, &part->runner);
    uv_timer_init(n->o.loop, &part->left_timer);
    part->runner.data = part->left_timer.data = n;
    shutdown_open(n);
}

static void worker_free(struct node *n)
{
    struct worker_node *part = worker_node(n);

    rooms_close_handle(n, (uv_handle_t *)&part->runner);
    rooms_close_handle(n, (uv_handle_t *)&part->left_timer);
    rooms_close_handle(n, (uv_handle_t *)&part->shutdown.timer);
}

static void worker_forget(struct pod *p)
{
    if (p->dirty_queued)
        TAILQ_REMOVE(&worker_node(p->node)->dirty, p, dirty_link);
}

const struct room worker_room = {
    .id = ROOM_WORKER,
    .name = "worker",
    .node = { .size = sizeof(struct worker_node), .open = worker_open, .free = worker_free },
    .pod = { .free = worker_forget },
};
