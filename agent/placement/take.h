/* SPDX-License-Identifier: Apache-2.0 */
/*
 * take - chooses the processors of a request, by kubelet's two methods
 * (pkg/kubelet/cm/cpumanager/cpu_assignment.go). Pure; the result depends only on the arguments.
 *
 * Packed: whole NUMA nodes and sockets first, then whole caches if asked for, whole cores, single processors.
 * At each level the units with the fewest free processors come first, then units with lower numbers.
 *
 * Distributed: the least number of NUMA nodes that can share the request evenly, in groups of processors. Of
 * several sets of nodes, the one that leaves the most even balance is used.
 */
#ifndef AGENT_PLACEMENT_TAKE_H
#define AGENT_PLACEMENT_TAKE_H
#include "agent/placement/machine.h"

struct pl_take {
    const struct pl_machine *m;
    bool spread;       /* single processors in the order of their numbers, no whole cores */
    bool uncore_first; /* prefers processors that share a cache; packed only */
    /* Takes sockets and cores only if all of their processors are available. kubelet takes those that have
     * the average number of available processors, and so the others of them, too: on a machine that is not
     * uniform (processors offline, cores of different kinds) it assigns processors twice. */
    bool only_free;
};

/* ERR_EXHAUSTED, with kubelet's text: *available has fewer. A request of 0 returns the empty set. */
enum err_code pl_take_packed(const struct pl_take *t, const struct cpus *available, unsigned request,
                             struct cpus *ret, struct err *e) MUST_CHECK;
/* In groups of `group` processors (1, or the processors of a core). Packed if the request is no multiple of
 * it, or if no set of nodes can share it. */
enum err_code pl_take_distributed(const struct pl_take *t, const struct cpus *available, unsigned request,
                                  unsigned group, struct cpus *ret, struct err *e) MUST_CHECK;

/* The nodes that have processors of *available, in the order in which they are taken. */
size_t pl_take_node_order(const struct pl_machine *m, const struct cpus *available,
                          int32_t ret[PL_NODES_MAX]);
#endif
