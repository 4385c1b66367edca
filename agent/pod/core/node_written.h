/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_written - the changes of the Node that clients made on a machine without a cluster (kubectl cordon,
 * taint, label, annotate): <state>/node.json, and the resulting labels and taints. It also has the node's uid
 * and the time of its first start.
 *
 * A restart resets the labels of the machine (kubernetes.io/hostname, ...), as with kubelet. Written taints
 * stay until they are changed; a change of registerWithTaints adds and removes the corresponding taints.
 * Kubernetes: pkg/controller/nodelifecycle for the taint of an unschedulable node. Loop thread only.
 */
#ifndef AGENT_POD_CORE_NODE_WRITTEN_H
#define AGENT_POD_CORE_NODE_WRITTEN_H
#include "agent/pod/core/node.h"

#define NODE_WRITTEN_MAX (1024 * 1024) /* of the file; more labels and annotations are refused */
#define NODE_UNSCHEDULABLE "node.kubernetes.io/unschedulable"

/* Reads the file, or begins a new one. A damaged one is set aside and named, and the node is as configured.
 * Out of memory is the only failure. */
enum err_code node_written_open(struct node *n, struct err *e) MUST_CHECK;
void node_written_free(struct node *n);
/* The settings have changed. */
void node_written_refresh(struct node *n);

/* A whole valid Node: what differs from the node's own is kept, durably, and in force. After a failure
 * nothing has changed. */
enum err_code node_written_take(struct node *n, const json_t *object, struct err *e) MUST_CHECK;
/* Adds the written changes, except labels and taints, to the node's object. */
void node_written_show(const struct node *n, json_t *object);

/* The taints in force, with that of an unschedulable node; without those of pressure. Borrowed until the next
 * change. */
const struct api_taint *node_taints(const struct node *n, size_t *ret_n);
json_t *node_taints_json(const struct node *n); /* as in spec.taints: a new list */
/* When the taint with this index was written, wall clock; 0: it comes from the settings, or marks an
 * unschedulable node. */
int64_t node_taint_since_ns(const struct node *n, size_t index);
int64_t node_since_ns(const struct node *n); /* the first start of this node, wall clock */
bool node_is_unschedulable(const struct node *n);
/* The labels that were written: {"key": "value"}, null for one that was taken away; NULL: none. Borrowed. */
const json_t *node_written_labels(const struct node *n);
#endif
