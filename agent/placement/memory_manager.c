/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/memory_internal.h"

#include <stdio.h>
#include <stdlib.h>

void pl_pages_name(uint64_t size_kib, char ret[PL_TYPE_NAME_MAX])
{
    static const char units[] = "KMGTPE";
    size_t i = 0;

    for (; i + 1 < sizeof(units) - 1 && size_kib != 0 && size_kib % 1024 == 0; i++)
        size_kib /= 1024;
    snprintf(ret, PL_TYPE_NAME_MAX, "hugepages-%llu%ci", (unsigned long long)size_kib, units[i]);
}

/* ---- begin ---- */

static uint64_t reserved_of(const struct pl_reserved *v, size_t n, unsigned node, const char *type)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        if (v[i].node == node && strcmp(v[i].type, type) == 0)
            sum += v[i].bytes;
    return sum;
}

static enum err_code add_table(struct pl_cell *c, const char *type, uint64_t total, uint64_t pages,
                               uint64_t reserved, struct err *e)
{
    struct pl_table *t = &c->v[c->n++];

    if (reserved > total || pages > total - reserved)
        return err_set(e, ERR_INVALID,
                       "[memorymanager] NUMA node %u: %llu bytes of %s are reserved and %llu are huge pages, "
                       "but it has %llu",
                       c->id, (unsigned long long)reserved, type, (unsigned long long)pages,
                       (unsigned long long)total);
    *t = (struct pl_table){ .total = total, .system_reserved = reserved };
    snprintf(t->type, sizeof(t->type), "%s", type);
    t->allocatable = t->free = total - reserved - pages;
    return ERR_OK;
}

static enum err_code add_cell(struct pl_memory_state *s, const struct pl_node *node,
                              const struct pl_reserved *v, size_t n, struct err *e)
{
    struct pl_cell *c = &s->cell[s->n_cells++];
    uint64_t pages = 0;

    *c = (struct pl_cell){ .id = node->id, .group = 1ull << node->id };
    for (size_t i = 0; i < node->n_pages; i++) {
        uint64_t bytes = node->pages[i].n * node->pages[i].size_kib * 1024;
        char type[PL_TYPE_NAME_MAX];

        pl_pages_name(node->pages[i].size_kib, type);
        if (add_table(c, type, bytes, 0, reserved_of(v, n, node->id, type), e) != ERR_OK)
            return e->code;
        pages += bytes;
    }
    return add_table(c, "memory", node->memory, pages, reserved_of(v, n, node->id, "memory"), e);
}

enum err_code pl_memory_manager_init(struct pl_memory_manager *ret, const struct pl_machine *m,
                                     const struct pl_reserved *v, size_t n, struct err *e)
{
    struct pl_memory_manager g = { .m = m };
    bool reserved = false;

    for (size_t i = 0; i < n; i++)
        reserved = reserved || (strcmp(v[i].type, "memory") == 0 && v[i].bytes > 0);
    if (!reserved)
        return err_set(e, ERR_INVALID, "[memorymanager] you should specify the system reserved memory");
    for (size_t i = 0; i < m->n_nodes; i++)
        if (add_cell(&g.fresh, &m->node[i], v, n, e) != ERR_OK)
            return e->code;
    g.state = g.fresh;
    *ret = g;
    return ERR_OK;
}

void pl_memory_manager_done(struct pl_memory_manager *g)
{
    pl_memory_state_done(&g->state);
}

/* ---- a block on the nodes of its set ---- */

/* Fills the nodes in ascending order. */
void pl_memory_assign(struct pl_memory_state *s, uint64_t nodes, const char *type, uint64_t size)
{
    for (uint64_t left = nodes; left != 0; left &= left - 1) {
        struct pl_cell *c = pl_memory_cell(s, (unsigned)__builtin_ctzll(left));
        struct pl_table *t = c != NULL ? pl_memory_table(c, type) : NULL;
        uint64_t part = t != NULL ? least(t->free, size) : 0;

        if (c == NULL)
            continue;
        c->assignments++;
        c->group = nodes;
        if (part == 0)
            continue;
        t->reserved += part;
        t->free -= part;
        size -= part;
    }
}

void pl_memory_release(struct pl_memory_manager *g, const char *pod, const char *container)
{
    const struct pl_memory_entry *x = pl_memory_state_find(&g->state, pod, container);

    for (size_t i = 0; x != NULL && i < x->n; i++) {
        uint64_t size = x->v[i].size;

        for (uint64_t left = x->v[i].nodes; left != 0; left &= left - 1) {
            struct pl_cell *c = pl_memory_cell(&g->state, (unsigned)__builtin_ctzll(left));
            struct pl_table *t = c != NULL ? pl_memory_table(c, x->v[i].type) : NULL;
            uint64_t part = t != NULL ? least(t->reserved, size) : 0;

            if (c == NULL)
                continue;
            c->assignments--;
            if (c->assignments == 0)
                c->group = 1ull << c->id;
            if (part == 0)
                continue;
            t->reserved -= part;
            t->free += part;
            size -= part;
        }
    }
    pl_memory_state_remove(&g->state, pod, container);
}

