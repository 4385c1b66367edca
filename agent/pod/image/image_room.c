/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/image/image_gc.h"
#include "agent/pod/image/images.h"
#include "agent/pod/image/internal.h"

static void image_cancel(struct pod *p)
{
    struct pod_images *part = images_of(p);

    for (size_t i = 0; i < part->n_images; i++)
        if (part->images[i]->bringing)
            op_cancel(&part->images[i]->bring.op);
}

const struct room image_room = {
    .id = ROOM_IMAGE,
    .name = "image",
    .node = { .size = sizeof(struct image_node), .busy = image_gc_busy, .free = image_gc_close },
    .pod = { .size = sizeof(struct pod_images),
             .step = images_step,
             .busy = images_busy,
             .cancel = image_cancel,
             .end = image_cancel, /* nothing is started any more */
             .free = images_clear },
};
