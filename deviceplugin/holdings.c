/* SPDX-License-Identifier: Apache-2.0 */
/* Two trees: the entries; and their devices, by resource and id, with the number of entries that hold each.
 * Trees instead of hash tables, because a hostile checkpoint could choose colliding names. */
#include "deviceplugin/holdings.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "deviceplugin/device_id.h"

#include <stdlib.h>
#include <string.h>
#include <uv/tree.h>

#define SHOWN_MAX 128 /* bytes of an id in a message */

struct entry { /* one block of memory */
    RB_ENTRY(entry) node;
    struct dp_holding x;
};

struct owned {
    RB_ENTRY(owned) node;
    struct dp_owned x;
    size_t holders; /* entries of that pod with this device */
};

RB_HEAD(entries, entry);
RB_HEAD(owneds, owned);

struct dp_holdings {
    struct entries entries;
    struct owneds owned;
    size_t n_entries, n_devices;
    uint64_t generation;
};

static int compare_entries(const struct entry *a, const struct entry *b)
{
    int order = strcmp(a->x.pod_uid, b->x.pod_uid);

    if (order == 0)
        order = strcmp(a->x.container, b->x.container);
    return order != 0 ? order : strcmp(a->x.resource, b->x.resource);
}

static int compare_owned(const struct owned *a, const struct owned *b)
{
    int order = strcmp(a->x.resource, b->x.resource);

    return order != 0 ? order : dp_id_compare(a->x.id, b->x.id);
}

RB_GENERATE_STATIC(entries, entry, node, compare_entries)
RB_GENERATE_STATIC(owneds, owned, node, compare_owned)

enum err_code dp_holdings_new(struct dp_holdings **ret, struct err *e)
{
    struct dp_holdings *h = calloc(1, sizeof(*h));

    if (h == NULL)
        return err_nomem(e);
    *ret = h;
    return ERR_OK;
}

void dp_holdings_free(struct dp_holdings *h)
{
    if (h == NULL)
        return;
    dp_holdings_drop(h, NULL, NULL, NULL);
    free(h);
}

uint64_t dp_holdings_generation(const struct dp_holdings *h)
{
    return h->generation;
}

/* ---- devices ---- */

/* The trees' functions lack const; a lookup changes nothing. */
static struct owned *find_owned(const struct dp_holdings *h, const char *resource, const char *id)
{
    struct owned key = { .x = { .resource = resource, .id = id } };

    return RB_FIND(owneds, (struct owneds *)&h->owned, &key);
}

const struct dp_owned *dp_holdings_owned(const struct dp_holdings *h, const char *resource, const char *id)
{
    const struct owned *o = find_owned(h, resource, id);

    return o != NULL ? &o->x : NULL;
}

const char *dp_holdings_owner(const struct dp_holdings *h, const char *resource, const char *id)
{
    const struct owned *o = find_owned(h, resource, id);

    return o != NULL ? o->x.pod_uid : NULL;
}

const struct dp_owned *dp_holdings_owned_next(const struct dp_holdings *h, const char *resource,
                                              const struct dp_owned *after)
{
    struct owned key = { .x = { .resource = resource, .id = "" } }, *o; /* before all ids */

    if (after != NULL)
        o = RB_NEXT(owneds, &h->owned, container_of(after, struct owned, x));
    else
        o = RB_NFIND(owneds, (struct owneds *)&h->owned, &key);
    return o != NULL && strcmp(o->x.resource, resource) == 0 ? &o->x : NULL;
}

static enum err_code acquire(struct dp_holdings *h, const struct dp_holding *x, const char *id, struct err *e)
{
    struct owned *o = find_owned(h, x->resource, id);
    char *at;

    if (o == NULL) {
        o = malloc(sizeof(*o) + strlen(x->resource) + strlen(id) + strlen(x->pod_uid) + 3);
        if (o == NULL)
            return err_nomem(e);
        at = (char *)(o + 1);
        *o = (struct owned){ .x.resource = str_pack(&at, x->resource) };
        o->x.id = str_pack(&at, id);
        o->x.pod_uid = str_pack(&at, x->pod_uid);
        RB_INSERT(owneds, &h->owned, o);
    }
    o->holders++;
    return ERR_OK;
}

static void release(struct dp_holdings *h, const struct dp_holding *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct owned *o = find_owned(h, x->resource, x->devices[i].id);

        if (--o->holders == 0) {
            RB_REMOVE(owneds, &h->owned, o);
            free(o);
        }
    }
}

