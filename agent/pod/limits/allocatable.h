/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocatable - how much of each resource the node has (capacity), and how much pods may request
 * (allocatable): kubelet's numbers, pkg/kubelet/cm/node_container_manager_linux.go and nodestatus/setters.go.
 *
 *     allocatable = capacity - systemReserved - kubeReserved - what evictionHard keeps free
 *     memory: also without reserved huge pages
 *     limit of <root>/kubepods = capacity - systemReserved - kubeReserved (cpu weight, memory, process ids)
 *
 * Computed each time, because huge pages come and go while the agent runs. Loop thread only.
 */
#ifndef AGENT_POD_LIMITS_ALLOCATABLE_H
#define AGENT_POD_LIMITS_ALLOCATABLE_H
#include "agent/pod/core/node_options.h"

/* For "cpu" (in thousandths), "memory", "ephemeral-storage", "hugepages-<size>" (bytes), "pods", "pid", and
 * extended resources ("example.com/dev"), of which healthy devices are allocatable. -1: unknown resource; an
 * extended one stays known, with 0, when its provider has gone for good. */
int64_t node_capacity(const struct node *n, const char *resource);
int64_t node_allocatable(const struct node *n, const char *resource);

/* ERR_INVALID, in kubelet's words: more is reserved and kept free than the machine has. The agent does not
 * start then: a limit of 0 for all pods would end running ones. */
enum err_code allocatable_check(const struct node_options *o, struct err *e) MUST_CHECK;

/* _update() writes the limits of all pods together, again when their inputs changed. If pods use more than a
 * new limit (rejected on v1), there is an event and it is retried each minute, as in kubelet. */
void allocatable_update(struct node *n);
/* Whether the limits of enforceNodeAllocatable are in effect, and the text of the event. */
bool allocatable_is_enforced(const struct node *n);
#define ALLOCATABLE_ENFORCED_TEXT "Updated Node Allocatable limit across pods"
/* The CPU weight of all pods together, as for a systemd unit. */
uint64_t allocatable_unit_weight(const struct node *n);

/* According to enforceNodeAllocatable: sets limits of the reserved cgroups, which are not ours.
 * ERR_NOT_FOUND: one, or its controller, does not exist; the agent does not start then. */
enum err_code allocatable_enforce_reserved(const struct node_options *o, struct err *e) MUST_CHECK;
#endif
