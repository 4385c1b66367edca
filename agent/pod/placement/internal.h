/* SPDX-License-Identifier: Apache-2.0 */
/* What this room keeps of the node and of a pod, and what its files share. */
#ifndef AGENT_POD_PLACEMENT_INTERNAL_H
#define AGENT_POD_PLACEMENT_INTERNAL_H
#include "agent/pod/placement/placement.h"
#include "base/work.h"

struct placement_file {
    char *path;
    char *text; /* being written; NULL: this file is not due */
    size_t n_text;
};

struct placement_node {
    struct pl_machine *machine; /* NULL: nothing is placed */
    struct pl_topology topology;
    bool cpu, memory;
    bool isolates; /* isolateExclusiveCPUs */
    struct pl_cpu_manager cpus;
    struct pl_memory_manager memories;
    struct placement_counts counts;
    uint64_t generation;            /* of what is given */
    uint64_t written, writing;      /* the generations in the files, and on the way there */
    struct placement_file files[2]; /* of processors, of memory */
    struct work work;
    bool failing;
    uv_timer_t timer; /* runs while a write that failed waits to be tried again */
};

struct placement_pod {
    uint64_t generation; /* that has what this pod has; 0: nothing */
};

static inline struct placement_node *placement_node(const struct node *n)
{
    return n->parts[ROOM_PLACEMENT];
}

static inline struct placement_pod *placement_of(const struct pod *p)
{
    return p->parts[ROOM_PLACEMENT];
}

/* ---- wants.c: what containers request; pure ---- */
/* Both arrays have p->n_ctrs elements. */
void placement_cpu_wants(const struct pod *p, struct pl_cpu_want *ret);
void placement_memory_wants(const struct pod *p, struct pl_memory_want *ret);

/* ---- state_files.c ---- */
enum err_code placement_read(struct node *n, struct err *e) MUST_CHECK;
void placement_changed(struct node *n); /* writes the files soon */
void placement_write_last(struct node *n);
#endif
