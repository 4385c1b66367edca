/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_manager - kubelet's Static policy for memory and huge pages
 * (pkg/kubelet/cm/memorymanager/policy_static.go). Pure.
 *
 * Containers of Guaranteed pods get their memory on as few NUMA nodes as possible. A node is used either
 * alone or always together with the same other nodes: its group. Later containers of a pod reuse blocks of
 * its init containers on the same nodes; the size of these blocks shrinks accordingly, so that the blocks of
 * a pod add up to its memory. Reusable memory is remembered only for the pod that allocated last.
 */
#ifndef AGENT_PLACEMENT_MEMORY_MANAGER_H
#define AGENT_PLACEMENT_MEMORY_MANAGER_H
#include "agent/placement/cpu_manager.h"
#include "agent/placement/memory_state.h"

struct pl_amount {
    char type[PL_TYPE_NAME_MAX];
    uint64_t bytes;
};

struct pl_memory_want { /* what one container requests */
    const char *pod, *container;
    enum pl_kind kind;
    struct pl_amount v[PL_TYPES_MAX];
    size_t n; /* 0: nothing, the pod is not Guaranteed */
};

struct pl_reserved { /* reservedMemory of one node and type; several entries are added up */
    unsigned node;
    char type[PL_TYPE_NAME_MAX];
    uint64_t bytes;
};

struct pl_reusable {
    uint64_t nodes;
    char type[PL_TYPE_NAME_MAX];
    uint64_t size;
};
#define PL_REUSABLE_MAX 64

struct pl_memory_manager {
    const struct pl_machine *m; /* borrowed */
    struct pl_memory_state state;
    struct pl_memory_state fresh;    /* the machine without assignments */
    char reuse_pod[PL_NAME_MAX + 1]; /* "": nothing may be used again */
    struct pl_reusable reuse[PL_REUSABLE_MAX];
    size_t n_reuse;
};

/* "hugepages-2Mi" for 2048. */
void pl_pages_name(uint64_t size_kib, char ret[PL_TYPE_NAME_MAX]);

/* ERR_INVALID, with kubelet's text: no memory is reserved, or more than the memory of a node. The caller owns
 * *ret: pl_memory_manager_done(). */
enum err_code pl_memory_manager_init(struct pl_memory_manager *ret, const struct pl_machine *m,
                                     const struct pl_reserved *v, size_t n, struct err *e) MUST_CHECK;
void pl_memory_manager_done(struct pl_memory_manager *g);
/* Takes ownership of the state read from a file (empty if there is none) and leaves *s empty.
 * ERR_PRECONDITION, with kubelet's text: the state contradicts this machine or itself, and nothing is
 * changed. */
enum err_code pl_memory_manager_start(struct pl_memory_manager *g, struct pl_memory_state *s,
                                      struct err *e) MUST_CHECK;

/*
 * The hints of a container, equal for each type of memory that it requests. *ret_n: 1 if it requests memory.
 * If no set of nodes can supply it, the hints have no constraint, and the allocation fails.
 */
enum err_code pl_memory_hints(const struct pl_memory_manager *g, const struct pl_memory_want *w,
                              struct pl_hints *ret, struct err *e) MUST_CHECK;
/* The same for a whole pod: its containers in order. */
enum err_code pl_memory_pod_hints(const struct pl_memory_manager *g, const struct pl_memory_want *v, size_t n,
                                  struct pl_hints *ret, struct err *e) MUST_CHECK;
/* Allocates the memory of v[i]. v: the containers of the pod in order, up to it. ERR_EXHAUSTED, with
 * kubelet's text. */
enum err_code pl_memory_allocate(struct pl_memory_manager *g, const struct pl_memory_want *v, size_t i,
                                 const struct pl_hint *hint, struct err *e) MUST_CHECK;
void pl_memory_release(struct pl_memory_manager *g, const char *pod, const char *container);
#endif
