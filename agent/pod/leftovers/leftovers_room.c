/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/leftovers/foreign.h"
#include "agent/pod/leftovers/internal.h"
#include "agent/pod/leftovers/mount_watch.h"
#include "agent/pod/leftovers/sweep.h"

static void leftovers_open(struct node *n)
{
    TAILQ_INIT(&leftovers_node(n)->jobs);
}

static bool leftovers_busy(const struct node *n)
{
    return n->sweeps > 0;
}

static void leftovers_cancel(struct node *n)
{
    sweep_cancel(n);
    mount_watch_end(n);
}

const struct room leftovers_room = {
    .id = ROOM_LEFTOVERS,
    .name = "leftovers",
    .node = { .size = sizeof(struct leftovers_node),
              .open = leftovers_open,
              .busy = leftovers_busy,
              .cancel = leftovers_cancel,
              .free = foreign_free,
              .mounts_changed = sweep_mounts_changed },
};
