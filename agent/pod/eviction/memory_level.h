/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_level - schedules measurements of memory: the available amount, and the usage at which to measure
 * again. Pure: no clock, no files. Bytes throughout.
 *
 * Lines are the thresholds of a signal, and half of each hard one: beyond that, no grace is given
 * (agent/eviction/manager.c).
 */
#ifndef AGENT_POD_EVICTION_MEMORY_LEVEL_H
#define AGENT_POD_EVICTION_MEMORY_LEVEL_H
#include "agent/eviction/settings.h"

/* A level closer than that is the next line itself: growth of less is noise of the kernel's counters. */
#define MEMORY_STEP_MIN (UINT64_C(16) << 20)
/* How fast a machine takes memory at most: what four processors of today clear. */
#define MEMORY_RATE_MAX (UINT64_C(4) << 30)
#define MEMORY_REST_MIN_MS 20
#define MEMORY_REST_MAX_MS 1000
/* Below this part of the machine's memory, the kernel's own estimate counts if it is smaller. */
#define MEMORY_FLOOR_PERCENT 5

struct memory_seen {
    bool known;
    uint64_t total;            /* of the machine */
    uint64_t kernel_available; /* MemAvailable */
    uint64_t usage, working_set;
    bool pods_known;
    uint64_t pods_usage, pods_working_set; /* of all pods together */
    uint64_t pods_limit;                   /* UINT64_MAX: none */
};

/*
 * memory.available as kubelet has it, total less working set. On v2 that omits the kernel's own memory
 * (slabs, page tables, stacks): on a small machine the kernel may kill before kubelet's threshold is crossed.
 * So below MEMORY_FLOOR_PERCENT of the machine's memory the kernel's estimate is taken if it is smaller.
 */
uint64_t memory_available(const struct memory_seen *m);
/* allocatableMemory.available; false: pods have no limit. */
bool memory_allocatable(const struct memory_seen *m, struct ev_value *ret);

/* How much may be used until the next line of the signal is crossed. UINT64_MAX: it has no thresholds. 0: all
 * lines are crossed, or the next one is reached. */
uint64_t memory_headroom(const struct ev_settings *s, enum ev_signal signal, const struct ev_value *v);
/* How much until memory_available() begins to take the kernel's estimate; UINT64_MAX: that would not be less,
 * or it does already. */
uint64_t memory_floor_headroom(const struct memory_seen *m);

struct memory_plan {
    uint64_t level;   /* usage at which to measure again; UINT64_MAX: none */
    uint64_t rest_ms; /* how long to ignore the alarm: page cache is at the level, the working set is not */
};
/* A headroom of 0: the present usage is already too high. Halves the headroom with each step, so that the
 * rate of growth is known when the line is crossed. The level is never beyond the line, because reclaimed
 * page cache hides the growth. */
struct memory_plan memory_plan(uint64_t usage, uint64_t working_set, uint64_t headroom);
#endif
