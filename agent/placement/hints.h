/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hints - the sets of NUMA nodes that can supply a resource, and the merged set for all resources of a
 * container or pod (pkg/kubelet/cm/topologymanager). Pure.
 *
 * A hint is a set of nodes that can supply the resource. It is preferred if no smaller set could supply it on
 * an empty machine. One hint of each resource is intersected; the result is preferred only if all hints were
 * preferred and name the same set. Resources are aligned to the best result.
 */
#ifndef AGENT_PLACEMENT_HINTS_H
#define AGENT_PLACEMENT_HINTS_H
#include "agent/placement/machine.h"

struct pl_hint {
    uint64_t nodes; /* 0: any node */
    bool preferred;
};

struct pl_hints {      /* of one resource */
    bool any;          /* no constraint; v is not used */
    struct pl_hint *v; /* owned; n == 0 without `any`: no set of nodes can supply it */
    size_t n;
    size_t more; /* other resources that have the same hints: a container's types of memory */
};
void pl_hints_done(struct pl_hints *h); /* { 0 } is fine; the struct is empty again */
enum err_code pl_hints_add(struct pl_hints *h, uint64_t nodes, struct err *e) MUST_CHECK;
/* Marks exactly the hints of `size` nodes as preferred. */
void pl_hints_prefer(struct pl_hints *h, unsigned size);

/* Iterates over all non-empty sets of `nodes`, the smallest first, then in the order of their lowest nodes:
 * 0, 1, 2, 01, 02, 12, 012. Begin with *set 0; false: that was the last one. */
bool pl_next_set(uint64_t nodes, uint64_t *set);

enum pl_policy { PL_POLICY_NONE, PL_POLICY_BEST_EFFORT, PL_POLICY_RESTRICTED, PL_POLICY_SINGLE_NODE };

struct pl_topology { /* settings of the topology manager */
    enum pl_policy policy;
    bool pod_scope;      /* one set for the whole pod; otherwise one for each container */
    bool prefer_closest; /* of sets of the same size the one with the least average distance */
};

/*
 * *ret: the best set, also if it is refused. ERR_PRECONDITION: the policy refuses the container, with
 * kubelet's text. The result does not depend on the order of v, or of its hints.
 */
enum err_code pl_merge(const struct pl_machine *m, const struct pl_topology *t, const struct pl_hints *v,
                       size_t n, struct pl_hint *ret, struct err *e) MUST_CHECK;
#endif
