/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/internal.h"

#include <poll.h>

#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8" /* requested by Prometheus */

/* ---- values of the provider ---- */

/* The array in `value` (stolen): itself, or the items of a list. */
static json_t *status_items(json_t *value)
{
    json_t *items = json_object_get(value, "items");

    if (items == NULL)
        return value;
    json_incref(items);
    json_decref(value);
    return items;
}

void conn_value(struct conn *c, json_t *value, const struct err *e)
{
    if (value == NULL)
        conn_err(c, e);
    else
        conn_json(c, 200, value);
}

void conn_items(struct conn *c, json_t *(*get)(void *arg, struct err *e))
{
    struct err e = { 0 };
    json_t *items = status_items(get(c->server->provider.arg, &e));

    if (json_is_array(items))
        items = json_pack("{s:o}", "items", items);
    conn_value(c, items, &e);
}

/* ---- later answers ---- */

void status_reply_json(struct status_reply *r, int http_code, json_t *body)
{
    struct conn *c = r->conn;
    const bool streams = r->streams;

    free(r->last);
    free(r);
    if (c == NULL) {
        json_decref(body);
        return;
    }
    c->reply = NULL;
    if (streams)
        progress_end(c, body);
    else
        conn_json(c, http_code, body);
}

static void reply_text(struct status_reply *r, const char *type, struct buf *text, const char *too_long)
{
    struct conn *c = r->conn;

    free(r->last);
    free(r);
    if (c != NULL) {
        c->reply = NULL;
        if (text->failed)
            conn_status(c, 500, "InternalError", NULL, NULL, too_long);
        else
            conn_answer(c, 200, type, NULL, text->p, text->n);
    }
    buf_done(text);
}

void status_reply_text(struct status_reply *r, struct buf *text)
{
    reply_text(r, TEXT_TYPE, text, "the metrics are too long");
}

void status_reply_json_text(struct status_reply *r, struct buf *text)
{
    reply_text(r, "application/json", text, "out of memory");
}

bool status_reply_is_pretty(const struct status_reply *r)
{
    return r->conn != NULL && r->conn->pretty;
}

/* A client may stop sending and still wait for its answer, so only a connection that is closed in both
 * directions counts. */
static bool hung_up(const struct conn *c)
{
    struct pollfd p = { .fd = -1 };

    return c->eof && uv_fileno((const uv_handle_t *)&c->pipe, &p.fd) == 0 && poll(&p, 1, 0) == 1 &&
           (p.revents & POLLHUP);
}

bool status_reply_wanted(const struct status_reply *r)
{
    return r->conn != NULL && !hung_up(r->conn);
}

bool status_reply_is_roots(const struct status_reply *r)
{
    return r->conn != NULL && r->conn->role == PEER_ROOT;
}

void status_reply_err(struct status_reply *r, const struct err *e)
{
    int http_code = status_http_code(e->code);

    status_reply_json(r, http_code, status_object(http_code, status_reason(http_code), NULL, NULL, e->text));
}

struct status_reply *reply_owe(struct conn *c)
{
    c->reply = calloc(1, sizeof(*c->reply));
    if (c->reply == NULL)
        conn_json(c, 500, NULL);
    else
        c->reply->conn = c;
    return c->reply;
}
