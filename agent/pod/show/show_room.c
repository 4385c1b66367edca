/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/internal.h"
#include "agent/pod/show/podresources.h"
#include "agent/pod/show/provider.h"

static void show_open(struct node *n)
{
    struct show_node *part = show_node(n);

    TAILQ_INIT(&part->imports);
    TAILQ_INIT(&part->image_tasks);
    TAILQ_INIT(&part->execs);
    TAILQ_INIT(&part->writes);
    provider_init(n);
    podresources_open(n);
}

static void show_cancel(struct node *n)
{
    provider_cancel(n);
    podresources_end(n);
}

/* A node that did not open was not cancelled. */
static void show_free(struct node *n)
{
    podresources_end(n);
    podresources_close(n);
}

const struct room show_room = {
    .id = ROOM_SHOW,
    .name = "show",
    .node = { .size = sizeof(struct show_node),
              .open = show_open,
              .busy = provider_busy,
              .cancel = show_cancel,
              .free = show_free },
};
