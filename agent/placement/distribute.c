/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request shared by several NUMA nodes (KEP-2902). Sets of k nodes are tried in the order of
 * pl_take_node_order(), k from the least possible upwards. Each node of a set supplies the same number of
 * groups; the remainder is taken group by group from a subset of them, the largest subsets first. The set and
 * subset with the lowest standard deviation of the free processors of the nodes is used, of equal ones the
 * first.
 *
 * With five nodes and more, kubelet may use another set than the best one: it keeps the best one in a Go
 * slice, whose memory later sets share (see overwrite()). Its choice is reproduced, so that a pod gets the
 * same processors from both.
 */
#include "agent/placement/take.h"

#include <limits.h>

struct subset { /* indices of nodes, ascending */
    size_t at[PL_NODES_MAX];
    size_t n;
};

struct sharing {
    const struct pl_take *p;
    unsigned request, group;
    int32_t node[PL_NODES_MAX];  /* in the order in which they are taken */
    unsigned free[PL_NODES_MAX]; /* processors of each */
    size_t n;
};

static void first_subset(struct subset *s, size_t k)
{
    s->n = k;
    for (size_t i = 0; i < k; i++)
        s->at[i] = i;
}

/* The next subset of n, in lexicographic order; false: that was the last one. */
static bool next_subset(struct subset *s, size_t n)
{
    for (size_t i = s->n; i-- > 0;)
        if (s->at[i] < n - s->n + i) {
            s->at[i]++;
            for (size_t k = i + 1; k < s->n; k++)
                s->at[k] = s->at[k - 1] + 1;
            return true;
        }
    return false;
}

/*
 * How many of the first of k members two sets must have in common to share memory in kubelet. It appends them
 * one by one to an empty slice, whose capacity grows to 1, 2, 4, 8 and 16 members: an append that needs no
 * growth writes where the set before it has its member.
 */
static size_t shared_from(size_t k)
{
    size_t capacity = 1, n = 1;

    for (; capacity < k; capacity *= 2)
        n = capacity + 1;
    return n;
}

/* *next is the set that kubelet tries after the best one was found: its members replace those of the best one
 * that are in the same memory. */
static void overwrite(struct subset *best, const struct subset *next)
{
    size_t n = best->n > 0 ? shared_from(best->n) : 0;

    if (best->n == next->n && memcmp(best->at, next->at, n * sizeof(*best->at)) == 0)
        *best = *next;
}

/* The standard deviation in thousandths, from a mean in thousandths, both rounded (halves upwards): kubelet
 * compares rounded values, so different sets may be equally good. v: processors, at most CPUS_MAX each. */
