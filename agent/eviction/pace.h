/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace - computes when to check a signal again: as late as possible, but before the remaining amount can be
 * used up. Pure.
 *
 * The wait depends on the peak rate: it is a quarter of the time in which the rest up to the threshold would
 * be used up at that rate. Each check with a lower rate halves the remembered peak. So a disk that fills is
 * checked more and more often, and crosses its threshold at most PACE_MIN_MS before a check.
 *
 * After an event that may raise the rate (a wake), the present rate is unknown: the amount used since the
 * last check may have been used within seconds or minutes. Two checks then follow as closely as the fastest
 * hardware demands (ev_pace_fastest()) and measure the rate; from then on waits grow again. So the use of a
 * pod without any event is detected within four seconds, or four times the age of the pod.
 *
 * An idle signal is checked less and less often, up to PACE_MAX_MS.
 */
#ifndef AGENT_EVICTION_PACE_H
#define AGENT_EVICTION_PACE_H
#include "agent/eviction/signal.h"

#define PACE_MIN_MS 20     /* a check takes some 100 us: less than a hundredth of the time */
#define PACE_MAX_MS 300000 /* kubelet's interval of image collection: this node checks at least as often */
/* While a threshold is crossed: kubelet's interval after an eviction. */
#define PACE_CROSSED_MS 1000
/* Checks that are further apart do not measure the present rate. */
#define PACE_RATE_AGE_MS 2000
/* The longest wait between the two checks after a wake. */
#define PACE_PAIR_MS 1000
/* An idle signal is checked after four times the previous wait up to this one, then after twice the previous
 * wait. kubelet's interval of checks. */
#define PACE_BEGIN_MS 10000
/* Closer to a threshold than this part of the capacity, one fallocate(2) of an ordinary file can cross it,
 * without pressure and perhaps without an event. While containers run, checks are then no further apart than
 * PACE_BEGIN_MS. */
#define PACE_NEAR_PART 16

struct ev_pace { /* initialize to { 0 } */
    bool seen, woken;
    uint64_t at_ms, available, peak_per_s, wait_ms;
    uint64_t due_ms;   /* the next check */
    uint64_t headroom; /* at the last check */
};
/* The most that today's fastest hardware can use up of this signal per second. */
uint64_t ev_pace_fastest(enum ev_signal s);
/* Records an observed value; headroom: the rest up to the threshold; running: containers run that may use it
 * up. Returns the wait until the next check in ms. */
uint64_t ev_pace_next(struct ev_pace *p, enum ev_signal s, const struct ev_value *v, uint64_t headroom,
                      bool running, uint64_t now_ms);
/* Records an event that may raise the rate (I/O pressure, a started pod, a quota warning). Returns the wait
 * until the next check in ms, which is never later than planned before. */
uint64_t ev_pace_wake(struct ev_pace *p, enum ev_signal s, uint64_t now_ms);
#endif
