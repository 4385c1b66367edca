/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/cpu_manager.h"
#include "agent/placement/take.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- choice ---- */

static enum err_code take_some(const struct pl_cpu_manager *c, bool only_free, const struct cpus *available,
                               unsigned n, struct cpus *ret, struct err *e)
{
    struct pl_take t = {
        .m = c->m, .spread = c->o.spread, .uncore_first = c->o.uncore_first, .only_free = only_free
    };

    if (c->o.distribute)
        return pl_take_distributed(&t, available, n, c->o.full_cores ? pl_cpus_per_core(c->m) : 1, ret, e);
    return pl_take_packed(&t, available, n, ret, e);
}

/* Nodes of all sockets that these nodes are on. */
static struct cpus cpus_of_sockets(const struct pl_machine *m, const struct cpus *of, uint64_t nodes)
{
    struct cpus on = pl_cpus_on(m, &m->cpus, nodes), ret = { 0 };

    cpus_each(cpu, &on)
    {
        struct cpus s = pl_cpus_in(m, of, PL_SOCKET, m->cpu[cpu].in[PL_SOCKET]);

        ret = cpus_or(&ret, &s);
    }
    return ret;
}

/* Chooses processors on the nodes first, then any. */
static enum err_code choose_from(const struct pl_cpu_manager *c, bool only_free, const struct cpus *available,
                                 unsigned n, uint64_t nodes, struct cpus *ret, struct err *e)
{
    struct cpus aligned = { 0 }, rest, more;

    if (nodes != 0) {
        unsigned count;

        aligned = c->o.align_by_socket ? cpus_of_sockets(c->m, available, nodes)
                                       : pl_cpus_on(c->m, available, nodes);
        count = cpus_count(&aligned);
        if (take_some(c, only_free, &aligned, count < n ? count : n, &aligned, e) != ERR_OK)
            return e->code;
    }
    rest = cpus_without(available, &aligned);
    if (take_some(c, only_free, &rest, n - cpus_count(&aligned), &more, e) != ERR_OK)
        return e->code;
    *ret = cpus_or(&aligned, &more);
    return ERR_OK;
}

/* kubelet's choice, unless it has processors that are not available, or too few: then another one. */
static enum err_code choose(const struct pl_cpu_manager *c, const struct cpus *available, unsigned n,
                            uint64_t nodes, struct cpus *ret, struct err *e)
{
    struct cpus got = { 0 };

    if (choose_from(c, false, available, n, nodes, &got, e) == ERR_OK && cpus_contain(available, &got) &&
        cpus_count(&got) == n) {
        *ret = got;
        return ERR_OK;
    }
    if (choose_from(c, true, available, n, nodes, ret, e->code == ERR_OK ? e : ERR_IGNORED) != ERR_OK)
        return e->code;
    *e = (struct err){ 0 };
    return ERR_OK;
}

/* ---- begin ---- */

enum err_code pl_cpu_manager_init(struct pl_cpu_manager *ret, const struct pl_machine *m,
                                  const struct pl_cpu_options *o, unsigned n_reserved,
                                  const struct cpus *reserved, struct err *e)
{
    struct pl_cpu_manager c = { .m = m, .o = *o, .reserved = *reserved };

    if (cpus_is_empty(reserved) &&
        take_some(&c, true, &m->cpus, n_reserved, &c.reserved, ERR_IGNORED) != ERR_OK)
        c.reserved = (struct cpus){ 0 };
    if (cpus_count(&c.reserved) != n_reserved) {
        char text[CPUS_TEXT_SIZE];

        cpus_print(&c.reserved, text);
        return err_set(e, ERR_INVALID,
                       "[cpumanager] unable to reserve the required amount of CPUs (size of %.200s did not "
                       "equal %u)",
                       text, n_reserved);
    }
    cpus_each(cpu, &c.reserved)
    {
        if (!cpus_has(&m->cpus, cpu))
            return err_set(e, ERR_INVALID,
                           "[cpumanager] unable to build the reserved physical CPUs from the reserved set: "
                           "unknown CPU ID: %u",
                           cpu);
    }
    c.reserved_cores = pl_whole_cores(m, &c.reserved);
    *ret = c;
    return ERR_OK;
}

void pl_cpu_manager_done(struct pl_cpu_manager *c)
{
    pl_cpu_state_done(&c->state);
}

static enum err_code check_entries(const struct pl_cpu_state *s, const struct cpus *all, struct err *e)
{
    struct cpus known = s->shared;
    char text[CPUS_TEXT_SIZE], other[CPUS_TEXT_SIZE];

    for (size_t i = 0; i < s->n; i++) {
        known = cpus_or(&known, &s->v[i].cpus);
        if (!cpus_overlap(&s->shared, &s->v[i].cpus))
            continue;
        cpus_print(&s->v[i].cpus, text);
        cpus_print(&s->shared, other);
        return err_set(
            e, ERR_PRECONDITION,
            "pod: %.64s, container: %.64s cpuset: \"%.100s\" overlaps with default cpuset \"%.100s\"",
            s->v[i].owner.pod, s->v[i].owner.container, text, other);
    }
    if (cpus_equal(&known, all))
        return ERR_OK;
    cpus_print(all, text);
    cpus_print(&known, other);
    return err_set(e, ERR_PRECONDITION,
                   "current set of available CPUs \"%.160s\" doesn't match with CPUs in state \"%.160s\"",
                   text, other);
}

