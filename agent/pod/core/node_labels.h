/* SPDX-License-Identifier: Apache-2.0 */
/* node_labels - the labels of every node, and those of the configuration. */
#ifndef AGENT_POD_CORE_NODE_LABELS_H
#define AGENT_POD_CORE_NODE_LABELS_H
#include "agent/pod/core/pod.h"

#include <sys/utsname.h>

struct api_kv *node_labels(const struct node *n, size_t *ret_n);
const char *node_architecture(const struct utsname *u); /* Go's name, as used by Kubernetes, or "" */
#endif
