/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_node - the CSINode object of this node, and what its CSI drivers add to the Node
 * (pkg/volume/csi/nodeinfomanager). Pure.
 *
 * A driver is an element of the message `drivers`: {"name", "nodeID", "topology": {label: value}, "count"};
 * without `count` it sets no limit. Its entry has the labels' keys in order; an entry that is new or replaced
 * comes last. Labels of a driver that is gone stay on the Node, as with kubelet.
 */
#ifndef AGENT_KUBE_DECIDE_CSI_NODE_H
#define AGENT_KUBE_DECIDE_CSI_NODE_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

/* The body of the POST; NULL when out of memory. */
json_t *csi_node_new(const char *node, const char *node_uid);
bool csi_node_names(const json_t *object, const char *driver); /* it has an entry */
bool csi_node_has(const json_t *object, const json_t *driver); /* its entry says what the driver says */
/* Its entry differs in more than the number of volumes: the apiserver refuses to change that, so the entry
 * has to go before it comes again. */
bool csi_node_clashes(const json_t *object, const json_t *driver);
/* Bodies of PUTs; NULL when out of memory. */
json_t *csi_node_with(const json_t *object, const json_t *driver);
json_t *csi_node_without(const json_t *object, const char *driver);

/*
 * The patch of the Node that gives it the driver's id (in an annotation) and labels: new; empty if it has
 * them. ERR_PRECONDITION: a label has another value, which kubelet refuses, too; in its words.
 * ERR_EXHAUSTED: no memory.
 */
enum err_code csi_node_metadata(const json_t *node, const json_t *driver, json_t **ret,
                                struct err *e) MUST_CHECK;
/* The patch that takes the id away. NULL: the Node does not have it, or out of memory. */
json_t *csi_node_metadata_without(const json_t *node, const char *driver);
#endif
