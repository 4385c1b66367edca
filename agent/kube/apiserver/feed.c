/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed - the daemon's objects on their way into the stock: one connection of the status socket, a line an
 * event. When it ends it is opened again, and all objects are sent again; an object that is then missing is
 * gone.
 */
#include "agent/kube/apiserver/internal.h"

#include "agent/api/manifest/decode.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

static void feed_open(struct kube_api *a);

static void feed_on_again(uv_timer_t *timer)
{
    feed_open(timer->data);
}

static void feed_again(struct kube_api *a)
{
    upstream_close(a->upstream);
    a->upstream = NULL;
    buf_wipe(&a->line);
    if (!a->closing)
        uv_timer_start(&a->again, feed_on_again, API_FEED_AGAIN_MS, 0);
}

/* ---- events ---- */

/* As it was last; `last` of an object that only a manifest described lacks the node's additions. */
static void feed_remove(struct kube_api *a, struct stock_object *o, uint64_t version, json_t *last)
{
    str_auto namespace_ = strdup(o->kind->id == API_KIND_NAMESPACE ? o->name : o->namespace_);
    json_auto_t *whole = NULL;

    if (api_namespace_stays(a, o))
        return;
    if (json_str(json_object_get(last, "metadata"), "uid") == NULL) {
        whole = json_deep_copy(o->object);
        last = whole;
        json_object_set_new(json_object_get(whole, "metadata"), "resourceVersion",
                            json_sprintf("%llu", (unsigned long long)version));
    }
    stock_remove(&a->stock, o, version, last);
    api_changed(a);
    if (namespace_ != NULL)
        api_namespace_check(a, namespace_);
}

/* Objects that the first set did not have, except those that node.c makes. */
static void feed_sweep(struct kube_api *a, uint64_t version)
{
    struct stock_object *o, *tmp;

    HASH_ITER (hh, a->stock.objects, o, tmp)
        if (o->set != a->set && o->set != 0)
            stock_remove(&a->stock, o, version, NULL);
    api_changed(a);
    api_namespaces_sweep(a);
}

static void feed_take(struct kube_api *a, const char *type, json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    const char *kind = json_str(object, "kind"), *api_version = json_str(object, "apiVersion"),
               *version = json_str(meta, "resourceVersion"), *namespace_ = json_str(meta, "namespace"),
               *name = json_str(meta, "name");
    uint64_t number = version != NULL ? strtoull(version, NULL, 10) : 0;
    const struct stock_change *change = NULL;
    const struct api_kind_row *row;
    struct stock_object *o;

    if (type != NULL && strcmp(type, "BOOKMARK") == 0) {
        if (number > a->stock.version)
            a->stock.version = number;
        if (a->stock.forgotten == 0) /* changes before the first set are not known */
            a->stock.forgotten = a->stock.version;
        feed_sweep(a, number);
        a->set_complete = true;
        api_namespaces_begin(a);
        api_lease_renew(a);
        api_ready(a);
        return;
    }
    if (str_eq(kind, "Node") && str_eq(api_version, "v1")) { /* a client has written it */
        api_node_take(a, object);
        return;
    }
    if (type != NULL && strcmp(type, "DELETED") == 0) {
        row = api_version != NULL && kind != NULL ? api_kind_of_object(api_version, kind) : NULL;
        o = row != NULL && name != NULL
                ? stock_find(&a->stock, row, namespace_ != NULL ? namespace_ : "", name)
                : NULL;
        if (o != NULL && number >= o->version) /* otherwise it was made again meanwhile */
            feed_remove(a, o, number, object);
        return;
    }
    api_object_complete(object);
    if (!stock_put(&a->stock, object, a->set, &change))
        log_debug("an object that the local API does not know", F_STR("kind", kind));
    if (change != NULL)
        api_changed(a);
    if (change != NULL && namespace_ != NULL && !str_eq(kind, "Event"))
        api_namespace_need(a, namespace_);
}

static void feed_line(struct kube_api *a, const char *line, size_t n)
{
    json_auto_t *event = NULL;
    struct err e = { 0 };
    json_t *object;

    if (json_parse(line, n, API_LINE_MAX, &event, "event", &e) != ERR_OK) {
        log_warn("the local API cannot read the daemon's data", F_ERR(&e));
        return;
    }
    object = json_object_get(event, "object");
    feed_take(a, json_str(event, "type"), object);
    if (str_eq(json_str(object, "kind"), "Secret") && object->refcount == 1)
        api_json_wipe(object); /* it was not taken */
}

/* ---- the connection ---- */

static void feed_on_head(int http, const char *type, int64_t length, bool upgraded, void *owner)
{
    (void)type;
    (void)length;
    (void)upgraded;
    (void)owner;
    if (http != 200)
        log_debug("the daemon does not tell its objects yet", F_I64("code", http));
}

static void feed_on_body(const char *p, size_t n, void *owner)
{
    struct kube_api *a = owner;
    const char *end;
    size_t used = 0;

    buf_add(&a->line, p, n);
    if (a->line.failed) {
        log_warn("the local API ignores an object: it is too large, or memory is exhausted");
        feed_again(a);
        return;
    }
    while ((end = memchr(a->line.p + used, '\n', a->line.n - used)) != NULL) {
        feed_line(a, a->line.p + used, (size_t)(end - (a->line.p + used)));
        used = (size_t)(end - a->line.p) + 1;
    }
    buf_remove_front(&a->line, used);
}

static void feed_on_end(const struct err *failure, void *owner)
{
    if (failure != NULL)
        log_debug("the daemon's objects are asked for again", F_ERR(failure));
    feed_again(owner);
}

static const struct upstream_ops feed_ops = { .head = feed_on_head,
                                              .body = feed_on_body,
                                              .end = feed_on_end };

static void feed_open(struct kube_api *a)
{
    struct buf request = BUF_INIT(256);
    struct err e = { 0 };

    a->set++;
    a->set_complete = false;
    buf_init_secret(&a->line, API_LINE_MAX);
    buf_adds(&request, "GET /store HTTP/1.1\r\nHost: coracle\r\n\r\n");
    a->upstream = upstream_open(a->o.server, &request, &feed_ops, a, &e);
    if (a->upstream == NULL) {
        log_debug("the daemon's objects cannot be asked for", F_ERR(&e));
        feed_again(a);
    }
}

void api_feed_start(struct kube_api *a)
{
    a->again.data = a;
    feed_open(a);
}

void api_feed_stop(struct kube_api *a)
{
    /* kube_server_close() closed the connection. */
    a->upstream = NULL;
    buf_wipe(&a->line);
}
