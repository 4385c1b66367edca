/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holdings - which devices the containers of this node hold, and what their providers answered.
 *
 * An entry is a pod's uid, a container's name, a resource, the ids (by NUMA node, as kubelet stores them) and
 * the packed answer. A device has at most one holding pod; within a pod a device of an init container may be
 * held by a later container, too. Device ids that the inventory does not know (any more) stay held. It is
 * what the checkpoint (checkpoint.h) has. Pure.
 */
#ifndef DEVICEPLUGIN_HOLDINGS_H
#define DEVICEPLUGIN_HOLDINGS_H
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_held { /* one device of an entry */
    const char *id;
    const int64_t *numa; /* -1 alone: no topology */
    size_t n_numa;
};

struct dp_holding {
    const char *pod_uid, *container, *resource;
    const struct dp_held *devices; /* sorted by id */
    size_t n_devices;
    const uint8_t
        *answer; /* packed ContainerAllocateResponse; n 0: not answered yet, the devices are reserved */
    size_t n_answer;
};

struct dp_holdings;
enum err_code dp_holdings_new(struct dp_holdings **ret, struct err *e) MUST_CHECK;
void dp_holdings_free(struct dp_holdings *h);

/* Adds an entry, or replaces the one of the same pod, container and resource; copies.  ERR_EXISTS: another
 * pod holds one of the devices; the text names both. */
enum err_code dp_holdings_put(struct dp_holdings *h, const struct dp_holding *x, struct err *e) MUST_CHECK;
void dp_holdings_drop(struct dp_holdings *h, const char *pod_uid, const char *container,
                      const char *resource); /* NULL: all */
const struct dp_holding *dp_holdings_find(const struct dp_holdings *h, const char *pod_uid,
                                          const char *container, const char *resource);
/* In the order of pod, container, resource; `after` NULL: the first; returns NULL at the end. */
const struct dp_holding *dp_holdings_next(const struct dp_holdings *h, const struct dp_holding *after);
const char *dp_holdings_owner(const struct dp_holdings *h, const char *resource,
                              const char *id);                /* a pod's uid; NULL: free */
uint64_t dp_holdings_generation(const struct dp_holdings *h); /* grows with each change */
#endif
