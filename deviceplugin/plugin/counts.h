/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts - how often plugins registered, and how long Allocate took, by resource; for metrics. Pure.
 *
 * Registrations are counted as in kubelet: each call of Register, even if it is refused, and none through the
 * plugin watcher. Names come from plugins, so they are bounded: names beyond DP_COUNTS_MAX, or longer than a
 * resource's name may be, are not counted.
 */
#ifndef DEVICEPLUGIN_PLUGIN_COUNTS_H
#define DEVICEPLUGIN_PLUGIN_COUNTS_H
#include <stddef.h>
#include <stdint.h>

#define DP_COUNTS_MAX 512 /* twice DP_RESOURCES_MAX: includes refused names */

/* Prometheus' default buckets, which kubelet uses here. */
#define DP_ALLOC_BUCKETS 11
struct dp_alloc_bound {
    const char *text; /* seconds, as in /metrics */
    uint64_t ms;
};
extern const struct dp_alloc_bound dp_alloc_bounds[DP_ALLOC_BUCKETS];

struct dp_count {
    char *resource;
    uint64_t registrations;
    uint64_t allocations, took_ns, buckets[DP_ALLOC_BUCKETS]; /* each bucket includes the smaller ones */
};

struct dp_counts {      /* { 0 } is empty */
    struct dp_count *v; /* by name */
    size_t n;
};

void dp_counts_registered(struct dp_counts *c, const char *resource);
void dp_counts_allocated(struct dp_counts *c, const char *resource, uint64_t took_ns);
void dp_counts_done(struct dp_counts *c);
#endif
