/* SPDX-License-Identifier: Apache-2.0 */
/* node_events - that it started, its conditions, and when it becomes Ready or ceases to be. */
#include "agent/pod/core/events.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/show/internal.h"
#include "agent/pod/show/provider.h"

void node_events_ready(struct node *n)
{
    struct show_node *part = show_node(n);
    bool ready = false;

    json_decref(part->provider.ready(n, &ready));
    if (ready == part->told_ready || n->closing)
        return;
    part->told_ready = ready;
    node_event_status(n, ready ? "NodeReady" : "NodeNotReady");
    if (n->cluster != NULL)
        n->cluster->node_changed(n->cluster->arg);
}

/* kubelet's order. */
void node_events_started(struct node *n)
{
    node_event(n, false, "Starting", "Starting kubelet.");
    for (enum ev_condition c = 0; c < EV_CONDITIONS; c++)
        node_event_status(n, ev_condition_event(c, eviction_pressure(n, c)));
    if (allocatable_is_enforced(n))
        node_event(n, false, "NodeAllocatableEnforced", ALLOCATABLE_ENFORCED_TEXT);
    node_events_ready(n);
}
