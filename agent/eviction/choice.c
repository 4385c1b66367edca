/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of victims. kubelet evicts one pod and checks again a second later, however much is missing.
 * Here the next check follows at once, and the expected release of ending pods is counted, so that it usually
 * finds nothing to do. If one pod cannot be enough, the next check would only choose another; so several pods
 * are evicted at once.
 */
#include "agent/eviction/manager.h"

#include <stdlib.h>
#include <string.h>

/* kubelet kills at the earliest two seconds after an eviction with a grace period of one; this is as quick.
 */
#define AS_QUICK_MS 1500

static int64_t grace_of(const struct ev_settings *s, const struct ev_crossing *c)
{
    if (c->urgent)
        return 0;
    if (!c->threshold.soft)
        return EV_HARD_GRACE_S;
    if (s->max_pod_grace_s < 0)
        return -1;
    return s->max_pod_grace_s > 1 ? s->max_pod_grace_s : 1;
}

/* Whether an eviction would kill an ending pod earlier than its present deadline. */
static bool is_quicker(const struct ev_pod *p, int64_t grace_s, uint64_t now_ms)
{
    int64_t s = grace_s < 0 || p->grace_s < grace_s ? p->grace_s : grace_s;
    uint64_t at_ms;

    if (s <= 0)
        s = grace_s != 0 ? EV_HARD_GRACE_S : 0; /* a pod with a grace period of 0 gets as much */
    if (s > INT32_MAX)
        return false;
    at_ms = now_ms + (uint64_t)s * 1000;
    return p->kill_ms > at_ms && p->kill_ms - at_ms > (grace_s != 0 ? AS_QUICK_MS : 0);
}

/* Whether the pod is ending and is expected to release its resources soon. */
static bool is_releasing(const struct ev_pod *p, uint64_t now_ms)
{
    return p->kill_ms >= now_ms || now_ms - p->kill_ms < EV_RELEASE_MS;
}

static void add_up(uint64_t *sum, uint64_t n)
{
    if (__builtin_add_overflow(*sum, n, sum))
        *sum = UINT64_MAX;
}

struct choosing {
    const struct ev_check *look;
    uint64_t need;     /* the amount that must become available */
    uint64_t released; /* the part of it that ending or chosen pods will release */
};

static uint64_t usage_of(const struct choosing *k, const struct ev_pod *p)
{
    uint64_t usage, request;

    return ev_usage(k->look->crossing.threshold.signal, k->look->layout, p, &usage, &request) ? usage : 0;
}

/* Adds candidates to ret->ranked and sums up the usage of ending pods. */
static void sort_out(struct choosing *k, const struct ev_pod *pods, size_t n, struct ev_choice *ret)
{
    for (size_t i = 0; i < n; i++) {
        const struct ev_pod *p = &pods[i];

        if (!p->ending || is_quicker(p, ret->grace_s, k->look->now_ms))
            ret->ranked[ret->n_ranked++] = p;
        else if (is_releasing(p, k->look->now_ms))
            add_up(&k->released, usage_of(k, p));
    }
    ev_rank(k->look->crossing.threshold.signal, k->look->layout, ret->ranked, ret->n_ranked);
}

/* Whether the pod may be evicted in addition to others: it exceeds its request by a known amount. Process ids
 * cannot be requested. */
static bool goes_along(const struct choosing *k, const struct ev_pod *p)
{
    const enum ev_signal s = k->look->crossing.threshold.signal;
    uint64_t usage, request;

    return ev_usage(s, k->look->layout, p, &usage, &request) && usage > request;
}

static void pick(struct choosing *k, struct ev_choice *ret)
{
    bool along = true;

    for (size_t i = 0; i < ret->n_ranked && ret->n_victims < EV_VICTIMS_MAX && k->released < k->need; i++) {
        const struct ev_pod *p = ret->ranked[i];

        if (p->critical)
            continue;
        along = along && goes_along(k, p);
        if (ret->n_victims > 0 && !along)
            break;
        ret->victims[ret->n_victims++] = i;
        add_up(&k->released, usage_of(k, p));
    }
}

enum err_code ev_manager_choose(const struct ev_manager *m, const struct ev_check *look,
                                const struct ev_pod *pods, size_t n_pods, struct ev_choice *ret,
                                struct err *e)
{
    const struct ev_crossing *c = &look->crossing;
    struct choosing k = { .look = look };
    struct ev_choice choice = { 0 };

    choice.ranked = calloc(n_pods + 1, sizeof(*choice.ranked));
    choice.victims = calloc(EV_VICTIMS_MAX, sizeof(*choice.victims));
    if (choice.ranked == NULL || choice.victims == NULL) {
        ev_choice_done(&choice);
        return err_nomem(e);
    }
    choice.grace_s = grace_of(ev_manager_settings(m), c);
    k.need = c->goal > c->value.available ? c->goal - c->value.available : 1;
    sort_out(&k, pods, n_pods, &choice);
    choice.enough = k.released >= k.need;
    pick(&k, &choice);
    *ret = choice;
    return ERR_OK;
}

void ev_choice_done(struct ev_choice *c)
{
    free(c->ranked);
    free(c->victims);
    *c = (struct ev_choice){ 0 };
}
