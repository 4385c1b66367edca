/* SPDX-License-Identifier: Apache-2.0 */
/* What limits keeps of the node for itself. */
#ifndef AGENT_POD_LIMITS_INTERNAL_H
#define AGENT_POD_LIMITS_INTERNAL_H
#include "agent/pod/core/pod.h"
#include "agent/pod/limits/hugepages.h"

struct limits_node {
    struct { /* what the cgroup of a QoS class was last given, by enum cg_class */
        bool known;
        int64_t cpu_shares, memory_low;
    } classes[CG_BEST_EFFORT + 1];
    int64_t protected_bytes; /* requests of memory that the cgroup of all pods protects; 0: none */
    struct hugepages_size sizes[HUGEPAGES_SIZES_MAX]; /* as last seen */
    size_t n_sizes;
    uv_timer_t timer; /* runs while the limits of all pods together cannot be written */
};

struct limits_ctr {
    uint64_t cpuset;    /* generation of the processors that its cgroup was last given */
    char cpuset_id[65]; /* and which run of the container that was */
};

/* Gives running containers the processors that they have now. */
void cpusets_step(struct pod *p);

static inline struct limits_node *limits_node(const struct node *n)
{
    return n->parts[ROOM_LIMITS];
}
#endif
