/* SPDX-License-Identifier: Apache-2.0 */
/* images - the images that a pod's containers and image volumes use.  Loop thread only. */
#ifndef AGENT_POD_IMAGE_IMAGES_H
#define AGENT_POD_IMAGE_IMAGES_H
#include "agent/pod/core/pod.h"

extern const struct room image_room;

void images_step(struct pod *p);
void images_secret_changed(struct pod *p, const char *name); /* one of imagePullSecrets: retry now */
struct pod_image *images_find(const struct pod *p, const char *reference);
/* The container's image and those of its volumes are present; otherwise *ret_missing is one that is not
 * (NULL: out of memory). */
bool images_ready(const struct ctr *c, const struct pod_image **ret_missing);
/* Makes p->images match the use by p->ctrs, also as volumes: images still used are kept with their state,
 * pulls of others are cancelled. */
enum err_code images_build(struct pod *p, struct err *e) MUST_CHECK;
void images_clear(struct pod *p); /* likewise, keeping none */
bool images_busy(const struct pod *p);
bool images_free_dropped(
    struct pod_image *i); /* an operation has finished: true if the image is no longer used */
#endif
