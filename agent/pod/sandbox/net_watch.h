/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_watch - notices immediately, by a kernel event (cni/host/link_watch.h), when a pod loses an interface
 * or address: a moment later the pod's interface is checked, and only if something is missing it is reported,
 * or attached again, as after a restart (net_heal.h). If a reattached pod loses it again, at least
 * NET_AGAIN_MS pass, so that a pod that removes its own interface does not keep us busy. Without support by
 * the kernel or sufficient privileges, the loss is found at the next start or change of the lists. Loop
 * thread only.
 */
#ifndef AGENT_POD_SANDBOX_NET_WATCH_H
#define AGENT_POD_SANDBOX_NET_WATCH_H
#include "agent/pod/core/pod.h"

#define NET_AGAIN_MS 30000

void net_watch_start(struct node *n);
void net_watch_end(struct node *n);
/* It was attached, or adopted: watch it from now on. */
void net_watch_pod(struct pod *p);
/* In a step of an attached pod: true if it must be checked now. Otherwise schedules the wake-up. */
bool net_watch_due(struct pod *p);
#endif