/* ---- a state of an earlier process ---- */

static enum err_code check_blocks(const struct pl_memory_state *expected, const struct pl_memory_entry *x,
                                  struct err *e)
{
    for (size_t i = 0; i < x->n; i++)
        for (uint64_t left = x->v[i].nodes; left != 0; left &= left - 1) {
            const struct pl_cell *c = pl_memory_cell(expected, (unsigned)__builtin_ctzll(left));

            if (c == NULL || pl_memory_table(c, x->v[i].type) == NULL)
                return err_set(
                    e, ERR_PRECONDITION,
                    "[memorymanager] (pod: %.100s, container: %.100s) the memory assignment uses %s",
                    x->owner.pod, x->owner.container,
                    c == NULL ? "the NUMA that does not exist" : "memory resource that does not exist");
        }
    return ERR_OK;
}

static void sum_group(const struct pl_memory_state *s, uint64_t group, const char *type, uint64_t *ret_free,
                      uint64_t *ret_reserved)
{
    *ret_free = *ret_reserved = 0;
    for (uint64_t left = group; left != 0; left &= left - 1) {
        const struct pl_cell *c = pl_memory_cell(s, (unsigned)__builtin_ctzll(left));
        const struct pl_table *t = c != NULL ? pl_memory_table(c, type) : NULL;

        *ret_free += t != NULL ? t->free : 0;
        *ret_reserved += t != NULL ? t->reserved : 0;
    }
}

/* Whether the group of a node is one that its blocks can have given it. Of several, because one node was
 * given alone although it was in a group, kubelet expects that of a random one, and refuses its own state now
 * and then. */
static bool group_fits(const struct pl_memory_state *s, const struct pl_cell *c)
{
    uint64_t self = 1ull << c->id;

    if (c->assignments == 0)
        return c->group == self;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->v[i].n; k++)
            if ((s->v[i].v[k].nodes & self) != 0 && s->v[i].v[k].nodes == c->group)
                return true;
    return false;
}

/* Compares the sizes of each node, and the free and reserved memory of each group: within a group the parts
 * may differ, since they depend on the order of allocations. */
static bool are_equal(const struct pl_memory_state *a, const struct pl_memory_state *b)
{
    if (a->n_cells != b->n_cells)
        return false;
    for (size_t i = 0; i < a->n_cells; i++) {
        const struct pl_cell *x = &a->cell[i], *y = &b->cell[i];

        if (x->id != y->id || x->assignments != y->assignments || !group_fits(a, x) || x->n != y->n)
            return false;
        for (size_t k = 0; k < x->n; k++) {
            const struct pl_table *s = &x->v[k], *t = pl_memory_table(y, s->type);
            uint64_t free[2], reserved[2];

            if (t == NULL || s->total != t->total || s->system_reserved != t->system_reserved ||
                s->allocatable != t->allocatable)
                return false;
            sum_group(a, x->group, s->type, &free[0], &reserved[0]);
            sum_group(b, x->group, s->type, &free[1], &reserved[1]);
            if (free[0] != free[1] || reserved[0] != reserved[1])
                return false;
        }
    }
    return true;
}

enum err_code pl_memory_manager_start(struct pl_memory_manager *g, struct pl_memory_state *s, struct err *e)
{
    struct pl_memory_state expected = g->fresh;

    if (s->n_cells == 0) {
        if (s->n > 0)
            return err_set(e, ERR_PRECONDITION,
                           "[memorymanager] machine state can not be empty when it has memory assignments");
        memcpy(s->cell, g->fresh.cell, sizeof(s->cell));
        s->n_cells = g->fresh.n_cells;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (check_blocks(&expected, &s->v[i], e) != ERR_OK)
            return e->code;
        for (size_t k = 0; k < s->v[i].n; k++)
            pl_memory_assign(&expected, s->v[i].v[k].nodes, s->v[i].v[k].type, s->v[i].v[k].size);
    }
    if (!are_equal(s, &expected))
        return err_set(e, ERR_PRECONDITION,
                       "[memorymanager] the expected machine state is different from the real one");
    pl_memory_state_done(&g->state);
    g->state = *s;
    *s = (struct pl_memory_state){ 0 };
    return ERR_OK;
}
