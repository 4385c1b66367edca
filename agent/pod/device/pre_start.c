/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pre_start - calls providers that prepare a container's devices before each of its starts. As in kubelet, a
 * provider that is not running is skipped: the container starts with the answer to Allocate.
 */
#include "agent/pod/device/internal.h"

#include <stdlib.h>
#include <string.h>

static void on_prepared(struct op *op, const struct err *result)
{
    struct device_ctr *own = op->owner;

    own->answered = true;
    own->outcome = *result;
    pod_wake(own->pod, "devices are prepared");
}

/* False: the provider does not want to be asked. */
static bool prepare(struct ctr *c, const struct device_want *w, struct err *e)
{
    struct device_ctr *own = device_ctr_of(c);
    const struct pod *p = c->pod;
    const struct dp_resource *r = dp_inventory_find(devices_inventory(p->node), w->resource);
    const struct dp_holding *h =
        dp_holdings_find(devices_holdings(p->node), p->uid, c->spec->name, w->resource);
    mem_auto const char **ids = NULL;

    if (h == NULL || r == NULL || r->provider == NULL || !r->options.pre_start)
        return false;
    ids = calloc(h->n_devices + 1, sizeof(*ids));
    if (ids == NULL) {
        err_nomem(e);
        return false;
    }
    for (size_t i = 0; i < h->n_devices; i++)
        ids[i] = h->devices[i].id;
    own->pre_start = (struct dp_ask){ 0 };
    own->pod = c->pod;
    r->provider->pre_start(r->provider, &own->pre_start, ids, h->n_devices, on_prepared, own);
    return true;
}

/* Continues with the resource at own->at. */
static enum err_code prepare_from(struct ctr *c, const struct device_want *v, size_t n, bool *ret_wait,
                                  struct err *e)
{
    struct device_ctr *own = device_ctr_of(c);
    size_t index = c->index, k = 0;

    for (size_t i = 0; i < n; i++) {
        if (v[i].ctr != index || k++ < own->at)
            continue;
        own->at = k;
        if (prepare(c, &v[i], e)) {
            *ret_wait = true;
            return ERR_OK;
        }
        if (e->code != ERR_OK)
            break;
    }
    own->at = 0; /* the next start begins with the first again */
    return e->code;
}

/* The want whose devices were prepared last. */
static const struct device_want *prepared(const struct ctr *c, const struct device_want *v, size_t n)
{
    size_t index = c->index, k = 0;

    for (size_t i = 0; i < n; i++)
        if (v[i].ctr == index && ++k == device_ctr_of(c)->at)
            return &v[i];
    return NULL;
}

/* A provider may have a new answer: device nodes of a USB stick that was plugged in again have new numbers.
 * The answer is on the disk before the container starts. */
static enum err_code take_answer(struct ctr *c, const struct device_want *w, struct err *e)
{
    struct pod *p = c->pod;
    const struct dp_ask *a = &device_ctr_of(c)->pre_start;
    const struct dp_holding *h =
        w != NULL ? dp_holdings_find(devices_holdings(p->node), p->uid, c->spec->name, w->resource) : NULL;
    struct dp_holding x;

    if (h == NULL || a->raw == NULL || (h->n_answer == a->n_raw && memcmp(h->answer, a->raw, a->n_raw) == 0))
        return ERR_OK;
    if (a->n_raw > DEVICE_ANSWER_MAX)
        return err_set(e, ERR_EXHAUSTED, "the answer for %s has %zu bytes, allowed are %d", w->resource,
                       a->n_raw, DEVICE_ANSWER_MAX);
    x = *h;
    x.answer = a->raw;
    x.n_answer = a->n_raw;
    if (dp_holdings_put(device_node(p->node)->holdings, &x, e) != ERR_OK)
        return e->code;
    device_of(p)->generation = dp_holdings_generation(devices_holdings(p->node));
    p->record_dirty = true;
    checkpoint_changed(p->node);
    return ERR_OK;
}

bool devices_preparing(const struct ctr *c)
{
    return op_live(&device_ctr_of(c)->pre_start.op);
}

enum err_code devices_pre_start(struct ctr *c, bool *ret_wait, struct err *e)
{
    struct device_ctr *own = device_ctr_of(c);
    mem_auto struct device_want *v = NULL;
    size_t n;

    *ret_wait = op_live(&own->pre_start.op);
    if (*ret_wait)
        return ERR_OK;
    if (own->answered) {
        own->answered = false;
        if (own->outcome.code != ERR_OK) {
            own->at = 0;
            return err_set(e, ERR_PRECONDITION, "device plugin PreStartContainer rpc failed with err: %.440s",
                           own->outcome.text);
        }
    }
    if (device_wants(c->pod, &v, &n, e) != ERR_OK || take_answer(c, prepared(c, v, n), e) != ERR_OK) {
        own->at = 0;
        return e->code;
    }
    device_drop_answer(&own->pre_start);
    return prepare_from(c, v, n, ret_wait, e);
}
