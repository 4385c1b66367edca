/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/memory_state.h"
#include "base/array.h"

#include <stdlib.h>

static void entry_done(struct pl_memory_entry *x)
{
    free(x->pod);
    free(x->container);
}

void pl_memory_state_done(struct pl_memory_state *s)
{
    for (size_t i = 0; i < s->n; i++)
        entry_done(&s->v[i]);
    free(s->v);
    *s = (struct pl_memory_state){ 0 };
}

/* The index of the entry if *found, otherwise the index at which to insert it. */
static size_t place_of(const struct pl_memory_state *s, const char *pod, const char *container, bool *found)
{
    size_t i = 0;
    int order = -1;

    for (; i < s->n; i++) {
        order = strcmp(s->v[i].pod, pod);
        order = order == 0 ? strcmp(s->v[i].container, container) : order;
        if (order >= 0)
            break;
    }
    *found = i < s->n && order == 0;
    return i;
}

struct pl_memory_entry *pl_memory_state_find(const struct pl_memory_state *s, const char *pod,
                                             const char *container)
{
    bool found;
    size_t i = place_of(s, pod, container, &found);

    return found ? &s->v[i] : NULL;
}

enum err_code pl_memory_state_put(struct pl_memory_state *s, const char *pod, const char *container,
                                  const struct pl_block *blocks, size_t n, struct err *e)
{
    bool found;
    size_t i = place_of(s, pod, container, &found);
    struct pl_memory_entry x = { .n = n };

    if (!found) {
        x.pod = strdup(pod);
        x.container = strdup(container);
        if (x.pod == NULL || x.container == NULL || !array_room(s->v, s->n)) {
            entry_done(&x);
            return err_nomem(e);
        }
        memmove(&s->v[i + 1], &s->v[i], (s->n - i) * sizeof(*s->v));
        s->v[i] = x;
        s->n++;
    }
    memcpy(s->v[i].v, blocks, n * sizeof(*blocks));
    s->v[i].n = n;
    return ERR_OK;
}

void pl_memory_state_remove(struct pl_memory_state *s, const char *pod, const char *container)
{
    bool found;
    size_t i = place_of(s, pod, container, &found);

    if (!found)
        return;
    entry_done(&s->v[i]);
    s->n--;
    memmove(&s->v[i], &s->v[i + 1], (s->n - i) * sizeof(*s->v));
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
