/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/choose.h"

#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* Of a device of the inventory. Held devices are marked, not free ones: of 65,536 devices only a few are
 * held, and the first free ones are found quickly. */
enum mark { UNTOUCHED, HELD, TAKEN };

enum affinity { ALIGNED, UNALIGNED, NO_AFFINITY };

struct picking {
    const struct dp_resource *r;
    const struct dp_holdings *h;
    const struct dp_wish *w;
    uint8_t *mark;        /* enum mark, in the order of r->devices */
    const char **unknown; /* reused ids that the inventory does not have (any more), sorted; borrowed */
    size_t n_unknown;
    int64_t needed;
};

void dp_choice_done(struct dp_choice *c)
{
    arena_done(&c->memory);
    *c = (struct dp_choice){ 0 };
}

/* ---- the devices ---- */

static bool is_free(const struct picking *p, size_t i)
{
    return p->mark[i] == UNTOUCHED && p->r->devices[i].healthy;
}

/* Whether the device is on one of these nodes. A provider may send any number; numbers that do not fit into a
 * set are ignored. */
static bool is_on(const struct dp_device *d, uint64_t nodes)
{
    for (size_t i = 0; i < d->n_numa; i++)
        if (d->numa[i] >= 0 && d->numa[i] < 64 && (nodes >> d->numa[i] & 1) != 0)
            return true;
    return false;
}

static enum affinity affinity_of(const struct picking *p, size_t i)
{
    const struct dp_device *d = &p->r->devices[i];

    if (!p->w->has_hint || d->n_numa == 0)
        return NO_AFFINITY;
    return is_on(d, p->w->numa) ? ALIGNED : UNALIGNED;
}

/* Counts free devices, and marks held ones. `mark` may be NULL. */
static size_t count_free(const struct dp_resource *r, const struct dp_holdings *h, uint8_t *mark)
{
    size_t n = r->n_healthy;

    for (const struct dp_owned *o = dp_holdings_owned_next(h, r->name, NULL); o != NULL;
         o = dp_holdings_owned_next(h, r->name, o)) {
        const struct dp_device *d = dp_resource_device(r, o->id);

        if (d == NULL)
            continue;
        n -= d->healthy;
        if (mark != NULL && mark[d - r->devices] == UNTOUCHED)
            mark[d - r->devices] = HELD;
    }
    return n;
}

size_t dp_free_count(const struct dp_resource *r, const struct dp_holdings *h)
{
    return count_free(r, h, NULL);
}

/* ---- taking ---- */

static void take(struct picking *p, size_t i)
{
    p->mark[i] = TAKEN;
    p->needed--;
}

static void take_free(struct picking *p, enum affinity a)
{
    if (a != NO_AFFINITY && !p->w->has_hint)
        return;
    for (size_t i = 0; i < p->r->n_devices && p->needed > 0; i++)
        if (is_free(p, i) && affinity_of(p, i) == a)
            take(p, i);
}

static void take_preferred(struct picking *p, const char *const *ids, size_t n, bool aligned_only)
{
    for (size_t i = 0; i < n && p->needed > 0; i++) {
        const struct dp_device *d = dp_resource_device(p->r, ids[i]);
        size_t at = d != NULL ? (size_t)(d - p->r->devices) : 0;

        if (d != NULL && is_free(p, at) && (!aligned_only || affinity_of(p, at) == ALIGNED))
            take(p, at);
    }
}

static int compare_ids(const void *a, const void *b)
{
    return dp_id_compare(*(const char *const *)a, *(const char *const *)b);
}

/* Includes unhealthy and removed devices, as in kubelet: an earlier container of the pod had them. */
static enum err_code take_reusable(struct picking *p, struct err *e)
{
    const struct dp_wish *w = p->w;

    if (w->n_reusable == 0)
        return ERR_OK;
    mem_auto const char **ids = malloc(w->n_reusable * sizeof(*ids));
    p->unknown = malloc(w->n_reusable * sizeof(*p->unknown));
    if (ids == NULL || p->unknown == NULL)
        return err_nomem(e);
    memcpy(ids, w->reusable, w->n_reusable * sizeof(*ids));
    qsort(ids, w->n_reusable, sizeof(*ids), compare_ids);
    for (size_t i = 0; i < w->n_reusable && p->needed > 0; i++) {
        const struct dp_device *d = dp_resource_device(p->r, ids[i]);
        const char *owner = dp_holdings_owner(p->h, p->r->name, ids[i]);

        if (owner == NULL || strcmp(owner, w->pod_uid) != 0 || (i > 0 && strcmp(ids[i - 1], ids[i]) == 0))
            continue;
        if (d != NULL) {
            take(p, (size_t)(d - p->r->devices));
        } else {
            p->unknown[p->n_unknown++] = ids[i];
            p->needed--;
        }
    }
    return ERR_OK;
}

