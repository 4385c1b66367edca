/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/isolate.h"

struct plan {
    const struct pl_iso_cgroup *v;
    size_t n;
    struct pl_iso_write *out;
    size_t n_out;
};

/* ---- single writes ---- */

static void put_exclusive(struct plan *p, size_t i, const struct cpus *from, const struct cpus *to)
{
    if (!cpus_equal(from, to))
        p->out[p->n_out++] = (struct pl_iso_write){ .cgroup = i, .file = PL_ISO_EXCLUSIVE, .cpus = *to };
}

static void put_partition(struct plan *p, size_t i, bool isolated)
{
    p->out[p->n_out++] = (struct pl_iso_write){ .cgroup = i, .file = PL_ISO_PARTITION, .isolated = isolated };
}

/* ---- sums ---- */

struct cpus pl_isolated(const struct pl_iso_cgroup *v, size_t n)
{
    struct cpus all = { 0 };

    for (size_t i = 0; i < n; i++)
        if (v[i].level == PL_ISO_CONTAINER)
            all = cpus_or(&all, &v[i].want);
    return all;
}

/* The processors of the wants in a pod. */
static struct cpus pod_want(const struct plan *p, size_t pod)
{
    size_t end = pod + 1;

    while (end < p->n && p->v[end].level == PL_ISO_CONTAINER)
        end++;
    return pl_isolated(&p->v[pod], end - pod);
}

/* ---- the parts of a plan ---- */

/* A container that lost its want, or one of its processors: from scratch. */
static bool is_stale(const struct pl_iso_cgroup *c)
{
    if (cpus_is_empty(&c->want))
        return c->partition || !cpus_is_empty(&c->exclusive);
    return !cpus_contain(&c->want, &c->exclusive);
}

static void release(struct plan *p)
{
    struct cpus none = { 0 };

    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].level == PL_ISO_CONTAINER && is_stale(&p->v[i])) {
            if (p->v[i].partition)
                put_partition(p, i, false);
            put_exclusive(p, i, &p->v[i].exclusive, &none);
        }
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].level == PL_ISO_POD) {
            struct cpus want = pod_want(p, i), kept = cpus_and(&want, &p->v[i].exclusive);

            put_exclusive(p, i, &p->v[i].exclusive, &kept);
        }
}

static void hand_down(struct plan *p)
{
    struct cpus want = pl_isolated(p->v, p->n), ours = { 0 }, both;
    size_t all = 0;

    while (all < p->n && p->v[all].level == PL_ISO_ABOVE)
        all++;
    if (all == p->n)
        return;
    ours = p->v[all].exclusive;
    both = cpus_or(&ours, &want);
    put_exclusive(p, all, &ours, &both);
    for (size_t i = 0; i < all; i++) {
        struct cpus others = cpus_without(&p->v[i].exclusive, &ours), to = cpus_or(&others, &want);

        put_exclusive(p, i, &p->v[i].exclusive, &to);
    }
    put_exclusive(p, all, &both, &want);
}

static void isolate(struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct pl_iso_cgroup *c = &p->v[i];

        if (c->level == PL_ISO_POD) {
            struct cpus want = pod_want(p, i), now = cpus_and(&want, &c->exclusive);

            put_exclusive(p, i, &now, &want);
        } else if (c->level == PL_ISO_CONTAINER && !cpus_is_empty(&c->want)) {
            struct cpus none = { 0 };

            put_exclusive(p, i, is_stale(c) ? &none : &c->exclusive, &c->want);
            if (!c->isolated || is_stale(c))
                put_partition(p, i, true);
        }
    }
}

size_t pl_isolate(const struct pl_iso_cgroup *v, size_t n, struct pl_iso_write *ret)
{
    struct plan p = { .v = v, .n = n, .out = ret };

    release(&p);
    hand_down(&p);
    isolate(&p);
    return p.n_out;
}