static unsigned deviation(const unsigned *v, size_t n)
{
    int64_t sum = 0, mean, squares = 0;
    unsigned low = 0, high = 2 * 1000 * CPUS_MAX;

    if (n == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    mean = (2000 * sum / (int64_t)n + 1) / 2;
    for (size_t i = 0; i < n; i++)
        squares += (1000 * (int64_t)v[i] - mean) * (1000 * (int64_t)v[i] - mean);
    /* The greatest r with r - 1/2 <= sqrt(squares / n). */
    while (low < high) {
        int64_t r = (low + high + 1) / 2;

        if ((2 * r - 1) * (2 * r - 1) * (int64_t)n <= 4 * squares)
            low = (unsigned)r;
        else
            high = (unsigned)r - 1;
    }
    return low;
}

/* The share of each node of a set of k, before the remainder. */
static unsigned share_of(const struct sharing *s, size_t k)
{
    return s->request / (unsigned)k / s->group * s->group;
}

static bool can_share(const struct sharing *s, const struct subset *set)
{
    unsigned free = 0, groups = 0;

    for (size_t i = 0; i < set->n; i++) {
        if (s->free[set->at[i]] < share_of(s, set->n))
            return false;
        free += s->free[set->at[i]];
        groups += s->free[set->at[i]] / s->group;
    }
    return free >= s->request && groups * s->group >= s->request;
}

/* Takes the remainder from the nodes of a subset, group by group. False: they do not have it in whole groups.
 * kubelet counts single processors here, and never returns if there are enough of them. */
static bool hand_out(const struct sharing *s, const struct subset *set, unsigned remainder, unsigned *free)
{
    unsigned groups = 0;

    for (size_t i = 0; i < set->n; i++)
        groups += free[set->at[i]] / s->group;
    if (groups * s->group < remainder)
        return false;
    while (remainder > 0)
        for (size_t i = 0; i < set->n && remainder > 0; i++)
            if (free[set->at[i]] >= s->group) {
                free[set->at[i]] -= s->group;
                remainder -= s->group;
            }
    return true;
}

/* The balance of a set, and the subset that supplies the remainder; UINT_MAX: no subset can. */
static unsigned balance_of(const struct sharing *s, const struct subset *set, struct subset *ret_extra)
{
    unsigned share = share_of(s, set->n), remainder = s->request - share * (unsigned)set->n;
    unsigned left[PL_NODES_MAX];
    struct subset able = { .n = 0 };
    unsigned best = UINT_MAX;

    for (size_t i = 0; i < s->n; i++)
        left[i] = s->free[i];
    for (size_t i = 0; i < set->n; i++)
        left[set->at[i]] -= share;
    ret_extra->n = 0;
    if (remainder == 0)
        return deviation(left, s->n);
    for (size_t i = 0; i < set->n; i++)
        if (left[set->at[i]] >= s->group)
            able.at[able.n++] = set->at[i];
    for (size_t k = able.n; k >= 1; k--) {
        struct subset at, extra;

        first_subset(&at, k);
        do {
            unsigned then[PL_NODES_MAX];
            unsigned balance;

            extra.n = k;
            for (size_t i = 0; i < k; i++)
                extra.at[i] = able.at[at.at[i]];
            overwrite(ret_extra, &extra);
            for (size_t i = 0; i < s->n; i++)
                then[i] = left[i];
            if (!hand_out(s, &extra, remainder, then))
                continue;
            balance = deviation(then, s->n);
            if (balance < best) {
                best = balance;
                *ret_extra = extra;
            }
        } while (next_subset(&at, able.n));
    }
    return best;
}

struct taken {
    struct cpus free, cpus;
    int need; /* negative: too many were taken, of which some twice */
};

/* Takes n processors of a node, or none if it has fewer: an overwritten set may have such a node. */
static void take_some(const struct sharing *s, size_t node, unsigned n, struct taken *t)
{
    const struct pl_take packed = { .m = s->p->m, .spread = s->p->spread, .only_free = s->p->only_free };
    struct cpus on = pl_cpus_in(s->p->m, &t->free, PL_NODE, s->node[node]), got;

    if (pl_take_packed(&packed, &on, n, &got, ERR_IGNORED) != ERR_OK)
        return;
    t->cpus = cpus_or(&t->cpus, &got);
    t->free = cpus_without(&t->free, &got);
    t->need -= (int)cpus_count(&got);
}

/* Takes one group from each node of the subset that has one. Returns how many processors that were. */
static unsigned take_round(const struct sharing *s, const struct subset *extra, unsigned remainder,
                           struct taken *t)
{
    unsigned n = 0;

    for (size_t i = 0; i < extra->n && n < remainder; i++) {
        struct cpus on = pl_cpus_in(s->p->m, &t->free, PL_NODE, s->node[extra->at[i]]);

        if (cpus_count(&on) < s->group)
            continue;
        take_some(s, extra->at[i], s->group, t);
        n += s->group;
    }
    return n;
}

static enum err_code take_shared(const struct sharing *s, const struct cpus *available,
                                 const struct subset *set, const struct subset *extra, struct cpus *ret,
                                 struct err *e)
{
    unsigned share = share_of(s, set->n), remainder = s->request - share * (unsigned)set->n;
    struct taken t = { .free = *available, .need = (int)s->request };

    for (size_t i = 0; i < set->n; i++)
        take_some(s, set->at[i], share, &t);
    for (unsigned n; remainder > 0; remainder -= n) {
        n = take_round(s, extra, remainder, &t);
        if (n == 0)
            break; /* kubelet never returns here */
    }
    if (t.need != 0)
        return err_set(e, ERR_EXHAUSTED, "accounting error, %s CPUs allocated, remaining: %d",
                       t.need > 0 ? "not enough" : "too many", t.need);
    *ret = t.cpus;
    return ERR_OK;
}

/* The best set of k nodes; false: none can share the request. */
static bool best_set(const struct sharing *s, size_t k, struct subset *ret, struct subset *ret_extra)
{
    struct subset set, extra = { .n = 0 };
    unsigned best = UINT_MAX;
    bool more;

    first_subset(&set, k);
    do {
        unsigned balance;

        if (best < UINT_MAX)
            overwrite(ret, &set);
        if (best == 0)
            break;
        if (can_share(s, &set)) {
            balance = balance_of(s, &set, &extra);
            if (balance < best) {
                best = balance;
                *ret = set;
                *ret_extra = extra;
            }
        }
        more = next_subset(&set, s->n);
    } while (more);
    return best < UINT_MAX;
}

static unsigned at_least(unsigned n, unsigned per) /* n / per, rounded up; n > 0 */
{
    return (n - 1) / per + 1;
}

enum err_code pl_take_distributed(const struct pl_take *t, const struct cpus *available, unsigned request,
                                  unsigned group, struct cpus *ret, struct err *e)
{
    struct pl_take packed = { .m = t->m, .spread = t->spread, .only_free = t->only_free };
    struct sharing s = { .p = t, .request = request, .group = group };
    struct subset set = { .n = 0 }, extra = { .n = 0 };
    size_t min, max;

    if (request == 0 || request % group != 0 || request > cpus_count(available))
        return pl_take_packed(&packed, available, request, ret, e);
    s.n = pl_take_node_order(t->m, available, s.node);
    for (size_t i = 0; i < s.n; i++) {
        struct cpus on = pl_cpus_in(t->m, available, PL_NODE, s.node[i]);

        s.free[i] = cpus_count(&on);
    }
    min = at_least(request / group, at_least(at_least(t->m->n_cpus, group), t->m->n[PL_NODE]));
    max = request / group < s.n ? request / group : s.n;
    for (size_t k = min; k <= max; k++)
        if (best_set(&s, k, &set, &extra))
            return take_shared(&s, available, &set, &extra, ret, e);
    return pl_take_packed(&packed, available, request, ret, e);
}
