/* SPDX-License-Identifier: Apache-2.0 */
/* watch - clients that follow a kind: the changes since a resourceVersion, or everything there is and then
 * the changes; bookmarks; sendInitialEvents. */
#include "agent/kube/apiserver/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

struct api_watch {
    LIST_ENTRY(api_watch) all;
    struct kube_api *api;
    struct caller *caller;
    struct background_client turn;
    struct api_request request; /* its form */
    struct api_selection selection;
    json_t *first; /* objects of the first set, ADDED one by one; NULL: all were sent */
    size_t n_first_sent;
    uint64_t first_version; /* of the first set */
    json_t *error;          /* the Status that ends it */
    uint64_t next;          /* the number of the next change to check */
    uint64_t since, n_at;   /* of changes with smaller numbers than n_at, those up to version `since` are not
                               for it */
    uint64_t after;         /* and of later ones, those before this version */
    bool bookmarks, marks_first, bookmark_due, columns_sent, ending;
    uint64_t until_ms, bookmark_ms;
};

static const char added[] = "ADDED", modified[] = "MODIFIED", deleted[] = "DELETED";

static bool watch_failed(struct api_watch *w)
{
    caller_close(w->caller);
    return false;
}

static void watch_gone(struct caller *c)
{
    struct api_watch *w = c->job;

    background_withdraw(&w->api->turns, &w->turn);
    LIST_REMOVE(w, all);
    api_selection_done(&w->selection);
    json_decref(w->first);
    json_decref(w->error);
    free(w);
}

/* ---- events; each returns false if `w` is gone ---- */

static bool watch_send_text(struct api_watch *w, const struct buf *text)
{
    struct caller *c = w->caller;

    if (text->failed)
        caller_close(c);
    else
        caller_piece(c, text->p, text->n);
    return c->source != NULL;
}

/* Steals `object`; NULL: out of memory. */
static void watch_add_text(struct buf *text, const char *type, json_t *object)
{
    json_auto_t *event = object != NULL ? json_pack("{s:s, s:o}", "type", type, "object", object) : NULL;

    json_add_text(text, event, false, 0);
    buf_addc(text, '\n');
}

static bool watch_send(struct api_watch *w, const char *type, json_t *object)
{
    struct buf text = BUF_SECRET(SIZE_MAX - 1);
    bool alive;

    watch_add_text(&text, type, object);
    alive = watch_send_text(w, &text);
    buf_done(&text);
    return alive;
}

void api_told_forget(struct kube_api *a)
{
    buf_done(&a->told.text);
    a->told = (struct api_told){ .text = BUF_SECRET(SIZE_MAX - 1) };
}

static bool is_told(const struct api_told *t, const char *type, uint64_t change,
                    const struct api_kind_row *kind, const struct api_form_options *form)
{
    return t->type == type && t->change == change && t->kind == kind && !t->text.failed &&
           t->form.form == form->form && t->form.beta == form->beta && t->form.include == form->include &&
           t->form.no_columns == form->no_columns;
}

/* `change`: the number of one that many watches have to send; 0: none. */
static bool watch_send_object(struct api_watch *w, const char *type, json_t *object, uint64_t change)
{
    const struct api_request *r = &w->request;
    const struct api_form_options form = { .form = r->accept.form,
                                           .beta = r->accept.beta,
                                           .include = r->include,
                                           .no_columns = w->columns_sent,
                                           .now_ns = clock_wall_ns() };
    json_auto_t *status = NULL;
    struct api_told *told = &w->api->told;
    json_auto_t *own = NULL;

    w->columns_sent = true;
    if (change == 0 || !is_told(told, type, change, r->target.kind, &form)) {
        api_told_forget(w->api);
        told->type = change != 0 ? type : NULL;
        told->change = change;
        told->kind = r->target.kind;
        told->form = form;
        own = api_as_kind(r->target.kind, object);
        watch_add_text(&told->text, type,
                       own != NULL ? api_form_of(r->target.kind, own, &form, &status) : NULL);
    }
    return watch_send_text(w, &told->text);
}

