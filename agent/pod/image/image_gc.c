/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/image/image_gc.h"

#include "agent/pod/core/node_options.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct record {
    char id[80];
    uint64_t first_ms; /* when it was first seen */
    uint64_t used_ms;  /* when it was last seen in use */
    uint64_t bytes;    /* if it is awaited */
    bool was_used, used, pinned, awaited, seen;
    UT_hash_handle hh;
};

struct image_gc_records {
    uint64_t began_ms;
    struct record *all;
    struct err why; /* while looking */
    uint64_t now_ms;
};

struct image_gc_records *image_gc_records_new(uint64_t now_ms)
{
    struct image_gc_records *r = calloc(1, sizeof(*r));

    if (r != NULL)
        r->began_ms = now_ms;
    return r;
}

static void image_gc_forget(struct image_gc_records *r, struct record *one)
{
    HASH_DEL(r->all, one);
    free(one);
}

void image_gc_records_free(struct image_gc_records *r)
{
    struct record *one, *next;

    if (r == NULL)
        return;
    HASH_ITER (hh, r->all, one, next)
        image_gc_forget(r, one);
    free(r);
}

/* ---- looking ---- */

static struct record *record_of(struct image_gc_records *r, const char *id)
{
    struct record *one;

    HASH_FIND_STR(r->all, id, one);
    if (one != NULL)
        return one;
    one = calloc(1, sizeof(*one));
    if (one == NULL)
        return NULL;
    snprintf(one->id, sizeof(one->id), "%s", id);
    one->first_ms = r->now_ms;
    HASH_ADD_STR(r->all, id, one);
    if (one->hh.tbl != NULL)
        return one;
    free(one);
    return NULL;
}

static void see(const struct image_gc_image *i, void *arg)
{
    struct image_gc_records *r = arg;
    struct record *one = record_of(r, i->id);

    if (one == NULL) {
        err_nomem(&r->why);
        return;
    }
    one->seen = true;
    one->pinned = i->pinned;
    one->used = i->used;
    one->awaited = i->awaited;
    one->bytes = i->bytes;
    if (i->used) {
        one->was_used = true;
        one->used_ms = r->now_ms;
    }
}

enum err_code image_gc_look(struct image_gc_records *r, const struct image_gc_host *h, uint64_t now_ms,
                            struct err *e)
{
    struct record *one, *next;

    r->now_ms = now_ms;
    r->why = (struct err){ 0 };
    for (one = r->all; one != NULL; one = one->hh.next)
        one->seen = false;
    h->each(h->arg, see, r);
    if (r->why.code != ERR_OK) { /* an unseen image may exist nevertheless */
        *e = r->why;
        return e->code;
    }
    HASH_ITER (hh, r->all, one, next)
        if (!one->seen)
            image_gc_forget(r, one);
    return ERR_OK;
}

/* ---- choosing ---- */

/* Least recently used first; of those never seen in use, the oldest. */
static int by_use(const struct record *a, const struct record *b)
{
    if (a->was_used != b->was_used)
        return a->was_used ? 1 : -1;
    if (a->was_used && a->used_ms != b->used_ms)
        return a->used_ms < b->used_ms ? -1 : 1;
    if (a->first_ms != b->first_ms)
        return a->first_ms < b->first_ms ? -1 : 1;
    return strcmp(a->id, b->id);
}

static bool may_go(const struct record *one)
{
    return !one->used && !one->pinned && !one->awaited;
}

struct removing {
    struct image_gc_records *r;
    const struct image_gc_host *h;
    const char *why; /* for the log */
    uint64_t freed;
    unsigned n;
    struct err first; /* of the failed ones */
};

static void image_gc_remove_one(struct removing *x, struct record *one)
{
    struct err e = { 0 };
    uint64_t bytes = 0;

    if (x->h->remove(x->h->arg, one->id, &bytes, &e) == ERR_OK) {
        log_info("image removed", F_STR("imageID", one->id), F_STR("why", x->why), F_U64("bytes", bytes));
        x->freed += bytes;
        x->n++;
        image_gc_forget(x->r, one);
    } else if (e.code == ERR_UNAVAILABLE || e.code == ERR_PRECONDITION) {
        one->used = true; /* it was taken into use meanwhile */
    } else if (x->first.code == ERR_OK) {
        x->first = e;
    }
}

static enum err_code remove_old(struct image_gc_records *r, const struct image_gc_host *h,
                                uint64_t max_age_ms, struct image_gc_outcome *ret, struct err *e)
{
    struct removing x = { .r = r, .h = h, .why = "unused for longer than imageMaximumGCAge" };
    struct record *one, *next;

    /* Use before the agent's start is unknown: nothing is old before that much time has passed. */
    if (max_age_ms == 0 || r->now_ms - r->began_ms <= max_age_ms)
        return ERR_OK;
    HASH_ITER (hh, r->all, one, next)
        if (may_go(one) && r->now_ms - (one->was_used ? one->used_ms : one->first_ms) > max_age_ms)
            image_gc_remove_one(&x, one);
    ret->n_old = x.n;
    if (x.first.code == ERR_OK)
        return ERR_OK;
    *e = x.first;
    return err_wrap(e, "remove images that are too old");
}

