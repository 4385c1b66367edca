/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocatable - how much of each resource the node has (capacity), and how much of it pods may ask for
 * (allocatable): kubelet's numbers, pkg/kubelet/cm/node_container_manager_linux.go and nodestatus/setters.go.
 *
 *     allocatable = capacity - systemReserved - kubeReserved - what evictionHard keeps free
 *     memory: also without the huge pages that were set aside
 *     limit of <root>/kubepods = capacity - systemReserved - kubeReserved (cpu weight, memory, process ids)
 *
 * Asked for each time, since huge pages come and go while the agent runs.  Loop thread only.
 */
#ifndef AGENT_POD_LIMITS_ALLOCATABLE_H
#define AGENT_POD_LIMITS_ALLOCATABLE_H
#include "agent/pod/core/node_options.h"

/*
 * Of "cpu" (in thousandths), "memory", "ephemeral-storage", "hugepages-<size>" (bytes), "pods", "pid".
 * -1: the node knows no such resource.
 */
int64_t node_capacity(const struct node *n, const char *resource);
int64_t node_allocatable(const struct node *n, const char *resource);

/*
 * ERR_INVALID, in kubelet's words: more is reserved and kept free than the machine has.  The agent does not
 * start then: a limit of all pods of 0 would end those that run.
 */
enum err_code allocatable_check(const struct node_options *o, struct err *e) MUST_CHECK;

/*
 * _update() writes the limits of all pods together, again when what they depend on changed.  Where pods use
 * more than a new limit (v1 refuses it then) it is told by an event and tried again each minute, as kubelet
 * does.
 */
void allocatable_update(struct node *n);
/* The cpu weight of all pods together, as a unit of systemd's has it. */
uint64_t allocatable_unit_weight(const struct node *n);

/*
 * Where enforceNodeAllocatable says so: limits of the reserved cgroups, which are somebody else's.
 * ERR_NOT_FOUND: one, or a controller of it, is not there; the agent does not start then.
 */
enum err_code allocatable_enforce_reserved(const struct node_options *o, struct err *e) MUST_CHECK;
#endif
