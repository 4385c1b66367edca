/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_mount - an image as a volume: its tree mounted read-only, without devices and setuid, on a folder of
 * the pod's.  As with containerd and CRI-O its programs can be run.  The mount says itself which image it is
 * (its source in mountinfo is the image's id), so nothing has to be remembered over a restart of the agent.
 */
#ifndef AGENT_RUNTIME_IMAGE_MOUNT_H
#define AGENT_RUNTIME_IMAGE_MOUNT_H
#include "agent/image/image.h"

#include "base/presence.h"

/*
 * Makes the folder `target` and mounts the image there; what is mounted already stays, whichever image it is.
 * Several processes may do that at a time: one is first.  userns: path of the pod's user namespace, whose
 * users the tree is mapped to; NULL: the host's.  For a child process: it blocks and changes its working
 * directory.
 */
enum err_code img_mount(const struct img_image *image, const char *userns, const char *target,
                        struct err *e) MUST_CHECK;

#define IMG_ID_SIZE 72 /* "sha256:", 64 digits, NUL */
/* Which image is mounted on `target`. */
struct presence img_mounted(const char *target, char ret_id[IMG_ID_SIZE], struct err *e) MUST_CHECK;
#endif
