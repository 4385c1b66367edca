/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage_volumes - the volumes of a pod that the node mounts itself (nfs, iscsi, fc, local) or a FlexVolume
 * driver does, given in the pod or by a claim. Each is mounted in a separate child process with its own
 * back-off, so that a dead server delays only its own pods; all are unmounted in one child. Loop thread only.
 */
#ifndef AGENT_POD_VOLUME_STORAGE_VOLUMES_H
#define AGENT_POD_VOLUME_STORAGE_VOLUMES_H
#include "agent/pod/volume/internal.h"

void storage_volumes_open(struct node *n);
bool storage_volumes_node_busy(const struct node *n);
void storage_volumes_node_free(struct node *n);
void storage_volumes_step(struct pod *p); /* once its claims were taken */
bool storage_volumes_ready(const struct pod *p);
/* True: none is left. *ret_kept: some are, and the end of all pods does not wait for them. */
bool storage_volumes_teardown_step(struct pod *p, bool *ret_kept);
bool storage_volumes_working(const struct pod *p); /* mounts, expands or unmounts some */
bool storage_volumes_busy(const struct pod *p);    /* or measures one */
bool storage_cancel_mounts(struct pod *p);         /* true: some were under way, and still are */
void storage_volumes_cancel(struct pod *p);
void storage_volumes_end(struct pod *p); /* its end begins: a removal is tried at once */
void storage_volumes_free(struct pod *p);
void storage_volumes_explain(const struct pod *p, json_t *steps);
bool storage_volumes_use_secret(const struct api_pod *api, const char *name);
void storage_volumes_retry(struct pod *p); /* objects that they wait for may exist now */
#endif
