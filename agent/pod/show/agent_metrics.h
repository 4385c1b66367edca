/* SPDX-License-Identifier: Apache-2.0 */
/* agent_metrics - the agent's own numbers for /metrics: under kubelet's names where it has them, the
 * process's under those of Prometheus' client libraries. Loop thread only. */
#ifndef AGENT_POD_SHOW_AGENT_METRICS_H
#define AGENT_POD_SHOW_AGENT_METRICS_H
#include "agent/pod/core/pod.h"

/* A pod runs for the first time: it counts for kubelet_pod_start_duration_seconds, from the moment in which
 * it was first seen.  Those of an earlier run of the agent do not. */

void agent_metrics(struct node *n, struct buf *out);
/* network_metrics.c */
void network_metrics(const struct node *n, struct buf *out);
void agent_metrics_start_time(struct buf *out); /* process_start_time_seconds */
#endif
