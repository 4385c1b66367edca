/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_volumes - the volumes of a pod that CSI drivers serve. Each is set up separately, with its own
 * back-off, in parallel with the pod's other volumes; the removal is one operation for all of them. Loop
 * thread only.
 */
#ifndef AGENT_POD_VOLUME_CSI_VOLUMES_H
#define AGENT_POD_VOLUME_CSI_VOLUMES_H
#include "agent/pod/volume/internal.h"

void csi_volumes_open(struct node *n);
void csi_volumes_step(struct pod *p);
bool csi_volumes_ready(const struct pod *p);
/* True: none is left. *ret_kept: some are, and the end of all pods does not wait for them. */
bool csi_volumes_teardown_step(struct pod *p, bool *ret_kept);
bool csi_volumes_busy(const struct pod *p);
void csi_volumes_cancel(struct pod *p);
void csi_volumes_end(struct pod *p); /* its end begins: a removal is tried at once */
void csi_volumes_free(struct pod *p);
void csi_volumes_explain(const struct pod *p, json_t *steps);
bool csi_volumes_use_secret(const struct api_pod *api, const char *name);
/* Objects that their set-up waits for may exist now. A removal waits for the driver only. */
void csi_volumes_retry(struct pod *p);
void csi_removal_retry(struct pod *p); /* a driver is back */
#endif
