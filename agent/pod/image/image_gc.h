/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_gc - removes unused images by kubelet's rules: when the store's file system is fuller than a
 * threshold, the least recently used ones until it is below another threshold; and those unused for longer
 * than an age, if configured. Never one that is used by a pod, pinned, or was first seen less than the
 * minimum age ago; nor the image of an evicted pod that will start again, which could not start or would pull
 * it again.
 *
 * Checked every five minutes, like kubelet, and after each new image, because that is what fills the disk.
 * The time of last use is known since the agent started: an image never seen in use is treated as the least
 * recently used, and its age counts from when it was first seen.
 *
 * image_gc_run() makes the decision, without clock, disk or store. image_gc_open() etc. connect it to the
 * real ones. Loop thread only; the disk is examined on the pool.
 */
#ifndef AGENT_POD_IMAGE_IMAGE_GC_H
#define AGENT_POD_IMAGE_IMAGE_GC_H
#include "agent/pod/core/node_options.h"
#include "agent/pod/image/images.h"
#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct node;

#define IMAGE_GC_PERIOD_MS (5 * 60 * 1000)

/* ---- the decision (image_gc.c) ---- */
struct image_gc_image { /* a present image */
    const char *id;
    bool used, pinned;
    bool awaited;   /* by a pod that will start again */
    uint64_t bytes; /* that it frees; only needed if it is awaited */
};
struct image_gc_records; /* data remembered per image */
struct image_gc_host {   /* the store, or a test's */
    /* Calls see(image, arg2) for each image. */
    void (*each)(void *arg, void (*see)(const struct image_gc_image *i, void *arg2), void *arg2);
    /* *ret_bytes: the space it frees; ERR_UNAVAILABLE, ERR_PRECONDITION: it is in use after all. */
    enum err_code (*remove)(void *arg, const char *id, uint64_t *ret_bytes, struct err *e);
    void *arg;
};
struct image_gc_disk {
    uint64_t capacity, available;
};
struct image_gc_outcome {
    unsigned percent;       /* usage of the disk */
    unsigned n_old, n_full; /* images removed because of their age, and for space */
    uint64_t wanted, freed; /* bytes, for space */
    const char *event;      /* reason of an event in kubelet's words, with the error's text; may be NULL */
};

struct image_gc_records *image_gc_records_new(uint64_t now_ms); /* NULL: no memory */
void image_gc_records_free(struct image_gc_records *r);
/* Notes which images exist and which are in use now. */
enum err_code image_gc_look(struct image_gc_records *r, const struct image_gc_host *h, uint64_t now_ms,
                            struct err *e) MUST_CHECK;
/* Checks, and removes what must be removed. ERR_EXHAUSTED: too little can be freed; others: a removal
 * failed. */
enum err_code image_gc_run(struct image_gc_records *r, const struct image_gc_host *h,
                           const struct image_gc_policy *p, const struct image_gc_disk *disk, uint64_t now_ms,
                           struct image_gc_outcome *ret, struct err *e) MUST_CHECK;

/* Pressure of the node: thresholds are ignored. Images that are unused and old enough go, then, if that frees
 * less than `wanted` bytes, also younger ones: kubelet keeps those and evicts a pod. Awaited ones go last,
 * and only if they are enough: otherwise a pod must be evicted all the same. Errors of removals. */
enum err_code image_gc_reclaim_unused(struct image_gc_records *r, const struct image_gc_host *h,
                                      const struct image_gc_policy *p, uint64_t wanted, uint64_t now_ms,
                                      struct image_gc_outcome *ret, struct err *e) MUST_CHECK;

/* ---- with the node (image_gc_node.c) ---- */
struct image_gc;
void image_gc_close(struct node *n);
bool image_gc_busy(const struct node *n);
#endif
