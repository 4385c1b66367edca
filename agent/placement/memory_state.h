/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_state - the memory of NUMA nodes, and the blocks of each container; kubelet's file
 * memory_manager_state, in its format with its checksum (pkg/kubelet/cm/memorymanager/state). Pure: the
 * caller reads and writes the file.
 */
#ifndef AGENT_PLACEMENT_MEMORY_STATE_H
#define AGENT_PLACEMENT_MEMORY_STATE_H
#include "agent/placement/entries.h"
#include "agent/placement/machine.h"

#define PL_TYPES_MAX (1 + PL_PAGES_MAX) /* memory, and huge pages of each size */
#define PL_TYPE_NAME_MAX 40             /* bytes, with the NUL: "memory", "hugepages-2Mi" */

struct pl_table { /* one type of memory on one node, in bytes */
    char type[PL_TYPE_NAME_MAX];
    uint64_t total, system_reserved, allocatable, reserved, free;
};

struct pl_cell {         /* one NUMA node */
    unsigned id;         /* at most PL_NODE_ID_MAX */
    int64_t assignments; /* blocks that use it */
    uint64_t group;      /* the nodes that are used together with it, including itself */
    struct pl_table v[PL_TYPES_MAX];
    size_t n;
};

struct pl_block {
    char type[PL_TYPE_NAME_MAX];
    uint64_t nodes;
    uint64_t size; /* bytes, on all nodes together; 0: later containers reuse all of it */
};

struct pl_memory_entry {
    struct pl_owner owner;
    struct pl_block v[PL_TYPES_MAX];
    size_t n;
};

struct pl_memory_state {
    struct pl_cell cell[PL_NODES_MAX]; /* ascending by id */
    size_t n_cells;
    struct pl_memory_entry *v; /* by pod and container, ascending by bytes */
    size_t n;
};

void pl_memory_state_done(struct pl_memory_state *s); /* { 0 } is fine; it is empty again */
struct pl_memory_entry *pl_memory_state_find(const struct pl_memory_state *s, const char *pod,
                                             const char *container); /* NULL: there is none */
/* *blocks: n of them, at most PL_TYPES_MAX. */
enum err_code pl_memory_state_put(struct pl_memory_state *s, const char *pod, const char *container,
                                  const struct pl_block *blocks, size_t n, struct err *e) MUST_CHECK;
void pl_memory_state_remove(struct pl_memory_state *s, const char *pod, const char *container);
struct pl_cell *pl_memory_cell(const struct pl_memory_state *s, unsigned id); /* NULL: there is none */
/* NULL: the node has no memory of that type. */
struct pl_table *pl_memory_table(const struct pl_cell *c, const char *type);

/* The text of the file, malloc'ed. `policy`: "None" or "Static". */
enum err_code pl_memory_state_write(const struct pl_memory_state *s, const char *policy, char **ret,
                                    size_t *ret_n, struct err *e) MUST_CHECK;
/* ERR_DATA_LOSS: the file is damaged. *ret_policy: malloc'ed. On failure nothing is changed. */
enum err_code pl_memory_state_read(const char *text, size_t n, struct pl_memory_state *ret, char **ret_policy,
                                   struct err *e) MUST_CHECK;
#endif
