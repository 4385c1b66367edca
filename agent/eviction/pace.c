/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/pace.h"

/* Memory: the amount that four of today's processors clear. Disks: one NVMe device, or its fallocate(2) in
 * pieces. Files: empty ones on all processors. Processes: fork(2) and exit on all processors. */
uint64_t ev_pace_fastest(enum ev_signal s)
{
    switch (s) {
    case EV_MEMORY:
    case EV_ALLOCATABLE_MEMORY:
        return UINT64_C(4) << 30;
    case EV_NODEFS:
    case EV_IMAGEFS:
    case EV_CONTAINERFS:
        return UINT64_C(4) << 30;
    case EV_NODEFS_INODES:
    case EV_IMAGEFS_INODES:
    case EV_CONTAINERFS_INODES:
        return 500000;
    case EV_PID:
    case EV_SIGNALS:
        break;
    }
    return 50000;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t bounded(uint64_t ms, uint64_t most)
{
    return ms < PACE_MIN_MS ? PACE_MIN_MS : smaller(ms, most);
}

/* A quarter of the time in which `headroom` is used up. */
static uint64_t quarter_of(uint64_t headroom, uint64_t per_s)
{
    const double ms = per_s > 0 ? (double)headroom * 250 / (double)per_s : PACE_MAX_MS;

    return ms < PACE_MAX_MS ? (uint64_t)ms : PACE_MAX_MS;
}

static uint64_t passed_since(const struct ev_pace *p, uint64_t now_ms)
{
    return now_ms > p->at_ms ? now_ms - p->at_ms : 1; /* less than a millisecond counts as one */
}

/* The rate since the last check. */
static uint64_t rate(const struct ev_pace *p, const struct ev_value *v, uint64_t now_ms)
{
    double per_s;

    if (!p->seen || v->available >= p->available)
        return 0;
    per_s = (double)(p->available - v->available) * 1000 / (double)passed_since(p, now_ms);
    return per_s < 1e18 ? (uint64_t)per_s : (uint64_t)1e18;
}

static uint64_t plan(struct ev_pace *p, uint64_t wait_ms, uint64_t now_ms)
{
    p->wait_ms = wait_ms;
    p->due_ms = now_ms + wait_ms;
    return wait_ms;
}

static uint64_t longer_than(uint64_t wait_ms)
{
    if (wait_ms == 0)
        return PACE_BEGIN_MS;
    return wait_ms < PACE_BEGIN_MS ? smaller(4 * wait_ms, PACE_BEGIN_MS) : 2 * wait_ms;
}

uint64_t ev_pace_next(struct ev_pace *p, enum ev_signal s, const struct ev_value *v, uint64_t headroom,
                      bool running, uint64_t now_ms)
{
    const uint64_t longer_ms = longer_than(p->wait_ms), per_s = rate(p, v, now_ms);
    const bool alone = !p->seen || passed_since(p, now_ms) > PACE_RATE_AGE_MS;
    uint64_t most_ms = PACE_MAX_MS;

    if (!v->known)
        return plan(p, bounded(longer_ms, PACE_MAX_MS), now_ms);
    p->peak_per_s = per_s > p->peak_per_s / 2 ? per_s : p->peak_per_s / 2;
    p->woken = alone && (p->woken || !p->seen);
    p->seen = true;
    p->at_ms = now_ms;
    p->available = v->available;
    p->headroom = headroom;
    if (headroom == 0)
        return plan(p, PACE_CROSSED_MS, now_ms);
    if (p->woken)
        return plan(p, bounded(quarter_of(headroom, ev_pace_fastest(s)), PACE_PAIR_MS), now_ms);
    if (running && headroom < v->capacity / PACE_NEAR_PART)
        most_ms = PACE_BEGIN_MS;
    return plan(p, bounded(smaller(quarter_of(headroom, p->peak_per_s), longer_ms), most_ms), now_ms);
}

uint64_t ev_pace_wake(struct ev_pace *p, enum ev_signal s, uint64_t now_ms)
{
    const uint64_t apart_ms = bounded(quarter_of(p->headroom, ev_pace_fastest(s)), PACE_PAIR_MS);
    uint64_t at_ms = p->at_ms + apart_ms;

    p->woken = true;
    p->wait_ms = smaller(p->wait_ms, apart_ms); /* waits grow from here again */
    if (!p->seen)
        return 0;
    if (at_ms < now_ms)
        at_ms = now_ms;
    if (at_ms >= p->due_ms)
        return p->due_ms > now_ms ? p->due_ms - now_ms : 0;
    p->due_ms = at_ms;
    return at_ms - now_ms;
}
