/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_right - may this pod use an image that is here without asking its registry?
 *
 * Kubelet's imagePullCredentialsVerificationPolicy (agent/image/image_access.c has the rules): what was
 * pulled with the secret of another pod has to be pulled, which shows the right to it, also where the policy
 * is IfNotPresent; with Never it counts as not present.  Loop thread only.
 */
#ifndef AGENT_POD_IMAGE_IMAGE_RIGHT_H
#define AGENT_POD_IMAGE_IMAGE_RIGHT_H
#include "agent/pod/core/pod.h"

/* i->right says it, or i->checking: the pod is woken when it is known.  `name`: normalised, of an image that
 * is here. */
void image_right_look(struct pod_image *i, const struct img_image *image, const char *name);
#endif
