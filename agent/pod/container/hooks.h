/* SPDX-License-Identifier: Apache-2.0 */
/* hooks - a container's postStart and preStop handlers, as in kubelet (pkg/kubelet/lifecycle): exec succeeds
 * with exit code 0, httpGet with any response, sleep by waiting; tcpSocket is not a valid handler. Loop
 * thread only. */
#ifndef AGENT_POD_CONTAINER_HOOKS_H
#define AGENT_POD_CONTAINER_HOOKS_H
#include "agent/pod/core/pod.h"

/* Starts the hook; no other of this container may be in progress. preStop has `grace_ns` (its own end; more
 * than 0), postStart no limit (0). Its end wakes the pod: a failed postStart sets c->post and kills the
 * container; a failed preStop is an event. */
void hook_post_start(struct ctr *c);
void hook_pre_stop(struct ctr *c, int64_t grace_ns);
bool hook_live(const struct ctr *c);
void hook_cancel(struct ctr *c); /* requests it; its end wakes the pod */
/* The container ended on its own: a hook inside cannot succeed any more. */
void hook_container_ended(struct ctr *c);
#endif
