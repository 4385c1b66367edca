/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace - when to look at a signal again: as late as possible, but before what is left can be used up. Pure.
 *
 * The rate seen decides: a quarter of the time in which what is left until the threshold would go at the
 * highest rate, of which every look that sees less forgets half. So a disk that fills is looked at more and
 * more often, and crosses its threshold at most PACE_MIN_MS before a look.
 *
 * After something happened that may use it up (a wake), the rate is not known: what went since the look
 * before went within seconds or minutes. Two looks then follow each other as quickly as the fastest hardware
 * demands (ev_pace_fastest()), and show it; from then on waits grow again. So what a pod takes without any
 * event is seen within four seconds, or four times the age of the pod.
 *
 * What rests is looked at less and less often, up to PACE_MAX_MS.
 */
#ifndef AGENT_EVICTION_PACE_H
#define AGENT_EVICTION_PACE_H
#include "agent/eviction/signal.h"

#define PACE_MIN_MS 20     /* a look takes some 100 us: less than a hundredth of the time */
#define PACE_MAX_MS 300000 /* kubelet's interval of image collection: this node looks no less often */
/* While a threshold is crossed: kubelet looks that often after an eviction. */
#define PACE_CROSSED_MS 1000
/* Looks that are further apart say nothing about the rate of the moment. */
#define PACE_RATE_AGE_MS 2000
/* The longest wait between the two looks after a wake. */
#define PACE_PAIR_MS 1000
/* What rests is looked at after four times the wait before up to here, and then after twice. kubelet's
 * interval of looks. */
#define PACE_BEGIN_MS 10000
/* This close to a threshold, as a part of the capacity, one fallocate(2) of a usual file crosses it; that
 * causes no pressure and perhaps no event. While something runs, looks are no further apart than
 * PACE_BEGIN_MS then. */
#define PACE_NEAR_PART 16

struct ev_pace { /* initialize to { 0 } */
    bool seen, woken;
    uint64_t at_ms, available, peak_per_s, wait_ms;
    uint64_t due_ms;   /* the next look */
    uint64_t headroom; /* as seen last */
};
/* What the fastest hardware of today uses up of this signal in a second. */
uint64_t ev_pace_fastest(enum ev_signal s);
/* A value was observed; headroom: until the threshold; running: something runs that may use it up. Returns in
 * how many ms to look again. */
uint64_t ev_pace_next(struct ev_pace *p, enum ev_signal s, const struct ev_value *v, uint64_t headroom,
                      bool running, uint64_t now_ms);
/* Something happened that may use it up (I/O pressure, a pod started, a quota warning): in how many ms to
 * look; not later than it was planned. */
uint64_t ev_pace_wake(struct ev_pace *p, enum ev_signal s, uint64_t now_ms);
#endif
