/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/checkpoint/checkpoint_data.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "deviceplugin/device_id.h"
#include "deviceplugin/resource_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IGNORED_MAX                                                                                          \
    100 /* ignored entries that are named, because they are logged and a hostile file may have 65,536 */

/* ---- from holdings ---- */

struct spot { /* a device on a node */
    int64_t numa;
    const char *id;
};

static int compare_spots(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;

    return x->numa != y->numa ? (x->numa > y->numa) - (x->numa < y->numa) : dp_id_compare(x->id, y->id);
}

/* A device is listed on each of its nodes; NULL: out of memory. */
static struct spot *spots_of(const struct dp_holding *x, size_t *ret_n)
{
    struct spot *v;
    size_t n = 0;

    for (size_t i = 0; i < x->n_devices; i++)
        n += x->devices[i].n_numa > 0 ? x->devices[i].n_numa : 1;
    v = malloc((n + 1) * sizeof(*v));
    if (v == NULL)
        return NULL;
    n = 0;
    for (size_t i = 0; i < x->n_devices; i++) {
        const struct dp_held *d = &x->devices[i];

        if (d->n_numa == 0)
            v[n++] = (struct spot){ -1, d->id };
        for (size_t k = 0; k < d->n_numa; k++)
            v[n++] = (struct spot){ d->numa[k], d->id };
    }
    qsort(v, n, sizeof(*v), compare_spots);
    *ret_n = n;
    return v;
}

static bool add_nodes(struct dp_ck_data *d, const struct dp_holding *x)
{
    size_t n = 0;
    mem_auto struct spot *spots = spots_of(x, &n);

    if (spots == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        if ((i == 0 || spots[i - 1].numa != spots[i].numa) &&
            !dp_ck_add_node(d, &(struct dp_ck_node){ spots[i].numa, { .first = d->n_ids } }))
            return false;
        if (!dp_ck_add_id(d, spots[i].id))
            return false;
        d->nodes[d->n_nodes - 1].ids.n++;
    }
    return true;
}

static bool add_holding(struct dp_ck_data *d, const struct dp_holding *x)
{
    struct dp_ck_entry entry = { .pod_uid = x->pod_uid,
                                 .container = x->container,
                                 .resource = x->resource,
                                 .nodes = { .first = d->n_nodes },
                                 .answer = x->answer,
                                 .n_answer = x->n_answer };

    if (!add_nodes(d, x))
        return false;
    entry.nodes.n = d->n_nodes - entry.nodes.first;
    return dp_ck_add_entry(d, &entry);
}

static int compare_resources(const void *a, const void *b)
{
    return strcmp(((const struct dp_ck_resource *)a)->name, ((const struct dp_ck_resource *)b)->name);
}

static enum err_code add_registered(struct dp_ck_data *d, const struct dp_registered *v, size_t n,
                                    struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        struct dp_ck_resource x = { v[i].resource, { .first = d->n_ids, .n = v[i].n_ids } };

        for (size_t k = 0; k < v[i].n_ids; k++)
            if (!dp_ck_add_id(d, v[i].ids[k]))
                return err_nomem(e);
        if (!dp_ck_add_resource(d, &x))
            return err_nomem(e);
    }
    if (n > 1)
        qsort(d->resources, n, sizeof(*d->resources), compare_resources);
    for (size_t i = 1; i < n; i++)
        if (strcmp(d->resources[i - 1].name, d->resources[i].name) == 0)
            return err_set(e, ERR_INVALID, "%s is registered twice", d->resources[i].name);
    return ERR_OK;
}

static enum err_code collect(const struct dp_holdings *h, const struct dp_registered *registered, size_t n,
                             struct dp_ck_data *d, struct err *e)
{
    for (const struct dp_holding *x = dp_holdings_next(h, NULL); x != NULL; x = dp_holdings_next(h, x))
        if (x->answer != NULL && !add_holding(d, x))
            return err_nomem(e);
    d->nil_entries = d->n_entries == 0; /* as in kubelet */
    return add_registered(d, registered, n, e);
}

enum err_code dp_checkpoint_write(const struct dp_holdings *h, const struct dp_registered *registered,
                                  size_t n, char **ret, size_t *ret_n, struct err *e)
{
    buf_auto text = BUF_INIT(DP_CHECKPOINT_MAX);
    struct dp_ck_data d = { 0 };
    enum err_code code = collect(h, registered, n, &d, e);
    size_t size;

    if (code == ERR_OK)
        dp_ck_text(&d, &text);
    dp_ck_done(&d);
    if (code != ERR_OK || buf_check(&text, e) != ERR_OK)
        return err_wrap(e, "checkpoint of devices");
    size = text.n;
    *ret = buf_detach(&text);
    if (*ret == NULL)
        return err_nomem(e);
    *ret_n = size;
    return ERR_OK;
}

/* ---- to holdings ---- */

static int compare_by_id(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;
    int order = dp_id_compare(x->id, y->id);

    return order != 0 ? order : (x->numa > y->numa) - (x->numa < y->numa);
}

static struct spot *spots_of_entry(const struct dp_ck_data *d, const struct dp_ck_entry *x, size_t *ret_n)
{
    size_t n = 0;
    struct spot *v;