/* ---- the result ---- */

/* A device that the inventory does not have any more keeps the NUMA nodes of the pod's holding. */
static const struct dp_held *held_by_pod(const struct picking *p, const char *id)
{
    for (const struct dp_holding *x = dp_holdings_pod_next(p->h, p->w->pod_uid, NULL); x != NULL;
         x = dp_holdings_pod_next(p->h, p->w->pod_uid, x))
        for (size_t i = 0; i < x->n_devices && strcmp(x->resource, p->r->name) == 0; i++)
            if (strcmp(x->devices[i].id, id) == 0)
                return &x->devices[i];
    return NULL;
}

static bool copy_held(struct arena *a, struct dp_held *to, const char *id, const int64_t *numa, size_t n)
{
    int64_t *nodes = arena_alloc(a, n * sizeof(*nodes));

    *to = (struct dp_held){ .id = arena_strdup(a, id), .numa = nodes, .n_numa = n };
    if (nodes != NULL && n > 0)
        memcpy(nodes, numa, n * sizeof(*nodes));
    return nodes != NULL && to->id != NULL;
}

/* Sets the chosen devices, which are in the choice's memory already. */
static enum err_code set_chosen(struct dp_choice *c, const struct dp_held *held, size_t n, struct err *e)
{
    const char **ids = arena_alloc(&c->memory, n * sizeof(*ids));

    if (ids == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < n; i++)
        ids[i] = held[i].id;
    c->ids = ids;
    c->devices = held;
    c->n = n;
    return ERR_OK;
}

static int compare_held(const void *a, const void *b)
{
    return dp_id_compare(((const struct dp_held *)a)->id, ((const struct dp_held *)b)->id);
}

static enum err_code collect(const struct picking *p, struct dp_choice *c, struct err *e)
{
    size_t n_most = (size_t)p->w->count, n = 0;
    struct dp_held *held = arena_alloc(&c->memory, n_most * sizeof(*held));
    const uint8_t *end = p->mark + p->r->n_devices;

    if (held == NULL)
        return err_nomem(e);
    for (const uint8_t *m = p->mark; (m = memchr(m, TAKEN, (size_t)(end - m))) != NULL; m++) {
        const struct dp_device *d = &p->r->devices[m - p->mark];

        if (!copy_held(&c->memory, &held[n++], d->id, d->numa, d->n_numa))
            return err_nomem(e);
    }
    for (size_t i = 0; i < p->n_unknown; i++) {
        const struct dp_held *x = held_by_pod(p, p->unknown[i]);

        if (!copy_held(&c->memory, &held[n++], p->unknown[i], x != NULL ? x->numa : NULL,
                       x != NULL ? x->n_numa : 0))
            return err_nomem(e);
    }
    if (p->n_unknown > 0)
        qsort(held, n, sizeof(*held), compare_held);
    return set_chosen(c, held, n, e);
}

static enum err_code keep(const struct dp_holding *x, struct dp_choice *c, struct err *e)
{
    struct dp_held *held = arena_alloc(&c->memory, x->n_devices * sizeof(*held));

    for (size_t i = 0; held != NULL && i < x->n_devices; i++)
        if (!copy_held(&c->memory, &held[i], x->devices[i].id, x->devices[i].numa, x->devices[i].n_numa))
            return err_nomem(e);
    c->kept = true;
    return held != NULL ? set_chosen(c, held, x->n_devices, e) : err_nomem(e);
}

/* The question to the plugin: all free devices, or the aligned ones, and those that were taken already. */
static enum err_code question(const struct picking *p, bool aligned_only, struct dp_choice *c, struct err *e)
{
    size_t most = p->r->n_devices + p->n_unknown, n = 0, n_must = 0;
    const char **available = arena_alloc(&c->memory, most * sizeof(*available));
    const char **must = arena_alloc(&c->memory, (size_t)p->w->count * sizeof(*must));

    if (available == NULL || must == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < most; i++) {
        bool known = i < p->r->n_devices;
        bool taken = !known || p->mark[i] == TAKEN;
        const char *id = known ? p->r->devices[i].id : p->unknown[i - p->r->n_devices];

        if (!taken && (!is_free(p, i) || (aligned_only && affinity_of(p, i) != ALIGNED)))
            continue;
        available[n++] = id;
        if (taken)
            must[n_must++] = id;
    }
    if (p->n_unknown > 0) {
        qsort(available, n, sizeof(*available), compare_ids);
        qsort(must, n_must, sizeof(*must), compare_ids);
    }
    c->ask = true;
    c->available = available;
    c->n_available = n;
    c->must = must;
    c->n_must = n_must;
    return ERR_OK;
}

