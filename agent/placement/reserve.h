/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve - checks the configuration's reservedMemory against the node's reservation. Pure.
 *
 * The sums over the nodes must equal the amount that kubeReserved, systemReserved and the hard eviction
 * threshold subtract from the node's capacity (pkg/kubelet/cm/memorymanager/memory_manager.go).
 */
#ifndef AGENT_PLACEMENT_RESERVE_H
#define AGENT_PLACEMENT_RESERVE_H
#include "agent/api/quantity.h"
#include "agent/placement/memory_manager.h"

struct pl_reservation { /* an entry of reservedMemory, or one resource of the node's reservation */
    unsigned node;      /* of reservedMemory only */
    const char *type; /* "memory", "hugepages-2Mi"; in the reservation also other types, which are ignored */
    struct quantity amount;
};

/*
 * Checks `v` (n_v entries of reservedMemory) against `whole` (the node's reservation, n_whole resources) and
 * fills ret[n_v]; of several entries for a node and type the last is used, as in kubelet. ERR_INVALID, with
 * kubelet's text. *ret_n: number of entries.
 */
enum err_code pl_reserve(const struct pl_machine *m, const struct pl_reservation *v, size_t n_v,
                         const struct pl_reservation *whole, size_t n_whole, struct pl_reserved *ret,
                         size_t *ret_n, struct err *e) MUST_CHECK;
#endif
