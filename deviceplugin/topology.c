/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Here a set of NUMA nodes is a number below 256: bit i is the i-th node of the machine. So devices are
 * counted once, by the set of nodes that they are on, and not again for each set that is tried.
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

/* Counts healthy devices without a holder. */
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
