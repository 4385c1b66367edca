/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reclaim - removes files that no pod needs: logs of pods that have ended and of earlier runs of containers
 * (their layers are removed whenever a run ends), then unused images. It is over when their files are gone,
 * as only then the disk shows it; not waited for longer than RECLAIM_MAX_MS.
 */
#include "agent/pod/eviction/internal.h"
#include "agent/pod/image/images.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/strs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECLAIM_MAX_MS 10000
#define ALL_RUNS UINT_MAX

struct old_logs { /* a folder of logs of a container */
    char *path;
    unsigned keep; /* logs of earlier runs than this go */
};

struct reclaim {
    struct eviction *room;
    unsigned what;
    uint64_t wanted;
    struct ev_crossing crossing;
    void (*done)(struct eviction *r);
    uv_timer_t timer;
    struct work work;
    bool working, clearing, closing;
    bool stopping; /* images that are being brought: their files are removed when they have ended */
    /* the pool's while `working` */
    struct old_logs *logs;
    size_t n_logs;
    uint64_t bytes, files;
};

/* ---- logs, on the pool ---- */

/* The run of "3.log", "3.log.<time>", ".3.log.kept"; false: another file. */
static bool run_of(const char *name, unsigned *ret)
{
    char *end;
    unsigned long run;

    name += name[0] == '.';
    if (name[0] < '0' || name[0] > '9')
        return false;
    errno = 0;
    run = strtoul(name, &end, 10);
    *ret = (unsigned)run;
    return errno == 0 && run < ALL_RUNS && strncmp(end, ".log", 4) == 0;
}

static void remove_file(struct reclaim *x, int dir, const char *name)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
        unlinkat(dir, name, 0) != 0)
        return;
    x->files++;
    x->bytes += st.st_nlink == 1 ? (uint64_t)st.st_blocks * 512 : 0;
}

