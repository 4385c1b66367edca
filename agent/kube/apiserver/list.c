/* SPDX-License-Identifier: Apache-2.0 */
/* list - objects of a kind, and one of them. */
#include "agent/kube/apiserver/internal.h"

#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/parse.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

struct page {
    uint64_t limit;   /* 0: none */
    uint64_t version; /* of the first page; 0: this is it */
    char *after;      /* "namespace/name": the last object of the page before; NULL: this is the first page */
};

/* ---- limit and continue ---- */

/* The token: base64 of {"v":"1","rv":N,"start":"namespace/name"}. False: it cannot be used. */
static bool page_continue(struct page *p, const char *token)
{
    json_auto_t *o = NULL;
    unsigned char text[1024];
    const char *start;
    size_t n = strlen(token);

    if (BASE64_DECODED_MAX(n) > sizeof(text) || !base64_decode(token, n, text, &n) ||
        json_parse((const char *)text, n, sizeof(text), &o, "continue", ERR_IGNORED) != ERR_OK)
        return false;
    start = json_str(o, "start");
    p->version = (uint64_t)json_int(o, "rv", 0);
    p->after = start != NULL ? strdup(start) : NULL;
    return p->after != NULL && p->version != 0;
}

static char *page_token(uint64_t version, const struct stock_object *last)
{
    json_auto_t *o = json_pack("{s:s, s:I, s:o}", "v", "meta.k8s.io/v1", "rv", (json_int_t)version, "start",
                               json_sprintf("%s/%s", last->namespace_, last->name));
    mem_auto char *text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
    struct buf token = BUF_INIT(8192);

    if (text != NULL)
        base64_add(&token, text, strlen(text));
    return text != NULL && !token.failed ? buf_detach(&token) : NULL;
}

/* False: the request was answered. */
static bool page_read(struct page *p, const struct api_request *r)
{
    const struct http_request *http = &r->caller->parser.request;
    const char *limit = http_param(http, "limit"), *token = http_param(http, "continue"),
               *version = http_param(http, "resourceVersion"),
               *match = http_param(http, "resourceVersionMatch");
    struct err e = { 0 };
    uint64_t number = 0;

    if (limit != NULL && limit[0] != '\0' &&
        parse_u64(limit, 0, INT64_MAX, &p->limit, "limit", &e) != ERR_OK) {
        api_answer_err(r->caller, &e);
        return false;
    }
    if (version != NULL && version[0] != '\0' &&
        parse_u64(version, 0, INT64_MAX, &number, "resourceVersion", &e) != ERR_OK) {
        api_answer_status(r->caller,
                          api_status(400, "BadRequest", NULL,
                                     "resourceVersion: Invalid value: \"%.64s\": strconv.ParseUint: "
                                     "parsing \"%.64s\": invalid syntax",
                                     version, version));
        return false;
    }
    if (token != NULL && token[0] != '\0') {
        if (!page_continue(p, token)) {
            api_answer_status(r->caller, api_status(400, "BadRequest", NULL, "continue key is not valid"));
            return false;
        }
        if (p->version < r->api->stock.forgotten) {
            api_answer_status(
                r->caller,
                api_status(
                    410, "Expired", NULL,
                    "The provided continue parameter is too old to display a consistent list result. You "
                    "can start a new list without the continue parameter."));
            return false;
        }
        return true;
    }
    if (number > r->api->stock.version) {
        api_answer_status(r->caller,
                          api_status(504, "Timeout", NULL, "Too large resource version: %llu, current: %llu",
                                     (unsigned long long)number, (unsigned long long)r->api->stock.version));
        return false;
    }
    if (str_eq(match, "Exact") && number != 0 && number < r->api->stock.forgotten) {
        api_answer_status(r->caller, api_status(410, "Expired", NULL,
                                                "The resourceVersion for the provided list is too old."));
        return false;
    }
    return true;
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

static bool list_add(json_t *items, const struct api_request *r, json_t *object)
{
    return json_array_append_new(items, api_as_kind(r->target.kind, object)) == 0;
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
    if (left > 0 && last != NULL)
        failed = (token = page_token(version, last)) == NULL;
    if (failed) {
        json_decref(items);
        return NULL;
    }
    /* Of a selection the rest is not counted, as in the apiserver. */
    return list_object(r, version, token, s->labels == NULL && s->n_fields == 0 ? left : 0, items);
}

void api_list(const struct api_request *r)
{
    struct api_selection s = { 0 };
    struct page p = { 0 };
    struct err e = { 0 };

    if (api_selection_read(&s, &r->caller->parser.request, &r->target, &e) != ERR_OK)
        api_answer_err(r->caller, &e);
    else if (page_read(&p, r))
        api_answer_value(r, 200, list_make(r, &p, &s));
    api_selection_done(&s);
    free(p.after);
}

void api_get(const struct api_request *r)
{
    const struct stock_object *o =
        stock_find(&r->api->stock, r->target.kind, r->target.namespace, r->target.name);

    if (o == NULL)
        api_not_found(r);
    else
        api_answer_value(r, 200, api_as_kind(r->target.kind, o->object));
}
