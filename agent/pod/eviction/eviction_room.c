/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/eviction/internal.h"

const struct room eviction_room = {
    .id = ROOM_EVICTION,
    .name = "eviction",
    .node = { .size = sizeof(struct eviction_node) },
};
