/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine - the processors and NUMA nodes of a machine, as data. discover.c reads them from the kernel; tests
 * define them.
 *
 * Numbers are the kernel's, with two exceptions from kubelet (cadvisor, cpumanager/topology): the number of a
 * core is the number of its lowest online processor; a machine that reports no caches of the third level has
 * one "uncore" cache for each socket.
 */
#ifndef AGENT_PLACEMENT_MACHINE_H
#define AGENT_PLACEMENT_MACHINE_H
#include "agent/placement/cpus.h"

#define PL_NODES_MAX 16   /* NUMA nodes of a machine: hints are sets of them, 65535 for each resource */
#define PL_NODE_ID_MAX 63 /* the number of a node: a set of nodes has 64 bits, as in kubelet */
#define PL_PAGES_MAX 8    /* sizes of huge pages */

enum pl_level { PL_NODE, PL_SOCKET, PL_UNCORE, PL_CORE };
#define PL_LEVELS 4

struct pl_cpu {
    int32_t in[PL_LEVELS]; /* the processor's node, socket, cache and core, by number */
};

struct pl_pages { /* huge pages of one size */
    uint64_t size_kib;
    uint64_t n;
};

struct pl_node {
    unsigned id;
    uint64_t memory; /* bytes, with those of its huge pages */
    struct pl_pages pages[PL_PAGES_MAX];
    size_t n_pages;
    uint32_t distance[PL_NODES_MAX]; /* to the i-th node of the machine; 10 is itself (ACPI SLIT) */
};

struct pl_machine {
    struct cpus cpus; /* online */
    struct pl_cpu cpu[CPUS_MAX];
    struct pl_node node[PL_NODES_MAX]; /* ascending by id */
    size_t n_nodes;                    /* 1 to PL_NODES_MAX */
    bool distances_known;
    /* computed by pl_machine_count() */
    unsigned n[PL_LEVELS]; /* nodes with processors, sockets, caches, cores */
    unsigned n_cpus;
    uint64_t nodes;     /* all nodes, as bits */
    uint64_t cpu_nodes; /* nodes with processors */
};

/* Computes the counts from the members above; there must be at least one processor. */
void pl_machine_count(struct pl_machine *m);
/* Processors of a core: the integer quotient over the whole machine, as in kubelet; at least 1. */
unsigned pl_cpus_per_core(const struct pl_machine *m);
/* The processors of *of that are in that node, socket, cache or core. */
struct cpus pl_cpus_in(const struct pl_machine *m, const struct cpus *of, enum pl_level level, int32_t id);
/* The processors of *of on these nodes. */
struct cpus pl_cpus_on(const struct pl_machine *m, const struct cpus *of, uint64_t nodes);
/* All processors of the cores of *s. */
struct cpus pl_whole_cores(const struct pl_machine *m, const struct cpus *s);
/* Index in m->node; -1: there is no such node. */
int pl_node_index(const struct pl_machine *m, unsigned id);

/*
 * The machine from the kernel: `sys` is /sys, or a copy of it. A machine without folders of nodes has node 0.
 * Blocking (some hundred small files). ERR_RANGE: more than PL_NODES_MAX nodes, or numbers above the limits.
 */
enum err_code pl_machine_read(struct pl_machine *ret, const char *sys, struct err *e) MUST_CHECK;
#endif
