/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_attach - a pod in CNI's terms: the plugins' input for ADD, DEL and CHECK.
 *
 * Bandwidth: annotations kubernetes.io/ingress-bandwidth and egress-bandwidth, quantities of bits per second
 * from 1k to 1P, as in kubelet; others are errors, in its words. Ports: hostPort of the regular containers,
 * without duplicates. Loop thread only.
 */
#ifndef AGENT_POD_SANDBOX_NET_ATTACH_H
#define AGENT_POD_SANDBOX_NET_ATTACH_H
#include "agent/pod/core/pod.h"

struct net_attach; /* data referenced by the attachment */

/* Fills p->cni_att; its data belongs to the pod until the next call or net_attach_free(), so no operation on
 * the old one may be live. For DEL (`add` false) an invalid annotation is ignored. */
enum err_code net_attach_fill(struct pod *p, bool add, bool with_netns, struct err *e) MUST_CHECK;
void net_attach_free(struct pod *p);

/* Ids of sandboxes: hex digits, of which the first 16 are constant for this machine and state folder, even
 * if that is emptied, and the rest random. So plugins' leftovers can be identified as ours by the sandbox
 * id. */
#define SANDBOX_ID_DIGITS 64
#define SANDBOX_TAG_DIGITS 16
void net_sandbox_tag(const char *state_dir, char ret[SANDBOX_TAG_DIGITS + 1]);
void net_sandbox_id(const struct node *n, char ret[SANDBOX_ID_DIGITS + 1]);

/* For tests: 0 without the annotation; ERR_INVALID in kubelet's words. */
enum err_code net_bandwidth(const struct api_pod *pod, const char *annotation, int64_t *ret,
                            struct err *e) MUST_CHECK;
#endif