static enum err_code acquire_all(struct dp_holdings *h, const struct dp_holding *x, struct err *e)
{
    for (size_t i = 0; i < x->n_devices; i++)
        if (acquire(h, x, x->devices[i].id, e) != ERR_OK) {
            release(h, x, i);
            return e->code;
        }
    return ERR_OK;
}

/* ---- entries ---- */

static struct entry *find_entry(const struct dp_holdings *h, const char *pod_uid, const char *container,
                                const char *resource)
{
    struct entry key = { .x = { .pod_uid = pod_uid, .container = container, .resource = resource } };

    return RB_FIND(entries, (struct entries *)&h->entries, &key);
}

const struct dp_holding *dp_holdings_find(const struct dp_holdings *h, const char *pod_uid,
                                          const char *container, const char *resource)
{
    const struct entry *x = find_entry(h, pod_uid, container, resource);

    return x != NULL ? &x->x : NULL;
}

const struct dp_holding *dp_holdings_next(const struct dp_holdings *h, const struct dp_holding *after)
{
    struct entry *x = after != NULL ? RB_NEXT(entries, &h->entries, container_of(after, struct entry, x))
                                    : RB_MIN(entries, (struct entries *)&h->entries);

    return x != NULL ? &x->x : NULL;
}

const struct dp_holding *dp_holdings_pod_next(const struct dp_holdings *h, const char *pod_uid,
                                              const struct dp_holding *after)
{
    struct entry key = { .x = { .pod_uid = pod_uid, .container = "", .resource = "" } }, *x;

    if (after != NULL)
        x = RB_NEXT(entries, &h->entries, container_of(after, struct entry, x));
    else
        x = RB_NFIND(entries, (struct entries *)&h->entries, &key);
    return x != NULL && strcmp(x->x.pod_uid, pod_uid) == 0 ? &x->x : NULL;
}

static int compare_held(const void *a, const void *b)
{
    return dp_id_compare(((const struct dp_held *)a)->id, ((const struct dp_held *)b)->id);
}

