/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/usage/internal.h"
#include "agent/pod/usage/local_storage.h"
#include "agent/pod/usage/oom.h"
#include "agent/pod/usage/scrape.h"
#include "agent/pod/usage/storage_usage.h"
#include "agent/pod/usage/usage.h"

static void usage_room_open(struct node *n)
{
    oom_open(n);
    local_quota_open(n);
}

static void usage_room_cancel(struct node *n)
{
    usage_cancel(n);
    scrapes_cancel(n);
}

static void usage_room_free(struct node *n)
{
    scrapes_close(n);
    usage_close(n);
    oom_close(n);
    storage_usage_close(n);
    local_storage_close(n);
}

const struct room usage_room = {
    .id = ROOM_USAGE,
    .name = "usage",
    .node = { .size = sizeof(struct usage_node),
              .open = usage_room_open,
              .busy = local_storage_busy,
              .cancel = usage_room_cancel,
              .free = usage_room_free },
    .pod = { .size = sizeof(struct usage_pod),
             .step = local_storage_step,
             .end = local_storage_rest,
             .reset = local_storage_forget,
             .free = local_storage_forget },
};
