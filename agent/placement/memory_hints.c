/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/memory_internal.h"

#include <stdio.h>

struct pl_reusable *pl_reusable_of(const struct pl_memory_manager *g, const char *pod, uint64_t nodes,
                                   const char *type)
{
    for (size_t i = 0; strcmp(g->reuse_pod, pod) == 0 && i < g->n_reuse; i++)
        if (g->reuse[i].nodes == nodes && strcmp(g->reuse[i].type, type) == 0)
            return (struct pl_reusable *)&g->reuse[i];
    return NULL;
}

uint64_t pl_reusable_size(const struct pl_memory_manager *g, const char *pod, uint64_t nodes,
                          const char *type)
{
    const struct pl_reusable *r = pl_reusable_of(g, pod, nodes, type);

    return r != NULL ? r->size : 0;
}

bool pl_memory_has(const struct pl_memory_manager *g, uint64_t set, const struct pl_memory_want *w, bool free,
                   bool again)
{
    for (size_t i = 0; i < w->n; i++) {
        uint64_t sum = again ? pl_reusable_size(g, w->pod, set, w->v[i].type) : 0;

        for (uint64_t left = set; left != 0; left &= left - 1) {
            const struct pl_cell *c = pl_memory_cell(&g->state, (unsigned)__builtin_ctzll(left));
            const struct pl_table *t = c != NULL ? pl_memory_table(c, w->v[i].type) : NULL;

            sum += t == NULL ? 0 : free ? t->free : t->allocatable;
        }
        if (sum < w->v[i].bytes)
            return false;
    }
    return true;
}

bool pl_memory_violates(const struct pl_memory_manager *g, uint64_t set, bool given)
{
    bool single = (set & (set - 1)) == 0;

    for (uint64_t left = set; left != 0; left &= left - 1) {
        const struct pl_cell *c = pl_memory_cell(&g->state, (unsigned)__builtin_ctzll(left));

        if (c == NULL)
            continue;
        if (single && !given && (c->group & (c->group - 1)) != 0)
            return true;
        if (!single && c->assignments > 0 && c->group != set)
            return true;
    }
    return false;
}

enum err_code pl_memory_make_hints(const struct pl_memory_manager *g, const struct pl_memory_want *w,
                                   bool again, struct pl_hints *ret, struct err *e)
{
    unsigned size = (unsigned)g->state.n_cells;
    uint64_t nodes = 0;

    *ret = (struct pl_hints){ .more = w->n > 0 ? w->n - 1 : 0 };
    for (size_t i = 0; i < g->state.n_cells; i++)
        nodes |= 1ull << g->state.cell[i].id;
    for (uint64_t set = 0; pl_next_set(nodes, &set);) {
        if (!pl_memory_has(g, set, w, false, false))
            continue;
        if ((unsigned)__builtin_popcountll(set) < size)
            size = (unsigned)__builtin_popcountll(set);
        if (pl_memory_violates(g, set, false) || !pl_memory_has(g, set, w, true, again))
            continue;
        if (pl_hints_add(ret, set, e) != ERR_OK) {
            pl_hints_done(ret);
            return e->code;
        }
    }
    pl_hints_prefer(ret, size);
    return ERR_OK;
}

static uint64_t amount_of(const struct pl_memory_want *w, const char *type)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->v[i].type, type) == 0)
            return w->v[i].bytes;
    return UINT64_MAX;
}

/* The hints for a container that already has memory. No constraint if that differs from its request. */
static enum err_code hints_again(const struct pl_memory_entry *x, const struct pl_memory_want *w,
                                 struct pl_hints *ret, struct err *e)
{
    ret->any = x->n != w->n || x->n == 0;
    for (size_t i = 0; !ret->any && i < x->n; i++)
        ret->any = amount_of(w, x->v[i].type) != x->v[i].size;
    if (ret->any)
        return ERR_OK;
    if (pl_hints_add(ret, x->v[0].nodes, e) == ERR_OK)
        ret->v[0].preferred = true;
    return e->code;
}

enum err_code pl_memory_hints(const struct pl_memory_manager *g, const struct pl_memory_want *w,
                              struct pl_hints *ret, struct err *e)
{
    const struct pl_memory_entry *x = pl_memory_state_find(&g->state, w->pod, w->container);

    *ret = (struct pl_hints){ .any = w->n == 0 };
    if (w->n == 0)
        return ERR_OK;
    if (x != NULL)
        return hints_again(x, w, ret, e);
    if (pl_memory_make_hints(g, w, true, ret, e) != ERR_OK)
        return e->code;
    ret->any = ret->n == 0; /* as in kubelet; the allocation fails */
    return ERR_OK;
}

static struct pl_amount *amount_in(struct pl_memory_want *w, const char *type)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->v[i].type, type) == 0)
            return &w->v[i];
    if (w->n == PL_TYPES_MAX)
        return NULL;
    w->v[w->n] = (struct pl_amount){ .bytes = 0 };
    snprintf(w->v[w->n].type, sizeof(w->v[w->n].type), "%s", type);
    return &w->v[w->n++];
}

/* The pod's maximum at any time, for the types that a regular container requests. */
static void sum_pod(const struct pl_memory_want *v, size_t n, struct pl_memory_want *ret)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; v[i].kind == PL_REGULAR && k < v[i].n; k++)
            (void)amount_in(ret, v[i].v[k].type);
    for (size_t t = 0; t < ret->n; t++) {
        uint64_t init = 0, sidecars = 0, regular = 0;

        for (size_t i = 0; i < n; i++) {
            uint64_t bytes = amount_of(&v[i], ret->v[t].type);

            bytes = bytes == UINT64_MAX ? 0 : bytes;
            sidecars += v[i].kind == PL_SIDECAR ? bytes : 0;
            regular += v[i].kind == PL_REGULAR ? bytes : 0;
            if (v[i].kind == PL_INIT && sidecars + bytes > init)
                init = sidecars + bytes;
        }
        ret->v[t].bytes = init > regular + sidecars ? init : regular + sidecars;
    }
}

enum err_code pl_memory_pod_hints(const struct pl_memory_manager *g, const struct pl_memory_want *v, size_t n,
                                  struct pl_hints *ret, struct err *e)
{
    struct pl_memory_want sum = { .pod = n > 0 ? v[0].pod : "" };

    sum_pod(v, n, &sum);
    *ret = (struct pl_hints){ .any = sum.n == 0 };
    if (sum.n == 0)
        return ERR_OK;
    for (size_t i = 0; i < n; i++) {
        const struct pl_memory_entry *x = pl_memory_state_find(&g->state, v[i].pod, v[i].container);

        if (x != NULL)
            return hints_again(x, &sum, ret, e);
    }
    if (pl_memory_make_hints(g, &sum, true, ret, e) != ERR_OK)
        return e->code;
    ret->any = ret->n == 0;
    return ERR_OK;
}
