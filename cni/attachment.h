/*
 * attachment - struct cni_attachment in CNI's own terms: CNI_ARGS and the values of capability arguments.
 * Names follow CNI's CONVENTIONS.md and what kubelet, CRI-O and containerd send.
 */
#ifndef CNI_ATTACHMENT_H
#define CNI_ATTACHMENT_H
#include "cni/cni.h"

#define CNI_PORTS_MAX 4096 /* mappings of one pod; each is an iptables rule */

/* kubelet's burst: the greatest that every version of the bandwidth plugin takes; bits. */
#define CNI_BANDWIDTH_BURST 2147483647

/* ERR_INVALID when something in it could not be passed on unchanged. */
enum err_code cni_attachment_check(const struct cni_attachment *a, bool add, struct err *e) MUST_CHECK;
/* "IgnoreUnknown=1;K8S_POD_NAMESPACE=...", malloc'ed; NULL: no memory. */
char *cni_attachment_args(const struct cni_attachment *a) MUST_CHECK;
/* {"portMappings": [...], "bandwidth": {...}}, members without content left out; NULL: no memory. */
json_t *cni_attachment_capability_args(const struct cni_attachment *a) MUST_CHECK;
#endif
