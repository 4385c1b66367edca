/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/eviction/memory_level.h"

/* Two looks closer together than that say nothing about a rate: the kernel's counters move in batches. */
#define GROWTH_MIN_US 2000
#define GROWTH_KEPT_US 1000000

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t floor_of(const struct memory_seen *m)
{
    return m->total / 100 * MEMORY_FLOOR_PERCENT;
}

uint64_t memory_available(const struct memory_seen *m)
{
    uint64_t available = less(m->total, m->working_set);

    return m->kernel_available < floor_of(m) ? smaller(available, m->kernel_available) : available;
}

uint64_t memory_floor_headroom(const struct memory_seen *m)
{
    uint64_t at = floor_of(m);

    if (m->kernel_available < at || m->kernel_available >= less(m->total, m->working_set))
        return UINT64_MAX;
    return m->kernel_available - at;
}

bool memory_allocatable(const struct memory_seen *m, struct ev_value *ret)
{
    if (!m->pods_known || m->pods_limit == UINT64_MAX)
        return false;
    *ret = (struct ev_value){ .known = true,
                              .available = less(m->pods_limit, m->pods_working_set),
                              .capacity = m->pods_limit };
    return true;
}

uint64_t memory_headroom(const struct ev_settings *s, enum ev_signal signal, const struct ev_value *v)
{
    uint64_t headroom = UINT64_MAX;
    bool crossed = false;

    for (size_t i = 0; v->known && i < s->n; i++) {
        const struct ev_threshold *t = &s->v[i];
        uint64_t line = ev_amount_of(&t->value, v->capacity);

        if (t->signal != signal || line == 0)
            continue;
        if (v->available >= line)
            headroom = smaller(headroom, v->available - line);
        else if (!t->soft && v->available >= line / 2)
            headroom = smaller(headroom, v->available - line / 2);
        else
            crossed = true;
    }
    return headroom == UINT64_MAX && crossed ? 0 : headroom;
}

struct memory_plan memory_plan(uint64_t usage, uint64_t working_set, uint64_t headroom)
{
    uint64_t step = headroom / 2 > MEMORY_STEP_MIN ? headroom / 2 : smaller(headroom, MEMORY_STEP_MIN);
    struct memory_plan plan = { .level = UINT64_MAX };

    if (headroom > UINT64_MAX / 4)
        return plan;
    plan.level = headroom == 0 ? usage : smaller(working_set + headroom, usage + step);
    if (headroom > 0 && plan.level >= usage + step / 2)
        return plan;
    plan.rest_ms = headroom / (MEMORY_RATE_MAX / 1000);
    if (plan.rest_ms < MEMORY_REST_MIN_MS)
        plan.rest_ms = MEMORY_REST_MIN_MS;
    plan.rest_ms = smaller(plan.rest_ms, MEMORY_REST_MAX_MS);
    return plan;
}

void memory_growth_add(struct memory_growth *g, uint64_t available, uint64_t at_us)
{
    uint64_t passed = less(at_us, g->at_us), rate;

    if (g->at_us != 0 && passed < GROWTH_MIN_US)
        return;
    rate = g->at_us != 0 ? less(g->available, available) * 1000000 / passed : 0;
    if (passed < GROWTH_KEPT_US) /* older ones fade */
        g->per_s -= g->per_s / GROWTH_KEPT_US * passed;
    if (passed >= GROWTH_KEPT_US || rate > g->per_s)
        g->per_s = rate;
    g->at_us = at_us;
    g->available = available;
}

bool memory_urgent(uint64_t line, uint64_t available, uint64_t per_s, uint64_t grace_ms)
{
    return available < line / 2 || per_s / 1000 * grace_ms >= available;
}
