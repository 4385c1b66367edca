/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/memory_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- reusable memory ---- */

static void note_block(struct pl_memory_manager *g, const struct pl_memory_want *w, const struct pl_block *b)
{
    struct pl_reusable *r = pl_reusable_of(g, w->pod, b->nodes, b->type);

    if (w->kind != PL_INIT) {
        if (r != NULL)
            r->size -= least(r->size, b->size);
        return;
    }
    if (r == NULL && g->n_reuse < PL_REUSABLE_MAX) {
        r = &g->reuse[g->n_reuse++];
        *r = (struct pl_reusable){ .nodes = b->nodes };
        snprintf(r->type, sizeof(r->type), "%s", b->type);
    }
    if (r != NULL && b->size > r->size)
        r->size = b->size;
}

static void note_reuse(struct pl_memory_manager *g, const struct pl_memory_want *w, const struct pl_block *v,
                       size_t n)
{
    if (strcmp(g->reuse_pod, w->pod) != 0) {
        snprintf(g->reuse_pod, sizeof(g->reuse_pod), "%s", w->pod);
        g->n_reuse = 0;
    }
    for (size_t i = 0; i < n; i++)
        note_block(g, w, &v[i]);
}

/* Shrinks blocks of earlier init containers by the part that this container reuses. */
static void shrink_init(struct pl_memory_manager *g, const struct pl_memory_want *v, size_t i,
                        const struct pl_block *b)
{
    uint64_t size = b->size;

    for (size_t k = 0; k < i && size > 0; k++) {
        struct pl_memory_entry *x =
            v[k].kind == PL_INIT ? pl_memory_state_find(&g->state, v[k].pod, v[k].container) : NULL;

        for (size_t j = 0; x != NULL && j < x->n; j++)
            if (strcmp(x->v[j].type, b->type) == 0 && x->v[j].nodes == b->nodes) {
                uint64_t part = least(x->v[j].size, size);

                x->v[j].size -= part;
                size -= part;
            }
    }
}

/* ---- allocation ---- */

/* Preferred hints first, then hints with fewer nodes, then with lower ones. */
static bool is_better(const struct pl_hint *a, const struct pl_hint *b)
{
    int x = __builtin_popcountll(a->nodes), y = __builtin_popcountll(b->nodes);

    if (a->preferred != b->preferred)
        return a->preferred;
    return x != y ? x < y : a->nodes < b->nodes;
}

/* The best of the hints whose set has all of `nodes`; NULL: there is none. */
static const struct pl_hint *best_of(const struct pl_hints *h, uint64_t nodes)
{
    const struct pl_hint *best = NULL;

    for (size_t i = 0; i < h->n; i++)
        if ((h->v[i].nodes & nodes) == nodes && (best == NULL || is_better(&h->v[i], best)))
            best = &h->v[i];
    return best;
}

static enum err_code failed(struct err *e, const char *what)
{
    return err_set(e, ERR_EXHAUSTED, "[memorymanager] %s", what);
}

/* Chooses the container's nodes, starting from the topology manager's choice. */
static enum err_code choose(const struct pl_memory_manager *g, const struct pl_memory_want *w,
                            const struct pl_hint *hint, const struct pl_hints *hints, uint64_t *ret,
                            struct err *e)
{
    struct pl_hint best = *hint;
    const struct pl_hint *found;

    if (best.nodes == 0) {
        found = best_of(hints, 0);
        if (found == NULL)
            return failed(e, "failed to get the default NUMA affinity, no NUMA nodes with enough memory is "
                             "available");
        if (!found->preferred && best.preferred)
            return failed(e, "failed to find the default preferred hint");
        best = *found;
    }
    if (!pl_memory_has(g, best.nodes, w, true, false)) {
        found = best_of(hints, best.nodes);
        if (found == NULL)
            return failed(e, "failed to find NUMA nodes to extend the current topology hint");
        if (!found->preferred && best.preferred)
            return failed(e, "failed to find the extended preferred hint");
        best = *found;
    }
    if (pl_memory_violates(g, best.nodes, true))
        return failed(e, "preferred hint violates NUMA node allocation");
    *ret = best.nodes;
    return ERR_OK;
}

static void give(struct pl_memory_manager *g, const struct pl_memory_want *v, size_t i,
                 const struct pl_block *blocks)
{
    const struct pl_memory_want *w = &v[i];

    for (size_t k = 0; k < w->n; k++) {
        uint64_t again = pl_reusable_size(g, w->pod, blocks[k].nodes, blocks[k].type);

        pl_memory_assign(&g->state, blocks[k].nodes, blocks[k].type,
                         blocks[k].size - least(again, blocks[k].size));
    }
    note_reuse(g, w, blocks, w->n);
    for (size_t k = 0; k < w->n; k++)
        shrink_init(g, v, i, &blocks[k]);
}

static int by_type(const void *a, const void *b)
{
    return strcmp(((const struct pl_block *)a)->type, ((const struct pl_block *)b)->type);
}

enum err_code pl_memory_allocate(struct pl_memory_manager *g, const struct pl_memory_want *v, size_t i,
                                 const struct pl_hint *hint, struct err *e)
{
    const struct pl_memory_want *w = &v[i];
    const struct pl_memory_entry *x = pl_memory_state_find(&g->state, w->pod, w->container);
    struct pl_hints hints = { 0 };
    struct pl_block blocks[PL_TYPES_MAX];
    uint64_t nodes = 0;

    if (w->n == 0)
        return ERR_OK;
    if (x != NULL) {
        note_reuse(g, w, x->v, x->n);
        return ERR_OK;
    }
    if (pl_memory_make_hints(g, w, true, &hints, e) == ERR_OK)
        ERR_IGNORE(choose(g, w, hint, &hints, &nodes, e));
    pl_hints_done(&hints);
    if (e->code != ERR_OK)
        return e->code;
    for (size_t k = 0; k < w->n; k++) {
        blocks[k] = (struct pl_block){ .nodes = nodes, .size = w->v[k].bytes };
        snprintf(blocks[k].type, sizeof(blocks[k].type), "%s", w->v[k].type);
    }
    qsort(blocks, w->n, sizeof(*blocks), by_type);
    if (pl_memory_state_put(&g->state, w->pod, w->container, blocks, w->n, e) == ERR_OK)
        give(g, v, i, blocks);
    return e->code;
}
