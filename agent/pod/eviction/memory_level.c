/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/eviction/memory_level.h"

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
