/* SPDX-License-Identifier: Apache-2.0 */
/* list - objects of a kind, and one of them. */
#include "agent/kube/apiserver/internal.h"

#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

struct page {
    uint64_t limit;   /* 0: none */
    uint64_t version; /* of the first page; 0: this is it */
    char *after;      /* "namespace/name": the last object of the page before; NULL: this is the first page */
};

/* ---- limit and continue ---- */

#define EXPIRED                                                                                              \
    "The provided continue parameter is too old to display a consistent list result. You can start a new "   \
    "list without the continue parameter, or use the continue token in this response to retrieve the "       \
    "remainder of the results. Continuing with the provided token results in an inconsistent list - "        \
    "objects that were created, modified, or deleted between the time the first chunk was returned and now " \
    "may show up in the list."

/* base64 of {"v":"meta.k8s.io/v1","rv":N,"start":"namespace/name"}; rv -1: the present objects. */
static char *page_token(int64_t version, const char *after)
{
    json_auto_t *o = json_pack("{s:s, s:I, s:o}", "v", "meta.k8s.io/v1", "rv", (json_int_t)version, "start",
                               json_string_of(after));
    mem_auto char *text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
    struct buf token = BUF_INIT(8192);

    if (text != NULL)
        base64_add(&token, text, strlen(text));
    return text != NULL && !token.failed ? buf_detach(&token) : NULL;
}

/* NULL: *p has the token's members; otherwise the Status. */
static json_t *page_continue(struct page *p, const struct api_request *r, const char *token)
{
    const struct stock *s = &r->api->stock;
    json_auto_t *o = NULL;
    mem_auto char *again = NULL;
    unsigned char text[1024];
    const char *start;
    size_t n = strlen(token);
    json_int_t version;

    if (BASE64_DECODED_MAX(n) > sizeof(text) || !base64_decode(token, n, text, &n) ||
        json_parse((const char *)text, n, sizeof(text), &o, "continue", ERR_IGNORED) != ERR_OK ||
        !str_eq(json_str(o, "v"), "meta.k8s.io/v1") || (start = json_str(o, "start")) == NULL ||
        strchr(start, '/') == NULL || (version = json_int(o, "rv", 0)) == 0 || version < -1)
        return api_status(400, "BadRequest", NULL, "invalid continue token: continue key is not valid");
    if (version > 0 && (uint64_t)version < s->forgotten) {
        json_t *status = api_status(410, "Expired", NULL, "%s", EXPIRED);

        again = page_token(-1, start);
        if (status != NULL && again != NULL)
            json_object_set_new(json_object_get(status, "metadata"), "continue", json_string(again));
        return status;
    }
    p->version = version > 0 ? (uint64_t)version : s->version;
    p->after = strdup(start);
    return p->after != NULL ? NULL : api_status(500, NULL, NULL, "out of memory");
}

/* NULL: the parameter is valid, and the version exists. */
static json_t *page_read(struct page *p, const struct api_request *r)
{
    const struct stock *s = &r->api->stock;
    struct api_list_options o;
    json_t *status = api_list_options_read(&r->caller->parser.request, &o);

    if (status != NULL)
        return status;
    p->limit = o.limit;
    if (o.token != NULL)
        return page_continue(p, r, o.token);
    if (o.version > s->version)
        return api_version_too_large(o.version, s);
    if (o.exact && !stock_is_as_at(s, r->target.kind, o.version))
        return api_status(410, "Expired", NULL, "The resourceVersion for the provided list is too old.");
    if (o.exact)
        p->version = o.version;
    return NULL;
}

static bool page_is_behind(const struct page *p, const struct stock_object *o)
{
    const char *slash = p->after != NULL ? strchr(p->after, '/') : NULL;
    size_t n = slash != NULL ? (size_t)(slash - p->after) : 0;
    int order;

    if (slash == NULL)
        return true;
    order = strncmp(o->namespace_, p->after, n);
    if (order == 0 && o->namespace_[n] != '\0')
        order = 1;
    return order > 0 || (order == 0 && strcmp(o->name, slash + 1) > 0);
}

/* ---- the list ---- */

