/* SPDX-License-Identifier: Apache-2.0 */
/* explain - the steps and operations shown by `coracle explain` for pods and the node. Loop thread. */
#ifndef AGENT_POD_SHOW_EXPLAIN_H
#define AGENT_POD_SHOW_EXPLAIN_H
#include "agent/pod/core/pod.h"

/* {"name","subject","ageMs"}, a new reference. */
json_t *explain_operation(const struct op *op);
/* A pod: {"pod","uid","state","since","steps","operations"}. */
json_t *explain_json(struct pod *p);
/* The node itself: {"node","state","steps","operations","said":[{"level","last","times","text"}]}. */
json_t *explain_node_json(struct node *n);
#endif