static enum err_code free_space(struct image_gc_records *r, const struct image_gc_host *h,
                                const struct image_gc_policy *p, struct image_gc_outcome *ret, struct err *e)
{
    struct removing x = { .r = r, .h = h, .why = "the disk is fuller than imageGCHighThresholdPercent" };
    struct record *one, *next;

    HASH_SORT(r->all, by_use);
    HASH_ITER (hh, r->all, one, next) {
        if (x.freed >= ret->wanted)
            break;
        if (may_go(one) && r->now_ms - one->first_ms >= p->min_age_ms)
            image_gc_remove_one(&x, one);
    }
    ret->freed = x.freed;
    ret->n_full = x.n;
    if (x.first.code != ERR_OK) {
        *e = x.first;
        return err_wrap(e,
                        "wanted to free %" PRIu64 " bytes, but freed %" PRIu64
                        " bytes space with errors in image deletion",
                        ret->wanted, ret->freed);
    }
    if (ret->freed >= ret->wanted)
        return ERR_OK;
    ret->event = "FreeDiskSpaceFailed";
    return err_set(e, ERR_EXHAUSTED,
                   "Failed to garbage collect required amount of images. Attempted to free %" PRIu64
                   " bytes, but only found %" PRIu64 " bytes eligible to free.",
                   ret->wanted, ret->freed);
}

static void remove_unused(struct removing *x, uint64_t min_age_ms)
{
    struct record *one, *next;

    HASH_ITER (hh, x->r->all, one, next)
        if (may_go(one) && x->r->now_ms - one->first_ms >= min_age_ms)
            image_gc_remove_one(x, one);
}

static bool is_only_awaited(const struct record *one)
{
    return one->awaited && !one->used && !one->pinned;
}

static void remove_awaited(struct removing *x, uint64_t wanted)
{
    struct record *one, *next;
    uint64_t all = x->freed;

    for (one = x->r->all; one != NULL; one = one->hh.next)
        if (is_only_awaited(one) && __builtin_add_overflow(all, one->bytes, &all))
            all = UINT64_MAX - 1; /* UINT64_MAX is wanted where no amount is enough */
    if (all < wanted)
        return;
    HASH_ITER (hh, x->r->all, one, next)
        if (x->freed < wanted && is_only_awaited(one))
            image_gc_remove_one(x, one);
}

enum err_code image_gc_reclaim_unused(struct image_gc_records *r, const struct image_gc_host *h,
                                      const struct image_gc_policy *p, uint64_t wanted, uint64_t now_ms,
                                      struct image_gc_outcome *ret, struct err *e)
{
    struct removing x = { .r = r, .h = h, .why = "the node is short of disk space" };

    *ret = (struct image_gc_outcome){ .wanted = wanted };
    if (image_gc_look(r, h, now_ms, e) != ERR_OK)
        return e->code;
    HASH_SORT(r->all, by_use);
    remove_unused(&x, p->min_age_ms);
    if (x.freed < wanted)
        remove_unused(&x, 0);
    if (x.freed < wanted)
        remove_awaited(&x, wanted);
    ret->freed = x.freed;
    ret->n_full = x.n;
    *e = x.first;
    return e->code;
}

/* n * percent / 100 of a disk of any size. */
static uint64_t part_of(uint64_t n, unsigned percent)
{
    return n / 100 * percent + n % 100 * percent / 100;
}

/* Rounded down like kubelet: 15 for 15.9 % free space. */
static unsigned free_percent(uint64_t available, uint64_t capacity)
{
    if (available > UINT64_MAX / 100)
        return (unsigned)(available / (capacity / 100));
    return (unsigned)(available * 100 / capacity);
}

enum err_code image_gc_run(struct image_gc_records *r, const struct image_gc_host *h,
                           const struct image_gc_policy *p, const struct image_gc_disk *disk, uint64_t now_ms,
                           struct image_gc_outcome *ret, struct err *e)
{
    uint64_t available = disk->available < disk->capacity ? disk->available : disk->capacity, kept;

    *ret = (struct image_gc_outcome){ 0 };
    if (image_gc_look(r, h, now_ms, e) != ERR_OK || remove_old(r, h, p->max_age_ms, ret, e) != ERR_OK)
        return e->code;
    if (disk->capacity == 0) {
        ret->event = "InvalidDiskCapacity";
        return err_set(e, ERR_PRECONDITION, "invalid capacity 0 on image filesystem");
    }
    ret->percent = 100 - free_percent(available, disk->capacity);
    if (ret->percent < p->high_percent)
        return ERR_OK;
    kept = part_of(disk->capacity, 100 - p->low_percent);
    ret->wanted = kept > available ? kept - available : 0;
    return free_space(r, h, p, ret, e);
}
