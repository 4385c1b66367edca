/* SPDX-License-Identifier: Apache-2.0 */
/* api - the client of a request, its target, and the file that answers. */
#include "agent/kube/apiserver/write.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

#define RENEW_MS (12 * 3600 * UINT64_C(1000)) /* between two checks of the certificates */
#define TICK_MS 1000                          /* while there are watches */

/* ---- certificates ---- */

static void api_serve_with(struct kube_api *a)
{
    json_auto_t *message = json_pack(
        "{s:s, s:O, s:O, s:O}", "type", "serving", "certificate", json_object_get(a->pki, "server.crt"),
        "key", json_object_get(a->pki, "server.key"), "clientCA", json_object_get(a->pki, "ca.crt"));

    if (message != NULL)
        kube_server_message(a->o.server, "serving", message, -1);
}

static void api_renew(struct kube_api *a)
{
    str_auto host = strdup(a->address);
    json_t *made = NULL, *message;
    struct err e = { 0 };

    if (host == NULL)
        return;
    *strrchr(host, ':') = '\0';
    if (api_pki_renew(a->pki, a->node_name, host, clock_wall_ns() / 1000000000, &made, &e) != ERR_OK) {
        log_error("cannot create the certificates of the local API", F_ERR(&e));
        return;
    }
    if (made == NULL)
        return;
    json_decref(a->pki);
    a->pki = made;
    message = json_pack("{s:s, s:s, s:O}", "type", "certificate", "usage", "local", "files", made);
    if (message == NULL || kube_link_send(a->o.link, message, -1, &e) != ERR_OK)
        log_error("cannot store the certificates of the local API", F_ERR(&e));
}

/* ---- time ---- */

static void api_on_timer(uv_timer_t *timer)
{
    struct kube_api *a = timer->data;

    api_watch_tick(a);
    if (LIST_EMPTY(&a->watches))
        uv_timer_stop(&a->timer);
}

static void api_on_renew(uv_timer_t *timer)
{
    struct kube_api *a = timer->data;
    json_t *before = a->pki;

    api_renew(a);
    if (a->pki != before)
        api_serve_with(a);
}

/* ---- messages ---- */

void kube_api_message(struct kube_api *a, const char *type, json_t *message)
{
    const json_t *server = json_object_get(message, "server"), *pki = json_object_get(message, "localPKI");
    const char *host = json_str(server, "address"), *name = json_str(message, "nodeName"),
               *version = json_str(message, "version");

    if (strcmp(type, "config") != 0 || a->lone || !json_flag(server, "local") || host == NULL || name == NULL)
        return;
    a->node_name = strdup(name);
    a->version = strdup(version != NULL ? version : "");
    a->address = str_printf("%s:%lld", host, (long long)json_int(server, "port", 0));
    if (a->node_name == NULL || a->version == NULL || a->address == NULL) {
        log_error("the local API: out of memory");
        return;
    }
    a->lone = true;
    a->since_ns = json_int(message, "since", 0);
    a->pki = json_deep_copy(pki);
    api_renew(a);
    api_serve_with(a);
    uv_timer_start(&a->renew, api_on_renew, RENEW_MS, RENEW_MS);
    api_feed_start(a);
}

void api_changed(struct kube_api *a)
{
    api_watch_notify(a);
}

/* ---- one request ---- */

/* Where "watch" is in /api/v1/watch/... and /apis/apps/v1/watch/..., the older form; 0: nowhere. */
static size_t watch_segment(const struct http_request *r)
{
    const size_t at = r->n_segments > 0 && strcmp(r->segments[0], "apis") == 0 ? 3 : 2;

    return r->n_segments > at + 1 && strcmp(r->segments[at], "watch") == 0 ? at : 0;
}

static void api_path(const struct http_request *r, struct buf *b)
{
    const size_t watch = watch_segment(r);

    for (size_t i = 0; i < r->n_segments; i++) {
        if (watch != 0 && i == watch)
            continue;
        buf_addc(b, '/');
        percent_add(b, r->segments[i]);
    }
    if (r->n_segments == 0)
        buf_addc(b, '/');
}

