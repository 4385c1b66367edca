/* SPDX-License-Identifier: Apache-2.0 */
/* net_stats - traffic of each pod's interfaces, for /metrics: read from the kernel by netlink on request
 * (about 100 microseconds per pod), nothing is kept. Names are cAdvisor's, labels Kubernetes'. Loop thread
 * only. */
#ifndef AGENT_POD_USAGE_NET_STATS_H
#define AGENT_POD_USAGE_NET_STATS_H
#include "agent/pod/core/pod.h"

#define NET_STATS_NAMES 8

struct net_line;
struct net_stats { /* copies: pods may be deleted meanwhile */
    struct net_line *v;
    size_t n;
    struct buf text;
    bool failed; /* out of memory */
};
void net_stats_init(struct net_stats *s);
void net_stats_done(struct net_stats *s);
/* Adds the interfaces of a pod with its own network, except lo. */
void net_stats_read(struct net_stats *s, const struct pod *p);
/* One of the NET_STATS_NAMES names. */
void net_stats_write(const struct net_stats *s, size_t name, struct buf *out);
#endif