/* The last one is sent shortly before the end, as by an apiserver. */
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
    json_t *meta = json_pack(
        "{s:o}", "resourceVersion",
        json_sprintf("%llu", (unsigned long long)(initial ? w->first_version : w->api->stock.version)));

    if (initial)
        json_object_set_new(meta, "annotations", json_pack("{s:s}", "k8s.io/initial-events-end", "true"));
    return json_pack("{s:s, s:o, s:o}", "kind", kind->kind, "apiVersion",
                     json_sprintf("%s%s%s", kind->group, kind->group[0] != '\0' ? "/" : "", kind->version),
                     "metadata", meta);
}

static bool watch_send_bookmark(struct api_watch *w, bool initial)
{
    const struct api_form_options form = { .form = w->request.accept.form,
                                           .beta = w->request.accept.beta,
                                           .include = API_INCLUDE_METADATA,
                                           .no_columns = w->columns_sent,
                                           .now_ns = clock_wall_ns() };
    json_auto_t *status = NULL;
    json_auto_t *bare = watch_bookmark(w, initial);

    w->bookmark_due = false;
    watch_next_bookmark(w);
    return watch_send(w, "BOOKMARK",
                      bare != NULL ? api_form_of(w->request.target.kind, bare, &form, &status) : NULL);
}

/* An object that begins or ceases to match is added or deleted for this client. */
static bool watch_send_change(struct api_watch *w, uint64_t number, const struct stock_change *change)
{
    bool was, is;
    json_auto_t *last = NULL;

    if (change->kind != stock_row(w->request.target.kind) ||
        (number < w->n_at ? change->version <= w->since : change->version < w->after))
        return true;
    was = change->old != NULL && api_selection_has(&w->selection, change->old);
    is = change->object != NULL && api_selection_has(&w->selection, change->object);
    if (is)
        return watch_send_object(w, was ? modified : added, change->object, number + 1);
    if (!was)
        return true;
    if (change->object == NULL)
        return watch_send_object(w, deleted, change->old, number + 1);
    /* As it was, with the version of the change: the apiserver does so. */
    last = json_deep_copy(change->old);
    if (last == NULL)
        return watch_failed(w);
    json_object_set_new(json_object_get(last, "metadata"), "resourceVersion",
                        json_sprintf("%llu", (unsigned long long)change->version));
    return watch_send_object(w, deleted, last, 0);
}

/* ---- sending ---- */

/* The next of the first set, and its end. */
static bool watch_send_first(struct api_watch *w)
{
    if (w->n_first_sent < json_array_size(w->first))
        return watch_send_object(w, added, json_array_get(w->first, w->n_first_sent++), 0);
    json_decref(w->first);
    w->first = NULL;
    return !w->marks_first || watch_send_bookmark(w, true);
}

static bool watch_end(struct api_watch *w)
{
    struct caller *c = w->caller;

    if (w->error != NULL && !watch_send(w, "ERROR", take_ptr(&w->error)))
        return false;
    c->source = NULL;
    watch_gone(c);
    caller_end(c);
    return false;
}

/* Sends the present events while the client reads, but lets others have their turn. False: `w` is gone. */
static bool watch_flush(struct api_watch *w)
{
    const struct stock *s = &w->api->stock;
    const uint64_t began = uv_hrtime();
    bool alive = true;

    while (alive && !w->caller->high) {
        const struct stock_change *change = stock_change_at(s, w->next);

        if (w->first != NULL)
            alive = watch_send_first(w);
        else if (change != NULL)
            alive = watch_send_change(w, w->next++, change);
        else if (w->next < stock_next(s))
            break; /* it is too late */
        else if (w->bookmark_due)
            alive = watch_send_bookmark(w, false);
        else if (w->ending)
            alive = watch_end(w);
        else
            return true;
        if (alive && uv_hrtime() - began > BACKGROUND_PIECE_NS) {
            background_ask(&w->api->turns, &w->turn);
            return true;
        }
    }
    if (!alive || w->next >= s->n_forgotten)
        return alive;
    log_info("a watch of the local API is ended: its client fell too far behind",
             F_STR("kind", w->request.target.kind->kind));
    return watch_failed(w); /* it begins again where it can */
}

