/* SPDX-License-Identifier: Apache-2.0 */
/* What image keeps of the node and of a pod for itself. */
#ifndef AGENT_POD_IMAGE_INTERNAL_H
#define AGENT_POD_IMAGE_INTERNAL_H
#include "agent/pod/core/pod.h"
#include "agent/pod/image/images.h"

struct image_node {
    struct image_gc *gc; /* image_gc.h */
};

static inline struct image_node *image_node(const struct node *n)
{
    return n->parts[ROOM_IMAGE];
}
struct pod_images {
    struct pod_image **images; /* each its own memory: an edit keeps those that stay */
    size_t n_images;
    unsigned images_dropped; /* of which a bring is still under way */
};

static inline struct pod_images *images_of(const struct pod *p)
{
    return p->parts[ROOM_IMAGE];
}

void image_set_right(struct pod_image *i, enum image_right right); /* the only way to change it */
#endif
