/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubelet intersects every combination of hints and keeps the best. Its result depends only on the sets that
 * can result. So here a set of nodes is a number below 2^16 (bit i is the i-th node of the machine), and the
 * possible results are computed for one more resource at a time: not from all pairs (2^32), but by counting,
 * for each set, the hints that contain it.
 */
#include "agent/placement/hints.h"
#include "base/scope.h"

#include <stdlib.h>

struct merging {
    const struct pl_machine *m;
    bool closest;
    uint32_t n;    /* nodes */
    uint32_t all;  /* all nodes */
    uint32_t best; /* the size of the smallest set that can supply the most demanding resource */
};

/* ---- sets ---- */

static uint32_t size_of(uint32_t set)
{
    return (uint32_t)__builtin_popcount(set);
}

/* 0: a set without any node of this machine. */
static uint32_t set_of(const struct merging *g, uint64_t nodes)
{
    uint32_t ret = 0, i = 0;

    for (uint64_t left = g->m->nodes; left != 0; left &= left - 1, i++)
        if ((nodes & left & -left) != 0)
            ret |= 1u << i;
    return ret;
}

static uint64_t nodes_of(const struct merging *g, uint32_t set)
{
    uint64_t ret = 0;

    for (uint64_t left = g->m->nodes; left != 0; left &= left - 1, set >>= 1)
        if ((set & 1) != 0)
            ret |= left & -left;
    return ret;
}

static double distance_of(const struct merging *g, uint32_t set)
{
    double sum = 0;

    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < g->n; k++)
            if ((set >> i & 1) != 0 && (set >> k & 1) != 0)
                sum += g->m->node[i].distance[k];
    return sum / ((double)size_of(set) * size_of(set));
}

/* Of sets of one size: whether a is closer, or has lower nodes. */
static bool lower(const struct merging *g, uint32_t a, uint32_t b)
{
    if (g->closest) {
        double x = distance_of(g, a), y = distance_of(g, b);

        if (x < y || x > y)
            return x < y;
    }
    return a < b;
}

static bool narrower(const struct merging *g, uint32_t a, uint32_t b)
{
    return size_of(a) != size_of(b) ? size_of(a) < size_of(b) : lower(g, a, b);
}

/* Of sets that are not preferred, the one whose size is closest to the best size, from below first. */
static bool better(const struct merging *g, uint32_t a, uint32_t b)
{
    uint32_t x = size_of(a), y = size_of(b);

    if (x == y)
        return lower(g, a, b);
    if (x <= g->best && y <= g->best)
        return x > y;
    return x < y;
}

/* ---- preferred sets ---- */

struct votes {
    uint32_t *by;      /* number of resources that prefer each set and have a constraint */
    uint32_t *any_by;  /* the same for resources without a constraint */
    uint32_t required; /* number of resources that must prefer a set */
};

/* Whether the resource has a preferred hint without a constraint. */
static bool takes_any(const struct pl_hints *h)
{
    for (size_t i = 0; !h->any && i < h->n; i++)
        if (h->v[i].preferred && h->v[i].nodes == 0)
            return true;
    return h->any;
}

static void vote(const struct merging *g, const struct pl_hints *h, uint32_t *by, uint32_t already)
{
    for (size_t i = 0; !h->any && i < h->n; i++) {
        uint32_t set = set_of(g, h->v[i].nodes);

        if (h->v[i].preferred && set != 0 && by[set] == already)
            by[set]++;
    }
}

/* Whether each resource has a preferred hint that names this set or no set. All nodes also result if no hint
 * names a set. */
static bool all_prefer(const struct merging *g, const struct votes *votes, uint32_t set)
{
    if (votes->required > 0)
        return votes->by[set] == votes->required;
    return set == g->all || votes->any_by[set] > 0;
}

/* The best set of at most `most` nodes that all resources prefer; all nodes if nothing is constrained. 0:
 * there is none. */
static enum err_code best_preferred(const struct merging *g, const struct pl_hints *v, size_t n,
                                    uint32_t most, uint32_t *ret, struct err *e)
{
    mem_auto uint32_t *counts = calloc(2 * ((size_t)g->all + 1), sizeof(*counts));
    struct votes votes = { .by = counts };
    uint32_t best = 0;

    if (counts == NULL)
        return err_nomem(e);
    votes.any_by = counts + g->all + 1;
    for (size_t i = 0; i < n; i++)
        if (takes_any(&v[i]))
            vote(g, &v[i], votes.any_by, 0);
        else
            vote(g, &v[i], votes.by, votes.required++);
    for (uint32_t set = 1; set <= g->all; set++)
        if ((size_of(set) <= most || (set == g->all && votes.required == 0)) && all_prefer(g, &votes, set) &&
            (best == 0 || narrower(g, set, best)))
            best = set;
    *ret = best;
    return ERR_OK;
}

