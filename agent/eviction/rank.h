/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank - the order in which pods are evicted for a signal: kubelet's pkg/kubelet/eviction/helpers.go. Pure:
 * no clock, no files.
 *
 *   memory        usage over request first; lower priority; larger usage - request
 *   disk bytes    the same with ephemeral-storage
 *   inodes        the same; inodes cannot be requested, so any use exceeds the request. Finally the request
 *                 for ephemeral-storage, in bytes, is subtracted from the inodes: kubelet's quirk
 *   process ids   lower priority; more processes
 *
 * A pod without figures comes before all others for memory and disk, and counts as having no processes. QoS
 * classes are not used. Ties keep the order of the input.
 */
#ifndef AGENT_EVICTION_RANK_H
#define AGENT_EVICTION_RANK_H
#include "agent/api/quantity.h"
#include "agent/eviction/signal.h"

#include <stddef.h>

struct ev_disk {
    uint64_t bytes, inodes;
};

struct ev_container {
    const char *name;
    bool memory_known, layer_known, log_known;
    uint64_t memory; /* working set */
    struct ev_disk layer, log;
    struct quantity memory_request, storage_request; /* 0: none; a limit alone is a request */
};

struct ev_pod {
    const char *key, *uid; /* "namespace/name" */
    int32_t priority;
    bool critical; /* never evicted: ranked, and skipped */
    /* The pod is ending already, by an eviction or for another reason. kill_ms: when its remaining processes
     * are killed (clock_boot_ms()); UINT64_MAX: at no fixed time. Its usage is expected to be released then;
     * a quicker eviction may still choose it. */
    bool ending;
    uint64_t kill_ms;
    /* Whether each part is known: an unknown part is irrelevant for file systems that do not hold it. rest:
     * logs and volumes. */
    bool memory_known, layers_known, rest_known, processes_known;
    uint64_t memory; /* working set of its cgroup */
    uint64_t processes;
    struct ev_disk volumes;                   /* local ephemeral volumes together */
    uint64_t memory_request, storage_request; /* of the whole pod: init rule, overhead, pod level */
    bool memory_of_pod;                       /* memory is requested at the level of the pod */
    struct quantity pod_memory_request;       /* that request, as written */
    const struct ev_container
        *containers; /* borrowed; regular, init, sidecars: all containers with figures */
    size_t n_containers;
    int64_t grace_s; /* terminationGracePeriodSeconds */
    const void *tag; /* the caller's */
};

/* The pod's usage in the signal's unit: bytes, inodes, processes. *ret_request: its request of the resource.
 * False: unknown. */
bool ev_usage(enum ev_signal s, enum ev_layout layout, const struct ev_pod *p, uint64_t *ret,
              uint64_t *ret_request);

/* Sorts pointers to pods, first victim first. */
void ev_rank(enum ev_signal s, enum ev_layout layout, const struct ev_pod **pods, size_t n);
#endif
