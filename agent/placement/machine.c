/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/machine.h"

/* Whether no processor below `cpu` is in the same unit of this level. */
static bool is_first(const struct pl_machine *m, unsigned cpu, enum pl_level level)
{
    for (unsigned i = cpus_next(&m->cpus, 0); i < cpu; i = cpus_next(&m->cpus, i + 1))
        if (m->cpu[i].in[level] == m->cpu[cpu].in[level])
            return false;
    return true;
}

void pl_machine_count(struct pl_machine *m)
{
    m->n_cpus = cpus_count(&m->cpus);
    m->nodes = m->cpu_nodes = 0;
    for (size_t level = 0; level < PL_LEVELS; level++)
        m->n[level] = 0;
    cpus_each(cpu, &m->cpus)
    {
        m->cpu_nodes |= 1ull << m->cpu[cpu].in[PL_NODE];
        for (int level = 0; level < PL_LEVELS; level++)
            m->n[level] += is_first(m, cpu, (enum pl_level)level);
    }
    for (size_t i = 0; i < m->n_nodes; i++)
        m->nodes |= 1ull << m->node[i].id;
    m->nodes |= m->cpu_nodes;
}

unsigned pl_cpus_per_core(const struct pl_machine *m)
{
    return m->n[PL_CORE] > 0 ? m->n_cpus / m->n[PL_CORE] : 1;
}

struct cpus pl_cpus_in(const struct pl_machine *m, const struct cpus *of, enum pl_level level, int32_t id)
{
    struct cpus ret = { 0 };

    cpus_each(cpu, of)
    {
        if (m->cpu[cpu].in[level] == id)
            cpus_add(&ret, cpu);
    }
    return ret;
}

struct cpus pl_cpus_on(const struct pl_machine *m, const struct cpus *of, uint64_t nodes)
{
    struct cpus ret = { 0 };

    cpus_each(cpu, of)
    {
        if ((nodes >> m->cpu[cpu].in[PL_NODE] & 1) != 0)
            cpus_add(&ret, cpu);
    }
    return ret;
}

struct cpus pl_whole_cores(const struct pl_machine *m, const struct cpus *s)
{
    struct cpus ret = { 0 };

    cpus_each(cpu, s)
    {
        struct cpus core = pl_cpus_in(m, &m->cpus, PL_CORE, m->cpu[cpu].in[PL_CORE]);

        ret = cpus_or(&ret, &core);
    }
    return ret;
}

int pl_node_index(const struct pl_machine *m, unsigned id)
{
    for (size_t i = 0; i < m->n_nodes; i++)
        if (m->node[i].id == id)
            return (int)i;
    return -1;
}
