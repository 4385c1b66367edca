/* SPDX-License-Identifier: Apache-2.0 */
/* attachment - struct cni_attachment in CNI's terms: CNI_ARGS and the values of capability arguments. Names
 * follow CNI's CONVENTIONS.md and what kubelet, CRI-O and containerd send. */
#ifndef CNI_ATTACHMENT_H
#define CNI_ATTACHMENT_H
#include "cni/cni.h"

#define CNI_PORTS_MAX 4096 /* per pod; each is an iptables rule */

/*
 * A rate's burst, in bits: the amount that may pass at once before the limit applies. kubelet's value
 * (2147483647) lets 268 MB pass, so a slow link has no limit for minutes. We use 50 ms of traffic, so that
 * the limit holds to 5% in the first second (the kernel needs one clock tick's worth, at most 10 ms), but at
 * least a frame of 9000 bytes: a smaller bucket passes no packet at all.
 */
#define CNI_BURST_PER_SECOND 20  /* rate / 20 = 50 ms */
#define CNI_BURST_MIN 96000      /* 12000 bytes */
#define CNI_BURST_MAX 2147483647 /* accepted by every version of the bandwidth plugin */

/* ERR_INVALID if something in it could not be passed on unchanged. */
enum err_code cni_attachment_check(const struct cni_attachment *a, bool add, struct err *e) MUST_CHECK;
/* "IgnoreUnknown=1;K8S_POD_NAMESPACE=...", malloc'ed; NULL when out of memory. */
char *cni_attachment_args(const struct cni_attachment *a) MUST_CHECK;
/* {"portMappings": [...], "bandwidth": {...}}, without empty members; NULL when out of memory. */
json_t *cni_attachment_capability_args(const struct cni_attachment *a) MUST_CHECK;
#endif
