/* SPDX-License-Identifier: Apache-2.0 */
/* images_used - which pods use an image: `image rm` refuses to remove those, and the garbage collector skips
 * them. Loop thread only. */
#ifndef AGENT_POD_IMAGE_IMAGES_USED_H
#define AGENT_POD_IMAGE_IMAGES_USED_H
#include "agent/pod/core/pod.h"
#include "base/buf.h"

/* A container was made from it, or an unfinished pod has it for a container or a volume. `pods` (may be NULL)
 * gets "pod default/web, pod default/db", at most five. */
bool image_is_used(const struct node *n, const char *id, struct buf *pods);
/* All of these pods: [{"kind", "namespace", "name"}], new. */
json_t *image_users(const struct node *n, const char *id);
#endif
