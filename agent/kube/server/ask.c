/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"

#include <string.h>

struct ask {
    struct kube_server *server;
    struct upstream *upstream;
    struct buf body;
    int http;
    ask_done_fn done;
    void *owner;
};

static void ask_on_head(int http, const char *type, int64_t length, bool upgraded, void *owner)
{
    struct ask *a = owner;

    (void)type;
    (void)length;
    (void)upgraded;
    a->http = http;
}

static void ask_on_body(const char *p, size_t n, void *owner)
{
    struct ask *a = owner;

    buf_add(&a->body, p, n);
}

void ask_close(struct ask *a)
{
    if (a == NULL)
        return;
    upstream_close(a->upstream);
    buf_wipe(&a->body);
    free(a);
}

static void ask_on_end(const struct err *failure, void *owner)
{
    struct ask *a = owner;
    json_auto_t *body = NULL;
    struct err e = { 0 };

    if (failure != NULL)
        e = *failure;
    else if (a->body.failed)
        err_set(&e, ERR_EXHAUSTED, "the daemon's answer is too long");
    else if (json_parse(a->body.p, a->body.n, a->body.max, &body, "answer of the daemon", ERR_IGNORED) !=
             ERR_OK)
        body = NULL;
    a->done(e.code == ERR_OK ? a->http : 0, body, &e, a->owner); /* it closes the ask */
}

static const struct upstream_ops ask_ops = { .head = ask_on_head, .body = ask_on_body, .end = ask_on_end };

struct ask *ask_open(struct kube_server *s, const char *target, size_t body_max, ask_done_fn done,
                     void *owner, struct err *e)
{
    return ask_send(s, "GET", target, NULL, body_max, done, owner, e);
}

struct ask *ask_send(struct kube_server *s, const char *method, const char *target, const char *body,
                     size_t body_max, ask_done_fn done, void *owner, struct err *e)
{
    struct ask *a = calloc(1, sizeof(*a));
    const size_t n = body != NULL ? strlen(body) : 0;
    struct buf request = BUF_SECRET(HTTP_HEAD_MAX + n);

    if (a == NULL) {
        err_nomem(e);
        return NULL;
    }
    a->server = s;
    a->done = done;
    a->owner = owner;
    buf_init_secret(&a->body, body_max);
    buf_addf(&request, "%s %s HTTP/1.1\r\nHost: coracle\r\n", method, target);
    if (body != NULL)
        buf_addf(&request, "Content-Type: application/json\r\nContent-Length: %zu\r\n", n);
    buf_adds(&request, "\r\n");
    buf_add(&request, body != NULL ? body : "", n);
    a->upstream = upstream_open(s, &request, &ask_ops, a, e);
    if (a->upstream != NULL)
        return a;
    ask_close(a);
    return NULL;
}
