/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease - the node's Lease, which keeps the node alive for the control plane
 * (staging/src/k8s.io/component-helpers/apimachinery/lease/controller.go).
 *
 * It is renewed every quarter of its duration (with up to 4% jitter) by a PUT of the copy from before. A
 * conflict is answered by a GET and another PUT, at most LEASE_TRIES in a row; where there is no Lease it is
 * created, owned by the Node, which must exist. Failures: back-off 200 ms, doubled up to 7 s.
 */
#ifndef AGENT_KUBE_SYNC_LEASE_H
#define AGENT_KUBE_SYNC_LEASE_H
#include <jansson.h>
#include <stdint.h>

#define LEASE_TRIES 5
#define LEASE_NAMESPACE "kube-node-lease"
#define LEASE_SECONDS 40 /* nodeLeaseDurationSeconds */

/* The Lease to send: `before` renewed, or (NULL) a new one. New; NULL when out of memory. */
json_t *lease_renewed(const json_t *before, const char *node, const char *node_uid, int seconds,
                      int64_t now_ns);
#endif