static void watch_go_on(struct api_watch *w)
{
    struct kube_api *a = w->api;

    ERR_IGNORE(watch_flush(w));
    api_told_forget(a);
}

static void watch_drained(struct caller *c)
{
    watch_go_on(c->job);
}

static void watch_on_turn(struct background_client *t)
{
    watch_go_on((struct api_watch *)((char *)t - offsetof(struct api_watch, turn)));
}

static const struct caller_source watch_source = { .gone = watch_gone, .drained = watch_drained };

static json_t *watch_expired(uint64_t version, const struct stock *s)
{
    return api_status(410, "Expired", NULL, "too old resource version: %llu (%llu)",
                      (unsigned long long)version, (unsigned long long)s->forgotten);
}

/* ---- the beginning ---- */

static json_t *watch_all(const struct api_watch *w)
{
    size_t n = 0;
    mem_auto struct stock_object **all = stock_sorted(&w->api->stock, w->request.target.kind, &n);
    json_t *list = all != NULL ? json_array() : NULL;

    for (size_t i = 0; i < n && list != NULL; i++)
        if (api_selection_has(&w->selection, all[i]->object) &&
            json_array_append(list, all[i]->object) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

/* The part that is sent before future changes. False: out of memory. */
static bool watch_begin_with(struct api_watch *w, const struct api_watch_options *o)
{
    const struct stock *s = &w->api->stock;

    w->next = w->n_at = stock_next(s);
    w->after = o->version;
    if (o->version != 0 && !o->initial && o->version < s->forgotten) {
        w->error = watch_expired(o->version, s);
        w->ending = true;
        return w->error != NULL;
    }
    if (!o->initial && o->initial_given && o->version == 0)
        return true; /* from now on */
    if (!o->initial && o->version != 0) {
        w->next = s->n_forgotten;
        w->since = o->version;
        return true;
    }
    w->marks_first = o->initial && o->bookmarks;
    w->first_version = s->version;
    w->first = watch_all(w);
    return w->first != NULL;
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
    if (w == NULL || api_selection_read(&w->selection, &c->parser.request, &r->target, &e) != ERR_OK) {
        if (e.code == ERR_OK)
            err_nomem(&e);
        api_answer_err(c, &e);
        free(w);
        return;
    }
    w->api = r->api;
    w->caller = c;
    w->turn = (struct background_client){ .run = watch_on_turn };
    w->request = *r;
    w->bookmarks = o.bookmarks;
    w->until_ms = clock_mono_ms() + o.timeout_s * 1000;
    watch_next_bookmark(w);
    LIST_INSERT_HEAD(&r->api->watches, w, all);
    c->state = CALLER_SERVED;
    c->silent_ms = (o.timeout_s + 60) * 1000;
    c->source = &watch_source;
    c->job = w;
    caller_begin(c, 200, "application/json", -1);
    if (c->source == NULL)
        return; /* it closed, and `w` is gone */
    if (watch_begin_with(w, &o))
        watch_go_on(w);
    else
        watch_failed(w);
}

/* ---- later ---- */

void api_watch_notify(struct kube_api *a)
{
    struct api_watch *w, *next;

    for (w = LIST_FIRST(&a->watches); w != NULL; w = next) {
        next = LIST_NEXT(w, all);
        ERR_IGNORE(watch_flush(w));
    }
    api_told_forget(a);
}

void api_watch_tick(struct kube_api *a)
{
    const uint64_t now = clock_mono_ms();
    struct api_watch *w, *next;

    for (w = LIST_FIRST(&a->watches); w != NULL; w = next) {
        next = LIST_NEXT(w, all);
        w->ending = w->ending || now >= w->until_ms;
        w->bookmark_due = w->bookmark_due || (w->bookmarks && now >= w->bookmark_ms);
        ERR_IGNORE(watch_flush(w));
    }
    api_told_forget(a);
}
