/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attachment - struct cni_attachment in CNI's own terms: CNI_ARGS and the values of capability arguments.
 * Names follow CNI's CONVENTIONS.md and what kubelet, CRI-O and containerd send.
 */
#ifndef CNI_ATTACHMENT_H
#define CNI_ATTACHMENT_H
#include "cni/cni.h"

#define CNI_PORTS_MAX 4096 /* mappings of one pod; each is an iptables rule */

/*
 * The burst of a rate, bits: what may pass at once before the rate holds.  kubelet's (2147483647) lets 268 MB
 * pass, which is no limit at all in the first minutes of a slow one.  Here: what passes in 50 ms, so that the
 * limit holds in the first second to 5% (the kernel needs what passes in a tick of its clock, 10 ms at most),
 * but a frame of 9000 bytes must fit: a lesser bucket passes no packet at all.
 */
#define CNI_BURST_PER_SECOND 20  /* rate / 20 = 50 ms */
#define CNI_BURST_MIN 96000      /* 12000 bytes */
#define CNI_BURST_MAX 2147483647 /* every version of the bandwidth plugin takes it */

/* ERR_INVALID when something in it could not be passed on unchanged. */
enum err_code cni_attachment_check(const struct cni_attachment *a, bool add, struct err *e) MUST_CHECK;
/* "IgnoreUnknown=1;K8S_POD_NAMESPACE=...", malloc'ed; NULL: no memory. */
char *cni_attachment_args(const struct cni_attachment *a) MUST_CHECK;
/* {"portMappings": [...], "bandwidth": {...}}, members without content left out; NULL: no memory. */
json_t *cni_attachment_capability_args(const struct cni_attachment *a) MUST_CHECK;
#endif
