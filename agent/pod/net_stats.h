/*
 * net_stats - what went through the interfaces of each pod, for /metrics: read from the kernel by netlink
 * when asked for (some 100 microseconds a pod), nothing is kept.  Names are cAdvisor's, labels Kubernetes'.
 * Loop thread only.
 */
#ifndef AGENT_POD_NET_STATS_H
#define AGENT_POD_NET_STATS_H
#include "agent/pod/pod.h"

/* Pods with a network of their own that are attached; lo is left out. */
void net_stats_metrics(struct node *n, struct buf *out);
#endif
