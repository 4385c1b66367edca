/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/project/internal.h"

static void project_open(struct node *n)
{
    pool_open(n);
}

static bool project_node_busy(const struct node *n)
{
    return project_node(n)->busy;
}

static void project_free(struct node *n)
{
    pool_close(n);
    index_clear(project_node(n));
    places_close(project_node(n));
}

const struct room project_room = {
    .id = ROOM_PROJECT,
    .name = "project",
    .node = { .size = sizeof(struct project_node),
              .open = project_open,
              .busy = project_node_busy,
              .cancel = pool_cancel,
              .free = project_free },
    .pod = { .size = sizeof(struct project_pod),
             .ctr_size = sizeof(struct project_ctr),
             .step = ask_step,
             .busy = project_working,
             .knows = ask_knows,
             .end = ask_end,
             .reset = ask_reset,
             .free = ask_end },
};