/* ---- the order ---- */

struct answer {
    bool asked; /* the plugin has been called: do not call it again */
    const char *const *ids;
    size_t n;
};

static bool wants_question(const struct picking *p, const struct answer *a)
{
    return !a->asked && p->r->options.preferred;
}

/* Chooses the devices that are needed beyond the reused ones. */
static enum err_code take_new(struct picking *p, const struct answer *a, struct dp_choice *c, struct err *e)
{
    size_t n_free = count_free(p->r, p->h, p->mark);
    int64_t aligned = 0;

    if (p->needed > (int64_t)n_free)
        return err_set(e, ERR_EXHAUSTED,
                       "requested number of devices unavailable for %s. Requested: %lld, Available: %zu",
                       p->r->name, (long long)p->needed, n_free);
    for (size_t i = 0; p->w->has_hint && i < p->r->n_devices && aligned <= p->needed; i++)
        aligned += is_free(p, i) && affinity_of(p, i) == ALIGNED;
    if (p->needed < aligned) { /* there is a choice among the aligned ones */
        if (wants_question(p, a))
            return question(p, true, c, e);
        take_preferred(p, a->ids, a->n, true);
        take_free(p, ALIGNED);
        return collect(p, c, e);
    }
    take_free(p, ALIGNED);
    if (p->needed > 0 && wants_question(p, a))
        return question(p, false, c, e);
    take_preferred(p, a->ids, a->n, false);
    take_free(p, UNALIGNED);
    take_free(p, NO_AFFINITY);
    return collect(p, c, e);
}

static enum err_code pick(struct picking *p, const struct answer *a, struct dp_choice *c, struct err *e)
{
    mem_auto uint8_t *mark = calloc(1, p->r->n_devices + 1);
    enum err_code code;

    p->mark = mark;
    p->needed = p->w->count;
    code = mark == NULL ? err_nomem(e) : take_reusable(p, e);
    if (code == ERR_OK)
        code = p->needed > 0 ? take_new(p, a, c, e) : collect(p, c, e);
    free(p->unknown);
    return code;
}

static bool all_healthy(const struct dp_resource *r, const struct dp_holding *x)
{
    for (size_t i = 0; i < x->n_devices; i++) {
        const struct dp_device *d = dp_resource_device(r, x->devices[i].id);

        if (d == NULL || !d->healthy)
            return false;
    }
    return true;
}

static enum err_code choose(const struct dp_resource *r, const char *name, const struct dp_holdings *h,
                            const struct dp_wish *w, const struct answer *a, struct dp_choice *c,
                            struct err *e)
{
    const struct dp_holding *held = dp_holdings_find(h, w->pod_uid, w->container, name);
    struct picking p = { .r = r, .h = h, .w = w };

    if (held != NULL && (int64_t)held->n_devices != w->count)
        return err_set(e, ERR_PRECONDITION,
                       "pod \"%s\" container \"%s\" changed request for resource \"%s\" from %zu to %lld",
                       w->pod_uid, w->container, name, held->n_devices, (long long)w->count);
    if (r == NULL)
        return err_set(e, ERR_NOT_FOUND, "cannot allocate unregistered device %s", name);
    if (r->n_healthy == 0)
        return err_set(e, ERR_UNAVAILABLE, "no healthy devices present; cannot allocate unhealthy devices %s",
                       name);
    if (held != NULL && !all_healthy(r, held))
        return err_set(
            e, ERR_UNAVAILABLE,
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices %s", name);
    if (held != NULL)
        return keep(held, c, e);
    return w->count > 0 ? pick(&p, a, c, e) : ERR_OK;
}

static enum err_code choose_anew(const struct dp_resource *r, const char *name, const struct dp_holdings *h,
                                 const struct dp_wish *w, const struct answer *a, struct dp_choice *ret,
                                 struct err *e)
{
    struct dp_choice c = { 0 };

    if (choose(r, name, h, w, a, &c, e) != ERR_OK) {
        dp_choice_done(&c);
        return e->code;
    }
    dp_choice_done(ret);
    *ret = c;
    return ERR_OK;
}

enum err_code dp_choose_begin(const struct dp_resource *r, const char *name, const struct dp_holdings *h,
                              const struct dp_wish *w, struct dp_choice *ret, struct err *e)
{
    return choose_anew(r, name, h, w, &(struct answer){ 0 }, ret, e);
}

enum err_code dp_choose_end(const struct dp_resource *r, const char *name, const struct dp_holdings *h,
                            const struct dp_wish *w, const char *const *preferred, size_t n,
                            struct dp_choice *c, struct err *e)
{
    return choose_anew(r, name, h, w, &(struct answer){ true, preferred, preferred != NULL ? n : 0 }, c, e);
}
