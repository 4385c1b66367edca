/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_merge - the desired Node object (pkg/kubelet/kubelet_node_status.go, pkg/util/node/node.go).
 * Pure.
 *
 * The daemon's object contains metadata (labels, annotations), spec and status of the node. The apiserver's
 * object has several writers: conditions and extended resources of others stay, and so do volumesAttached,
 * labels and taints after the registration.
 */
#ifndef AGENT_KUBE_DECIDE_NODE_MERGE_H
#define AGENT_KUBE_DECIDE_NODE_MERGE_H
#include <jansson.h>
#include <stdbool.h>

/* Whether a node may set this label on itself (plugin/pkg/admission/noderestriction,
 * k8s.io/kubelet/pkg/apis). */
bool node_label_is_allowed(const char *key);

/* The body of the POST: labels, annotations, taints and providerID at registration only. `config`: the
 * message `config`; `now`: RFC 3339. New; NULL when out of memory. */
json_t *node_registration(const json_t *ours, const json_t *config, const char *now);

/* The status to reach; heartbeats are `now`, lastTransitionTime is that of the apiserver while the status of
 * the condition is. New; NULL when out of memory. */
json_t *node_status_merge(const json_t *theirs, const json_t *ours, const char *now);
/* Something other than a heartbeat differs. */
bool node_status_differs(const json_t *theirs_status, const json_t *status);
/* A difference that the scheduler or people wait for: all but images. */
bool node_status_is_urgent(const json_t *theirs_status, const json_t *status);

/* The body of the PATCH on nodes/<name>/status. Changed addresses replace the list (`$patch: replace`): their
 * merge key is not unique. `reconcile`: sets the labels and annotations of every kubelet again, as after a
 * registration of an existing Node. New; empty if nothing differs; NULL when out of memory. */
json_t *node_status_patch(const json_t *theirs, const json_t *ours, const json_t *status, bool reconcile);
#endif
