/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_heal - the pods' network is looked at and put right: at the start of the agent and after the network
 * lists or plugins changed; one pod also when it lost an interface or an address (net_watch.h).
 *
 * Each attached pod, one after the other: has its namespace still the interface with the pod's addresses
 * (links.h), and do the plugins find what they made (CHECK, as cni.h understands it)?  What was lost is DELed
 * and ADDed again in the same namespace, with the address it had where the plugins allow that; containers go
 * on.  Lost is an interface that is gone, and what plugins made outside (rules, limits).  What is inside is
 * the pod's: one that moves its address or its interface elsewhere (KubeVirt's do), or changes its routes, is
 * left alone, as by kubelet.  That, and what cannot be judged, is only told (`coracle explain pod`).  Ten
 * seconds after an ADD the first CHECK sees how plugins find what they made a moment ago, unless that is
 * known of attachments of this kind. Attachments and addresses of nobody are given back, and plugins that
 * have it run their GC.  `coracle explain node` says what came of it.  Loop thread only.
 */
#ifndef AGENT_POD_SANDBOX_NET_HEAL_H
#define AGENT_POD_SANDBOX_NET_HEAL_H
#include "agent/pod/core/pod.h"

/* All pods from now on, each once; `again`: not at the start, so left-overs are looked for, too. */
void net_heal_start(struct node *n, bool again);
/* In sandbox_step() of a pod that is attached. */
void net_heal_step(struct pod *p);
/* sandbox.c: an ADD ended well. */
void net_heal_attached(struct pod *p);
/* Teardown: true when no check of this pod is under way; else it is being ended. */
bool net_heal_end(struct pod *p);

bool net_heal_live(const struct node *n);
void net_heal_cancel(struct node *n);
void net_heal_explain(const struct node *n, json_t *steps);
#endif
