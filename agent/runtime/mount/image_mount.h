/* SPDX-License-Identifier: Apache-2.0 */
/* image_mount - an image as a volume: its tree mounted read-only, without devices and setuid, on a folder of
 * the pod. As in containerd and CRI-O, its programs can be executed. The mount itself records its image (the
 * source in mountinfo is the image's id), so no other record is needed across a restart of the agent. */
#ifndef AGENT_RUNTIME_MOUNT_IMAGE_MOUNT_H
#define AGENT_RUNTIME_MOUNT_IMAGE_MOUNT_H
#include "agent/image/image.h"

#include "base/presence.h"

/*
 * Creates the folder `target` and mounts the image there; an existing mount is kept, whatever its image. May
 * be called by several processes at once: one of them mounts. userns: path of the pod's user namespace, to
 * whose users the tree is mapped; NULL: the host's. For a child process: it blocks and changes its working
 * directory.
 */
enum err_code img_mount(const struct img_image *image, const char *userns, const char *target,
                        struct err *e) MUST_CHECK;

#define IMG_ID_SIZE 72 /* "sha256:", 64 digits, NUL */
/* The image mounted on `target`. */
struct presence img_mounted(const char *target, char ret_id[IMG_ID_SIZE], struct err *e) MUST_CHECK;
#endif
