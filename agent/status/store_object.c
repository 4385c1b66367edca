/* SPDX-License-Identifier: Apache-2.0 */
/* One object of the store, for the local API: read, written, removed. */
#include "agent/status/internal.h"

#include "agent/api/manifest/decode.h"
#include "base/codec/json.h"

static void object_get(struct conn *c)
{
    const struct status_provider *p = &c->server->provider;
    const struct http_request *r = &c->parser.request;
    const char *version = http_param(r, "apiVersion"), *kind = http_param(r, "kind"),
               *namespace_ = http_param(r, "namespace"), *name = http_param(r, "name");
    struct err e = { 0 };

    if (version == NULL || kind == NULL || name == NULL || p->stored == NULL) {
        err_set(&e, ERR_INVALID, "apiVersion, kind and name: required");
        conn_err(c, &e);
        return;
    }
    conn_value(c, p->stored(p->arg, version, kind, namespace_, name, &e), &e);
}

void route_store_object(struct conn *c, const struct status_match *m)
{
    const struct status_provider *p = &c->server->provider;
    const enum http_method method = c->parser.request.method;
    json_t *request = NULL;
    struct status_reply *reply;
    struct err e = { 0 };

    (void)m;
    if (method == METHOD_GET || method == METHOD_HEAD) {
        object_get(c);
        return;
    }
    if (json_parse(c->body.p != NULL ? c->body.p : "", c->body.n, STATUS_BODY_MAX, &request, "request", &e) !=
        ERR_OK) {
        conn_err(c, &e);
        return;
    }
    buf_wipe(&c->body); /* it may be a Secret */
    reply = reply_owe(c);
    if (reply != NULL) {
        p->write(p->arg, request, method == METHOD_DELETE, reply);
    } else {
        api_json_wipe(request);
        json_decref(request);
    }
}