static void remove_logs(struct reclaim *x, const struct old_logs *l)
{
    int fd = open(l->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    unsigned run;

    if (dir == NULL && fd >= 0)
        close(fd);
    if (dir == NULL)
        return;
    while ((entry = readdir(dir)) != NULL)
        if (run_of(entry->d_name, &run) && run < l->keep)
            remove_file(x, fd, entry->d_name);
    closedir(dir);
}

static enum err_code remove_all_logs(void *arg, struct err *e)
{
    struct reclaim *x = arg;

    (void)e;
    for (size_t i = 0; i < x->n_logs; i++)
        remove_logs(x, &x->logs[i]);
    return ERR_OK;
}

static void list_logs(struct reclaim *x)
{
    struct node *n = x->room->node;
    size_t all = 0;

    pods_each (n, p)
        all += p->n_ctrs;
    x->logs = calloc(all + 1, sizeof(*x->logs));
    if (x->logs == NULL)
        return;
    pods_each (n, p) {
        for (size_t i = 0; i < p->n_ctrs; i++) {
            const struct ctr *c = p->ctrs[i];
            struct old_logs l = { .keep = p->state == POD_TERMINATED ? ALL_RUNS : c->cur.attempt };

            if (l.keep == 0 || c->cur.id[0] == '\0')
                continue;
            l.path = str_printf("%s/%s_%s_%s/%s", n->o.pod_logs_dir, p->api->meta.namespace,
                                p->api->meta.name, p->uid, c->spec->name);
            if (l.path != NULL)
                x->logs[x->n_logs++] = l;
        }
    }
}

/* ---- the order ---- */

/* A measurement of a disk that stays full finds nothing to remove any more: only an actual removal makes a
 * record. */
static void note(struct reclaim *x, const char *what, uint64_t bytes, uint64_t objects)
{
    struct eviction *r = x->room;

    if (r->reclaim_number == 0) {
        r->reclaim_number = decision_begin(r, &x->crossing);
        r->n_reclaims++;
    }
    r->bytes_reclaimed += bytes;
    decision_reclaimed(r, r->reclaim_number, what, bytes, objects);
}

static void forget_logs(struct reclaim *x)
{
    for (size_t i = 0; i < x->n_logs; i++)
        free(x->logs[i].path);
    free(take_ptr(&x->logs));
    x->n_logs = 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void finish(struct reclaim *x)
{
    struct eviction *r = x->room;

    uv_timer_stop(&x->timer);
    x->clearing = false;
    if (r->node->o.images != NULL)
        img_on_cleared(r->node->o.images, NULL, NULL);
    r->reclaim = NULL;
    uv_close((uv_handle_t *)&x->timer, on_timer_closed);
    if (!x->closing)
        x->done(r);
}

static void on_cleared(void *arg)
{
    struct reclaim *x = arg;

    if (!x->stopping || !img_is_writing(x->room->node->o.images))
        finish(x);
}

static void on_timer(uv_timer_t *timer)
{
    struct reclaim *x = timer->data;

    if (x->clearing && img_is_clearing(x->room->node->o.images))
        log_warn("files of removed images are still being removed");
    finish(x);
}

static struct reclaim *reclaim_new(struct eviction *r, const struct ev_crossing *c,
                                   void (*done)(struct eviction *r))
{
    struct reclaim *x = calloc(1, sizeof(*x));

    if (x == NULL)
        return NULL;
    x->room = r;
    x->done = done;
    x->crossing = *c;
    uv_timer_init(r->node->o.loop, &x->timer);
    x->timer.data = x;
    r->reclaim = x;
    return x;
}

static void reclaim_images(struct reclaim *x)
{
    struct node *n = x->room->node;
    uint64_t bytes = 0;
    unsigned removed = 0;

    if (x->what & EV_RECLAIM_IMAGES)
        removed = image_gc_reclaim(n, x->wanted, &bytes);
    if (removed > 0)
        note(x, "images", bytes, removed);
    x->clearing = n->o.images != NULL && img_is_clearing(n->o.images);
    if (x->clearing)
        img_on_cleared(n->o.images, on_cleared, x);
    uv_timer_start(&x->timer, on_timer, x->clearing ? RECLAIM_MAX_MS : 0, 0);
}

static void on_logs_removed(struct op *op, const struct err *result)
{
    struct reclaim *x = op->owner;

    (void)result;
    x->working = false;
    forget_logs(x);
    if (x->closing) {
        finish(x);
        return;
    }
    if (x->files > 0) {
        log_info("logs of ended containers removed", F_U64("files", x->files), F_U64("bytes", x->bytes));
        note(x, "containers", x->bytes, x->files);
    }
    reclaim_images(x);
}

/* ---- images that are being brought ---- */

/* Its writes may cause the shortage; it can be retried, while an evicted pod loses its work. */
bool reclaim_stop_images(struct eviction *r, const struct ev_crossing *c, void (*done)(struct eviction *r))
{
    struct img_store *images = r->node->o.images;
    struct reclaim *x;
    struct err why = { 0 };

    if (images == NULL || !img_is_writing(images))
        return false;
    x = reclaim_new(r, c, done);
    if (x == NULL)
        return false;
    err_set(&why, ERR_EXHAUSTED,
            "the node is short of %s: %" PRIu64 " MiB are available, %" PRIu64 " MiB are kept free",
            ev_signal_name(c->threshold.signal), c->value.available >> 20, c->line >> 20);
    if (ev_signal_unit(c->threshold.signal) != EV_BYTES)
        err_set(&why, ERR_EXHAUSTED,
                "the node is short of %s: %" PRIu64 " are available, %" PRIu64 " are kept free",
                ev_signal_name(c->threshold.signal), c->value.available, c->line);
    (void)img_stop_writers(images, &why);
    x->clearing = x->stopping = true;
    img_on_cleared(images, on_cleared, x);
    uv_timer_start(&x->timer, on_timer, RECLAIM_MAX_MS, 0);
    return true;
}

/* Bytes that images must free; all of them if it is inodes that are missing. */
static uint64_t wanted_of(const struct ev_crossing *c)
{
    if (ev_signal_unit(c->threshold.signal) != EV_BYTES)
        return UINT64_MAX;
    return c->goal > c->value.available ? c->goal - c->value.available : 1;
}

void reclaim_start(struct eviction *r, unsigned what, const struct ev_crossing *c,
                   void (*done)(struct eviction *r))
{
    struct reclaim *x = reclaim_new(r, c, done);

    if (x == NULL) { /* the timer of disks starts the next measurement */
        r->disks = DISKS_REST;
        return;
    }
    x->what = what;
    x->wanted = wanted_of(c);
    r->reclaim_signal = c->threshold.signal;
    r->reclaim_began_us = uv_hrtime() / 1000;
    if (what & EV_RECLAIM_CONTAINERS)
        list_logs(x);
    if (x->n_logs == 0) {
        forget_logs(x);
        reclaim_images(x);
        return;
    }
    x->working = true;
    work_start(&x->work, "remove old logs", NULL, remove_all_logs, x, r->node->o.loop, on_logs_removed, x);
}

bool reclaim_busy(const struct eviction *r)
{
    return r->reclaim != NULL && r->reclaim->working;
}

void reclaim_close(struct eviction *r)
{
    struct reclaim *x = r->reclaim;

    if (x == NULL || x->closing)
        return;
    x->closing = true;
    if (!x->working)
        finish(x);
}
