/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_watch - an interface or address that a pod loses while the agent runs is noticed at once, by an event
 * of the kernel (cni/link_watch.h): a moment later the pod's interface is looked at, and only when something
 * is missing it is told, or attached again, as after a restart (net_heal.h).  A pod that is attached again
 * loses it again: not before NET_AGAIN_MS, so that one that takes its own interface away keeps nobody busy.
 * Where the kernel or our rights do not allow it, the next start or change of the lists finds it.  Loop
 * thread only.
 */
#ifndef AGENT_POD_SANDBOX_NET_WATCH_H
#define AGENT_POD_SANDBOX_NET_WATCH_H
#include "agent/pod/core/pod.h"

#define NET_AGAIN_MS 30000

void net_watch_start(struct node *n);
void net_watch_end(struct node *n);
/* It was attached, or taken over: from now on it is watched. */
void net_watch_pod(struct pod *p);
/* In a step of an attached pod: true when it is to be looked at now.  Asks to be woken for what comes later.
 */
bool net_watch_due(struct pod *p);
#endif