    for (size_t i = 0; i < x->nodes.n; i++)
        n += d->nodes[x->nodes.first + i].ids.n;
    v = malloc((n + 1) * sizeof(*v));
    if (v == NULL)
        return NULL;
    n = 0;
    for (size_t i = 0; i < x->nodes.n; i++) {
        const struct dp_ck_node *node = &d->nodes[x->nodes.first + i];

        for (size_t k = 0; k < node->ids.n; k++)
            v[n++] = (struct spot){ node->numa, d->ids[node->ids.first + k] };
    }
    qsort(v, n, sizeof(*v), compare_by_id);
    *ret_n = n;
    return v;
}

static bool same_devices(const struct dp_holding *a, const struct dp_holding *b)
{
    for (size_t i = 0; i < a->n_devices && i < b->n_devices; i++)
        if (strcmp(a->devices[i].id, b->devices[i].id) != 0)
            return false;
    return a->n_devices == b->n_devices;
}

/* An entry of a pod's record is kept: it may be newer. */
static enum err_code put_once(struct dp_holdings *h, const struct dp_holding *x, struct err *e)
{
    const struct dp_holding *old = dp_holdings_find(h, x->pod_uid, x->container, x->resource);

    if (old == NULL)
        return dp_holdings_put(h, x, e);
    return same_devices(old, x) ? ERR_OK : err_set(e, ERR_EXISTS, "it already holds other devices");
}

/* Groups the spots, which are sorted by id, into devices. */
static enum err_code put_spots(struct dp_holdings *h, const struct dp_ck_entry *x, const struct spot *v,
                               size_t n, struct err *e)
{
    mem_auto struct dp_held *held = malloc((n + 1) * sizeof(*held));
    mem_auto int64_t *numa = malloc((n + 1) * sizeof(*numa));
    struct dp_holding put = { x->pod_uid, x->container, x->resource, held, 0, x->answer, x->n_answer };

    if (held == NULL || numa == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        numa[i] = v[i].numa;
        if (i == 0 || strcmp(v[i - 1].id, v[i].id) != 0)
            held[put.n_devices++] = (struct dp_held){ v[i].id, &numa[i], 0 };
        held[put.n_devices - 1].n_numa++;
    }
    return put_once(h, &put, e);
}

static enum err_code put_entry(struct dp_holdings *h, const struct dp_ck_data *d, const struct dp_ck_entry *x,
                               struct err *e)
{
    size_t n = 0;

    if (!dp_resource_name_ok(x->resource))
        return err_set(e, ERR_INVALID, "no resource may have the name \"%.80s\"", x->resource);
    if (x->answer == NULL)
        return err_set(e, ERR_INVALID, "it has no answer");
    mem_auto struct spot *spots = spots_of_entry(d, x, &n);
    return spots != NULL ? put_spots(h, x, spots, n, e) : err_nomem(e);
}

/* ERR_OK also if the entry was ignored. */
static enum err_code ignored(struct strs *ret, const char *what, const struct err *why, struct err *e)
{
    char *text;

    if (err_is_shortage(why)) {
        *e = *why;
        return e->code;
    }
    if (ret == NULL || ret->n > IGNORED_MAX)
        return ERR_OK;
    if (ret->n == IGNORED_MAX)
        return strs_add(ret, "and others") ? ERR_OK : err_nomem(e);
    text = str_printf("%s: %s", what, why->text);
    if (text != NULL)
        text_printable(text);
    return strs_take(ret, text) ? ERR_OK : err_nomem(e);
}

static enum err_code take_entries(const struct dp_ck_data *d, struct dp_holdings *h, struct strs *ret_ignored,
                                  struct err *e)
{
    for (size_t i = 0; i < d->n_entries; i++) {
        const struct dp_ck_entry *x = &d->entries[i];
        struct err why = { 0 };
        char what[256];

        if (put_entry(h, d, x, &why) == ERR_OK)
            continue;
        snprintf(what, sizeof(what), "entry of pod %.64s, container %.64s, resource %.64s", x->pod_uid,
                 x->container, x->resource);
        if (ignored(ret_ignored, what, &why, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static enum err_code take_resources(const struct dp_ck_data *d, struct strs *resources,
                                    struct strs *ret_ignored, struct err *e)
{
    for (size_t i = 0; i < d->n_resources; i++) {
        struct err why = { 0 };

        if (!dp_resource_name_ok(d->resources[i].name)) {
            err_set(&why, ERR_INVALID, "no resource may have the name \"%.80s\"", d->resources[i].name);
            if (ignored(ret_ignored, "registered", &why, e) != ERR_OK)
                return e->code;
        } else if (!strs_add(resources, d->resources[i].name)) {
            return err_nomem(e);
        }
    }
    return ERR_OK;
}

enum err_code dp_checkpoint_read(const char *text, size_t n, struct dp_holdings *h, struct strs *resources,
                                 struct strs *ret_ignored, struct err *e)
{
    struct dp_ck_data d = { 0 };
    uint64_t sum = 0;
    enum err_code code = dp_ck_parse(text, n, &d, &sum, e);

    if (code == ERR_OK && sum != dp_ck_sum(&d))
        code = err_set(e, ERR_DATA_LOSS, "its checksum is %llu, but the data have %lu",
                       (unsigned long long)sum, (unsigned long)dp_ck_sum(&d));
    if (code == ERR_OK && h != NULL)
        code = take_entries(&d, h, ret_ignored, e);
    if (code == ERR_OK && resources != NULL)
        code = take_resources(&d, resources, ret_ignored, e);
    dp_ck_done(&d);
    return code != ERR_OK ? err_wrap(e, "checkpoint of devices") : ERR_OK;
}
