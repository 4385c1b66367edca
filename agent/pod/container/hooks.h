/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks - a container's postStart and preStop handlers, as kubelet runs them (pkg/kubelet/lifecycle): exec
 * succeeds with exit code 0, httpGet with any response, sleep by waiting; tcpSocket is no valid handler.
 * Loop thread only.
 */
#ifndef AGENT_POD_CONTAINER_HOOKS_H
#define AGENT_POD_CONTAINER_HOOKS_H
#include "agent/pod/core/pod.h"

/*
 * Begins the hook; no other of this container is under way.  preStop has `grace_ns` (its own end; more than
 * 0), postStart no limit (0).  Its end wakes the pod: a failed postStart sets c->post and has the container
 * killed; a failed preStop is an event.
 */
void hook_post_start(struct ctr *c);
void hook_pre_stop(struct ctr *c, int64_t grace_ns);
bool hook_live(const struct ctr *c);
void hook_cancel(struct ctr *c); /* asks; its end wakes the pod */
/* The container has ended by itself: what runs in it cannot succeed any more. */
void hook_container_ended(struct ctr *c);
#endif
