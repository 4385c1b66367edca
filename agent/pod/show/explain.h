/* SPDX-License-Identifier: Apache-2.0 */
/* explain - the steps and operations shown by `coracle explain` for pods and the node. Loop thread. */
#ifndef AGENT_POD_SHOW_EXPLAIN_H
#define AGENT_POD_SHOW_EXPLAIN_H
#include "agent/pod/core/pod.h"

/* {"name","subject","ageMs"}, a new reference. */
json_t *explain_operation(const struct op *op);
/* A pod: {"pod","uid","state","since","why":[text],"steps","operations"}. */
json_t *explain_json(struct pod *p);
/* Why it does not run, or how it ended: texts, the cause first; empty if all is well. A new reference. */
json_t *explain_why_json(const struct pod *p, const json_t *steps);
/* The node itself: {"node","state","steps","operations","said":[{"level","last","times","text"}]}. */
json_t *explain_node_json(struct node *n);
#endif
