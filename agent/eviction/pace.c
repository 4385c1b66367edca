/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/pace.h"

static uint64_t bounded(uint64_t ms, uint64_t most)
{
    return ms < PACE_MIN_MS ? PACE_MIN_MS : ms > most ? most : ms;
}

/* Half the time in which `headroom` is used up. */
static uint64_t half_of(uint64_t headroom, uint64_t per_s)
{
    const double ms = per_s > 0 ? (double)headroom * 500 / (double)per_s : PACE_MAX_MS;

    return ms < PACE_MAX_MS ? (uint64_t)ms : PACE_MAX_MS;
}

/* What went since the last look; a change within a millisecond counts as that of a whole one. */
static uint64_t rate(const struct ev_pace *p, const struct ev_value *v, uint64_t now_ms)
{
    const uint64_t passed = now_ms > p->at_ms ? now_ms - p->at_ms : 1;
    double per_s;

    if (!p->seen || v->available >= p->available)
        return 0;
    per_s = (double)(p->available - v->available) * 1000 / (double)passed;
    return per_s < 1e18 ? (uint64_t)per_s : (uint64_t)1e18;
}

static uint64_t plan(struct ev_pace *p, uint64_t wait_ms, uint64_t now_ms)
{
    p->wait_ms = wait_ms;
    p->due_ms = now_ms + wait_ms;
    return wait_ms;
}

uint64_t ev_pace_next(struct ev_pace *p, const struct ev_value *v, uint64_t headroom, uint64_t now_ms)
{
    const uint64_t per_s = rate(p, v, now_ms), longer_ms = p->wait_ms > 0 ? 2 * p->wait_ms : PACE_BEGIN_MS;
    uint64_t left_ms;

    if (!v->known)
        return plan(p, bounded(longer_ms, PACE_MAX_MS), now_ms);
    p->peak_per_s = per_s > p->peak_per_s / 2 ? per_s : p->peak_per_s / 2;
    p->seen = true;
    p->at_ms = now_ms;
    p->available = v->available;
    p->headroom = headroom;
    p->capacity = v->capacity;
    if (headroom == 0)
        return plan(p, PACE_CROSSED_MS, now_ms);
    left_ms = half_of(headroom, p->peak_per_s);
    return plan(p, bounded(left_ms < longer_ms ? left_ms : longer_ms, PACE_MAX_MS), now_ms);
}

uint64_t ev_pace_wake(struct ev_pace *p, uint64_t now_ms)
{
    const uint64_t assumed = p->capacity / PACE_ASSUMED_PART,
                   per_s = p->peak_per_s > assumed ? p->peak_per_s : assumed,
                   wait_ms = bounded(half_of(p->headroom, per_s), PACE_BEGIN_MS);

    if (!p->seen)
        return 0;
    if (now_ms + wait_ms >= p->due_ms)
        return p->due_ms > now_ms ? p->due_ms - now_ms : 0;
    return plan(p, wait_ms, now_ms);
}
