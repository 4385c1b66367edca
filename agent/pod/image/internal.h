/* SPDX-License-Identifier: Apache-2.0 */
/* What image keeps of the node for itself. */
#ifndef AGENT_POD_IMAGE_INTERNAL_H
#define AGENT_POD_IMAGE_INTERNAL_H
#include "agent/pod/core/pod.h"

struct image_node {
    struct image_gc *gc; /* image_gc.h */
};

static inline struct image_node *image_node(const struct node *n)
{
    return n->parts[ROOM_IMAGE];
}
#endif
