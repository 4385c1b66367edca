/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/cpu_manager.h"

/* Whether the nodes are on as few sockets as `least` nodes can be. */
static bool is_socket_aligned(const struct pl_machine *m, uint64_t nodes, unsigned least)
{
    unsigned per_socket = m->n[PL_NODE] / m->n[PL_SOCKET], sockets = 0;
    struct cpus on = pl_cpus_on(m, &m->cpus, nodes);

    if (per_socket == 0)
        return false;
    while (!cpus_is_empty(&on)) {
        struct cpus s = pl_cpus_in(m, &on, PL_SOCKET, m->cpu[cpus_next(&on, 0)].in[PL_SOCKET]);

        on = cpus_without(&on, &s);
        sockets++;
    }
    return sockets == (least + per_socket - 1) / per_socket;
}

static unsigned count_on(const struct pl_machine *m, const struct cpus *of, uint64_t nodes)
{
    struct cpus on = pl_cpus_on(m, of, nodes);

    return cpus_count(&on);
}

enum err_code pl_cpu_hints_make(const struct pl_machine *m, bool align_by_socket,
                                const struct cpus *available, const struct cpus *reusable, unsigned request,
                                struct pl_hints *ret, struct err *e)
{
    unsigned least = m->n[PL_NODE], n_reusable = cpus_count(reusable);

    *ret = (struct pl_hints){ 0 };
    for (uint64_t set = 0; pl_next_set(m->cpu_nodes, &set);) {
        unsigned size = (unsigned)__builtin_popcountll(set);

        if (size < least && count_on(m, &m->cpus, set) >= request)
            least = size;
        if (count_on(m, reusable, set) != n_reusable || n_reusable + count_on(m, available, set) < request)
            continue;
        if (pl_hints_add(ret, set, e) != ERR_OK) {
            pl_hints_done(ret);
            return e->code;
        }
    }
    pl_hints_prefer(ret, least);
    for (size_t i = 0; align_by_socket && i < ret->n; i++)
        if (is_socket_aligned(m, ret->v[i].nodes, least))
            ret->v[i].preferred = true;
    return ERR_OK;
}

enum err_code pl_cpu_hints(const struct pl_cpu_manager *c, const struct pl_cpu_want *w, struct pl_hints *ret,
                           struct err *e)
{
    const struct pl_cpu_entry *has = pl_cpu_state_find(&c->state, w->pod, w->container);
    struct cpus available = pl_cpu_available(c), none = { 0 };

    *ret = (struct pl_hints){ .any = w->n == 0 };
    if (w->n == 0 || (has != NULL && cpus_count(&has->cpus) != w->n))
        return ERR_OK;
    if (has != NULL)
        return pl_cpu_hints_make(c->m, c->o.align_by_socket, &has->cpus, &none, w->n, ret, e);
    return pl_cpu_hints_make(c->m, c->o.align_by_socket, &available,
                             strcmp(c->reuse_pod, w->pod) == 0 ? &c->reuse : &none, w->n, ret, e);
}

unsigned pl_cpu_pod_sum(const struct pl_cpu_want *v, size_t n)
{
    unsigned init = 0, sidecars = 0, regular = 0;

    for (size_t i = 0; i < n; i++)
        switch (v[i].kind) {
        case PL_INIT:
            init = sidecars + v[i].n > init ? sidecars + v[i].n : init;
            break;
        case PL_SIDECAR:
            sidecars += v[i].n;
            break;
        case PL_REGULAR:
            regular += v[i].n;
            break;
        }
    return init > regular + sidecars ? init : regular + sidecars;
}

enum err_code pl_cpu_pod_hints(const struct pl_cpu_manager *c, const struct pl_cpu_want *v, size_t n,
                               struct pl_hints *ret, struct err *e)
{
    unsigned request = pl_cpu_pod_sum(v, n);
    struct cpus available = pl_cpu_available(c), assigned = { 0 }, again = { 0 };

    *ret = (struct pl_hints){ .any = request == 0 };
    for (size_t i = 0; request > 0 && i < n; i++) {
        const struct pl_cpu_entry *has = pl_cpu_state_find(&c->state, v[i].pod, v[i].container);

        if (has != NULL && cpus_count(&has->cpus) != v[i].n)
            return ERR_OK;
        assigned = has != NULL ? cpus_or(&assigned, &has->cpus) : assigned;
        again = strcmp(c->reuse_pod, v[i].pod) == 0 ? c->reuse : again;
    }
    if (request == 0)
        return ERR_OK;
    if (cpus_count(&assigned) == request)
        return pl_cpu_hints_make(c->m, c->o.align_by_socket, &assigned, &(struct cpus){ 0 }, request, ret, e);
    again = cpus_or(&again, &assigned);
    return pl_cpu_hints_make(c->m, c->o.align_by_socket, &available, &again, request, ret, e);
}
