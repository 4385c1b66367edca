/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eviction - keeps the node from running out of memory, disk or process ids: observes (observe.c), decides
 * (agent/eviction/manager.h), reclaims what no pod needs (reclaim.c), evicts pods (evict.c), and records each
 * decision.
 *
 * Looks are caused by events: the memory alarm of all pods together and pressure triggers of the kernel,
 * quota warnings, pods and images that come and go; disks and process ids are measured as often as they can
 * run out (agent/eviction/pace.h). A node at rest has no timer below five minutes.
 *
 * Loop thread; statfs(2) of disks runs on the pool.
 */
#ifndef AGENT_POD_EVICTION_EVICTION_H
#define AGENT_POD_EVICTION_EVICTION_H
#include "agent/eviction/signal.h"
#include "agent/pod/core/pod.h"

extern const struct room eviction_room;

/* An event may have used up or released a resource: check soon. */
void eviction_wake(struct node *n, enum ev_condition what, const char *why);

/* The pod has been removed completely: its resources are released. */
void eviction_pod_ended(struct pod *p);
void eviction_begin(struct node *n); /* when manifests are known; without memory nothing is evicted, logged */
void eviction_settings(struct node *n); /* n->o.eviction changed */

/* ---- asked by admission and by the node object ---- */
/* kubelet's rule: ERR_OK: admitted; otherwise "The node had condition: [DiskPressure]. " */
enum err_code eviction_admit(const struct pod *p, char reason[64], struct err *e) MUST_CHECK;
bool eviction_pressure(const struct node *n, enum ev_condition c);
/* Appends {"type": "MemoryPressure", "status": ..., ...} for each. */
void eviction_conditions(const struct node *n, json_t *list);
/* Appends the taints of conditions that are true. */
void eviction_taints(const struct node *n, json_t *list);

/* ---- shown ---- */
json_t *eviction_records(const struct node *n); /* items of `coracle get evictions`, new */
void eviction_explain(const struct node *n, json_t *steps);
void eviction_metrics(const struct node *n, struct buf *out);
#endif
