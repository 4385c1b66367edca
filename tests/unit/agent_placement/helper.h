/* SPDX-License-Identifier: Apache-2.0 */
/* helper - what every test of agent/placement includes. */
#ifndef TESTS_UNIT_AGENT_PLACEMENT_HELPER_H
#define TESTS_UNIT_AGENT_PLACEMENT_HELPER_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/placement/cpu_manager.h"
#include "agent/placement/memory_manager.h"
#include "agent/placement/take.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline struct cpus cpus_of(const char *text)
{
    struct cpus s;
    struct err e = { 0 };

    if (cpus_parse(&s, text, "test", &e) != ERR_OK)
        fail_msg("%s", e.text);
    return s;
}

/*
 * A machine of equal parts: sockets, nodes in each socket, caches in each node, cores in each cache, threads
 * in each core. The i-th threads of all cores are numbered before the next (as on most servers), or with
 * `adjacent` the threads of a core one after the other.
 */
static inline struct pl_machine *machine_of(int sockets, int nodes, int caches, int cores, int threads,
                                            bool adjacent)
{
    struct pl_machine *m = calloc(1, sizeof(*m));
    int n_cores = sockets * nodes * caches * cores;

    assert_non_null(m);
    assert_true(n_cores * threads <= CPUS_MAX && sockets * nodes <= PL_NODES_MAX);
    for (int c = 0; c < n_cores; c++)
        for (int t = 0; t < threads; t++) {
            int cpu = adjacent ? c * threads + t : t * n_cores + c;

            cpus_add(&m->cpus, (unsigned)cpu);
            m->cpu[cpu].in[PL_CORE] = adjacent ? c * threads : c;
            m->cpu[cpu].in[PL_UNCORE] = c / cores;
            m->cpu[cpu].in[PL_NODE] = c / (cores * caches);
            m->cpu[cpu].in[PL_SOCKET] = c / (cores * caches * nodes);
        }
    m->n_nodes = (size_t)(sockets * nodes);
    m->distances_known = true;
    for (size_t i = 0; i < m->n_nodes; i++) {
        m->node[i] = (struct pl_node){ .id = (unsigned)i, .memory = 8ull << 30 };
        for (size_t k = 0; k < m->n_nodes; k++)
            m->node[i].distance[k] = i == k ? 10 : i / (size_t)nodes == k / (size_t)nodes ? 12 : 21;
    }
    pl_machine_count(m);
    return m;
}
#endif
