/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/events.h"
#include "agent/pod/core/internal.h"

static void core_open(struct node *n)
{
    TAILQ_INIT(&core_node(n)->events);
}

const struct room core_room = {
    .id = ROOM_CORE,
    .name = "core",
    .node = { .size = sizeof(struct core_node), .open = core_open, .free = events_free },
};
