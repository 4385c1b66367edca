/* SPDX-License-Identifier: Apache-2.0 */
/* device_show - a pod's devices for people and the API. */
#include "agent/pod/core/explain_step.h"
#include "agent/pod/device/internal.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 16 /* ids of a resource in an explanation */

/* In kubelet a device stays Healthy after its provider or the device is gone. */
static enum dp_health health_of(const struct dp_resource *r, const char *id)
{
    const struct dp_device *d;

    if (r == NULL || r->provider == NULL || !r->listed)
        return DP_HEALTH_UNKNOWN;
    d = dp_resource_device(r, id);
    return d != NULL && d->healthy ? DP_HEALTHY : DP_UNHEALTHY;
}

static json_t *resource_json(const struct pod *p, const struct dp_holding *x)
{
    const struct dp_resource *r = dp_inventory_find(devices_inventory(p->node), x->resource);
    json_t *o = json_object(), *list = json_array();

    for (size_t i = 0; i < x->n_devices; i++) {
        json_t *d = json_object();
        json_put_str(d, "resourceID", x->devices[i].id);
        json_put_str(d, "health", dp_health_name(health_of(r, x->devices[i].id)));
        json_array_append_new(list, d);
    }
    json_put_str(o, "name", x->resource);
    json_object_set_new(o, "resources", list);
    return o;
}

/* The holding for this want; NULL: there is none, or only a reservation. */
static const struct dp_holding *holding_of(const struct pod *p, const struct device_want *w)
{
    const struct dp_holding *x =
        dp_holdings_find(devices_holdings(p->node), p->uid, p->ctrs[w->ctr]->spec->name, w->resource);

    return x != NULL && x->answer != NULL ? x : NULL;
}

json_t *device_health_json(const struct ctr *c)
{
    mem_auto struct device_want *v = NULL;
    json_t *list;
    size_t n;

    if (device_wants(c->pod, &v, &n, ERR_IGNORED) != ERR_OK || n == 0)
        return NULL;
    list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct dp_holding *x = c->pod->ctrs[v[i].ctr] == c ? holding_of(c->pod, &v[i]) : NULL;
        if (x != NULL)
            json_array_append_new(list, resource_json(c->pod, x));
    }
    if (json_array_size(list) > 0)
        return list;
    json_decref(list);
    return NULL;
}

json_t *devices_status(const struct ctr *c)
{
    json_t *last = device_ctr_of(c)->last;

    return last != NULL ? json_incref(last) : device_health_json(c);
}

/* ---- explain ---- */

static void add_holding(const struct pod *p, const struct dp_holding *x, struct buf *b)
{
    const struct dp_resource *r = dp_inventory_find(devices_inventory(p->node), x->resource);

    buf_addf(b, "%s%s: %s", b->n > 0 ? "; " : "", x->container, x->resource);
    for (size_t i = 0; i < x->n_devices && i < SHOWN_MAX; i++) {
        enum dp_health health = health_of(r, x->devices[i].id);
        buf_addf(b, " %.100s", x->devices[i].id);
        if (health != DP_HEALTHY)
            buf_addf(b, " (%s)", dp_health_name(health));
    }
    if (x->n_devices > SHOWN_MAX)
        buf_addf(b, " and %zu more", x->n_devices - SHOWN_MAX);
}

static void add_ignored(const struct pod *p, const struct device_want *w, struct buf *b)
{
    const struct dp_resource *r = dp_inventory_find(devices_inventory(p->node), w->resource);

    buf_addf(b, "%s%s: %s ", b->n > 0 ? "; " : "", p->ctrs[w->ctr]->spec->name, w->resource);
    if (device_offer(r) == OFFER_NUMBER)
        buf_addf(b, "(%lld of the node's number, no devices)", (long long)w->count);
    else
        buf_adds(b, "is ignored: nothing offered it when the pod was admitted");
}

static void explain_held(const struct pod *p, const struct device_want *v, size_t n, json_t *steps)
{
    buf_auto text = BUF_INIT(16 * 1024);

    for (size_t i = 0; i < n; i++) {
        const struct dp_holding *x = holding_of(p, &v[i]);
        if (x != NULL)
            add_holding(p, x, &text);
        else if (v[i].count > 0)
            add_ignored(p, &v[i], &text);
    }
    text_printable(text.p);
    explain_step(steps, "devices", "done", 0, text.p, 0);
}

static void explain_conflicts(const struct pod *p, json_t *steps)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct arena arena = { 0 };
        struct dp_answer merged;
        struct strs conflicts = { 0 };
        if (device_gifts_of(p->ctrs[i], &arena, &merged, &conflicts, ERR_IGNORED) == ERR_OK)
            for (size_t k = 0; k < conflicts.n && k < SHOWN_MAX; k++) {
                text_printable(conflicts.v[k]);
                explain_step(steps, "conflict of devices", "done", 0, conflicts.v[k], 0);
            }
        strs_done(&conflicts);
        arena_done(&arena);
    }
}

void devices_explain(const struct pod *p, json_t *steps)
{
    const struct device_pod *part = device_of(p);
    mem_auto struct device_want *v = NULL;
    size_t n;

    if (device_wants(p, &v, &n, ERR_IGNORED) != ERR_OK || n == 0)
        return;
    switch (part->state) {
    case DEVICES_WAITING:
    case DEVICES_ASKING:
        explain_step(steps, "devices", part->state == DEVICES_ASKING ? "running" : "waiting",
                     clock_boot_to_wall_ns(part->wait_began), p->message, 0);
        return;
    case DEVICES_HELD:
        explain_held(p, v, n, steps);
        explain_conflicts(p, steps);
        if (device_node(p->node)->checkpoint.failing)
            explain_step(steps, "checkpoint of devices", "failed", 0, device_node(p->node)->checkpoint.error,
                         0);
        return;
    case DEVICES_UNASKED:
    case DEVICES_REFUSED:
    case DEVICES_RELEASED:
        return;
    }
}
