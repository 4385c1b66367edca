/* SPDX-License-Identifier: Apache-2.0 */
/* node_object - this node as a Node object for kubectl users: labels, conditions, capacity. Loop thread
 * only. */
#ifndef AGENT_POD_SHOW_NODE_OBJECT_H
#define AGENT_POD_SHOW_NODE_OBJECT_H
#include "agent/pod/core/pod.h"

/* The labels that kubelet sets on its node, and the configured ones, sorted: free() the array, its content is
 * borrowed. NULL when out of memory. */

/* A v1 Node, new; NULL when out of memory. `not_ready`: the reason, or NULL if it is ready. */
json_t *node_object(const struct node *n, const char *not_ready);
/* Adds the members that only a cluster needs: images (at most max_images; below 0: all), the port of the
 * node's HTTPS server (0: none), features, annotations. */
void node_object_complete(const struct node *n, json_t *object, int64_t max_images, int64_t port);

#endif