/* ---- other sets ---- */

static void sum_supersets(uint64_t *f, uint32_t n)
{
    for (uint32_t bit = 1; bit < 1u << n; bit <<= 1)
        for (uint32_t set = 0; set < 1u << n; set++)
            if ((set & bit) == 0)
                f[set] += f[set | bit];
}

static void undo_sum(uint64_t *f, uint32_t n)
{
    for (uint32_t bit = 1; bit < 1u << n; bit <<= 1)
        for (uint32_t set = 0; set < 1u << n; set++)
            if ((set & bit) == 0)
                f[set] -= f[set | bit];
}

/* reached: 1 for each set that can result so far. Intersects each with each hint. `hints` is scratch. The
 * counts stay below 2^32: each factor is at most 2^16. */
static void intersect(const struct merging *g, const struct pl_hints *h, uint64_t *reached, uint64_t *hints)
{
    for (uint32_t set = 0; set <= g->all; set++)
        hints[set] = 0;
    for (size_t i = 0; i < h->n; i++)
        hints[h->v[i].nodes == 0 ? g->all : set_of(g, h->v[i].nodes)] = 1;
    sum_supersets(reached, g->n);
    sum_supersets(hints, g->n);
    for (uint32_t set = 0; set <= g->all; set++)
        reached[set] *= hints[set];
    undo_sum(reached, g->n);
    for (uint32_t set = 0; set <= g->all; set++)
        reached[set] = reached[set] != 0;
    reached[0] = 0;
}

/* With nodes that this machine does not have, as in kubelet. */
static uint32_t least_of(const struct pl_hints *h)
{
    uint32_t least = 0;

    for (size_t i = 0; !h->any && i < h->n; i++) {
        uint32_t size = (uint32_t)__builtin_popcountll(h->v[i].nodes);

        if (h->v[i].nodes != 0 && (least == 0 || size < least))
            least = size;
    }
    return least;
}

/* The best set if none is preferred by all; 0: the resources have no node in common. */
static enum err_code best_other(struct merging *g, const struct pl_hints *v, size_t n, uint32_t *ret,
                                struct err *e)
{
    mem_auto uint64_t *reached = calloc(2 * ((size_t)g->all + 1), sizeof(*reached));
    uint32_t best = 0;

    if (reached == NULL)
        return err_nomem(e);
    reached[g->all] = 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t least = least_of(&v[i]);

        g->best = least > g->best ? least : g->best;
        /* Different hints of resources that have the same ones can meet in a smaller set. */
        for (size_t k = 0; k <= v[i].more && !v[i].any && v[i].n > 0; k++)
            intersect(g, &v[i], reached, reached + g->all + 1);
    }
    for (uint32_t set = 1; set <= g->all; set++)
        if (reached[set] != 0 && (best == 0 || better(g, set, best)))
            best = set;
    *ret = best;
    return ERR_OK;
}

/* ---- policies ---- */

static enum err_code refuse(struct err *e)
{
    return err_set(e, ERR_PRECONDITION, "Resources cannot be allocated with Topology locality");
}

enum err_code pl_merge(const struct pl_machine *m, const struct pl_topology *t, const struct pl_hints *v,
                       size_t n, struct pl_hint *ret, struct err *e)
{
    struct merging g = { .m = m, .closest = t->prefer_closest };
    uint32_t set = 0;

    g.n = (uint32_t)__builtin_popcountll(m->nodes);
    g.all = (1u << g.n) - 1;
    *ret = (struct pl_hint){ 0 };
    if (t->policy == PL_POLICY_NONE)
        return ERR_OK;
    if (best_preferred(&g, v, n, t->policy == PL_POLICY_SINGLE_NODE ? 1 : PL_NODES_MAX, &set, e) != ERR_OK)
        return e->code;
    ret->preferred = set != 0;
    if (t->policy == PL_POLICY_SINGLE_NODE) {
        /* A set of all nodes means no alignment; so does the only node of a small machine. */
        ret->nodes = set != g.all ? nodes_of(&g, set) : 0;
        return set != 0 ? ERR_OK : refuse(e);
    }
    if (set == 0 && best_other(&g, v, n, &set, e) != ERR_OK)
        return e->code;
    ret->nodes = nodes_of(&g, set != 0 ? set : g.all); /* no common node: all nodes */
    return ret->preferred || t->policy == PL_POLICY_BEST_EFFORT ? ERR_OK : refuse(e);
}
