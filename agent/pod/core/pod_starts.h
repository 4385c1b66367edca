/* SPDX-License-Identifier: Apache-2.0 */
/* pod_starts - how long pods took to start, as a histogram. */
#ifndef AGENT_POD_CORE_POD_STARTS_H
#define AGENT_POD_CORE_POD_STARTS_H
#include "agent/pod/core/pod.h"

#define POD_START_BUCKETS 29
struct pod_starts {
    uint64_t buckets[POD_START_BUCKETS], count, sum_ns;
};

struct pod_start_bound {
    const char *text; /* seconds, as in /metrics */
    uint64_t ms;
};
extern const struct pod_start_bound pod_starts_bounds[POD_START_BUCKETS];
void pod_starts_add(struct pod *p); /* it is running; counted once */
const struct pod_starts *pod_starts_of(const struct node *n);
#endif
