/* SPDX-License-Identifier: Apache-2.0 */
/* memory_internal - declarations shared by the files of the memory manager. */
#ifndef AGENT_PLACEMENT_MEMORY_INTERNAL_H
#define AGENT_PLACEMENT_MEMORY_INTERNAL_H
#include "agent/placement/memory_manager.h"

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Adds a block to the nodes of its set, which are filled in ascending order. */
void pl_memory_assign(struct pl_memory_state *s, uint64_t nodes, const char *type, uint64_t size);
/* The reusable memory of the pod's init containers on these nodes; NULL: none. */
struct pl_reusable *pl_reusable_of(const struct pl_memory_manager *g, const char *pod, uint64_t nodes,
                                   const char *type);
uint64_t pl_reusable_size(const struct pl_memory_manager *g, const char *pod, uint64_t nodes,
                          const char *type);
/* Whether the nodes have the memory that *w requests; `free`: only free memory, otherwise on an empty
 * machine; `again`: including memory that the pod may reuse. */
bool pl_memory_has(const struct pl_memory_manager *g, uint64_t set, const struct pl_memory_want *w, bool free,
                   bool again);
/* A node that is used alone, or in another group, cannot be used in this set. `given`: one node was chosen
 * for the container; kubelet then uses it even if it is in a group. */
bool pl_memory_violates(const struct pl_memory_manager *g, uint64_t set, bool given);
/* The result is empty if no set can supply the request. */
enum err_code pl_memory_make_hints(const struct pl_memory_manager *g, const struct pl_memory_want *w,
                                   bool again, struct pl_hints *ret, struct err *e) MUST_CHECK;
#endif
