/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize - changes cpu and memory of a running pod without ending it, like kubelet (pkg/kubelet/allocation,
 * kuberuntime: doPodResizeAction).
 *
 *     desired     the current manifest
 *     allocated   p->api: the admitted spec; the manifest, except for resources that do not fit now
 *     actual      struct cpu_memory: the values last written to the cgroups
 *
 * The manifest's resources become allocated if they fit beside other pods'; otherwise the condition
 * PodResizePending has the reason: Infeasible (more than the node has) or Deferred (retried whenever
 * something on the node changed). The cgroups follow: condition PodResizeInProgress.
 *
 * We write cgroups ourselves, instead of the runtime's `update`, which needs a process per container, cannot
 * remove a limit, and offers nothing more. The order is kubelet's: when growing, first the pod, then its
 * containers; when shrinking, the reverse. Actual sizes are recorded after each write, so that an agent
 * killed in between continues from there; writes are idempotent. A memory limit is not lowered below the
 * current usage; this is checked every few seconds while it lasts, because there is no event when memory is
 * freed.
 *
 * A container with resizePolicy RestartContainer is restarted with its new limits. Loop thread only.
 */
#ifndef AGENT_POD_ADMIT_RESIZE_H
#define AGENT_POD_ADMIT_RESIZE_H
#include "agent/pod/admit/admit.h"

/* Brings the cgroups as close to the manifest as possible now; for a pod whose containers may run. */
void resize_step(struct pod *p);

/* ---- resize_cgroups.c, for resize_step() ---- */
/* Why memory limits cannot be lowered now, in kubelet's words; false: they can. */
enum err_code resize_memory_refuses(struct pod *p, char *ret, size_t size, struct err *e) MUST_CHECK;
/* Writes the differences, in the order above. */
enum err_code resize_apply(struct pod *p, struct err *e) MUST_CHECK;
/* No instance exists, or is being made, with other sizes than intended. */
bool resize_is_settled(const struct pod *p);
#endif
