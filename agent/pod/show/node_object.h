/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_object - this node as people know one from kubectl: labels, conditions, how much it has.
 * Loop thread only.
 */
#ifndef AGENT_POD_SHOW_NODE_OBJECT_H
#define AGENT_POD_SHOW_NODE_OBJECT_H
#include "agent/pod/core/pod.h"

/*
 * The labels that a kubelet gives its node by itself, and the configured ones, sorted: free() the array, what
 * is in it is borrowed.  NULL: no memory.
 */

/* A v1 Node, new; NULL: no memory.  `not_ready`: why it is not, NULL: it is. */
json_t *node_object(const struct node *n, const char *not_ready);

#endif
