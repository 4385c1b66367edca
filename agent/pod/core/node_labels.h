/* SPDX-License-Identifier: Apache-2.0 */
/* node_labels - the labels of every node, and those of the configuration. */
#ifndef AGENT_POD_CORE_NODE_LABELS_H
#define AGENT_POD_CORE_NODE_LABELS_H
#include "agent/pod/core/pod.h"

#include <sys/utsname.h>

enum { NODE_OWN_LABELS = 5 };
extern const char *const node_own_labels[NODE_OWN_LABELS]; /* keys of those that every node has */

/* In force, sorted by key: free() the array, its content is borrowed until the next change. NULL when out of
 * memory. */
struct api_kv *node_labels(const struct node *n, size_t *ret_n);
/* The same without the written changes of the Node (node_written.h). */
struct api_kv *node_labels_configured(const struct node *n, size_t *ret_n);
const char *node_architecture(const struct utsname *u); /* Go's name, as used by Kubernetes, or "" */
#endif
