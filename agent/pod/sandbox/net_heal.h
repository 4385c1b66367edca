/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_heal - checks and repairs the pods' networks: at the start of the agent and after changes of network
 * lists or plugins; a single pod also when it lost an interface or an address (net_watch.h).
 *
 * For each attached pod, one after the other: does its namespace still have the interface with the pod's
 * addresses (links.h), and do the plugins find what they made (CHECK, as interpreted by cni.h)? If something
 * is lost, it is DELed and ADDed again in the same namespace, with the same address if the plugins allow
 * that; containers continue to run. Lost means a missing interface, or parts made by plugins outside (rules,
 * limits). The inside belongs to the pod: one that moves its address or interface elsewhere (like
 * KubeVirt's), or changes its routes, is left alone, as in kubelet. That, and unclear cases, are only
 * reported (`coracle explain pod`). Ten seconds after an ADD the first CHECK establishes the reference,
 * unless that is known for attachments of this kind. Attachments and addresses without owner are released,
 * and plugins that support GC run it. `coracle explain node` shows the result. Loop thread only.
 */
#ifndef AGENT_POD_SANDBOX_NET_HEAL_H
#define AGENT_POD_SANDBOX_NET_HEAL_H
#include "agent/pod/sandbox/sandbox.h"

void net_heal_open(struct node *n); /* before anything else */
void net_heal_free(struct node *n);
/* In sandbox_step() of an attached pod. */
void net_heal_step(struct pod *p);
/* sandbox.c: an ADD succeeded. */
void net_heal_attached(struct pod *p);
/* Teardown: true if no check of this pod is in progress; otherwise it is being ended. */
bool net_heal_end(struct pod *p);

bool net_heal_live(const struct node *n);
void net_heal_cancel(struct node *n);
#endif
