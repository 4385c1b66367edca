/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_node - the CSINode object of this node, and the data of its CSI drivers in the Node
 * (pkg/volume/csi/nodeinfomanager). Pure.
 *
 * A driver is an element of the message `drivers`: {"name", "nodeID", "topology": {label: value}, "count"};
 * without `count` it sets no limit. Its entry has the labels' keys in order; a new or replaced entry is the
 * last one. Labels of a removed driver stay on the Node, as with kubelet.
 */
#ifndef AGENT_KUBE_DECIDE_CSI_NODE_H
#define AGENT_KUBE_DECIDE_CSI_NODE_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

/* The body of the POST; NULL when out of memory. */
json_t *csi_node_new(const char *node, const char *node_uid);
bool csi_node_names(const json_t *object, const char *driver); /* it has an entry */
bool csi_node_has(const json_t *object, const json_t *driver); /* its entry matches the driver's data */
/* Its entry differs in more than the number of volumes: the apiserver refuses this change, so the entry must
 * be removed before it is added again. */
bool csi_node_clashes(const json_t *object, const json_t *driver);
/* Bodies of PUTs; NULL when out of memory. */
json_t *csi_node_with(const json_t *object, const json_t *driver);
json_t *csi_node_without(const json_t *object, const char *driver);

/*
 * The patch that adds the driver's id (in an annotation) and labels to the Node: new; empty if it already has
 * them. ERR_PRECONDITION, in kubelet's words: a label has another value, which kubelet refuses as well.
 * ERR_EXHAUSTED: no memory.
 */
enum err_code csi_node_metadata(const json_t *node, const json_t *driver, json_t **ret,
                                struct err *e) MUST_CHECK;
/* The patch that takes the id away. NULL: the Node does not have it, or out of memory. */
json_t *csi_node_metadata_without(const json_t *node, const char *driver);
#endif