static enum err_code check_reserved(const struct pl_cpu_manager *c, const struct pl_cpu_state *s,
                                    struct err *e)
{
    struct cpus shared = cpus_and(&c->reserved, &s->shared);
    char text[CPUS_TEXT_SIZE], other[CPUS_TEXT_SIZE];

    cpus_print(&s->shared, other);
    if (c->o.strict && !cpus_is_empty(&shared)) {
        cpus_print(&shared, text);
        return err_set(e, ERR_PRECONDITION,
                       "some of strictly reserved cpus: \"%.160s\" are present in defaultCpuSet: \"%.160s\"",
                       text, other);
    }
    if (c->o.strict || cpus_equal(&shared, &c->reserved))
        return ERR_OK;
    cpus_print(&c->reserved, text);
    return err_set(e, ERR_PRECONDITION,
                   "not all reserved cpus: \"%.160s\" are present in defaultCpuSet: \"%.160s\"", text, other);
}

/* Rejects a state in which containers of different pods have the same processor, which kubelet does not
 * check. */
static enum err_code check_twice(const struct pl_cpu_state *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = i + 1; k < s->n; k++)
            if (strcmp(s->v[i].owner.pod, s->v[k].owner.pod) != 0 &&
                cpus_overlap(&s->v[i].cpus, &s->v[k].cpus))
                return err_set(e, ERR_PRECONDITION,
                               "pods %.64s (container %.64s) and %.64s (container %.64s) have the same "
                               "processors",
                               s->v[i].owner.pod, s->v[i].owner.container, s->v[k].owner.pod,
                               s->v[k].owner.container);
    return ERR_OK;
}

enum err_code pl_cpu_manager_start(struct pl_cpu_manager *c, struct pl_cpu_state *s, struct err *e)
{
    struct cpus all = c->o.strict ? cpus_without(&c->m->cpus, &c->reserved) : c->m->cpus;

    if (cpus_is_empty(&s->shared)) {
        if (s->n > 0)
            return err_set(e, ERR_PRECONDITION, "default cpuset cannot be empty");
        s->shared = all;
    } else if (check_reserved(c, s, e) != ERR_OK || check_entries(s, &all, e) != ERR_OK ||
               check_twice(s, e) != ERR_OK) {
        return e->code;
    }
    pl_cpu_state_done(&c->state);
    c->state = *s;
    *s = (struct pl_cpu_state){ 0 };
    return ERR_OK;
}

/* ---- allocation ---- */

struct cpus pl_cpu_available(const struct pl_cpu_manager *c)
{
    return cpus_without(&c->state.shared, &c->reserved);
}

static void note_reuse(struct pl_cpu_manager *c, const struct pl_cpu_want *w, const struct cpus *cpus)
{
    if (strcmp(c->reuse_pod, w->pod) != 0) {
        snprintf(c->reuse_pod, sizeof(c->reuse_pod), "%s", w->pod);
        c->reuse = (struct cpus){ 0 };
    }
    c->reuse = w->kind == PL_INIT ? cpus_or(&c->reuse, cpus) : cpus_without(&c->reuse, cpus);
}

static struct cpus reusable(const struct pl_cpu_manager *c, const char *pod)
{
    return strcmp(c->reuse_pod, pod) == 0 ? c->reuse : (struct cpus){ 0 };
}

static enum err_code check_alignment(const struct pl_cpu_manager *c, const struct pl_cpu_want *w,
                                     struct err *e)
{
    struct cpus whole = cpus_without(&c->state.shared, &c->reserved_cores);
    unsigned per_core = pl_cpus_per_core(c->m), n = cpus_count(&whole);

    if (!c->o.full_cores)
        return ERR_OK;
    if (w->n % per_core != 0)
        return err_set(e, ERR_INVALID,
                       "SMT Alignment Error: requested %u cpus not multiple cpus per core = %u", w->n,
                       per_core);
    if (w->n > n)
        return err_set(e, ERR_INVALID,
                       "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %u, "
                       "requested CPUs = %u, CPUs per core = %u",
                       n, w->n, per_core);
    return ERR_OK;
}

enum err_code pl_cpu_allocate(struct pl_cpu_manager *c, const struct pl_cpu_want *w, uint64_t nodes,
                              struct err *e)
{
    const struct pl_cpu_entry *has = pl_cpu_state_find(&c->state, w->pod, w->container);
    struct cpus available = pl_cpu_available(c), again = reusable(c, w->pod), got;

    if (w->n == 0)
        return ERR_OK;
    if (check_alignment(c, w, e) != ERR_OK)
        return e->code;
    if (has != NULL) {
        note_reuse(c, w, &has->cpus);
        return ERR_OK;
    }
    available = cpus_or(&available, &again);
    if (choose(c, &available, w->n, nodes, &got, e) != ERR_OK ||
        pl_cpu_state_put(&c->state, w->pod, w->container, &got, e) != ERR_OK)
        return e->code;
    c->state.shared = cpus_without(&c->state.shared, &got);
    note_reuse(c, w, &got);
    return ERR_OK;
}

void pl_cpu_release(struct pl_cpu_manager *c, const char *pod, const char *container)
{
    const struct pl_cpu_entry *has = pl_cpu_state_find(&c->state, pod, container);
    struct cpus freed;

    if (has == NULL)
        return;
    freed = has->cpus;
    pl_cpu_state_remove(&c->state, pod, container);
    for (size_t i = 0; i < c->state.n; i++)
        if (strcmp(c->state.v[i].owner.pod, pod) == 0)
            freed = cpus_without(&freed, &c->state.v[i].cpus);
    c->state.shared = cpus_or(&c->state.shared, &freed);
}
