/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_gc - images that nobody uses are removed, by kubelet's rules: when the store's file system is fuller
 * than a threshold, those that were used least recently, until it is below another one; and those that were
 * not used for longer than an age, if there is one.  Never one that a pod holds, that is pinned, or that was
 * first seen less than the least age ago.
 *
 * Looked at every five minutes, as kubelet does it, and after each image that came, since that is what fills
 * the disk.  When an image was used last is known since the agent runs: one that was never seen in use counts
 * as used before all others, and for the greatest age from when it was first seen.
 *
 * The choice is image_gc_run(): no clock, disk or store of its own.  Around it: image_gc_open() and so on,
 * which ask the real ones.  Loop thread only; the disk is asked on the pool.
 */
#ifndef AGENT_POD_IMAGE_IMAGE_GC_H
#define AGENT_POD_IMAGE_IMAGE_GC_H
#include "agent/pod/core/node_options.h"
#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct node;

#define IMAGE_GC_PERIOD_MS (5 * 60 * 1000)

/* ---- the choice (image_gc.c) ----------------------------------------------------------------- */
struct image_gc_image { /* one that is there now */
    const char *id;
    bool used, pinned;
};
struct image_gc_records; /* what is remembered of each image */
struct image_gc_host {   /* the store, or a test's */
    /* Calls see(image, arg2) for each image. */
    void (*each)(void *arg, void (*see)(const struct image_gc_image *i, void *arg2), void *arg2);
    /* *ret_bytes: what it frees; ERR_UNAVAILABLE, ERR_PRECONDITION: it is in use after all. */
    enum err_code (*remove)(void *arg, const char *id, uint64_t *ret_bytes, struct err *e);
    void *arg;
};
struct image_gc_disk {
    uint64_t capacity, available;
};
struct image_gc_outcome {
    unsigned percent;       /* of the disk that was in use */
    unsigned n_old, n_full; /* images removed for their age, and for want of space */
    uint64_t wanted, freed; /* bytes, for want of space */
    const char *event;      /* reason of an event in kubelet's words, with the error's text; NULL: none */
};

struct image_gc_records *image_gc_records_new(uint64_t now_ms); /* NULL: no memory */
void image_gc_records_free(struct image_gc_records *r);
/* Notes which images there are, and which are in use now. */
enum err_code image_gc_look(struct image_gc_records *r, const struct image_gc_host *h, uint64_t now_ms,
                            struct err *e) MUST_CHECK;
/* Looks, and removes what must go.  ERR_EXHAUSTED: too little can be freed; others: a removal failed. */
enum err_code image_gc_run(struct image_gc_records *r, const struct image_gc_host *h,
                           const struct image_gc_policy *p, const struct image_gc_disk *disk, uint64_t now_ms,
                           struct image_gc_outcome *ret, struct err *e) MUST_CHECK;
/* All that is neither used nor pinned, whatever its age: for a disk that is about to run full. */
enum err_code image_gc_remove_unused(struct image_gc_records *r, const struct image_gc_host *h,
                                     uint64_t now_ms, struct image_gc_outcome *ret, struct err *e) MUST_CHECK;

/* ---- around it (image_gc_node.c) ------------------------------------------------------------- */
struct image_gc;
void image_gc_open(struct node *n); /* n->image_gc; without memory there is none, and that is logged */
void image_gc_close(struct node *n);
bool image_gc_busy(const struct node *n);
/* Soon: an image came. */
void image_gc_wake(struct node *n);
/* What the eviction of pods tries first, as kubelet's DeleteUnusedImages(): bytes that were freed. */
uint64_t image_gc_free_unused(struct node *n);
void image_gc_explain(const struct node *n, json_t *steps);
void image_gc_metrics(const struct node *n, struct buf *out);
#endif
