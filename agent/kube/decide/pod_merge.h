/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_merge - a pod's status as it shall be, from the status that the apiserver has and the one that the node
 * found (pkg/kubelet/status/status_manager.go mergePodStatus). Pure.
 *
 * - Conditions that are not the node's, and parts that other components keep in the status (resource claims,
 * the nominated node, the class), stay. DisruptionTarget is shared: the node sets it only together with a
 * final phase.
 * - A phase that is final (Succeeded, Failed), its reason and message are held back while a container runs.
 * - Ready and ContainersReady are False with a final phase.
 * - lastTransitionTime stays that of the apiserver while the condition's status does.
 * - A pod of which nothing is left gets a final phase: Failed where the node had none.
 */
#ifndef AGENT_KUBE_DECIDE_POD_MERGE_H
#define AGENT_KUBE_DECIDE_POD_MERGE_H
#include <jansson.h>
#include <stdbool.h>

bool pod_phase_is_final(const char *phase); /* NULL: false */
/* pkg/kubelet/types/pod_status.go, and the agent's own (coracle.dev/...). NULL: false. */
bool pod_condition_is_of_node(const char *type);
/* Whether a container of this status runs. */
bool pod_may_run(const json_t *status);
/* New; NULL when out of memory. `ended`: nothing of the pod is left on the node. */
json_t *pod_merge(const json_t *theirs, const json_t *ours, bool ended);

/* The body of the PATCH on pods/<name>/status with the uid as precondition; NULL: nothing differs, or no
 * memory. */
json_t *pod_status_patch(const char *uid, const json_t *theirs, const json_t *merged);
#endif
