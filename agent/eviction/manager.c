/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks thresholds and conditions from check to check. */
#include "agent/eviction/manager.h"

#include <stdlib.h>
#include <string.h>

struct seen { /* of a threshold */
    bool met;
    uint64_t since_ms;
};

struct pace_seen { /* how fast a signal is used up */
    bool known;
    uint64_t at_ms, available;
    uint64_t left_ms; /* until nothing is left; UINT64_MAX: not being used up, or unknown */
};

struct condition {
    bool on, ending;
    uint64_t changed_ms; /* 0: it never changed */
    uint64_t ended_ms;   /* ending: no threshold is met since */
};

struct ev_manager {
    struct ev_settings s;
    enum ev_layout layout;
    struct seen seen[EV_THRESHOLDS_MAX];
    struct pace_seen pace[EV_SIGNALS];
    struct condition conditions[EV_CONDITIONS];
};

struct ev_manager *ev_manager_new(const struct ev_settings *s, enum ev_layout layout)
{
    struct ev_manager *m = calloc(1, sizeof(*m));

    if (m != NULL) {
        m->s = *s;
        m->layout = layout;
    }
    return m;
}

void ev_manager_free(struct ev_manager *m)
{
    free(m);
}

/* ---- thresholds ---- */

static bool same_amount(const struct ev_amount *a, const struct ev_amount *b)
{
    return a->quantity == b->quantity && !(a->share < b->share) && !(a->share > b->share);
}

static bool same_threshold(const struct ev_threshold *a, const struct ev_threshold *b)
{
    return a->signal == b->signal && a->soft == b->soft && a->grace_ms == b->grace_ms &&
           same_amount(&a->value, &b->value) && same_amount(&a->reclaim, &b->reclaim);
}

void ev_manager_change(struct ev_manager *m, const struct ev_settings *s, enum ev_layout layout)
{
    struct seen seen[EV_THRESHOLDS_MAX] = { 0 };

    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < m->s.n; k++)
            if (same_threshold(&s->v[i], &m->s.v[k]))
                seen[i] = m->seen[k];
    memcpy(m->seen, seen, sizeof(seen));
    m->s = *s;
    m->layout = layout;
}

static uint64_t line_of(const struct ev_threshold *t, const struct ev_value *v)
{
    return ev_amount_of(&t->value, v->capacity);
}

static uint64_t goal_of(const struct ev_threshold *t, const struct ev_value *v)
{
    uint64_t sum;

    return __builtin_add_overflow(line_of(t, v), ev_amount_of(&t->reclaim, v->capacity), &sum) ? UINT64_MAX
                                                                                               : sum;
}

/* A threshold that is met stays met until its minimum reclaim is available beyond it. */
static void threshold_see(struct seen *seen, const struct ev_threshold *t, const struct ev_value *v,
                          uint64_t now_ms)
{
    const bool met = v->available < (seen->met ? goal_of(t, v) : line_of(t, v));

    if (met && !seen->met)
        seen->since_ms = now_ms;
    seen->met = met;
}

static void pace_see(struct pace_seen *p, const struct ev_value *v, uint64_t now_ms)
{
    const uint64_t passed = now_ms - p->at_ms;

    if (p->known && passed < EV_RATE_MIN_MS)
        return; /* too short to measure: the older value stays */
    p->left_ms = UINT64_MAX;
    if (p->known && passed <= EV_RATE_MAX_MS && v->available < p->available)
        p->left_ms =
            (uint64_t)((double)v->available * (double)passed / (double)(p->available - v->available));
    p->known = true;
    p->at_ms = now_ms;
    p->available = v->available;
}

/* ---- conditions ---- */

static bool is_met(const struct ev_manager *m, enum ev_condition c)
{
    for (size_t i = 0; i < m->s.n; i++)
        if (m->seen[i].met && ev_signal_condition(m->s.v[i].signal) == c)
            return true;
    return false;
}