static int compare_numa(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Ascending, without duplicates and without -1, which means "no topology" in kubelet. */
static size_t put_numa(int64_t *to, const struct dp_held *from)
{
    size_t n = 0;

    if (from->n_numa > 0)
        memcpy(to, from->numa, from->n_numa * sizeof(*to));
    qsort(to, from->n_numa, sizeof(*to), compare_numa);
    for (size_t i = 0; i < from->n_numa; i++)
        if (to[i] != -1 && (n == 0 || to[i] != to[n - 1]))
            to[n++] = to[i];
    return n;
}

/* NULL: out of memory. The parts are ordered by alignment: structs, numbers, bytes. */
static struct entry *copy_entry(const struct dp_holding *x)
{
    size_t size = sizeof(struct entry) + x->n_devices * sizeof(struct dp_held) + x->n_answer +
                  strlen(x->pod_uid) + strlen(x->container) + strlen(x->resource) + 3;
    struct dp_held *held;
    struct entry *to;
    int64_t *numa;
    char *at;

    for (size_t i = 0; i < x->n_devices; i++)
        size += x->devices[i].n_numa * sizeof(int64_t) + strlen(x->devices[i].id) + 1;
    to = malloc(size);
    if (to == NULL)
        return NULL;
    held = (struct dp_held *)(to + 1);
    numa = (int64_t *)(held + x->n_devices);
    for (size_t i = 0; i < x->n_devices; i++) {
        held[i] = (struct dp_held){ x->devices[i].id, numa, put_numa(numa, &x->devices[i]) };
        numa += x->devices[i].n_numa;
    }
    at = (char *)numa;
    for (size_t i = 0; i < x->n_devices; i++)
        held[i].id = str_pack(&at, held[i].id);
    if (x->n_devices > 1)
        qsort(held, x->n_devices, sizeof(*held), compare_held);
    *to = (struct entry){ .x = { .devices = held, .n_devices = x->n_devices, .n_answer = x->n_answer } };
    to->x.pod_uid = str_pack(&at, x->pod_uid);
    to->x.container = str_pack(&at, x->container);
    to->x.resource = str_pack(&at, x->resource);
    if (x->answer != NULL) {
        memcpy(at, x->answer, x->n_answer);
        to->x.answer = (const uint8_t *)at;
    }
    return to;
}

static void remove_entry(struct dp_holdings *h, struct entry *x)
{
    release(h, &x->x, x->x.n_devices);
    RB_REMOVE(entries, &h->entries, x);
    h->n_entries--;
    h->n_devices -= x->x.n_devices;
    h->generation++;
    free(x);
}

void dp_holdings_drop(struct dp_holdings *h, const char *pod_uid, const char *container, const char *resource)
{
    struct entry key = { .x = { .pod_uid = pod_uid, .container = "", .resource = "" } }, *x, *next;

    x = pod_uid != NULL ? RB_NFIND(entries, &h->entries, &key) : RB_MIN(entries, &h->entries);
    for (; x != NULL && (pod_uid == NULL || strcmp(x->x.pod_uid, pod_uid) == 0); x = next) {
        next = RB_NEXT(entries, &h->entries, x);
        if ((container == NULL || strcmp(x->x.container, container) == 0) &&
            (resource == NULL || strcmp(x->x.resource, resource) == 0))
            remove_entry(h, x);
    }
}

/* ---- putting ---- */

static const char *shown(char ret[SHOWN_MAX + 1], const char *id)
{
    size_t n = strlen(id);

    n = n > SHOWN_MAX ? utf8_cut(id, SHOWN_MAX) : n;
    memcpy(ret, id, n);
    ret[n] = '\0';
    text_printable(ret);
    return ret;
}

static bool is_text(const char *text)
{
    return *text != '\0' && utf8_is_valid(text, strlen(text));
}

static enum err_code check_limits(const struct dp_holdings *h, const struct dp_holding *x,
                                  const struct entry *old, struct err *e)
{
    size_t others = h->n_devices - (old != NULL ? old->x.n_devices : 0);
    char id[SHOWN_MAX + 1];

    if (!is_text(x->pod_uid) || !is_text(x->container) || !is_text(x->resource))
        return err_set(e, ERR_INVALID, "the name of a pod, a container or a resource is empty or not UTF-8");
    if (old == NULL && h->n_entries >= DP_HOLDINGS_MAX)
        return err_set(e, ERR_EXHAUSTED, "more than %d containers with devices", DP_HOLDINGS_MAX);
    if (x->n_devices > DP_HELD_MAX - others)
        return err_set(e, ERR_EXHAUSTED, "more than %d devices are held", DP_HELD_MAX);
    if (x->n_answer > DP_ANSWER_MAX)
        return err_set(e, ERR_EXHAUSTED, "the answer for devices of %s has %zu bytes, more than %d",
                       x->resource, x->n_answer, DP_ANSWER_MAX);
    for (size_t i = 0; i < x->n_devices; i++) {
        if (!dp_id_ok(x->devices[i].id))
            return err_set(e, ERR_INVALID, "device \"%s\" of %s: an id has 1 to %d bytes of UTF-8",
                           shown(id, x->devices[i].id), x->resource, DP_ID_MAX);
        if (x->devices[i].n_numa > DP_HELD_NUMA_MAX)
            return err_set(e, ERR_EXHAUSTED, "device \"%s\" of %s is on more than %d NUMA nodes",
                           shown(id, x->devices[i].id), x->resource, DP_HELD_NUMA_MAX);
    }
    return ERR_OK;
}

/* x is sorted. */
static enum err_code check_free(const struct dp_holdings *h, const struct dp_holding *x, struct err *e)
{
    char id[SHOWN_MAX + 1];

    for (size_t i = 0; i < x->n_devices; i++) {
        const char *owner = dp_holdings_owner(h, x->resource, x->devices[i].id);

        if (i > 0 && strcmp(x->devices[i - 1].id, x->devices[i].id) == 0)
            return err_set(e, ERR_INVALID, "device \"%s\" of %s is listed twice", shown(id, x->devices[i].id),
                           x->resource);
        if (owner != NULL && strcmp(owner, x->pod_uid) != 0)
            return err_set(e, ERR_EXISTS, "device \"%s\" of %s: pod %s holds it, pod %s cannot have it",
                           shown(id, x->devices[i].id), x->resource, owner, x->pod_uid);
    }
    return ERR_OK;
}

enum err_code dp_holdings_put(struct dp_holdings *h, const struct dp_holding *x, struct err *e)
{
    struct entry *old = find_entry(h, x->pod_uid, x->container, x->resource), *new;

    if (check_limits(h, x, old, e) != ERR_OK)
        return e->code;
    new = copy_entry(x);
    if (new == NULL)
        return err_nomem(e);
    if (check_free(h, &new->x, e) != ERR_OK || acquire_all(h, &new->x, e) != ERR_OK) {
        free(new);
        return e->code;
    }
    if (old != NULL)
        remove_entry(h, old);
    RB_INSERT(entries, &h->entries, new);
    h->n_entries++;
    h->n_devices += new->x.n_devices;
    h->generation++;
    return ERR_OK;
}
