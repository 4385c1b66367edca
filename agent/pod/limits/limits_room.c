/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/limits/internal.h"
#include "agent/pod/limits/limits.h"

static void limits_open(struct node *n)
{
    uv_timer_init(n->o.loop, &limits_node(n)->timer);
    limits_node(n)->timer.data = n;
    isolation_open(n);
    hugepages_open(n);
}

static void limits_free(struct node *n)
{
    isolation_free(n);
    rooms_close_handle(n, (uv_handle_t *)&limits_node(n)->timer);
}

static void limits_step(struct pod *p)
{
    cpusets_step(p);
    isolation_step(p);
}

const struct room limits_room = {
    .id = ROOM_LIMITS,
    .name = "limits",
    .node = { .size = sizeof(struct limits_node), .open = limits_open, .free = limits_free },
    .pod = { .ctr_size = sizeof(struct limits_ctr), .step = limits_step, .free = isolation_pod_freed },
};