/* As in an apiserver, the list contains the kind of its objects. */
static bool list_add(json_t *items, const struct api_request *r, json_t *object)
{
    json_t *own = api_as_kind(r->target.kind, object), *bare;

    if (own == NULL || r->accept.form != API_FORM_OBJECT)
        return json_array_append_new(items, own) == 0;
    bare = json_copy(own);
    json_decref(own);
    if (bare != NULL) {
        ERR_IGNORE(json_object_del(bare, "kind"));
        ERR_IGNORE(json_object_del(bare, "apiVersion"));
    }
    return json_array_append_new(items, bare) == 0;
}

/* Steals `items`. */
static json_t *list_object(const struct api_request *r, uint64_t version, const char *token, size_t left,
                           json_t *items)
{
    const struct api_kind_row *kind = r->target.kind;
    json_t *meta = json_pack("{s:o}", "resourceVersion", json_sprintf("%llu", (unsigned long long)version));

    if (token != NULL)
        json_object_set_new(meta, "continue", json_string(token));
    if (token != NULL && left > 0)
        json_object_set_new(meta, "remainingItemCount", json_integer((json_int_t)left));
    return json_pack("{s:o, s:o, s:o, s:o}", "kind", json_sprintf("%sList", kind->kind), "apiVersion",
                     json_sprintf("%s%s%s", kind->group, kind->group[0] != '\0' ? "/" : "", kind->version),
                     "metadata", meta, "items", items);
}

static json_t *list_make(const struct api_request *r, const struct page *p, const struct api_selection *s)
{
    uint64_t version = p->version != 0 ? p->version : r->api->stock.version;
    json_t *items = json_array();
    mem_auto char *token = NULL;
    size_t n = 0, i, left = 0;
    mem_auto struct stock_object **all = stock_sorted(&r->api->stock, r->target.kind, &n);
    bool failed = items == NULL || all == NULL;
    const struct stock_object *last = NULL;

    for (i = 0; i < n && !failed; i++) {
        if (!page_is_behind(p, all[i]) || !api_selection_has(s, all[i]->object))
            continue;
        if (p->limit != 0 && json_array_size(items) == p->limit) {
            left++;
            continue;
        }
        failed = !list_add(items, r, all[i]->object);
        last = all[i];
    }
    if (left > 0 && last != NULL) {
        str_auto after = str_printf("%s/%s", last->namespace_, last->name);

        failed = after == NULL || (token = page_token((int64_t)version, after)) == NULL;
    }
    if (failed) {
        json_decref(items);
        return NULL;
    }
    /* Of a selection the rest is not counted, as in the apiserver. */
    return list_object(r, version, token, s->labels == NULL && s->n_fields == 0 ? left : 0, items);
}

json_t *api_list_of(const struct api_request *r, json_t **ret_status)
{
    struct api_selection s = { 0 };
    struct page p = { 0 };
    struct err e = { 0 };
    json_t *list = NULL;

    if (api_selection_read(&s, &r->caller->parser.request, &r->target, &e) != ERR_OK)
        *ret_status = e.code == ERR_INVALID ? api_status(400, "BadRequest", NULL, "%s", e.text)
                                            : api_status(500, "InternalError", NULL, "%s", e.text);
    else if ((*ret_status = page_read(&p, r)) == NULL)
        list = list_make(r, &p, &s);
    api_selection_done(&s);
    free(p.after);
    return list;
}

void api_list(const struct api_request *r)
{
    json_t *status = NULL, *list = api_list_of(r, &status);

    if (status != NULL)
        api_answer_status(r->caller, status);
    else
        api_answer_list(r, list);
}

void api_get(const struct api_request *r)
{
    const struct stock *s = &r->api->stock;
    const struct stock_object *o = stock_find(s, r->target.kind, r->target.namespace, r->target.name);
    uint64_t version;
    json_t *status = api_version_read(&r->caller->parser.request, false, &version);

    if (status == NULL && version > s->version)
        status = api_version_too_large(version, s);
    if (status != NULL)
        api_answer_status(r->caller, status);
    else if (o == NULL)
        api_not_found(r);
    else
        api_answer_value(r, 200, api_as_kind(r->target.kind, o->object));
}
