/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shutdown - the machine goes down: pods end in groups by priority, one group after the other, as kubelet's
 * node shutdown manager does it (pkg/kubelet/nodeshutdown).
 *
 *     logind: PrepareForShutdown(true) ─► lowest priorities ─► ... ─► critical pods ─► done(arg)
 *
 * Groups come from shutdownGracePeriod and shutdownGracePeriodCriticalPods, or from
 * shutdownGracePeriodByPodPriority; none: the feature is off.  A pod belongs to the group with the greatest
 * priority that is not above its own, below all to the lowest.  It gets its own grace period, at most the
 * group's; preStop hooks run.  New pods are refused meanwhile (NodeShutdown), the node is not ready.
 *
 * What is recorded of a pod that ended so (phase Failed, reason Terminated, how its containers ended)
 * outlives the reboot.  Then, or when the shutdown is called off, it starts again in place, unless it is not
 * one to run twice (restartPolicy Never): nobody else would make it anew.
 *
 * Loop thread only.
 */
#ifndef AGENT_POD_WORKER_SHUTDOWN_H
#define AGENT_POD_WORKER_SHUTDOWN_H
#include "agent/pod/core/pod.h"

#define SHUTDOWN_CRITICAL_PRIORITY 2000000000 /* scheduling.SystemCriticalPriority */
/*
 * A group is waited for this long after its period: containers that were killed at its end are reaped, their
 * network, volumes and records are seen to.  (kubelet waits for the period alone: what is killed at its end
 * is never recorded.)  And a grace is never below 2 s, as everywhere in kubelet.
 */
#define SHUTDOWN_SLACK_MS 4000
#define SHUTDOWN_GRACE_MIN_MS 2000

struct pod;

/* ---- shutdown_plan.c ---- arithmetic */
/* The two groups of the simple settings, in ret; 0 when they ask for none (off, or less than the critical
 * part). */
size_t shutdown_plan_simple(uint64_t whole_ms, uint64_t critical_ms, struct node_shutdown_group ret[2]);
/* Index of the group that a priority belongs to; n is at least 1, groups are sorted, lowest priority first.
 */
size_t shutdown_plan_find(const struct node_shutdown_group *groups, size_t n, int32_t priority);
/* Seconds that a pod of the group gets; own: its terminationGracePeriodSeconds, as the API has it. */
int64_t shutdown_plan_grace(const struct node_shutdown_group *group, int64_t own_seconds);
uint64_t shutdown_plan_wait_ms(const struct node_shutdown_group *group);
/* How long all of them take at most: what logind is asked to wait for. */
uint64_t shutdown_plan_total_ms(const struct node_shutdown_group *groups, size_t n);

/* ---- shutdown.c ---- */
void shutdown_open(struct node *n); /* reads what is known of the last one */
bool shutdown_is_on(const struct node *n);
void shutdown_step(struct node *n);               /* pods changed: is the group over? */
bool shutdown_keeps_volumes(const struct pod *p); /* ended by one, and to begin again */
/* A pod that a shutdown ended, or that was refused for one: true when it begins again (state PENDING). */
bool shutdown_revive(struct pod *p);
void shutdown_explain(const struct node *n, json_t *steps);
void shutdown_explain_pod(const struct pod *p, json_t *steps);
void shutdown_metrics(const struct node *n, struct buf *out);

/*
 * The machine shuts down: pods end by priority, new ones are refused; done(arg) when they are over or had
 * their time (perhaps at once).  Told again, only done and arg change.
 */
void node_shutdown_begin(struct node *n, void (*done)(void *arg), void *arg);
/* It does not, or not any more: pods that a shutdown ended start again. */
void node_shutdown_cancel(struct node *n);
/* What is known of the lock that holds a shutdown up, for `coracle explain node`. */
void node_shutdown_inhibitor(struct node *n, bool failed, const char *text);
#endif
