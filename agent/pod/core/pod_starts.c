/* SPDX-License-Identifier: Apache-2.0 */
/* pod_starts - how long pods took to start, as a histogram. */
#include "agent/pod/core/pod_starts.h"

#include "agent/pod/core/internal.h"
#include "agent/pod/core/start_times.h"
#include "base/clock.h"

/* kubelet's buckets in seconds, and finer ones below, because a pod takes less than half a second. */
const struct pod_start_bound pod_starts_bounds[POD_START_BUCKETS] = {
    { "0.025", 25 },     { "0.05", 50 },      { "0.1", 100 },      { "0.25", 250 },     { "0.5", 500 },
    { "1", 1000 },       { "2", 2000 },       { "3", 3000 },       { "4", 4000 },       { "5", 5000 },
    { "6", 6000 },       { "8", 8000 },       { "10", 10000 },     { "20", 20000 },     { "30", 30000 },
    { "45", 45000 },     { "60", 60000 },     { "120", 120000 },   { "180", 180000 },   { "240", 240000 },
    { "300", 300000 },   { "360", 360000 },   { "480", 480000 },   { "600", 600000 },   { "900", 900000 },
    { "1200", 1200000 }, { "1800", 1800000 }, { "2700", 2700000 }, { "3600", 3600000 },
};

void pod_starts_add(struct pod *p)
{
    struct pod_starts *s = &core_node(p->node)->starts;
    int64_t took_ns = clock_boot_since_ns(p->seen_at);

    if (!clock_boot_is_set(p->seen_at) || p->start_counted)
        return;
    p->start_counted = true;
    start_times_over(p);
    for (size_t i = 0; i < POD_START_BUCKETS; i++)
        s->buckets[i] += (uint64_t)took_ns <= pod_starts_bounds[i].ms * 1000000;
    s->count++;
    s->sum_ns += (uint64_t)took_ns;
}

const struct pod_starts *pod_starts_of(const struct node *n)
{
    return &core_node(n)->starts;
}
