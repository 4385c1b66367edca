/* SPDX-License-Identifier: Apache-2.0 */
/*
 * podresources - the messages of podresources v1: which devices, processors and memory the containers of this
 * node have, and which of them the node can still allocate. Pure.
 *
 * An answer is written in one pass, in the order of the calls, so that a node with many devices needs no tree
 * of messages beside its text:
 *
 *     dp_podres_begin(&a);
 *     dp_podres_pod(&a, "web", "default"); dp_podres_container(&a, "main"); dp_podres_device(&a, ...);
 *     dp_podres_cpus(&a, ...); dp_podres_memory(&a, ...);
 *     if (dp_podres_end(&a, &e) == ERR_OK) ... a.out ...
 *     dp_podres_done(&a);
 *
 * List: all pods. Get: one pod. GetAllocatableResources: the same without a pod. All three have their list in
 * field 1.
 */
#ifndef DEVICEPLUGIN_MESSAGE_PODRESOURCES_H
#define DEVICEPLUGIN_MESSAGE_PODRESOURCES_H
#include "base/arena.h"
#include "base/buf.h"

#include <stdint.h>

/* Bytes of an answer. kubelet's own client accepts no more (pkg/kubelet/apis/podresources: 16 MiB). */
#define DP_PODRES_MAX (16 * 1024 * 1024)

struct dp_podres {
    struct buf out; /* the packed answer, after dp_podres_end() */
    /* private: the parts that are being written, because a message is preceded by its length */
    struct buf pod, container, device /* or memory, or processors */, topology;
    bool in_pod, in_container;
};

void dp_podres_begin(struct dp_podres *a);
void dp_podres_done(struct dp_podres *a);
void dp_podres_pod(struct dp_podres *a, const char *name, const char *namespace_);
void dp_podres_container(struct dp_podres *a, const char *name);
/* n_numa 0: no topology. */
void dp_podres_device(struct dp_podres *a, const char *resource, const char *id, const int64_t *numa,
                      size_t n_numa);
/* The numbers of processors, n of them; once for a container, after its devices. */
void dp_podres_cpus(struct dp_podres *a, const int64_t *cpus, size_t n);
/* `type`: "memory", "hugepages-2Mi"; `size` in bytes; `nodes`: NUMA nodes, as bits. After the processors. */
void dp_podres_memory(struct dp_podres *a, const char *type, uint64_t size, uint64_t nodes);
/* ERR_EXHAUSTED: more than DP_PODRES_MAX, or no memory. */
enum err_code dp_podres_end(struct dp_podres *a, struct err *e) MUST_CHECK;

struct dp_podres_request { /* a GetPodResourcesRequest */
    const char *name, *namespace_;
    struct arena memory; /* private */
};
/* As protobuf_unpack(); dp_podres_request_done() in any case. */
enum err_code dp_podres_request_unpack(struct dp_podres_request *ret, const uint8_t *p, size_t n,
                                       struct err *e) MUST_CHECK;
void dp_podres_request_done(struct dp_podres_request *r);
#endif
