/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace - when to look at a file system or at process ids again: as late as possible, but before what is left
 * can be used up. The rate seen decides: half the time that is left at the highest rate, of which every look
 * that sees less forgets half. What rests is looked at less and less often, each time after twice the time,
 * up to PACE_MAX_MS. Pure.
 */
#ifndef AGENT_EVICTION_PACE_H
#define AGENT_EVICTION_PACE_H
#include "agent/eviction/signal.h"

#define PACE_MIN_MS 100
#define PACE_MAX_MS 300000 /* kubelet's interval of image collection: this node looks no less often */
/* While a threshold is crossed: kubelet looks that often after an eviction. */
#define PACE_CROSSED_MS 1000
/* The first wait, and the longest after something began that may use it up. */
#define PACE_BEGIN_MS 10000
/* What is assumed to go in a second before a rate was seen: this part of the capacity. 2 GB/s of a disk of
 * 128 GB, and 500 of 32768 process ids. */
#define PACE_ASSUMED_PART 64

struct ev_pace { /* initialize to { 0 } */
    bool seen;
    uint64_t at_ms, available, peak_per_s, wait_ms;
    uint64_t due_ms;             /* the next look */
    uint64_t headroom, capacity; /* as seen last */
};
/* A value was observed; headroom: until the threshold. Returns in how many ms to look again. */
uint64_t ev_pace_next(struct ev_pace *p, const struct ev_value *v, uint64_t headroom, uint64_t now_ms);
/* Something began that may use it up (I/O pressure, a pod started, a quota warning): in how many ms to look;
 * not later than it was planned. */
uint64_t ev_pace_wake(struct ev_pace *p, uint64_t now_ms);
#endif
