/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shutdown - the machine shuts down: pods end in groups by priority, one group after the other, like
 * kubelet's node shutdown manager (pkg/kubelet/nodeshutdown).
 *
 *     logind: PrepareForShutdown(true) ─► lowest priorities ─► ... ─► critical pods ─► done(arg)
 *
 * Groups come from shutdownGracePeriod and shutdownGracePeriodCriticalPods, or from
 * shutdownGracePeriodByPodPriority; without them the feature is off. A pod belongs to the group with the
 * highest priority not above its own, or to the lowest group. It gets its own grace period, at most the
 * group's; preStop hooks run. New pods are rejected meanwhile (NodeShutdown), and the node is not ready.
 *
 * The record of a pod that ended this way (phase Failed, reason Terminated, its containers' exit states)
 * survives the reboot. After the reboot, or when the shutdown is cancelled, the pod starts again in place,
 * because nothing else would recreate it.  A pod that must not run twice (restartPolicy Never) stays ended.
 *
 * Loop thread only.
 */
#ifndef AGENT_POD_WORKER_SHUTDOWN_H
#define AGENT_POD_WORKER_SHUTDOWN_H
#include "agent/pod/core/pod.h"

#define SHUTDOWN_CRITICAL_PRIORITY 2000000000 /* scheduling.SystemCriticalPriority */
/* A group is waited for this long after its period: killed containers are reaped, network, volumes and
 * records cleaned up. (kubelet waits only for the period, so containers that are killed at its end are never
 * recorded.) And a grace period is at least 2 s, as everywhere in kubelet. */
#define SHUTDOWN_SLACK_MS 4000
#define SHUTDOWN_GRACE_MIN_MS 2000

struct pod;

/* ---- shutdown_plan.c ---- arithmetic */
/* The two groups of the simple settings, in ret; 0 if there are none (off, or less than the critical
 * part). */
size_t shutdown_plan_simple(uint64_t whole_ms, uint64_t critical_ms, struct node_shutdown_group ret[2]);
/* Index of a priority's group; n is at least 1, groups are sorted, lowest priority first. */
size_t shutdown_plan_find(const struct node_shutdown_group *groups, size_t n, int32_t priority);
/* The grace period in seconds for a pod of the group; own: its terminationGracePeriodSeconds, as in the
 * API. */
int64_t shutdown_plan_grace(const struct node_shutdown_group *group, int64_t own_seconds);
uint64_t shutdown_plan_wait_ms(const struct node_shutdown_group *group);
/* The maximum time for all groups, which is the delay requested from logind. */
uint64_t shutdown_plan_total_ms(const struct node_shutdown_group *groups, size_t n);

/* ---- shutdown.c ---- */
void shutdown_open(struct node *n); /* reads the record of the last shutdown */
bool shutdown_is_on(const struct node *n);
void shutdown_step(struct node *n);               /* pods changed: checks whether the group has ended */
bool shutdown_keeps_volumes(const struct pod *p); /* ended by a shutdown, and to be started again */
/* A pod ended or rejected by a shutdown: true if it begins again (state PENDING). */
bool shutdown_revive(struct pod *p);
void shutdown_explain(const struct node *n, json_t *steps);
void shutdown_explain_pod(const struct pod *p, json_t *steps);
void shutdown_metrics(const struct node *n, struct buf *out);

/* The machine shuts down: pods end by priority, new ones are rejected; done(arg) when they have ended or
 * their time is over (perhaps immediately). A repeated call only changes done and arg. */
void node_shutdown_begin(struct node *n, void (*done)(void *arg), void *arg);
/* The shutdown was cancelled: pods ended by it start again. */
void node_shutdown_cancel(struct node *n);
/* The state of the lock that delays a shutdown, for `coracle explain node`. */
void node_shutdown_inhibitor(struct node *n, bool failed, const char *text);
#endif
