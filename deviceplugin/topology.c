/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Here a set of NUMA nodes is a number below 256: bit i is the i-th node of the machine. So devices are
 * counted once, by the set of nodes that they are on, and not again for each set that is tried. And hints are
 * merged without trying all of their combinations (255 for each resource): kubelet's result depends only on
 * which sets can result.
 */
#include "deviceplugin/topology.h"

#include <string.h>

#define SETS (1u << DP_NUMA_MAX)

/* ---- sets ---- */

static unsigned all_nodes(const struct dp_machine *m)
{
    return (1u << __builtin_popcountll(m->nodes)) - 1;
}

static unsigned size_of(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

static uint64_t numbers_of(const struct dp_machine *m, unsigned set)
{
    uint64_t left = m->nodes, ret = 0;

    for (; left != 0; left &= left - 1, set >>= 1)
        if ((set & 1) != 0)
            ret |= left & -left;
    return ret;
}

/* The nodes of this machine that the device is on; a provider may name nodes that do not exist. */
static unsigned set_of(const struct dp_machine *m, const struct dp_device *d)
{
    unsigned ret = 0;

    for (size_t i = 0; i < d->n_numa; i++) {
        int64_t node = d->numa[i];

        if (node >= 0 && node <= DP_NUMA_ID_MAX && (m->nodes >> node & 1) != 0)
            ret |= 1u << __builtin_popcountll(m->nodes & ((1ull << node) - 1));
    }
    return ret;
}

/* ---- hints ---- */

struct counts { /* of devices, by the set of nodes they are on */
    size_t all[SETS], available[SETS], reusable[SETS];
};

static size_t touching(const size_t counts[SETS], unsigned set, unsigned all)
{
    size_t n = 0;

    for (unsigned on = 1; on <= all; on++)
        n += (on & set) != 0 ? counts[on] : 0;
    return n;
}

static bool has_topology(const struct dp_resource *r)
{
    for (size_t i = 0; i < r->n_devices; i++)
        if (r->devices[i].n_numa > 0)
            return true;
    return false;
}

/* Counts healthy devices that nobody holds. */
static void count_free(const struct dp_machine *m, const struct dp_resource *r, const struct dp_holdings *h,
                       struct counts *c)
{
    for (size_t i = 0; i < r->n_devices; i++)
        c->available[set_of(m, &r->devices[i])] += r->devices[i].healthy;
    for (const struct dp_owned *o = dp_holdings_owned_next(h, r->name, NULL); o != NULL;
         o = dp_holdings_owned_next(h, r->name, o)) {
        const struct dp_device *d = dp_resource_device(r, o->id);

        if (d != NULL && d->healthy)
            c->available[set_of(m, d)]--;
    }
}

static void count_one(const struct dp_machine *m, const struct dp_resource *r, const char *id,
                      size_t counts[SETS])
{
    const struct dp_device *d = dp_resource_device(r, id);

    if (d != NULL && d->n_numa > 0)
        counts[set_of(m, d)]++;
}

static void count_reusable(const struct dp_machine *m, const struct dp_resource *r, const struct dp_wish *w,
                           struct counts *c)
{
    for (size_t i = 0; i < w->n_reusable; i++)
        count_one(m, r, w->reusable[i], c->reusable);
}

/* Counts the devices that the container, or the pod, holds already; returns their number. */
static int64_t count_held(const struct dp_machine *m, const struct dp_resource *r,
                          const struct dp_holdings *h, const struct dp_wish *w, size_t counts[SETS])
{
    const struct dp_holding *x =
        w->container != NULL ? dp_holdings_find(h, w->pod_uid, w->container, r->name) : NULL;
    const struct dp_owned *o = NULL;
    int64_t n = 0;

    for (size_t i = 0; x != NULL && i < x->n_devices; i++, n++)
        count_one(m, r, x->devices[i].id, counts);
    while (w->container == NULL && (o = dp_holdings_owned_next(h, r->name, o)) != NULL)
        if (strcmp(o->pod_uid, w->pod_uid) == 0) {
            count_one(m, r, o->id, counts);
            n++;
        }
    return n;
}

/* A set is possible if it has all reused devices and enough others. It is preferred if it is as small as the
 * smallest set that would be enough with all devices free. */
static void make(const struct counts *c, unsigned all, int64_t count, uint8_t v[SETS])
{
    size_t n_reusable = c->reusable[0] + touching(c->reusable, all, all);
    unsigned least = size_of(all);

    for (unsigned set = 1; set <= all; set++) {
        size_t reused = touching(c->reusable, set, all);

        if ((int64_t)touching(c->all, set, all) >= count && size_of(set) < least)
            least = size_of(set);
        if (reused == n_reusable && (int64_t)(reused + touching(c->available, set, all)) >= count)
            v[set] = DP_HINT_POSSIBLE;
    }
    for (unsigned set = 1; set <= all; set++)
        if (v[set] == DP_HINT_POSSIBLE && size_of(set) == least)
            v[set] = DP_HINT_PREFERRED;
}

void dp_hints_make(const struct dp_machine *m, const struct dp_resource *r, const struct dp_holdings *h,
                   const struct dp_wish *w, struct dp_hints *ret)
{
    struct counts c = { 0 };
    int64_t held;

    *ret = (struct dp_hints){ .any = r == NULL || !has_topology(r) };
    if (ret->any)
        return;
    for (size_t i = 0; i < r->n_devices; i++)
        c.all[set_of(m, &r->devices[i])]++;
    held = count_held(m, r, h, w, c.reusable);
    if (held > w->count || (held > 0 && held < w->count && w->container != NULL))
        return;
    if (held < w->count) {
        count_free(m, r, h, &c);
        count_reusable(m, r, w, &c);
    }
    make(&c, all_nodes(m), w->count, ret->v);
}

/* ---- merging ---- */

static bool has_hint(const struct dp_hints *h, unsigned all)
{
    for (unsigned set = 1; set <= all; set++)
        if (h->v[set] != DP_HINT_NO)
            return true;
    return false;
}

/* Whether a has fewer nodes than b, or as many but lower ones. */
static bool narrower(unsigned a, unsigned b)
{
    return size_of(a) != size_of(b) ? size_of(a) < size_of(b) : a < b;
}

/* The narrowest set that all resources prefer; 0: none. */
static unsigned preferred_by_all(const struct dp_hints *v, size_t n, unsigned all, unsigned most)
{
    unsigned best = 0, constrained = 0;

    for (size_t i = 0; i < n; i++)
        constrained += !v[i].any;
    if (constrained == 0)
        return all;
    for (unsigned set = 1; set <= all; set++) {
        bool ok = size_of(set) <= most;

        for (size_t i = 0; ok && i < n; i++)
            ok = v[i].any || v[i].v[set] == DP_HINT_PREFERRED;
        if (ok && (best == 0 || narrower(set, best)))
            best = set;
    }
    return best;
}

/* Whether a is better than b, if no set is preferred by all resources. `size` is the best size: the size of
 * the smallest set that can supply the most demanding resource. */
static bool better(unsigned a, unsigned b, unsigned size)
{
    unsigned n_a = size_of(a), n_b = size_of(b);

    if (n_a == n_b)
        return a < b;
    if (n_a <= size && n_b <= size)
        return n_a > n_b;
    return n_a < n_b;
}

/* The size of the smallest set that can supply a resource; 0: none can. */
static unsigned least_of(const struct dp_hints *h, unsigned all)
{
    unsigned least = 0;

    for (unsigned set = 1; set <= all && !h->any; set++)
        if (h->v[set] != DP_HINT_NO && (least == 0 || size_of(set) < least))
            least = size_of(set);
    return least;
}

/* Intersects each set that was reached with each hint of a further resource. */
static void intersect(bool reached[SETS], const struct dp_hints *h, unsigned all)
{
    bool next[SETS] = { 0 };

    for (unsigned a = 1; a <= all; a++)
        for (unsigned b = 1; reached[a] && b <= all; b++)
            if (h->v[b] != DP_HINT_NO)
                next[a & b] = true;
    memcpy(reached, next, sizeof(next));
}

static unsigned best_of_all(const struct dp_hints *v, size_t n, unsigned all)
{
    bool reached[SETS] = { 0 };
    unsigned size = 0, best = 0;

    reached[all] = true;
    for (size_t i = 0; i < n; i++) {
        unsigned least = least_of(&v[i], all);

        if (!v[i].any && has_hint(&v[i], all))
            intersect(reached, &v[i], all);
        size = least > size ? least : size;
    }
    for (unsigned set = 1; set <= all; set++)
        if (reached[set] && (best == 0 || better(set, best, size)))
            best = set;
    return best != 0 ? best : all; /* they have no node in common */
}

enum err_code dp_hints_merge(const struct dp_machine *m, enum dp_policy policy, const struct dp_hints *v,
                             size_t n, bool *ret_has, uint64_t *ret_numa, struct err *e)
{
    unsigned all = all_nodes(m), set;

    if (policy == DP_POLICY_NONE) {
        *ret_has = false;
        return ERR_OK;
    }
    set = preferred_by_all(v, n, all, policy == DP_POLICY_SINGLE_NODE ? 1 : DP_NUMA_MAX);
    if (set == 0 && policy != DP_POLICY_BEST_EFFORT)
        return err_set(e, ERR_PRECONDITION, "Resources cannot be allocated with Topology locality");
    if (set == 0)
        set = best_of_all(v, n, all);
    /* As in kubelet: the policy single-numa-node aligns nothing if the machine has one node, or if nothing is
     * constrained. */
    *ret_has = policy != DP_POLICY_SINGLE_NODE || set != all;
    *ret_numa = numbers_of(m, set);
    return ERR_OK;
}
