/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/inventory.h"

#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A provider's list: one block of memory, with the devices, their ids and NUMA nodes. */
struct list {
    struct dp_device *v;
    size_t n, n_healthy;
};

struct claim { /* of one rank */
    struct dp_provider *p;
    struct dp_options o;
    struct list list; /* kept while p is NULL, until it is forgotten */
    bool listed;
};

struct entry {
    struct dp_resource r; /* the result of all claims: settle() */
    struct claim claims[DP_RANKS];
};

struct dp_inventory {
    struct entry **v; /* sorted by name */
    size_t n;
    struct boot_timer forget; /* for the earliest gone_at */
    dp_change_fn changed;
    void *arg;
};

const char *dp_health_name(enum dp_health h)
{
    switch (h) {
    case DP_HEALTHY:
        return "Healthy";
    case DP_UNHEALTHY:
        return "Unhealthy";
    case DP_HEALTH_UNKNOWN:
        break;
    }
    return "Unknown";
}

/* ---- lists ---- */

static int by_id(const void *a, const void *b)
{
    const struct dp_device *const *x = a, *const *y = b;
    int order = dp_id_compare((*x)->id, (*y)->id);

    return order != 0 ? order : (*x > *y) - (*x < *y); /* the earlier one of two is kept */
}

/* Sorts, and drops repeated ids; *ret_n is the number that is left. NULL: out of memory. */
static const struct dp_device **sorted(const struct dp_device *devices, size_t n, size_t *ret_n)
{
    const struct dp_device **v = calloc(n == 0 ? 1 : n, sizeof(const struct dp_device *));
    size_t kept = 0;

    if (v == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        v[i] = &devices[i];
    qsort(v, n, sizeof(const struct dp_device *), by_id);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || strcmp(v[kept - 1]->id, v[i]->id) != 0)
            v[kept++] = v[i];
    }
    *ret_n = kept;
    return v;
}

static bool list_copy(struct list *ret, const struct dp_device *devices, size_t n)
{
    mem_auto const struct dp_device **v = sorted(devices, n, &n);
    size_t numbers = 0, chars = 0;
    struct list list = { .n = n };
    int64_t *numa;
    char *text;

    if (v == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        numbers += v[i]->n_numa;
        chars += strlen(v[i]->id) + 1;
    }
    list.v = malloc(n * sizeof(list.v[0]) + numbers * sizeof(numa[0]) + chars + 1);
    if (list.v == NULL)
        return false;
    numa = (int64_t *)(list.v + n);
    text = (char *)(numa + numbers);
    for (size_t i = 0; i < n; i++) {
        list.v[i] =
            (struct dp_device){ .id = text, .healthy = v[i]->healthy, .numa = numa, .n_numa = v[i]->n_numa };
        list.n_healthy += v[i]->healthy;
        text = stpcpy(text, v[i]->id) + 1;
        for (size_t j = 0; j < v[i]->n_numa; j++)
            *numa++ = v[i]->numa[j];
    }
    *ret = list;
    return true;
}

static void list_done(struct list *l)
{
    free(l->v);
    *l = (struct list){ 0 };
}

static bool same_numa(const struct dp_device *a, const struct dp_device *b)
{
    if (a->n_numa != b->n_numa)
        return false;
    for (size_t i = 0; i < a->n_numa; i++) {
        if (a->numa[i] != b->numa[i])
            return false;
    }
    return true;
}

static bool same_devices(const struct list *a, const struct list *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (strcmp(a->v[i].id, b->v[i].id) != 0 || !same_numa(&a->v[i], &b->v[i]))
            return false;
    }
    return true;
}

static bool same_health(const struct list *a, const struct list *b) /* of the same devices */
{
    for (size_t i = 0; i < a->n; i++) {
        if (a->v[i].healthy != b->v[i].healthy)
            return false;
    }
    return true;
}

