/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images_used - which pods hold an image: what `image rm` refuses, and what the collector passes over.
 * Loop thread only.
 */
#ifndef AGENT_POD_IMAGE_IMAGES_USED_H
#define AGENT_POD_IMAGE_IMAGES_USED_H
#include "agent/pod/core/pod.h"
#include "base/buf.h"

/*
 * A container was made from it, or a pod that is not over has it for a container or a volume.  `pods` (may be
 * NULL) gets "pod default/web, pod default/db", five at most.
 */
bool image_is_used(const struct node *n, const char *id, struct buf *pods);
/* The same pods, all of them: [{"kind", "namespace", "name"}], new. */
json_t *image_users(const struct node *n, const char *id);
#endif
