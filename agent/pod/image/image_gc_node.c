/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/image/image_gc.h"
#include "agent/pod/image/images.h"
#include "agent/pod/image/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/work.h"

#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

/* After a new image: by then its pod uses it, and several new ones are one check. */
#define SOON_MS 1000

struct image_gc {
    struct node *node;
    uv_timer_t timer;
    struct image_gc_records *records;
    struct work work; /* examines the disk */
    char *path;
    struct image_gc_disk disk;
    bool running, again, closing;
    bool failed_before; /* kubelet reports the second failure in a row */
    bool looked;
    struct image_gc_outcome last;
    struct err error; /* of the last run */
    int64_t removed_wall_ns;
    uint64_t n_full, n_old, freed; /* since the start */
};

/* ---- the store ---- */

struct seeing {
    const struct node *node;
    void (*see)(const struct image_gc_image *i, void *arg);
    void *arg;
};

static void on_seen(const struct img_seen *seen, void *arg)
{
    const struct seeing *s = arg;
    const char *id = seen->image->id;
    const bool awaited = image_is_awaited(s->node, id);
    const struct image_gc_image i = { .id = id,
                                      .pinned = seen->image->pinned,
                                      .used = seen->held || image_is_used(s->node, id, NULL),
                                      .awaited = awaited,
                                      .bytes = awaited ? img_own_bytes(s->node->o.images, id) : 0 };

    s->see(&i, s->arg);
}

static void each(void *arg, void (*see)(const struct image_gc_image *i, void *arg2), void *arg2)
{
    struct node *n = arg;
    struct seeing s = { .node = n, .see = see, .arg = arg2 };

    img_each(n->o.images, on_seen, &s);
}

static enum err_code image_gc_node_remove_image(void *arg, const char *id, uint64_t *ret_bytes, struct err *e)
{
    struct node *n = arg;
    uint64_t bytes = img_own_bytes(n->o.images, id);

    if (img_remove_id(n->o.images, id, e) == ERR_OK)
        *ret_bytes = bytes;
    return e->code;
}

static struct image_gc_host host_of(struct node *n)
{
    return (struct image_gc_host){ .each = each, .remove = image_gc_node_remove_image, .arg = n };
}

/* ---- one run ---- */

static void image_gc_node_plan(struct image_gc *gc, uint64_t in_ms);

static enum err_code ask_disk(void *arg, struct err *e)
{
    struct image_gc *gc = arg;
    struct statvfs fs;

    if (statvfs(gc->path, &fs) != 0)
        return err_sys(e, errno, "failed to get image stats: statvfs %s", gc->path);
    gc->disk.capacity = (uint64_t)fs.f_blocks * fs.f_frsize;
    gc->disk.available = (uint64_t)fs.f_bavail * fs.f_frsize;
    return ERR_OK;
}

static void image_gc_node_tell(struct image_gc *gc, const struct err *e)
{
    if (gc->last.event != NULL)
        node_event(gc->node, true, gc->last.event, e->text);
    if (e->code != ERR_OK) {
        log_warn("cannot garbage-collect images", F_ERR(e));
        if (gc->failed_before)
            node_event(gc->node, true, "ImageGCFailed", e->text);
    }
    gc->failed_before = e->code != ERR_OK;
}

static void image_gc_node_count(struct image_gc *gc, const struct image_gc_outcome *o)
{
    gc->n_full += o->n_full;
    gc->n_old += o->n_old;
    gc->freed += o->freed;
    if (o->n_full + o->n_old > 0)
        gc->removed_wall_ns = clock_wall_ns();
}

static void free_gc(uv_handle_t *handle)
{
    struct image_gc *gc = handle->data;

    image_gc_records_free(gc->records);
    free(gc->path);
    free(gc);
}

static void image_gc_node_on_asked(struct op *op, const struct err *result)
{
    struct image_gc *gc = op->owner;
    const struct image_gc_host host = host_of(gc->node);
    struct err e = *result;

    gc->running = false;
    if (gc->closing) {
        uv_close((uv_handle_t *)&gc->timer, free_gc);
        return;
    }
    if (gc->node->closing)
        return;
    gc->last = (struct image_gc_outcome){ 0 };
    if (e.code == ERR_OK && image_gc_run(gc->records, &host, &gc->node->o.image_gc, &gc->disk,
                                         clock_boot_ms(), &gc->last, &e) == ERR_OK)
        gc->looked = true;
    image_gc_node_count(gc, &gc->last);
    image_gc_node_tell(gc, &e);
    gc->error = e;
    image_gc_node_plan(gc, gc->again ? SOON_MS : IMAGE_GC_PERIOD_MS);
    gc->again = false;
}

