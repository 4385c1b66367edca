/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology - NUMA hints and how they are merged (pkg/kubelet/cm/topologymanager). Pure.
 *
 * A hint is a set of NUMA nodes that can supply a resource, preferred if no smaller set can. Policies: none,
 * best-effort, restricted, single-numa-node; scopes: container, pod. At most DP_NUMA_MAX nodes.
 */
#ifndef DEVICEPLUGIN_TOPOLOGY_H
#define DEVICEPLUGIN_TOPOLOGY_H
#include "deviceplugin/holdings.h"
#include "deviceplugin/inventory.h"

#define DP_NUMA_MAX 8 /* kubelet's default of max-allowable-numa-nodes */

enum dp_policy { DP_POLICY_NONE, DP_POLICY_BEST_EFFORT, DP_POLICY_RESTRICTED, DP_POLICY_SINGLE_NODE };

struct dp_hint {
    uint64_t numa;
    bool preferred;
};
struct dp_hints { /* of one resource */
    bool any;     /* no constraint: n is 0 */
    struct dp_hint v[1 << DP_NUMA_MAX];
    size_t n; /* 0 and not any: no set of nodes can supply it */
};

struct dp_machine {
    uint64_t nodes;
}; /* NUMA nodes of this machine, as bits */
enum err_code dp_machine_read(struct dp_machine *ret, const char *sys_dir, struct err *e) MUST_CHECK;

/* Sets of nodes from which `count` devices of r can be had by this pod, its reusable ones included. */
void dp_hints_make(const struct dp_machine *m, const struct dp_resource *r, const struct dp_holdings *h,
                   const char *pod_uid, const char *const *reusable, size_t n_reusable, int64_t count,
                   struct dp_hints *ret);
/* ERR_PRECONDITION: the policy refuses ("Resources cannot be allocated with Topology locality"). *ret_has
 * false: no constraint. */
enum err_code dp_hints_merge(const struct dp_machine *m, enum dp_policy policy, const struct dp_hints *v,
                             size_t n, bool *ret_has, struct dp_hint *ret, struct err *e) MUST_CHECK;
#endif
