/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holdings - which devices the containers of this node hold, and the answers of their providers.
 *
 * An entry is a pod's uid, a container's name, a resource, the ids with their NUMA nodes, and the packed
 * answer. A device has at most one holding pod; within a pod, a device of an init container may be held by a
 * later container, too. Devices that the inventory does not have (any more) stay held. The checkpoint
 * (checkpoint.h) has the same entries. Pure; one thread at a time.
 */
#ifndef DEVICEPLUGIN_HOLDINGS_H
#define DEVICEPLUGIN_HOLDINGS_H
#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of memory, far above the need of 110 pods, because a checkpoint comes from outside. */
#define DP_HOLDINGS_MAX 65536            /* entries */
#define DP_HELD_MAX (1024 * 1024)        /* devices in all entries */
#define DP_HELD_NUMA_MAX 1024            /* NUMA nodes of a device */
#define DP_ANSWER_MAX (16 * 1024 * 1024) /* bytes of a packed answer */

struct dp_held { /* one device of an entry */
    const char *id;
    const int64_t *numa; /* ascending; none: no topology (-1 in kubelet's checkpoint) */
    size_t n_numa;
};

struct dp_holding {
    const char *pod_uid, *container, *resource;
    const struct dp_held *devices; /* sorted by dp_id_compare() */
    size_t n_devices;
    /* The packed ContainerAllocateResponse, which may have no bytes. NULL: no answer yet, the devices are
     * reserved; such an entry is not in the checkpoint. */
    const uint8_t *answer;
    size_t n_answer;
};

struct dp_holdings;
enum err_code dp_holdings_new(struct dp_holdings **ret, struct err *e) MUST_CHECK;
void dp_holdings_free(struct dp_holdings *h); /* NULL is fine */
SCOPE_DEFINE(struct dp_holdings, dp_holdings_free)

/*
 * Adds an entry, or replaces the one of the same pod, container and resource. Copies; devices may be in any
 * order. On failure nothing has changed.
 * ERR_EXISTS: another pod holds one of the devices; the text names both.
 * ERR_INVALID: an id is not accepted (dp_id_ok()) or listed twice.
 * ERR_EXHAUSTED: one of the limits above, or memory.
 */
enum err_code dp_holdings_put(struct dp_holdings *h, const struct dp_holding *x, struct err *e) MUST_CHECK;
/* NULL: of all pods, containers, resources. */
void dp_holdings_drop(struct dp_holdings *h, const char *pod_uid, const char *container,
                      const char *resource);
/* Results are valid until their entry is replaced or dropped. */
const struct dp_holding *dp_holdings_find(const struct dp_holdings *h, const char *pod_uid,
                                          const char *container, const char *resource);
/* In the order of pod, container, resource; `after` NULL: the first; returns NULL at the end. */
const struct dp_holding *dp_holdings_next(const struct dp_holdings *h, const struct dp_holding *after);
/* The entries of one pod, in the same order. */
const struct dp_holding *dp_holdings_pod_next(const struct dp_holdings *h, const char *pod_uid,
                                              const struct dp_holding *after);

struct dp_owned { /* a held device; valid as long as its pod holds it */
    const char *resource, *id, *pod_uid;
};
/* NULL: free. */
const struct dp_owned *dp_holdings_owned(const struct dp_holdings *h, const char *resource, const char *id);
const char *dp_holdings_owner(const struct dp_holdings *h, const char *resource,
                              const char *id); /* its pod_uid */
/* Held devices of a resource by dp_id_compare(); `after` NULL: the first; returns NULL at the end. */
const struct dp_owned *dp_holdings_owned_next(const struct dp_holdings *h, const char *resource,
                                              const struct dp_owned *after);
uint64_t dp_holdings_generation(const struct dp_holdings *h); /* grows with each change */
#endif
