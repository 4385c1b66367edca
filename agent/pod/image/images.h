/* SPDX-License-Identifier: Apache-2.0 */
/* images - the images that a pod's containers and image volumes use.  Loop thread only. */
#ifndef AGENT_POD_IMAGE_IMAGES_H
#define AGENT_POD_IMAGE_IMAGES_H
#include "agent/pod/core/pod.h"

extern const struct room image_room;

/* To an image that is here (image_right.h). */
enum image_right { RIGHT_UNKNOWN, RIGHT_GRANTED, RIGHT_REFUSED };

/* One distinct image of the pod. */
struct pod_image {
    struct pod *pod;
    const char *reference; /* into pod->api */
    enum api_pull_policy policy;
    struct img_image *image; /* NULL until present */
    struct img_bring bring;
    bool bringing, pulled, error_final;
    bool pull_failed;      /* which reason and message show */
    struct img_task check; /* whether its secrets have pulled the image before */
    bool checking;
    bool stale; /* a secret changed meanwhile: its answer counts for nothing */
    enum image_right right;
    bool dropped;    /* no container uses it any more: freed when its bring is over */
    char reason[32]; /* ErrImagePull, ... */
    char *message;
    uint64_t backoff_ms;
    struct boot_time retry_at;
    int64_t pull_started_ns;  /* wall clock */
    uint64_t pull_started_ms; /* clock_mono_ms() */
};

void images_step(struct pod *p);
void images_secret_changed(struct pod *p, const char *name); /* one of imagePullSecrets: retry now */
struct pod_image *images_find(const struct pod *p, const char *reference);
/* The container's image and those of its volumes are present; otherwise *ret_missing is one that is not
 * (NULL: out of memory). */
bool images_ready(const struct ctr *c, const struct pod_image **ret_missing);
/* Makes its images match the use by p->ctrs, also as volumes: images still used are kept with their state,
 * pulls of others are cancelled. */
enum err_code images_build(struct pod *p, struct err *e) MUST_CHECK;
void images_clear(struct pod *p);  /* likewise, keeping none */
void images_added(struct node *n); /* an image was added to the store */
void images_explain(const struct pod *p, json_t *steps);
bool images_busy(const struct pod *p);
bool images_free_dropped(
    struct pod_image *i); /* an operation has finished: true if the image is no longer used */

/* ---- unused images are removed: image_gc.h ---- */
void image_gc_open(struct node *n); /* when out of memory there is none, which is logged */
/* Soon: there is a new image. */
void image_gc_wake(struct node *n);
/* Pressure of the node: removes unused images now (image_gc_reclaim_unused()); their files are removed in the
 * background: img_is_clearing(). Returns their number. */
unsigned image_gc_reclaim(struct node *n, uint64_t wanted, uint64_t *ret_bytes);
void image_gc_explain(const struct node *n, json_t *steps);
void image_gc_metrics(const struct node *n, struct buf *out);

/* ---- images_used.c: `image rm` and the removal of unused images skip these ---- */
/* A container was made from it, or an unfinished pod has it for a container or a volume. `pods` (may be NULL)
 * gets "pod default/web, pod default/db", at most five. */
bool image_is_used(const struct node *n, const char *id, struct buf *pods);
/* A pod with this image was evicted and will start again: the removal of unused images takes these images
 * last. */
bool image_is_awaited(const struct node *n, const char *id);
/* All of these pods: [{"kind", "namespace", "name"}], new. */
json_t *image_users(const struct node *n, const char *id);
#endif
