/* SPDX-License-Identifier: Apache-2.0 */
/* accept - accepts connections of clients. */
#include "agent/kube/server/internal.h"

#include "base/scope.h"

#include <netinet/in.h>

void *caller_local(const struct caller *c)
{
    return c->server->o.local_arg;
}

/*
 * When there are too many, the oldest unauthenticated one is closed: connections cost a local user nothing,
 * and must not keep out the others. A client needs a few milliseconds to show it.
 */
static bool make_room(struct kube_server *s, const struct caller *fresh)
{
    struct caller *c, *oldest = NULL;

    if (s->n_callers <= CALLERS_MAX)
        return true;
    if (s->n_callers > 2 * CALLERS_MAX)
        return false;                  /* those that were closed are not gone yet */
    LIST_FOREACH (c, &s->callers, all) /* the newest is the first */
        if (c != fresh && !c->proven && c->state != CALLER_CLOSING)
            oldest = c;
    if (oldest != NULL)
        caller_close(oldest);
    return oldest != NULL;
}

void caller_accept(struct kube_server *s, uv_stream_t *listener, bool read_only)
{
    struct caller *c = calloc(1, sizeof(*c));
    struct err e = { 0 };

    s->waits = NULL;
    if (c == NULL && (c = take_ptr(&s->spare)) == NULL) {
        s->waits = listener;
        return;
    }
    *c = (struct caller){ 0 };
    c->server = s;
    c->read_only = read_only;
    buf_init_secret(&c->in, CALLER_INPUT_MAX);
    http_parser_init(&c->parser);
    uv_tcp_init(s->o.loop, &c->tcp);
    uv_timer_init(s->o.loop, &c->timer);
    c->tcp.data = c->timer.data = c;
    c->open_handles = 2;
    LIST_INSERT_HEAD(&s->callers, c, all);
    s->n_callers++;
    c->parser.keep = c->keep;
    c->parser.n_keep = ARRAY_LEN(c->keep);
    c->keep[0] = (struct http_keep){ "Authorization", c->token, sizeof(c->token) };
    c->keep[1] = (struct http_keep){ "X-Stream-Protocol-Version", c->streams, sizeof(c->streams) };
    c->keep[2] = (struct http_keep){ "Accept", c->accept, sizeof(c->accept) };
    c->keep[3] = (struct http_keep){ "Content-Type", c->type, sizeof(c->type) };
    c->keep[4] = (struct http_keep){ "If-None-Match", c->etag, sizeof(c->etag) };
    c->keep[5] = (struct http_keep){ "User-Agent", c->agent, sizeof(c->agent) };
    buf_init_secret(&c->body, CALLER_BODY_MAX);
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0 || !make_room(s, c) ||
        (!read_only && tls_init(&c->tls, s->context, &e) != ERR_OK)) {
        caller_close(c);
        return;
    }
    uv_tcp_nodelay(&c->tcp, 1);
    uv_tcp_keepalive(&c->tcp, 1, 30);
    caller_arm(c, CALLER_HEAD_MS);
    if (uv_read_start((uv_stream_t *)&c->tcp, caller_alloc, caller_on_read) != 0)
        caller_close(c);
}
