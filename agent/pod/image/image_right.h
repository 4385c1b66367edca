/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_right - whether a pod may use a present image without asking its registry.
 *
 * Kubelet's imagePullCredentialsVerificationPolicy (see agent/image/image_access.c for the rules): an image
 * pulled with another pod's secret must be pulled again to prove access, even with the policy IfNotPresent;
 * with Never it is treated as not present. Loop thread only.
 */
#ifndef AGENT_POD_IMAGE_IMAGE_RIGHT_H
#define AGENT_POD_IMAGE_IMAGE_RIGHT_H
#include "agent/pod/image/images.h"

/* The result is in i->right, or i->checking: the pod is woken when it is known. `name`: normalised, of a
 * present image. */
void image_right_look(struct pod_image *i, const struct img_image *image, const char *name);
#endif