static void api_document(struct kube_api *a, struct caller *c, const char *path)
{
    const char *hash = http_param(&c->parser.request, "hash");
    str_auto query = hash != NULL ? str_printf("hash=%s", hash) : strdup("");
    const struct api_document_request ask = { .path = path,
                                              .query = query,
                                              .accept = c->accept,
                                              .if_none_match = c->etag[0] != '\0' ? c->etag : NULL,
                                              .server = a->address };
    struct api_document d = { 0 };
    buf_auto head = BUF_INIT(8192);
    const char *type = NULL; /* a 304 without one keeps that of the copy which the client has */
    struct err e = { 0 };

    if (query == NULL || api_serve_document(&ask, &d, &e) != ERR_OK) {
        err_nomem(&e);
        api_answer_err(c, &e);
        return;
    }
    for (size_t i = 0; i < d.n_headers; i++) {
        if (strcasecmp(d.headers[i].name, "Content-Type") == 0)
            type = d.headers[i].value;
        else
            buf_addf(&head, "%s: %s\r\n", d.headers[i].name, d.headers[i].value);
    }
    caller_answer(c, d.code, type, head.p, d.body != NULL ? d.body : "", d.size);
    api_document_done(&d);
}

/* As in the apiserver: indented for people. */
static bool is_for_people(const struct caller *c)
{
    static const char *const agents[] = { "curl", "Wget", "Mozilla/5.0" };
    const char *pretty = http_param(&c->parser.request, "pretty");
    bool on = false;

    if (pretty != NULL && http_param_flag(&c->parser.request, "pretty", &on, ERR_IGNORED) == ERR_OK &&
        pretty[0] != '\0')
        return on;
    for (size_t i = 0; i < ARRAY_LEN(agents); i++)
        on = on || str_starts(c->agent, agents[i]);
    return on;
}

/* False: it was answered. */
bool api_request_read(struct kube_api *a, struct caller *c, struct api_request *ret)
{
    const char *include = http_param(&c->parser.request, "includeObject");
    json_t *status = NULL;

    ret->api = a;
    ret->caller = c;
    if (api_accept_read(c->accept, &ret->accept, &status) &&
        api_include_read(include, &ret->include, &status)) {
        ret->accept.pretty = ret->accept.pretty || is_for_people(c);
        return true;
    }
    api_answer_status(c, status);
    return false;
}

static void api_read(const struct api_request *r)
{
    bool watch = false;
    struct err e = { 0 };

    if (http_param_flag(&r->caller->parser.request, "watch", &watch, &e) != ERR_OK)
        api_answer_err(r->caller, &e);
    else if (r->watch || (watch && r->target.name[0] == '\0'))
        api_watch_begin(r);
    else if (r->target.name[0] != '\0')
        api_get(r);
    else
        api_list(r);
}

static void api_not_allowed(struct caller *c)
{
    api_answer_status(c, api_status(405, "MethodNotAllowed", json_object(),
                                    "the server does not allow this method on the requested resource"));
}

/* Subresources that are read from the object as the daemon has it. */
static bool is_computed(const struct api_subresource *sub)
{
    static const char *const names[] = { "scale", "resize", "ephemeralcontainers" };

    for (size_t i = 0; sub != NULL && i < ARRAY_LEN(names); i++)
        if (strcmp(sub->name, names[i]) == 0)
            return true;
    return false;
}

static void api_object(const struct api_request *r)
{
    struct caller *c = r->caller;
    const enum http_method method = c->parser.request.method;

    if (r->target.sub != NULL && api_streams(r))
        return;
    if (method != METHOD_GET || is_computed(r->target.sub))
        api_write_begin(r);
    else if (r->target.sub != NULL && strcmp(r->target.sub->name, "status") != 0)
        api_not_allowed(c);
    else if (strcmp(r->target.kind->group, "metrics.k8s.io") == 0)
        api_metrics(r);
    else if (r->target.kind->id == API_KIND_NODE)
        api_node_first(r, api_read);
    else {
        if (r->target.kind->id == API_KIND_LEASE)
            api_lease_renew(r->api);
        api_read(r);
    }
}

/* Below a group that there is, a Status; elsewhere Go's text. */
static void api_no_path(struct caller *c)
{
    const struct http_request *r = &c->parser.request;
    bool known = r->n_segments > 0 && strcmp(r->segments[0], "api") == 0;

    for (const struct api_kind_row *k = api_kinds; k->kind != NULL && !known; k++)
        known =
            r->n_segments > 1 && strcmp(r->segments[0], "apis") == 0 && strcmp(r->segments[1], k->group) == 0;
    if (known)
        api_answer_status(c, api_status(404, "NotFound", json_object(),
                                        "the server could not find the requested resource"));
    else
        caller_text(c, 404, "404 page not found\n");
}

