/* SPDX-License-Identifier: Apache-2.0 */
/*
 * anchors - trust anchors of ClusterTrustBundles in the form of a pod's file: the certificates of all texts,
 * each once, in an arbitrary order on which pods must not rely. Rules: pkg/kubelet/clustertrustbundle.
 * kubelet shuffles again at each of its starts; here the order depends on the pod, so that a restart of the
 * agent changes no file.
 *
 * Text outside of PEM blocks, and a block that is not base64, are skipped, as Go's pem.Decode does. Pure.
 */
#ifndef AGENT_CLUSTER_ANCHORS_H
#define AGENT_CLUSTER_ANCHORS_H
#include "base/buf.h"

#include <stdint.h>

#define ANCHORS_BYTES_MAX ((size_t)8 << 20) /* of one file; a bundle has 1 MiB at most */

struct anchor {
    unsigned char *der;
    size_t n;
    uint64_t order;
};

struct anchors {
    unsigned char key[16]; /* of the order */
    struct anchor *v;
    size_t n, cap, bytes;
    struct err e; /* the first failure: out of memory, or too many bytes */
};

void anchors_init(struct anchors *a, const char *uid); /* of the pod */
void anchors_add(struct anchors *a, const char *pem);
/* Appends PEM; an empty text if there are none. */
enum err_code anchors_write(struct anchors *a, struct buf *ret, struct err *e) MUST_CHECK;
void anchors_done(struct anchors *a);
#endif
