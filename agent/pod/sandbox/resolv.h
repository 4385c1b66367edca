/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolv - the text of a pod's /etc/resolv.conf by dnsPolicy and dnsConfig; rules and limits are kubelet's
 * (pkg/kubelet/network/dns/dns.go): 3 name servers, 32 search domains of at most 253 bytes, 2048 bytes in
 * total. The rest is omitted, with an event.
 *
 * One difference: kubelet warns for every ClusterFirst pod (the default) without --cluster-dns; here, without
 * a cluster, that is the usual case, so files.c logs it once for the node.
 */
#ifndef AGENT_POD_SANDBOX_RESOLV_H
#define AGENT_POD_SANDBOX_RESOLV_H
#include "agent/api/types.h"
#include "base/buf.h"

struct resolv_node {
    const char *const *cluster_dns; /* NULL-terminated; NULL: none */
    const char *cluster_domain;     /* "" : none */
    const char *file;               /* content of the node's file; NULL: none, so localhost */
    bool ipv6;                      /* of the node's address: selects the localhost address */
};

struct resolv_warnings {
    /* Messages of DNSConfigForming events if something was omitted; otherwise empty. buf_done() both. */
    struct buf servers, searches;
    /* the policy requires the cluster's servers but there are none: treated as Default */
    bool no_cluster_dns;
};
#define RESOLV_WARNINGS_INIT ((struct resolv_warnings){ BUF_INIT(4096), BUF_INIT(4096), false })

void resolv_text(const struct api_pod *pod, const struct resolv_node *node, struct buf *out,
                 struct resolv_warnings *ret);
#endif
