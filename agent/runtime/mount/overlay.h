/* SPDX-License-Identifier: Apache-2.0 */
/* overlay - the layers of an image as one tree: writable for a container's root, read-only for an image
 * volume. For a child process that may block; it changes the process' working directory. */
#ifndef AGENT_RUNTIME_MOUNT_OVERLAY_H
#define AGENT_RUNTIME_MOUNT_OVERLAY_H
#include "agent/image/image.h"

#define OVERLAY_LAYERS_MAX 500 /* the kernel's OVL_MAX_STACK */

struct overlay {
    const struct img_strs *dirs; /* lowest first; at most OVERLAY_LAYERS_MAX */
    const char *writable_dir;    /* its folders upper and work are created; NULL: read-only */
    const char *source;          /* the mount's source in mountinfo */
    int userns_fd;               /* the tree is mapped to that namespace's users; -1: not mapped */
};

/* Mounts the tree on the folder `target`. A read-only mount has no devices and no setuid, and its folder must
 * be empty. ERR_UNIMPLEMENTED: it cannot be mapped; ERR_NOT_FOUND: no layers, or too many. */
enum err_code overlay_mount(const struct overlay *o, const char *target, struct err *e) MUST_CHECK;
#endif
