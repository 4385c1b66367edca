/* explain - the steps and operations that pods and the node are explained with.  Loop thread. */
#ifndef AGENT_POD_EXPLAIN_H
#define AGENT_POD_EXPLAIN_H
#include "agent/pod/pod.h"

/*
 * Appends {"name","state","since","detail","nextTry"}; state: done, running, waiting, failed.  Times are wall
 * clock (ns); 0 leaves one out, as does a next try that is due.  Everything is copied; detail may be NULL.
 */
void explain_step(json_t *steps, const char *name, const char *state, int64_t since_ns, const char *detail,
                  int64_t next_ns);
/* {"name","subject","ageMs"}, a new reference. */
json_t *explain_operation(const struct op *op);
/* A pod: {"pod","uid","state","since","steps","operations"}. */
json_t *explain_json(struct pod *p);
/* The node itself: {"node","state","steps","operations","said":[{"level","last","times","text"}]}. */
json_t *explain_node_json(struct node *n);
void explain_container(const struct ctr *c, json_t *steps); /* explain_container.c */
#endif
