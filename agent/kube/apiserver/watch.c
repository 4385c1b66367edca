/* SPDX-License-Identifier: Apache-2.0 */
/* watch - clients that follow a kind: the changes since a resourceVersion, or everything there is and then
 * the changes; bookmarks; sendInitialEvents. */
#include "agent/kube/apiserver/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

struct api_watch {
    LIST_ENTRY(api_watch) all;
    struct kube_api *api;
    struct caller *caller;
    struct api_request request; /* its form */
    struct api_selection selection;
    json_t *pending; /* texts of events, while the client does not read */
    size_t next;
    bool bookmarks, columns_sent, ending;
    uint64_t until_ms, bookmark_ms, told,
        after; /* told: the last version that was sent; after: nothing up to it is */
};

static void watch_gone(struct caller *c)
{
    struct api_watch *w = c->job;

    LIST_REMOVE(w, all);
    api_selection_done(&w->selection);
    json_decref(w->pending);
    free(w);
}

/* Sends what waits while the client reads. May free `w`. */
static void watch_flush(struct api_watch *w)
{
    struct caller *c = w->caller;

    while (!c->high && w->next < json_array_size(w->pending)) {
        const json_t *text = json_array_get(w->pending, w->next++);

        caller_piece(c, json_string_value(text), json_string_length(text));
        if (c->source == NULL)
            return;
    }
    if (w->next == json_array_size(w->pending)) {
        json_array_clear(w->pending);
        w->next = 0;
        if (w->ending) {
            c->source = NULL;
            watch_gone(c);
            caller_end(c);
        }
    } else if (json_array_size(w->pending) - w->next > API_PENDING_MAX) {
        caller_close(c); /* it begins again where it can */
    }
}

static void watch_drained(struct caller *c)
{
    watch_flush(c->job);
}

static const struct caller_source watch_source = { .gone = watch_gone, .drained = watch_drained };

/* ---- events ---- */

/* Steals `object`; false: out of memory. */
static bool watch_add(struct api_watch *w, const char *type, json_t *object)
{
    json_auto_t *event = json_pack("{s:s, s:o}", "type", type, "object", object);
    struct buf text = BUF_INIT(SIZE_MAX - 1);
    bool ok;

    json_add_text(&text, event, false, 0);
    buf_addc(&text, '\n');
    ok =
        event != NULL && !text.failed && json_array_append_new(w->pending, json_stringn(text.p, text.n)) == 0;
    buf_wipe(&text);
    return ok;
}

static bool watch_add_object(struct api_watch *w, const char *type, json_t *object, uint64_t version)
{
    const struct api_request *r = &w->request;
    const struct api_form_options form = { .form = r->accept.form,
                                           .beta = r->accept.beta,
                                           .include = r->include,
                                           .no_columns = w->columns_sent,
                                           .now_ns = clock_wall_ns() };
    json_auto_t *status = NULL;
    json_auto_t *own = api_as_kind(r->target.kind, object);
    json_t *shown = own != NULL ? api_form_of(r->target.kind, own, &form, &status) : NULL;

    w->columns_sent = true;
    if (version > w->told)
        w->told = version;
    return shown != NULL && watch_add(w, type, shown);
}

/* The last one comes shortly before the end, as the apiserver's. */
static void watch_next_bookmark(struct api_watch *w)
{
    const uint64_t now = clock_mono_ms(), last = w->until_ms - API_BOOKMARK_LAST_MS;

    w->bookmark_ms = now + API_BOOKMARK_MS;
    if (w->until_ms < API_BOOKMARK_LAST_MS || now >= last)
        w->bookmark_ms = UINT64_MAX;
    else if (last < w->bookmark_ms)
        w->bookmark_ms = last;
}

static json_t *watch_bookmark(const struct api_watch *w, bool initial)
{
    const struct api_kind_row *kind = w->request.target.kind;
    json_t *meta = json_pack("{s:o}", "resourceVersion",
                             json_sprintf("%llu", (unsigned long long)w->api->stock.version));

    if (initial)
        json_object_set_new(meta, "annotations", json_pack("{s:s}", "k8s.io/initial-events-end", "true"));
    return json_pack("{s:s, s:o, s:o}", "kind", kind->kind, "apiVersion",
                     json_sprintf("%s%s%s", kind->group, kind->group[0] != '\0' ? "/" : "", kind->version),
                     "metadata", meta);
}

static bool watch_add_bookmark(struct api_watch *w, bool initial)
{
    const struct api_form_options form = { .form = w->request.accept.form,
                                           .beta = w->request.accept.beta,
                                           .include = API_INCLUDE_METADATA,
                                           .no_columns = w->columns_sent,
                                           .now_ns = clock_wall_ns() };
    json_auto_t *status = NULL;
    json_auto_t *bare = watch_bookmark(w, initial);
    json_t *shown = bare != NULL ? api_form_of(w->request.target.kind, bare, &form, &status) : NULL;

    watch_next_bookmark(w);
    return shown != NULL && watch_add(w, "BOOKMARK", shown);
}

