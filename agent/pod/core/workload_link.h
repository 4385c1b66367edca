/* SPDX-License-Identifier: Apache-2.0 */
/* workload_link - the notifications from pods to the workloads that created them; agent/workload sets it, and
 * the rooms do not depend on workloads otherwise. Loop thread only. */
#ifndef AGENT_POD_CORE_WORKLOAD_LINK_H
#define AGENT_POD_CORE_WORKLOAD_LINK_H
#include "agent/api/manifest/decode.h"

#include <jansson.h>

struct node;
struct pod;

struct node_workloads {
    void (*pod_changed)(const struct pod *p,
                        void *arg);  /* what its status shows may have changed, or it is gone */
    void (*node_changed)(void *arg); /* the node's labels or taints, or whether it takes new pods */
    void (*clock_set)(void *arg);    /* the wall clock was set, or the machine slept */
    /* An object of the folder with its status, new; NULL with *e: absent, or out of memory. */
    json_t *(*object)(enum api_kind kind, const char *namespace_, const char *name, void *arg, struct err *e);
    void *arg;
};

/* Before pods start. The struct is borrowed while the node exists. */
void node_set_workloads(struct node *n, const struct node_workloads *w);
#endif