static void image_gc_node_on_timer(uv_timer_t *timer)
{
    struct image_gc *gc = timer->data;
    const struct image_gc_policy *p = &gc->node->o.image_gc;

    if (p->high_percent >= 100 && p->max_age_ms == 0) { /* kubelet's way to disable it */
        image_gc_node_plan(gc, IMAGE_GC_PERIOD_MS);
        return;
    }
    gc->running = true;
    work_start(&gc->work, "image collection", NULL, ask_disk, gc, gc->timer.loop, image_gc_node_on_asked, gc);
}

static void image_gc_node_plan(struct image_gc *gc, uint64_t in_ms)
{
    uv_timer_start(&gc->timer, image_gc_node_on_timer, in_ms, 0);
}

/* A new image is known from now on. */
static void image_gc_node_look(struct image_gc *gc)
{
    const struct image_gc_host host = host_of(gc->node);
    struct err e = { 0 };

    if (image_gc_look(gc->records, &host, clock_boot_ms(), &e) != ERR_OK)
        log_warn("cannot read the images' usage", F_ERR(&e));
}

/* ---- life ---- */

void image_gc_open(struct node *n)
{
    struct image_gc *gc = calloc(1, sizeof(*gc));

    if (gc != NULL) {
        gc->records = image_gc_records_new(clock_boot_ms());
        gc->path = strdup(img_store_dir(n->o.images));
    }
    if (gc == NULL || gc->records == NULL || gc->path == NULL) {
        log_error("image garbage collection is disabled: out of memory");
        if (gc != NULL) {
            image_gc_records_free(gc->records);
            free(gc->path);
        }
        free(gc);
        return;
    }
    gc->node = n;
    uv_timer_init(n->o.loop, &gc->timer);
    gc->timer.data = gc;
    image_node(n)->gc = gc;
    image_gc_node_look(gc);
    image_gc_node_plan(gc, IMAGE_GC_PERIOD_MS);
}

void image_gc_close(struct node *n)
{
    struct image_node *part = image_node(n);
    struct image_gc *gc = part->gc;

    part->gc = NULL;
    if (gc == NULL)
        return;
    gc->closing = true;
    uv_timer_stop(&gc->timer);
    if (!gc->running)
        uv_close((uv_handle_t *)&gc->timer, free_gc);
}

bool image_gc_busy(const struct node *n)
{
    const struct image_node *part = image_node(n);

    return part->gc != NULL && part->gc->running;
}

void image_gc_wake(struct node *n)
{
    struct image_gc *gc = image_node(n)->gc;

    if (gc == NULL)
        return;
    image_gc_node_look(gc);
    if (gc->running)
        gc->again = true;
    else
        image_gc_node_plan(gc, SOON_MS);
}

unsigned image_gc_reclaim(struct node *n, uint64_t wanted, uint64_t *ret_bytes)
{
    struct image_gc *gc = image_node(n)->gc;
    const struct image_gc_host host = host_of(n);
    struct image_gc_outcome o = { 0 };
    struct err e = { 0 };

    *ret_bytes = 0;
    if (gc == NULL)
        return 0;
    if (image_gc_reclaim_unused(gc->records, &host, &n->o.image_gc, wanted, clock_boot_ms(), &o, &e) !=
        ERR_OK)
        log_warn("cannot remove unused images", F_ERR(&e));
    image_gc_node_count(gc, &o);
    *ret_bytes = o.freed;
    if (!gc->running) /* unused images were removed just now */
        image_gc_node_plan(gc, IMAGE_GC_PERIOD_MS);
    return o.n_full;
}

/* ---- output for people ---- */

void image_gc_explain(const struct node *n, json_t *steps)
{
    const struct image_gc *gc = image_node(n)->gc;
    const struct image_gc_policy *p = &n->o.image_gc;
    struct img_look failed;
    str_auto text = NULL;

    if (img_look_failed(n->o.images, &failed))
        explain_step(steps, "image store", "waiting", failed.since_ns, failed.why.text,
                     clock_boot_to_wall_ns(failed.retry_at));
    if (gc == NULL)
        return;
    if (gc->error.code != ERR_OK) {
        explain_step(steps, "image collection", "failed", 0, gc->error.text, 0);
        return;
    }
    if (!gc->looked)
        return;
    text = str_printf("the disk is %u%% full; unused images are removed above %u%%; %" PRIu64 " removed",
                      gc->last.percent, p->high_percent, gc->n_full + gc->n_old);
    explain_step(steps, "image collection", "done", gc->removed_wall_ns, text, 0);
}

void image_gc_metrics(const struct node *n, struct buf *out)
{
    const struct image_gc *gc = image_node(n)->gc;

    if (gc == NULL)
        return;
    buf_addf(out,
             "# HELP kubelet_image_garbage_collected_total Total number of images garbage collected by the "
             "kubelet, whether through disk usage or image age.\n"
             "# TYPE kubelet_image_garbage_collected_total counter\n"
             "kubelet_image_garbage_collected_total{reason=\"age\"} %" PRIu64 "\n"
             "kubelet_image_garbage_collected_total{reason=\"space\"} %" PRIu64 "\n",
             gc->n_old, gc->n_full);
}
