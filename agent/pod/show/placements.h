/* SPDX-License-Identifier: Apache-2.0 */
/* placements - the processors and memory of containers, for the socket and for metrics. Loop thread. */
#ifndef AGENT_POD_SHOW_PLACEMENTS_H
#define AGENT_POD_SHOW_PLACEMENTS_H
#include "agent/pod/core/pod.h"

/*
 * One object for each NUMA node: {"node", "memory" (bytes), "parts": [...]}. A part is {"cpus", "memory",
 * "memoryNodes", "role": "Reserved"|"Shared"|"Exclusive", "pod": {"namespace", "name", "uid"}, "container",
 * "isolated", "notIsolated" (why)}, without members that do not apply. Memory that several nodes provide
 * together is a part of each of them, with the full amount: "memoryNodes" lists the nodes. Empty if no policy
 * is in effect. NULL: out of memory.
 */
json_t *placements_json(struct node *n);
/* placement_metrics.c: kubelet's names; nothing if no policy is in force. */
void placements_metrics(const struct node *n, struct buf *out);
#endif
