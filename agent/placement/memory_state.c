/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/memory_state.h"

#include "base/array.h"

void pl_memory_state_done(struct pl_memory_state *s)
{
    pl_entries_free(s->v, s->n, sizeof(*s->v));
    *s = (struct pl_memory_state){ 0 };
}

struct pl_memory_entry *pl_memory_state_find(const struct pl_memory_state *s, const char *pod,
                                             const char *container)
{
    struct pl_position at = pl_entries_find(s->v, s->n, sizeof(*s->v), pod, container);

    return at.found ? &s->v[at.i] : NULL;
}

enum err_code pl_memory_state_put(struct pl_memory_state *s, const char *pod, const char *container,
                                  const struct pl_block *blocks, size_t n, struct err *e)
{
    struct pl_position at = pl_entries_find(s->v, s->n, sizeof(*s->v), pod, container);

    if (!at.found &&
        (!array_room(s->v, s->n) || !pl_entries_insert(s->v, &s->n, sizeof(*s->v), at.i, pod, container)))
        return err_nomem(e);
    memcpy(s->v[at.i].v, blocks, n * sizeof(*blocks));
    s->v[at.i].n = n;
    return ERR_OK;
}

void pl_memory_state_remove(struct pl_memory_state *s, const char *pod, const char *container)
{
    pl_entries_remove(s->v, &s->n, sizeof(*s->v), pod, container);
}

struct pl_cell *pl_memory_cell(const struct pl_memory_state *s, unsigned id)
{
    for (size_t i = 0; i < s->n_cells; i++)
        if (s->cell[i].id == id)
            return (struct pl_cell *)&s->cell[i];
    return NULL;
}

struct pl_table *pl_memory_table(const struct pl_cell *c, const char *type)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->v[i].type, type) == 0)
            return (struct pl_table *)&c->v[i];
    return NULL;
}
