/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/take.h"

#include <stdlib.h>

struct taking {
    const struct pl_machine *m;
    struct cpus free, taken;
    unsigned need;
    bool only_free;
};

struct order { /* numbers of nodes, sockets, caches or cores */
    int32_t id[CPUS_MAX];
    size_t n;
};

static void take(struct taking *t, const struct cpus *s)
{
    t->taken = cpus_or(&t->taken, s);
    t->free = cpus_without(&t->free, s);
    t->need -= cpus_count(s);
}

/* ---- order ---- */

struct ranked {
    int32_t id;
    unsigned free;
};

static int by_free(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->free != y->free)
        return x->free < y->free ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Appends the units of this level that contain processors of *within, fewest free processors first. */
static void append(const struct taking *t, enum pl_level level, const struct cpus *within, struct order *ret)
{
    struct ranked v[CPUS_MAX] = { 0 };
    size_t n = 0;

    cpus_each(cpu, within)
    {
        int32_t id = t->m->cpu[cpu].in[level];
        size_t i = 0;

        while (i < n && v[i].id != id)
            i++;
        if (i == n) {
            struct cpus s = pl_cpus_in(t->m, &t->free, level, id);

            v[n++] = (struct ranked){ id, cpus_count(&s) };
        }
    }
    qsort(v, n, sizeof(*v), by_free);
    for (size_t i = 0; i < n && ret->n < CPUS_MAX; i++)
        ret->id[ret->n++] = v[i].id;
}

/* The level above, in whose order a level is ordered; the level itself: none. Sockets are above nodes only
 * if there are more nodes than sockets. */
static enum pl_level above(const struct pl_machine *m, enum pl_level level)
{
    bool nodes_first = m->n[PL_SOCKET] >= m->n[PL_NODE];

    switch (level) {
    case PL_NODE:
        return nodes_first ? PL_NODE : PL_SOCKET;
    case PL_SOCKET:
        return nodes_first ? PL_NODE : PL_SOCKET;
    case PL_CORE:
        return nodes_first ? PL_SOCKET : PL_NODE;
    case PL_UNCORE:
        break;
    }
    return PL_NODE;
}

static void order_of(const struct taking *t, enum pl_level level, struct order *ret)
{
    enum pl_level up = above(t->m, level);
    struct order outer;

    ret->n = 0;
    if (up == level) {
        append(t, level, &t->free, ret);
        return;
    }
    order_of(t, up, &outer);
    for (size_t i = 0; i < outer.n; i++) {
        struct cpus within = pl_cpus_in(t->m, &t->free, up, outer.id[i]);

        append(t, level, &within, ret);
    }
}

size_t pl_take_node_order(const struct pl_machine *m, const struct cpus *available, int32_t ret[PL_NODES_MAX])
{
    struct taking t = { .m = m, .free = *available };
    struct order o;
    size_t n = 0;

    order_of(&t, PL_NODE, &o);
    for (size_t i = 0; i < o.n && n < PL_NODES_MAX; i++)
        ret[n++] = o.id[i];
    return n;
}

/* ---- steps ---- */

/* Sockets and cores are whole if they have the average number of processors: kubelet compares with the
 * quotient. */
static bool is_whole(const struct taking *t, const struct cpus *free, enum pl_level level,
                     const struct cpus *all, int32_t id)
{
    bool average = level == PL_SOCKET || level == PL_CORE;
    struct cpus own = pl_cpus_in(t->m, free, level, id);

    if (t->only_free || !average)
        return cpus_contain(free, all) && (!average || cpus_count(all) == t->m->n_cpus / t->m->n[level]);
    return cpus_count(&own) == t->m->n_cpus / t->m->n[level];
}

/* Takes each whole node, socket, cache or core, while the need is at least as large. */
static void take_whole(struct taking *t, enum pl_level level)
{
    struct cpus free = t->free; /* kubelet looks before it takes the first */
    struct order o;

    order_of(t, level, &o);
    for (size_t i = 0; i < o.n && t->need > 0; i++) {
        struct cpus all = pl_cpus_in(t->m, &t->m->cpus, level, o.id[i]);

        if (is_whole(t, t->only_free ? &t->free : &free, level, &all, o.id[i]) && t->need >= cpus_count(&all))
            take(t, &all);
    }
}

/*
 * Takes the whole need from one cache if its first cores have exactly that many processors; with an odd need,
 * half of the last core is left.
 */
static void take_from_cache(struct taking *t, int32_t cache)
{
    unsigned per_core = pl_cpus_per_core(t->m);
    unsigned cores = (t->need + per_core - 1) / per_core, seen = 0, last = 0;
    struct cpus free = pl_cpus_in(t->m, &t->free, PL_UNCORE, cache), got = { 0 };

    for (int32_t id = -1; seen < cores; seen++) {
        int32_t next = INT32_MAX;
        struct cpus core;

        cpus_each(cpu, &free)
        {
            int32_t in = t->m->cpu[cpu].in[PL_CORE];

            next = in > id && in < next ? in : next;
        }
        if (next == INT32_MAX)
            break;
        id = next;
        core = pl_cpus_in(t->m, &t->free, PL_CORE, id);
        got = cpus_or(&got, &core);
    }
    if (t->need % 2 != 0 && per_core > 1 && cpus_count(&got) > t->need) {
        struct cpus one = { 0 };

        cpus_each(cpu, &got) last = cpu;
        cpus_add(&one, last);
        got = cpus_without(&got, &one);
    }
    if (cpus_count(&got) == t->need)
        take(t, &got);
}

static void take_caches(struct taking *t)
{
    unsigned per_cache = t->m->n_cpus / t->m->n[PL_UNCORE];
    struct order o;

    order_of(t, PL_UNCORE, &o);
    for (size_t i = 0; i < o.n && t->need > 0; i++) {
        if (t->need >= per_cache)
            take_whole(t, PL_UNCORE);
        if (t->need > 0)
            take_from_cache(t, o.id[i]);
    }
}

static void take_single(struct taking *t, bool spread)
{
    enum pl_level level = spread ? PL_SOCKET : PL_CORE;
    struct order o;

    order_of(t, level, &o);
    for (size_t i = 0; i < o.n; i++) {
        struct cpus in = pl_cpus_in(t->m, &t->free, level, o.id[i]);

        cpus_each(cpu, &in)
        {
            struct cpus one = { 0 };

            if (t->need == 0)
                return;
            cpus_add(&one, cpu);
            take(t, &one);
        }
    }
}

enum err_code pl_take_packed(const struct pl_take *t, const struct cpus *available, unsigned request,
                             struct cpus *ret, struct err *e)
{
    struct taking g = { .m = t->m, .free = *available, .need = request, .only_free = t->only_free };
    bool nodes_first = t->m->n[PL_SOCKET] >= t->m->n[PL_NODE];

    if (request > cpus_count(available))
        return err_set(e, ERR_EXHAUSTED,
                       "not enough cpus available to satisfy request: requested=%u, available=%u", request,
                       cpus_count(available));
    take_whole(&g, nodes_first ? PL_NODE : PL_SOCKET);
    take_whole(&g, nodes_first ? PL_SOCKET : PL_NODE);
    if (t->uncore_first && g.need > 0)
        take_caches(&g);
    if (!t->spread)
        take_whole(&g, PL_CORE);
    take_single(&g, t->spread);
    *ret = g.taken;
    return ERR_OK;
}
