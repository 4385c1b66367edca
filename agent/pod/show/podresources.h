/* SPDX-License-Identifier: Apache-2.0 */
/*
 * podresources - which devices, processors and memory pods have, for monitoring: podresources v1 and
 * v1alpha1 on <root>/pod-resources/kubelet.sock, as served by kubelet. For root only; 100 calls a second, 10
 * at once. Loop thread.
 *
 * A pod is listed from the moment in which it has its devices until it is gone or has ended, with its
 * sidecars and regular containers.
 */
#ifndef AGENT_POD_SHOW_PODRESOURCES_H
#define AGENT_POD_SHOW_PODRESOURCES_H
#include "agent/pod/core/pod.h"

/* podresources_begin() is in provider.h: a failed start is tried again. */
void podresources_open(struct node *n);
void podresources_end(struct node *n);
void podresources_close(struct node *n); /* after its end, or without a beginning */
/* Why it cannot be served, if it cannot. */
void podresources_explain(const struct node *n, json_t *steps);
void podresources_metrics(const struct node *n, struct buf *out);
#endif
