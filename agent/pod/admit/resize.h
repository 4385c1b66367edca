/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize - cpu and memory of a pod that runs are changed without ending it, as by kubelet
 * (pkg/kubelet/allocation, kuberuntime: doPodResizeAction).
 *
 *     desired     the manifest as it is now
 *     allocated   p->api: what was admitted; the manifest but for its resources where those do not fit now
 *     actual      struct cpu_memory: what the cgroups were last given
 *
 * The manifest's resources become allocated when they fit beside what other pods have, else the condition
 * PodResizePending says why: Infeasible (more than the node has at all) or Deferred (tried again whenever
 * something of the node changed).  The cgroups follow: condition PodResizeInProgress.
 *
 * Cgroups are written by us, as those of pods are, and not by the runtime's `update`: that is a process for
 * each container, cannot take a limit away, and would leave nothing that we could not write ourselves.  The
 * order is kubelet's: what grows first the pod, then its containers, what shrinks the other way round. Actual
 * sizes are in the record after each write, so that an agent that is killed in between goes on from there;
 * the writes say what shall be, and may come twice.  A memory limit is not lowered below what is in use; that
 * is looked at again every few seconds as long as it lasts, since nobody tells when memory is freed.
 *
 * A container whose resizePolicy says RestartContainer is ended and starts anew with its new limits.
 * Loop thread only.
 */
#ifndef AGENT_POD_ADMIT_RESIZE_H
#define AGENT_POD_ADMIT_RESIZE_H
#include "agent/pod/core/pod.h"

/*
 * An edit that may be applied in place: the manifest to go on with, a new reference.  Where its resources
 * cannot be had now it is *api with those that are allocated.  NULL: no memory.
 */
struct api_pod *resize_take(struct pod *p, struct api_pod *api);

/* What the pod's owner wants: p->api, or what waits. */
const struct api_pod *resize_desired(const struct pod *p);
void resize_forget(struct pod *p); /* it is over, or freed */
/* Of two that wait whose turn it is: what asks for no more, higher priority, Guaranteed, who waits longer. */
bool resize_before(const struct pod *a, const struct pod *b);

/* Makes the pod's cgroup, not smaller than what its containers may have from before. */
enum err_code resize_pod_cgroup(struct pod *p, struct err *e) MUST_CHECK;
/* For resources.c: what of a cgroup must not become smaller yet. */

/* Towards the manifest, as far as it is possible now; of a pod whose containers may run. */
void resize_step(struct pod *p);

/* For the status. */
void resize_conditions(const struct pod *p, json_t *list);
/* What a container's resources are, where that differs from what is allocated. */
void resize_actual(const struct ctr *c, json_t *resources);

/* ---- resize_cgroups.c, for resize_step() ---- */
/* In kubelet's words why memory limits cannot be lowered now; false: nothing is in the way. */
enum err_code resize_memory_refuses(struct pod *p, char *ret, size_t size, struct err *e) MUST_CHECK;
/* Writes what differs, in the order above. */
enum err_code resize_apply(struct pod *p, struct err *e) MUST_CHECK;
/* No instance is left, or on its way, that has other sizes than it should. */
bool resize_is_settled(const struct pod *p);
#endif
