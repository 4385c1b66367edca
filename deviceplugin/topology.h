/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology - the NUMA hints of devices (pkg/kubelet/cm/devicemanager/topology_hints.go). Pure, except for
 * dp_machine_read().
 *
 * A hint is a set of NUMA nodes that can supply a resource. It is preferred if no smaller set could supply it
 * with all devices free. The caller merges the hints of all resources into one set, to which
 * dp_choose_begin() aligns: for each container, or once for the sums of a pod.
 */
#ifndef DEVICEPLUGIN_TOPOLOGY_H
#define DEVICEPLUGIN_TOPOLOGY_H
#include "deviceplugin/choose.h"

#define DP_NUMA_MAX 8     /* nodes of a machine: kubelet's default of max-allowable-numa-nodes */
#define DP_NUMA_ID_MAX 63 /* the number of a node: kubelet's sets have 64 bits, too */

struct dp_machine {
    uint64_t nodes; /* NUMA nodes of this machine, as bits; 1 to DP_NUMA_MAX of them */
};
/* From the folders node<N> of `dir` (/sys/devices/system/node); a machine without that folder has node 0.
 * ERR_RANGE: more than DP_NUMA_MAX nodes, or a greater number than DP_NUMA_ID_MAX. */
enum err_code dp_machine_read(struct dp_machine *ret, const char *dir, struct err *e) MUST_CHECK;

enum dp_hint { DP_HINT_NO, DP_HINT_POSSIBLE, DP_HINT_PREFERRED };
struct dp_hints { /* of one resource */
    bool any;     /* no constraint; v is not used */
    /* By set of nodes: bit i of the index is the i-th node of the machine. All DP_HINT_NO: no set of nodes
     * can supply it. */
    uint8_t v[1 << DP_NUMA_MAX];
};

/*
 * Sets of nodes that can supply w->count devices of r, including reusable ones; has_hint is ignored. There is
 * no constraint if no device of the resource has topology (or `r` is NULL). Otherwise devices without
 * topology, and devices on nodes that the machine does not have, are in no set.
 *
 * Devices of r that the container holds already are part of each set; if their number differs from w->count,
 * there is no hint. A whole pod may hold fewer, after the agent was killed during the allocation. (kubelet
 * has no hint then, and its policies refuse the pod.)
 */
void dp_hints_make(const struct dp_machine *m, const struct dp_resource *r, const struct dp_holdings *h,
                   const struct dp_wish *w, struct dp_hints *ret);
#endif
