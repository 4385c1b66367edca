/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/record/internal.h"
#include "agent/pod/record/record_save.h"

static void record_open(struct node *n)
{
    struct record_node *part = record_node(n);

    TAILQ_INIT(&part->unsynced);
    uv_timer_init(n->o.loop, &part->timer);
    part->timer.data = n;
}

static bool record_busy(const struct node *n)
{
    return record_node(n)->syncing;
}

static void record_free(struct node *n)
{
    rooms_close_handle(n, (uv_handle_t *)&record_node(n)->timer);
}

const struct room record_room = {
    .id = ROOM_RECORD,
    .name = "record",
    .node = { .size = sizeof(struct record_node),
              .open = record_open,
              .busy = record_busy,
              .free = record_free },
    .pod = { .free = record_sync_forget },
};
