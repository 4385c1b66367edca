/* SPDX-License-Identifier: Apache-2.0 */
/* explain - the steps and operations shown by `coracle explain` for pods and the node. Loop thread. */
#ifndef AGENT_POD_SHOW_EXPLAIN_H
#define AGENT_POD_SHOW_EXPLAIN_H
#include "agent/pod/core/pod.h"

/* Appends {"name","state","since","detail","nextTry"}; state: done, running, waiting, failed. Times are wall
 * clock (ns); 0 leaves one out, as does a next try that is due. Everything is copied; detail may be NULL. */
/* {"name","subject","ageMs"}, a new reference. */
json_t *explain_operation(const struct op *op);
/* A pod: {"pod","uid","state","since","steps","operations"}. */
json_t *explain_json(struct pod *p);
/* The node itself: {"node","state","steps","operations","said":[{"level","last","times","text"}]}. */
json_t *explain_node_json(struct node *n);
void explain_container(const struct ctr *c, json_t *steps); /* explain_container.c */
#endif
