/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/rank.h"

#include <string.h>

/* The parts of a pod that are on the file system of a signal, by layout. */
struct parts {
    bool layers, rest; /* rest: logs and volumes */
};

static struct parts parts_on(enum ev_signal s, enum ev_layout layout)
{
    const bool images = s == EV_IMAGEFS || s == EV_IMAGEFS_INODES,
               nodefs = s == EV_NODEFS || s == EV_NODEFS_INODES;

    switch (layout) {
    case EV_LAYOUT_IMAGEFS:
        return (struct parts){ .layers = !nodefs, .rest = nodefs };
    case EV_LAYOUT_SPLIT:
        return (struct parts){ .layers = !images, .rest = !images };
    default:
        return (struct parts){ true, true };
    }
}

static void disk_add(struct ev_disk *sum, const struct ev_disk *d)
{
    if (__builtin_add_overflow(sum->bytes, d->bytes, &sum->bytes))
        sum->bytes = UINT64_MAX;
    if (__builtin_add_overflow(sum->inodes, d->inodes, &sum->inodes))
        sum->inodes = UINT64_MAX;
}

static struct ev_disk disk_of(const struct ev_pod *p, struct parts on)
{
    struct ev_disk sum = on.rest ? p->volumes : (struct ev_disk){ 0 };

    for (size_t i = 0; i < p->n_containers; i++) {
        const struct ev_container *c = &p->containers[i];

        if (c->layer_known && on.layers)
            disk_add(&sum, &c->layer);
        if (c->log_known && on.rest)
            disk_add(&sum, &c->log);
    }
    return sum;
}

bool ev_usage(enum ev_signal s, enum ev_layout layout, const struct ev_pod *p, uint64_t *ret,
              uint64_t *ret_request)
{
    const enum ev_unit unit = ev_signal_unit(s);
    struct parts on;
    bool known;

    *ret = 0;
    *ret_request = 0;
    if (ev_signal_condition(s) == EV_MEMORY_PRESSURE) {
        *ret_request = p->memory_request;
        *ret = p->memory_known ? p->memory : 0;
        return p->memory_known;
    }
    if (unit == EV_PROCESSES) {
        *ret = p->processes_known ? p->processes : 0;
        return p->processes_known;
    }
    if (unit == EV_BYTES)
        *ret_request = p->storage_request;
    on = parts_on(s, layout);
    known = (!on.layers || p->layers_known) && (!on.rest || p->rest_known);
    if (known)
        *ret = unit == EV_BYTES ? disk_of(p, on).bytes : disk_of(p, on).inodes;
    return known;
}

/* The sort key of a pod, in order of significance. */
struct place {
    bool unknown, over;
    int32_t priority;
    __int128 excess; /* usage over request; negative: under it */
};

static struct place place_of(enum ev_signal s, enum ev_layout layout, const struct ev_pod *p)
{
    uint64_t usage, request;
    const bool known = ev_usage(s, layout, p, &usage, &request);
    struct place at = { .priority = p->priority };

    at.excess = (__int128)usage - request;
    if (ev_signal_unit(s) == EV_PROCESSES)
        return at; /* requests are not used, and a pod without figures has 0 processes */
    at.unknown = !known;
    at.over = known && usage > request;
    if (!known) {
        at.excess = 0; /* pods without figures are sorted by priority only */
        return at;
    }
    /* kubelet 1.36 subtracts bytes from inodes here. That only reorders pods of one priority that all exceed
     * their requests, and recorded orders of kubelet show it. */
    if (ev_signal_unit(s) == EV_INODES)
        at.excess -= p->storage_request;
    return at;
}

static bool goes_before(const struct place *a, const struct place *b)
{
    if (a->unknown != b->unknown)
        return a->unknown;
    if (a->over != b->over)
        return a->over;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->excess > b->excess;
}

/* The position of a pod in the sorted v[0..n): behind all pods that it does not precede. */
static size_t find_place(enum ev_signal s, enum ev_layout layout, const struct ev_pod *const *v, size_t n,
                         const struct ev_pod *p)
{
    const struct place at = place_of(s, layout, p);
    size_t low = 0, high = n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct place other = place_of(s, layout, v[middle]);

        if (goes_before(&at, &other))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Binary insertion: stable, without memory, and moving a thousand pointers is cheap. */
void ev_rank(enum ev_signal s, enum ev_layout layout, const struct ev_pod **pods, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const struct ev_pod *p = pods[i];
        const size_t at = find_place(s, layout, pods, i, p);

        memmove(&pods[at + 1], &pods[at], (i - at) * sizeof(*pods));
        pods[at] = p;
    }
}