static void all_unhealthy(struct list *l)
{
    for (size_t i = 0; i < l->n; i++)
        l->v[i].healthy = false;
    l->n_healthy = 0;
}

/* ---- entries ---- */

/* The index of the name, or where it belongs. */
static size_t place_of(const struct dp_inventory *v, const char *name)
{
    size_t low = 0, high = v->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(v->v[middle]->r.name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct entry *find(const struct dp_inventory *v, const char *name)
{
    size_t i = place_of(v, name);

    return i < v->n && strcmp(v->v[i]->r.name, name) == 0 ? v->v[i] : NULL;
}

static bool is_unused(const struct entry *x)
{
    for (int rank = 0; rank < DP_RANKS; rank++) {
        if (x->claims[rank].p != NULL)
            return false;
    }
    return x->r.count < 0 && (x->r.forgotten || !clock_boot_is_set(x->r.gone_at));
}

static void drop(struct dp_inventory *v, size_t i)
{
    struct entry *x = v->v[i];

    v->n--;
    memmove(v->v + i, v->v + i + 1, (v->n - i) * sizeof(struct entry *));
    for (int rank = 0; rank < DP_RANKS; rank++)
        list_done(&x->claims[rank].list);
    free(x);
}

/* Drops a name without a provider, to make room for another one. */
static void make_room(struct dp_inventory *v)
{
    for (size_t i = 0; i < v->n && v->n >= DP_RESOURCES_MAX; i++) {
        if (is_unused(v->v[i])) {
            drop(v, i);
            return;
        }
    }
}

static struct entry *find_or_add(struct dp_inventory *v, const char *name, struct err *e)
{
    struct entry *x = find(v, name), **grown;
    size_t i;

    if (x != NULL)
        return x;
    if (strlen(name) > DP_RESOURCE_NAME_MAX) {
        err_set(e, ERR_INVALID, "resource name of %zu characters, at most %d are allowed", strlen(name),
                DP_RESOURCE_NAME_MAX);
        return NULL;
    }
    make_room(v);
    if (v->n >= DP_RESOURCES_MAX) {
        err_set(e, ERR_EXHAUSTED, "resource %s: the node already has %d resources, the maximum", name,
                DP_RESOURCES_MAX);
        return NULL;
    }
    x = calloc(1, sizeof(*x));
    grown = x != NULL ? reallocarray(v->v, v->n + 1, sizeof(struct entry *)) : NULL;
    if (grown == NULL) {
        free(x);
        err_nomem(e);
        return NULL;
    }
    strcpy(x->r.name, name);
    x->r.count = -1;
    v->v = grown;
    i = place_of(v, name);
    memmove(v->v + i + 1, v->v + i, (v->n - i) * sizeof(struct entry *));
    v->v[i] = x;
    v->n++;
    return x;
}

/* The claim in use: the highest one with a provider, or with devices of a provider that ended. A lower claim
 * is not used at once, because pods still hold devices of the higher one, and the lower one may offer the
 * same devices under other ids. */
static const struct claim *used(const struct entry *x)
{
    for (int rank = DP_RANKS - 1; rank >= 0; rank--) {
        if (x->claims[rank].p != NULL || x->claims[rank].list.v != NULL)
            return &x->claims[rank];
    }
    return NULL;
}

static void settle(struct entry *x)
{
    const struct claim *c = used(x);

    x->r.provider = c != NULL ? c->p : NULL;
    x->r.options = c != NULL && c->p != NULL ? c->o : (struct dp_options){ 0 };
    x->r.listed = c != NULL && c->p != NULL && c->listed;
    x->r.devices = c != NULL ? c->list.v : NULL;
    x->r.n_devices = c != NULL ? c->list.n : 0;
    x->r.n_healthy = c != NULL ? c->list.n_healthy : 0;
}

/* ---- forgetting ---- */

static void on_forget(struct boot_timer *t);

static void arm(struct dp_inventory *v)
{
    struct boot_time first = CLOCK_BOOT_NONE;

    for (size_t i = 0; i < v->n; i++) {
        struct boot_time at = v->v[i]->r.gone_at;

        if (clock_boot_is_set(at) && (!clock_boot_is_set(first) || clock_boot_is_before(at, first)))
            first = at;
    }
    if (!clock_boot_is_set(first))
        boot_timer_stop(&v->forget);
    else
        boot_timer_start(&v->forget, clock_boot_after(first, INT64_C(1000000) * DP_FORGET_MS), on_forget);
}

static void forget(struct dp_inventory *v, struct entry *x)
{
    x->r.gone_at = CLOCK_BOOT_NONE;
    for (int rank = 0; rank < DP_RANKS; rank++) {
        if (x->claims[rank].p == NULL)
            list_done(&x->claims[rank].list);
    }
    settle(x);
    x->r.forgotten = x->r.provider == NULL;
    v->changed(&x->r, x->r.forgotten ? DP_CHANGE_FORGOTTEN : DP_CHANGE_PROVIDER, v->arg);
}

static void on_forget(struct boot_timer *t)
{
    struct dp_inventory *v = container_of(t, struct dp_inventory, forget);

    for (size_t i = 0; i < v->n; i++) {
        struct boot_time at = v->v[i]->r.gone_at;

        if (clock_boot_is_set(at) && clock_boot_is_due(clock_boot_after(at, INT64_C(1000000) * DP_FORGET_MS)))
            forget(v, v->v[i]);
    }
    arm(v);
}

/* ---- for providers ---- */

enum err_code dp_inventory_new(struct dp_inventory **ret, struct boot_timers *timers, dp_change_fn changed,
                               void *arg, struct err *e)
{
    struct dp_inventory *v = calloc(1, sizeof(*v));

    if (v == NULL)
        return err_nomem(e);
    v->changed = changed;
    v->arg = arg;
    boot_timer_init(timers, &v->forget);
    *ret = v;
    return ERR_OK;
}

static void inventory_on_closed(struct boot_timer *t)
{
    free(container_of(t, struct dp_inventory, forget));
}

void dp_inventory_free(struct dp_inventory *v)
{
    if (v == NULL)
        return;
    while (v->n > 0)
        drop(v, v->n - 1);
    free(v->v);
    v->v = NULL;
    boot_timer_close(&v->forget, inventory_on_closed);
}

enum err_code dp_inventory_provide(struct dp_inventory *v, const char *name, struct dp_provider *p,
                                   struct dp_options o, struct err *e)
{
    struct entry *x = find_or_add(v, name, e);
    struct claim *c;

    if (x == NULL)
        return e->code;
    c = &x->claims[p->rank];
    c->p = p;
    c->o = o;
    c->listed = false;
    settle(x);
    if (x->r.provider != p)
        return ERR_OK;
    x->r.gone_at = CLOCK_BOOT_NONE;
    x->r.forgotten = false;
    arm(v);
    v->changed(&x->r, DP_CHANGE_PROVIDER, v->arg);
    return ERR_OK;
}

enum err_code dp_inventory_list(struct dp_inventory *v, struct dp_provider *p, const char *name,
                                const struct dp_device *devices, size_t n, struct err *e)
{
    struct entry *x = find(v, name);
    struct claim *c = x != NULL ? &x->claims[p->rank] : NULL;
    bool first, same;
    struct list new;

    if (c == NULL || c->p != p)
        return err_set(e, ERR_PRECONDITION, "devices of %s: this %s does not provide them any more", name,
                       p->kind);
    if (n > DP_DEVICES_MAX)
        return err_set(e, ERR_EXHAUSTED, "devices of %s: a list of %zu, at most %d are allowed", name, n,
                       DP_DEVICES_MAX);
    if (!list_copy(&new, devices, n))
        return err_nomem(e);
    first = !c->listed;
    same = same_devices(&c->list, &new);
    if (!first && same && same_health(&c->list, &new)) {
        list_done(&new);
        return ERR_OK;
    }
    list_done(&c->list);
    c->list = new;
    c->listed = true;
    settle(x);
    if (x->r.provider == p)
        v->changed(&x->r, first || !same ? DP_CHANGE_LIST : DP_CHANGE_HEALTH, v->arg);
    return ERR_OK;
}

void dp_inventory_withdraw(struct dp_inventory *v, struct dp_provider *p, const char *name)
{
    struct entry *x = find(v, name);
    struct claim *c = x != NULL ? &x->claims[p->rank] : NULL;
    bool was_used;

    if (c == NULL || c->p != p)
        return;
    was_used = x->r.provider == p;
    c->p = NULL;
    c->listed = false;
    if (was_used)
        all_unhealthy(&c->list);
    else
        list_done(&c->list);
    settle(x);
    if (!was_used)
        return;
    if (x->r.provider == NULL) {
        x->r.gone_at = clock_boot();
        arm(v);
    }
    v->changed(&x->r, DP_CHANGE_PROVIDER, v->arg);
}

enum err_code dp_inventory_count(struct dp_inventory *v, const char *name, int64_t count, struct err *e)
{
    struct entry *x = count < 0 ? find(v, name) : find_or_add(v, name, e);

    if (x == NULL)
        return count < 0 ? ERR_OK : e->code;
    if (count < 0)
        count = -1;
    if (x->r.count == count)
        return ERR_OK;
    x->r.count = count;
    v->changed(&x->r, DP_CHANGE_COUNT, v->arg);
    return ERR_OK;
}

enum err_code dp_inventory_remember(struct dp_inventory *v, const char *name, struct err *e)
{
    struct entry *x = find(v, name);

    if (x != NULL)
        return ERR_OK;
    x = find_or_add(v, name, e);
    if (x == NULL)
        return e->code;
    x->r.gone_at = clock_boot();
    arm(v);
    return ERR_OK;
}

/* ---- for the agent ---- */

const struct dp_resource *dp_inventory_find(const struct dp_inventory *v, const char *name)
{
    const struct entry *x = find(v, name);

    return x != NULL ? &x->r : NULL;
}

const struct dp_resource *dp_inventory_next(const struct dp_inventory *v, const struct dp_resource *after)
{
    size_t i = after != NULL ? place_of(v, after->name) + 1 : 0;

    return i < v->n ? &v->v[i]->r : NULL;
}

const struct dp_device *dp_resource_device(const struct dp_resource *r, const char *id)
{
    size_t low = 0, high = r->n_devices;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = dp_id_compare(r->devices[middle].id, id);

        if (order == 0)
            return &r->devices[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Whether the resource is only a number: it has no provider, and no devices of an earlier one. */
static bool is_number(const struct dp_resource *r)
{
    return r->provider == NULL && r->devices == NULL && r->count >= 0;
}

int64_t dp_resource_capacity(const struct dp_resource *r)
{
    return is_number(r) ? r->count : (int64_t)r->n_devices;
}

int64_t dp_resource_allocatable(const struct dp_resource *r)
{
    return is_number(r) ? r->count : (int64_t)r->n_healthy;
}

void dp_inventory_problems(const struct dp_inventory *v,
                           void (*fn)(const char *resource, const char *text, void *arg), void *arg)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct entry *x = v->v[i];
        const struct claim *low = &x->claims[DP_RANK_DECLARATION];
        const char *kind = x->r.provider != NULL ? x->r.provider->kind : "plugin (which is gone)";
        char text[160] = "";

        if (low->p != NULL && used(x) != low)
            snprintf(text, sizeof(text), "a %s offers it, too, and is ignored: a %s comes first",
                     low->p->kind, kind);
        else if (x->r.count >= 0 && used(x) != NULL)
            snprintf(text, sizeof(text), "the configuration's number is ignored: a %s comes first", kind);
        if (text[0] != '\0')
            fn(x->r.name, text, arg);
    }
}