/* Returns whether it changed. */
static bool condition_see(struct condition *c, bool met, uint64_t transition_ms, uint64_t now_ms)
{
    const bool was = c->on;

    if (met) {
        c->on = true;
        c->ending = false;
    } else if (c->on && !c->ending) {
        c->ending = true;
        c->ended_ms = now_ms;
    }
    if (c->ending && now_ms - c->ended_ms >= transition_ms)
        c->on = c->ending = false;
    if (c->on != was)
        c->changed_ms = now_ms;
    return c->on != was;
}

/* ---- a check (struct ev_check) ---- */

static void soonest(struct ev_check *ret, uint64_t at_ms)
{
    if (ret->again_ms == 0 || at_ms < ret->again_ms)
        ret->again_ms = at_ms;
}

static void see(struct ev_manager *m, const struct ev_observation *o, uint64_t now_ms, bool *ret_probe)
{
    for (size_t i = 0; i < m->s.n; i++) {
        const struct ev_threshold *t = &m->s.v[i];
        const struct ev_value *v = &o->v[t->signal];
        const struct pace_seen *p = &m->pace[t->signal];

        if (!v->known)
            continue;
        threshold_see(&m->seen[i], t, v, now_ms);
        if (m->seen[i].met && !t->soft && (!p->known || now_ms - p->at_ms > EV_RATE_MAX_MS))
            *ret_probe = true;
    }
    for (size_t s = 0; s < EV_SIGNALS; s++)
        if (o->v[s].known)
            pace_see(&m->pace[s], &o->v[s], now_ms);
}

/* Whether, at the observed rate, nothing will be left at the end of the grace period; or, for memory, which a
 * process can take faster than checks can follow, whether less than half of the threshold is left. */
static bool is_urgent(const struct ev_manager *m, const struct ev_threshold *t, const struct ev_value *v)
{
    if (t->soft)
        return false;
    return v->available == 0 || m->pace[t->signal].left_ms < (uint64_t)EV_HARD_GRACE_S * 1000 ||
           (ev_signal_condition(t->signal) == EV_MEMORY_PRESSURE && v->available < line_of(t, v) / 2);
}

static struct ev_crossing crossing_of(const struct ev_manager *m, const struct ev_threshold *t,
                                      const struct ev_value *v)
{
    return (struct ev_crossing){
        .threshold = *t,
        .value = *v,
        .line = line_of(t, v),
        .goal = goal_of(t, v),
        .urgent = is_urgent(m, t, v),
    };
}

/* Memory first, then hard thresholds before soft ones, then by signal. */
static int turn_of(const struct ev_threshold *t)
{
    return (ev_signal_condition(t->signal) != EV_MEMORY_PRESSURE ? 4 * EV_SIGNALS : 0) +
           (t->soft ? 2 * EV_SIGNALS : 0) + (int)t->signal;
}

static void add_crossing(struct ev_check *ret, const struct ev_crossing *c)
{
    size_t at = ret->n_all++;

    for (; at > 0 && turn_of(&ret->all[at - 1].threshold) > turn_of(&c->threshold); at--)
        ret->all[at] = ret->all[at - 1];
    ret->all[at] = *c;
}

/* A quarter of the remaining time, while the signal is being used up. */
static uint64_t crossed_again_ms(const struct ev_manager *m, enum ev_signal s)
{
    const uint64_t quarter = m->pace[s].left_ms / 4;

    return quarter < EV_PROBE_MS ? EV_PROBE_MS : quarter < EV_ROUND_MS ? quarter : EV_ROUND_MS;
}

static void collect(struct ev_manager *m, const struct ev_observation *o, struct ev_check *ret)
{
    for (size_t i = 0; i < m->s.n; i++) {
        const struct ev_threshold *t = &m->s.v[i];
        const struct seen *seen = &m->seen[i];
        struct ev_crossing c;

        if (!seen->met)
            continue;
        soonest(ret, ret->now_ms + EV_ROUND_MS);
        if (!o->v[t->signal].known)
            continue;
        if (t->soft && ret->now_ms - seen->since_ms < t->grace_ms) {
            soonest(ret, seen->since_ms + t->grace_ms);
            continue;
        }
        soonest(ret, ret->now_ms + crossed_again_ms(m, t->signal));
        c = crossing_of(m, t, &o->v[t->signal]);
        add_crossing(ret, &c);
    }
}