static void api_dispatch(struct kube_api *a, struct caller *c)
{
    const struct http_request *http = &c->parser.request;
    struct api_request r = { 0 };
    buf_auto path = BUF_INIT(HTTP_URL_MAX * 3);

    c->as_is = true;
    r.watch = watch_segment(http) != 0;
    api_path(http, &path);
    if (path.failed)
        api_answer_status(c, api_status(414, "RequestURITooLong", NULL, "the URL is too long"));
    else if (api_is_health(http))
        api_health(a, c);
    else if (api_is_document(path.p) && http->method != METHOD_GET)
        api_not_allowed(c);
    else if (api_is_document(path.p))
        api_document(a, c, path.p);
    else if (!api_target_parse(path.p, &r.target))
        api_no_path(c);
    else if (api_request_read(a, c, &r))
        api_object(&r);
}

/* ---- requests that come before the first set ---- */

static void wait_gone(struct caller *c)
{
    struct api_wait *w = c->job;

    LIST_REMOVE(w, all);
    free(w);
}

static const struct caller_source wait_source = { .gone = wait_gone };

static void api_wait_begin(struct kube_api *a, struct caller *c)
{
    struct api_wait *w = calloc(1, sizeof(*w));

    if (w == NULL) {
        api_answer_status(c, NULL);
        return;
    }
    w->caller = c;
    c->source = &wait_source;
    c->job = w;
    LIST_INSERT_HEAD(&a->waiting, w, all);
}

void api_ready(struct kube_api *a)
{
    struct api_wait *w;

    a->ready = true;
    while ((w = LIST_FIRST(&a->waiting)) != NULL) {
        struct caller *c = w->caller;

        c->source = NULL;
        wait_gone(c);
        api_dispatch(a, c);
    }
}

/* ---- clients ---- */

void kube_api_request(struct kube_api *a, struct caller *c)
{
    json_auto_t *who = NULL;
    struct err e = { 0 };

    if (tls_identity(&c->tls, &who, &e) != ERR_OK)
        api_answer_status(c, api_status(401, "Unauthorized", NULL, "Unauthorized"));
    else if (!json_has(json_object_get(who, "groups"), API_ADMINS))
        api_answer_status(
            c, api_status(403, "Forbidden", NULL, "only the administrator of this node may use it"));
    else if (a->ready || api_is_health(&c->parser.request))
        api_dispatch(a, c);
    else
        api_wait_begin(a, c);
    if (!LIST_EMPTY(&a->watches) && !uv_is_active((uv_handle_t *)&a->timer))
        uv_timer_start(&a->timer, api_on_timer, TICK_MS, TICK_MS);
}

/* ---- opening and closing ---- */

static void api_closed(void *owner)
{
    struct kube_api *a = owner;

    if (--a->open_handles > 0)
        return;
    stock_done(&a->stock);
    api_told_forget(a);
    free(a->node_name);
    free(a->address);
    free(a->version);
    json_decref(a->pki);
    free(a);
}

static void api_on_closed(uv_handle_t *handle)
{
    api_closed(handle->data);
}

enum err_code kube_api_open(struct kube_api **ret, const struct kube_api_options *o, struct err *e)
{
    struct kube_api *a = calloc(1, sizeof(*a));
    uv_timer_t *timers[] = { a != NULL ? &a->timer : NULL, a != NULL ? &a->again : NULL,
                             a != NULL ? &a->renew : NULL };

    if (a == NULL)
        return err_nomem(e);
    a->o = *o;
    stock_init(&a->stock);
    api_told_forget(a);
    buf_init_secret(&a->line, API_LINE_MAX);
    LIST_INIT(&a->waiting);
    LIST_INIT(&a->watches);
    background_init(&a->turns, o->loop);
    a->open_handles++;
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        uv_timer_init(o->loop, timers[i]);
        timers[i]->data = a;
        a->open_handles++;
    }
    *ret = a;
    return ERR_OK;
}

void kube_api_close(struct kube_api *a)
{
    if (a == NULL || a->closing)
        return;
    a->closing = true;
    api_feed_stop(a);
    background_close(&a->turns, api_closed, a);
    uv_close((uv_handle_t *)&a->timer, api_on_closed);
    uv_close((uv_handle_t *)&a->again, api_on_closed);
    uv_close((uv_handle_t *)&a->renew, api_on_closed);
}