/* An object that begins or ceases to match is added or deleted for this client. */
static bool watch_add_change(struct api_watch *w, const struct stock_change *change)
{
    bool was, is;
    json_auto_t *last = NULL;

    if (change->kind != stock_row(w->request.target.kind) || change->version < w->after)
        return true;
    was = change->old != NULL && api_selection_has(&w->selection, change->old);
    is = change->object != NULL && api_selection_has(&w->selection, change->object);
    if (is)
        return watch_add_object(w, was ? "MODIFIED" : "ADDED", change->object, change->version);
    if (!was)
        return true;
    if (change->object == NULL)
        return watch_add_object(w, "DELETED", change->old, change->version);
    /* As it was, with the version of the change: the apiserver does so. */
    last = json_deep_copy(change->old);
    json_object_set_new(json_object_get(last, "metadata"), "resourceVersion",
                        json_sprintf("%llu", (unsigned long long)change->version));
    return watch_add_object(w, "DELETED", last, change->version);
}

static bool watch_add_all(struct api_watch *w)
{
    size_t n = 0;
    mem_auto struct stock_object **all = stock_sorted(&w->api->stock, w->request.target.kind, &n);
    bool ok = all != NULL;

    for (size_t i = 0; i < n && ok; i++)
        if (api_selection_has(&w->selection, all[i]->object))
            ok = watch_add_object(w, "ADDED", all[i]->object, all[i]->version);
    return ok;
}

static bool watch_add_since(struct api_watch *w, uint64_t version)
{
    const struct stock *s = &w->api->stock;
    bool ok = true;

    for (size_t i = 0; i < s->n_changes && ok; i++) {
        const struct stock_change *change = &s->changes[(s->first + i) % API_CHANGES_MAX];

        if (change->version > version)
            ok = watch_add_change(w, change);
    }
    return ok;
}

static json_t *watch_expired(uint64_t version, const struct stock *s)
{
    return api_status(410, "Expired", NULL, "too old resource version: %llu (%llu)",
                      (unsigned long long)version, (unsigned long long)s->forgotten);
}

/* ---- the beginning ---- */

static bool watch_first(struct api_watch *w, const struct api_watch_options *o)
{
    if (o->initial)
        return watch_add_all(w) && (!o->bookmarks || watch_add_bookmark(w, true));
    if (o->initial_given && o->version == 0)
        return true; /* from now on */
    return o->version != 0 ? watch_add_since(w, o->version) : watch_add_all(w);
}

void api_watch_begin(const struct api_request *r)
{
    struct caller *c = r->caller;
    struct api_watch_options o;
    json_t *status;
    struct api_watch *w;
    struct err e = { 0 };

    if (r->accept.yaml)
        status = api_status(406, "NotAcceptable", NULL,
                            "only the following media types are accepted: application/json;stream=watch");
    else
        status = api_watch_options_read(&c->parser.request, &o);
    if (status != NULL) {
        api_answer_status(c, status);
        return;
    }
    w = calloc(1, sizeof(*w));
    if (w == NULL || (w->pending = json_array()) == NULL ||
        api_selection_read(&w->selection, &c->parser.request, &r->target, &e) != ERR_OK) {
        if (e.code == ERR_OK)
            err_nomem(&e);
        api_answer_err(c, &e);
        if (w != NULL)
            json_decref(w->pending);
        free(w);
        return;
    }
    w->api = r->api;
    w->caller = c;
    w->request = *r;
    w->bookmarks = o.bookmarks;
    w->until_ms = clock_mono_ms() + o.timeout_s * 1000;
    watch_next_bookmark(w);
    w->told = r->api->stock.version;
    w->after = o.version;
    LIST_INSERT_HEAD(&r->api->watches, w, all);
    c->state = CALLER_SERVED;
    c->silent_ms = (o.timeout_s + 60) * 1000;
    caller_begin(c, 200, "application/json", -1);
    if (c->state == CALLER_CLOSING) {
        c->job = w;
        watch_gone(c);
        return;
    }
    c->source = &watch_source;
    c->job = w;
    if (o.version != 0 && !o.initial && o.version < r->api->stock.forgotten) {
        w->ending = true;
        if (!watch_add(w, "ERROR", watch_expired(o.version, &r->api->stock)))
            caller_close(c);
        else
            watch_flush(w);
    } else if (!watch_first(w, &o)) {
        caller_close(c);
    } else {
        watch_flush(w);
    }
}

/* ---- later ---- */

void api_watch_tell(struct kube_api *a, const struct stock_change *change)
{
    struct api_watch *w, *next;

    for (w = LIST_FIRST(&a->watches); w != NULL; w = next) {
        next = LIST_NEXT(w, all);
        if (w->ending)
            continue;
        if (watch_add_change(w, change))
            watch_flush(w);
        else
            caller_close(w->caller);
    }
}

void api_watch_tick(struct kube_api *a)
{
    const uint64_t now = clock_mono_ms();
    struct api_watch *w, *next;

    for (w = LIST_FIRST(&a->watches); w != NULL; w = next) {
        next = LIST_NEXT(w, all);
        if (w->ending)
            continue;
        if (now >= w->until_ms) {
            w->ending = true;
            watch_flush(w);
        } else if (w->bookmarks && now >= w->bookmark_ms) {
            if (watch_add_bookmark(w, false))
                watch_flush(w);
            else
                caller_close(w->caller);
        }
    }
}