static void update_conditions(struct ev_manager *m, struct ev_check *ret)
{
    for (enum ev_condition i = 0; i < EV_CONDITIONS; i++) {
        struct condition *c = &m->conditions[i];

        if (condition_see(c, is_met(m, i), m->s.transition_ms, ret->now_ms))
            ret->changed |= 1u << i;
        if (c->ending)
            soonest(ret, c->ended_ms + m->s.transition_ms);
    }
}

/* Decides the action for the current crossing. The node's own reserves that other crossings demand are
 * reclaimed with it. */
static void look_decide(struct ev_check *look)
{
    const struct ev_crossing *c;

    look->todo = EV_DO_NOTHING;
    look->reclaim = 0;
    if (look->at >= look->n_all)
        return;
    c = &look->all[look->at];
    look->crossing = *c;
    look->todo = EV_DO_EVICT;
    if ((ev_signal_reclaim(c->threshold.signal, look->layout) & ~look->reclaimed) == 0)
        return;
    look->todo = EV_DO_RECLAIM;
    for (size_t i = look->at; i < look->n_all; i++)
        look->reclaim |= ev_signal_reclaim(look->all[i].threshold.signal, look->layout) & ~look->reclaimed;
}

void ev_check_next(struct ev_check *look)
{
    if (look->at < look->n_all)
        look->at++;
    look_decide(look);
}

void ev_check_renew(struct ev_check *look, const struct ev_observation *o)
{
    size_t n = look->at;

    for (size_t i = look->at; i < look->n_all; i++) {
        struct ev_crossing c = look->all[i];

        if (o->v[c.threshold.signal].known)
            c.value = o->v[c.threshold.signal];
        if (c.value.available < c.goal)
            look->all[n++] = c;
    }
    look->n_all = n;
    look_decide(look);
}

void ev_manager_reclaimed(struct ev_manager *m, unsigned what, const struct ev_observation *o,
                          uint64_t now_ms, struct ev_check *ret)
{
    bool probe = false;

    *ret = (struct ev_check){ .now_ms = now_ms, .reclaimed = what, .layout = m->layout };
    see(m, o, now_ms, &probe);
    collect(m, o, ret);
    update_conditions(m, ret);
    if (probe)
        soonest(ret, now_ms + EV_PROBE_MS);
    look_decide(ret);
}

void ev_manager_check(struct ev_manager *m, const struct ev_observation *o, uint64_t now_ms,
                      struct ev_check *ret)
{
    ev_manager_reclaimed(m, 0, o, now_ms, ret);
}

/* ---- queries ---- */

bool ev_manager_pressure(const struct ev_manager *m, enum ev_condition c, uint64_t *ret_since_ms)
{
    if (ret_since_ms != NULL)
        *ret_since_ms = m->conditions[c].changed_ms;
    return m->conditions[c].on;
}

const struct ev_settings *ev_manager_settings(const struct ev_manager *m)
{
    return &m->s;
}

enum ev_layout ev_manager_layout(const struct ev_manager *m)
{
    return m->layout;
}

uint64_t ev_manager_headroom(const struct ev_manager *m, enum ev_signal s, const struct ev_value *v)
{
    uint64_t least = UINT64_MAX;
    bool any = false;

    for (size_t i = 0; i < m->s.n && v->known; i++) {
        const uint64_t line = line_of(&m->s.v[i], v);

        if (m->s.v[i].signal != s)
            continue;
        any = true;
        if (v->available >= line && v->available - line < least)
            least = v->available - line;
    }
    return any && least == UINT64_MAX ? 0 : least;
}
