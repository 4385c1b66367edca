/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel - exec and attach for a client that speaks WebSocket: the status socket has the same channels, so
 * its handshake and all that follows are passed on as they are. */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"

struct tunnel {
    struct caller *caller;
    struct upstream *upstream;
    int http;
    struct buf error;
};

static void tunnel_free(struct tunnel *t)
{
    upstream_close(t->upstream);
    buf_done(&t->error);
    free(t);
}

static void tunnel_gone(struct caller *c)
{
    tunnel_free(c->job);
}

static void tunnel_drained(struct caller *c)
{
    upstream_resume(((struct tunnel *)c->job)->upstream);
}

static void tunnel_input(struct caller *c)
{
    struct tunnel *t = c->job;

    upstream_send(t->upstream, c->in.p, c->in.n);
    if (c->source == NULL)
        return;
    buf_reset(&c->in);
    if (upstream_backlog(t->upstream) > UPSTREAM_OUT_HIGH)
        caller_pause(c);
}

static const struct caller_source tunnel_source = { .gone = tunnel_gone,
                                                    .drained = tunnel_drained,
                                                    .input = tunnel_input };

static const char *accepted_protocol(const struct caller *c)
{
    /* The status socket takes the first one that it knows; the client's list is short. */
    const char *list = c->parser.request.upgrade.subprotocols;
    const char *v5 = strstr(list, "v5.channel.k8s.io"), *v4 = strstr(list, "v4.channel.k8s.io");

    return v5 != NULL && (v4 == NULL || v5 < v4) ? "v5.channel.k8s.io" : "v4.channel.k8s.io";
}

static void tunnel_on_head(int http, const char *type, int64_t length, bool upgraded, void *owner)
{
    struct tunnel *t = owner;
    struct buf head = BUF_INIT(1024);

    (void)type;
    (void)length;
    if (!upgraded) {
        t->http = http;
        return;
    }
    buf_addf(&head,
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Protocol: %s\r\nSec-WebSocket-Accept: ",
             accepted_protocol(t->caller));
    ws_add_accept_key(&head, t->caller->parser.request.upgrade.key);
    buf_adds(&head, "\r\n\r\n");
    caller_upgrade(t->caller, &head);
    buf_done(&head);
}

static void tunnel_on_body(const char *p, size_t n, void *owner)
{
    struct tunnel *t = owner;
    struct caller *c = t->caller;

    if (t->http != 0) {
        buf_add(&t->error, p, n);
        return;
    }
    caller_send(c, p, n); /* may free the tunnel */
    if (c->source == &tunnel_source && c->high)
        upstream_pause(t->upstream);
}

static void tunnel_on_end(const struct err *failure, void *owner)
{
    struct tunnel *t = owner;
    struct caller *c = t->caller;

    if (c->state == CALLER_RAW) {
        caller_over(c);
        return;
    }
    c->source = NULL;
    relay_refused(c, failure, t->http, &t->error);
    tunnel_free(t);
}

static void tunnel_on_drained(void *owner)
{
    caller_resume(((struct tunnel *)owner)->caller);
}

static const struct upstream_ops tunnel_ops = {
    .head = tunnel_on_head, .body = tunnel_on_body, .end = tunnel_on_end, .drained = tunnel_on_drained
};

void tunnel_begin(struct caller *c, const char *target)
{
    const struct http_upgrade *u = &c->parser.request.upgrade;
    struct buf request = BUF_INIT(HTTP_HEAD_MAX);
    struct tunnel *t;
    struct err e = { 0 };

    if (!ws_key_valid(u->key) || strcmp(u->version, "13") != 0 || strpbrk(u->subprotocols, "\r\n") != NULL) {
        caller_text(c, 400, "this is not a WebSocket handshake");
        return;
    }
    t = calloc(1, sizeof(*t));
    if (t == NULL) {
        caller_text(c, 500, "out of memory\n");
        return;
    }
    t->caller = c;
    buf_init(&t->error, RELAY_ERROR_MAX);
    buf_addf(&request,
             "GET %s HTTP/1.1\r\nHost: coracle\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: %s\r\nSec-WebSocket-Key: %s\r\n\r\n",
             target, u->subprotocols, u->key);
    t->upstream = upstream_open(c->server, &request, &tunnel_ops, t, &e);
    if (t->upstream == NULL) {
        tunnel_free(t);
        caller_text(c, 503, e.text);
        return;
    }
    caller_serve(c, &tunnel_source, t);
}
