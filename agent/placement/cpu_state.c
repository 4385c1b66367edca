/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/cpu_state.h"

#include "base/array.h"

void pl_cpu_state_done(struct pl_cpu_state *s)
{
    pl_entries_free(s->v, s->n, sizeof(*s->v));
    *s = (struct pl_cpu_state){ 0 };
}

const struct pl_cpu_entry *pl_cpu_state_find(const struct pl_cpu_state *s, const char *pod,
                                             const char *container)
{
    struct pl_position at = pl_entries_find(s->v, s->n, sizeof(*s->v), pod, container);

    return at.found ? &s->v[at.i] : NULL;
}

enum err_code pl_cpu_state_put(struct pl_cpu_state *s, const char *pod, const char *container,
                               const struct cpus *cpus, struct err *e)
{
    struct pl_position at = pl_entries_find(s->v, s->n, sizeof(*s->v), pod, container);

    if (!at.found &&
        (!array_room(s->v, s->n) || !pl_entries_insert(s->v, &s->n, sizeof(*s->v), at.i, pod, container)))
        return err_nomem(e);
    s->v[at.i].cpus = *cpus;
    return ERR_OK;
}

void pl_cpu_state_remove(struct pl_cpu_state *s, const char *pod, const char *container)
{
    pl_entries_remove(s->v, &s->n, sizeof(*s->v), pod, container);
}
