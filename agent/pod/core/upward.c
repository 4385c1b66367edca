/* SPDX-License-Identifier: Apache-2.0 */
/* upward - requests of lower rooms to the worker. No room calls one above it: these use the functions that
 * the worker set in the node at its start (struct pod_upward). */
#include "agent/pod/core/pod.h"

void pod_ask_end(struct pod *p, int64_t grace_seconds, const char *why)
{
    p->node->upward.end(p, grace_seconds, true, why);
}

void pod_ask_recover(struct pod *p)
{
    p->node->upward.recover(p);
}

bool pod_ask_idle(const struct pod *p)
{
    return p->node->upward.idle(p);
}

void node_ask_ready(struct node *n)
{
    n->upward.ready_changed(n);
}

void pod_ask_apply(struct pod *p, struct api_pod *api)
{
    p->node->upward.apply(p, api);
}
