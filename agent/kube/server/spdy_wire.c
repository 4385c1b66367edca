/* SPDX-License-Identifier: Apache-2.0 */
/* spdy_wire - SPDY on a caller after its upgrade (apimachinery/pkg/util/httpstream/spdy), or inside the
 * messages of a WebSocket (apimachinery/pkg/util/portforward, TunnelingHandler). */
#include "agent/kube/server/internal.h"

#include <string.h>
#include <strings.h>

enum { WIRE_OUT_MAX = 8 * 1024 * 1024 };

#define TUNNEL_PREFIX "SPDY/3.1+"

static void wire_on_message(const struct ws_piece *piece, void *owner)
{
    struct spdy_wire *w = owner;

    if (!spdy_receive(&w->spdy, piece->p, piece->n))
        ws_close(&w->ws, WSLAY_CODE_NORMAL_CLOSURE, "");
}

/* The client's first protocol that is one of ours. */
static const char *wire_negotiate(const char *list, const char *prefix, const char *const *ours)
{
    while (*list != '\0') {
        size_t n = strcspn(list, ",");
        const char *token = list + strspn(list, " ");
        size_t token_n = n - (size_t)(token - list);

        for (size_t i = 0; ours[i] != NULL; i++)
            if (token_n == strlen(prefix) + strlen(ours[i]) && strncmp(token, prefix, strlen(prefix)) == 0 &&
                strncmp(token + strlen(prefix), ours[i], strlen(ours[i])) == 0)
                return ours[i];
        list += n + (list[n] == ',');
    }
    return NULL;
}

static void wire_refuse(struct caller *c, const char *theirs, const char *const *ours)
{
    struct buf text = BUF_INIT(4096), head = BUF_INIT(4096);

    buf_addf(&text,
             "unable to upgrade: unable to negotiate protocol: client supports [%.512s], server accepts [",
             theirs);
    for (size_t i = 0; ours[i] != NULL; i++) {
        buf_addf(&text, "%s%s", i > 0 ? " " : "", ours[i]);
        buf_addf(&head, "X-Accepted-Stream-Protocol-Versions: %s\r\n", ours[i]);
    }
    buf_adds(&text, "]\n");
    caller_answer(c, 403, "text/plain; charset=utf-8", head.p, text.p, text.n);
    buf_done(&text);
    buf_done(&head);
}

bool spdy_wire_asked(struct spdy_wire *w, struct caller *c, const char *const *protocols)
{
    const struct http_upgrade *u = &c->parser.request.upgrade;

    w->caller = c;
    w->tunneled = u->asked && strcasecmp(u->protocol, "websocket") == 0;
    if (!u->asked) {
        caller_text(c, 400, "Upgrade request required\n");
        return false;
    }
    if (w->tunneled) {
        w->protocol = wire_negotiate(u->subprotocols, TUNNEL_PREFIX, protocols);
        if (w->protocol == NULL)
            caller_text(c, 400, "no subprotocol that is served here: " TUNNEL_PREFIX "portforward.k8s.io\n");
        else if (!ws_key_valid(u->key) || strcmp(u->version, "13") != 0)
            caller_text(c, 400, "this is not a WebSocket handshake\n");
        else
            return true;
        return false;
    }
    if (strcasecmp(u->protocol, "SPDY/3.1") != 0) {
        caller_text(c, 400, "unable to upgrade: missing upgrade headers in request\n");
        return false;
    }
    w->protocol = c->streams[0] != '\0' ? wire_negotiate(c->streams, "", protocols) : "";
    if (w->protocol == NULL)
        wire_refuse(c, c->streams, protocols);
    return w->protocol != NULL;
}

bool spdy_wire_begin(struct spdy_wire *w, const struct spdy_events *events, void *owner)
{
    struct caller *c = w->caller;
    struct buf head = BUF_INIT(1024);
    struct err e = { 0 };

    if (w->tunneled && !ws_init(&w->ws, WS_SERVER, WIRE_OUT_MAX, wire_on_message, w)) {
        caller_close(c);
        return false;
    }
    if (spdy_init(&w->spdy, WIRE_OUT_MAX, events, owner, &e) != ERR_OK) {
        if (w->tunneled)
            ws_done(&w->ws);
        caller_close(c);
        return false;
    }
    w->begun = true;
    buf_addf(&head, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n",
             w->tunneled ? "websocket" : "SPDY/3.1");
    if (w->tunneled) {
        buf_addf(&head, "Sec-WebSocket-Protocol: " TUNNEL_PREFIX "%s\r\nSec-WebSocket-Accept: ", w->protocol);
        ws_add_accept_key(&head, c->parser.request.upgrade.key);
        buf_adds(&head, "\r\n");
    } else if (w->protocol[0] != '\0') {
        buf_addf(&head, "X-Stream-Protocol-Version: %s\r\n", w->protocol);
    }
    buf_adds(&head, "\r\n");
    caller_upgrade(c, &head);
    buf_done(&head);
    return c->state == CALLER_RAW;
}

void spdy_wire_done(struct spdy_wire *w)
{
    if (!w->begun)
        return;
    w->begun = false;
    spdy_done(&w->spdy);
    if (w->tunneled)
        ws_done(&w->ws);
}

bool spdy_wire_input(struct spdy_wire *w)
{
    struct caller *c = w->caller;
    bool more = w->tunneled ? ws_receive(&w->ws, c->in.p, c->in.n) : spdy_receive(&w->spdy, c->in.p, c->in.n);

    buf_reset(&c->in);
    return more;
}

void spdy_wire_flush(struct spdy_wire *w)
{
    struct caller *c = w->caller;
    struct buf *out = w->tunneled ? &w->ws.out : &w->spdy.out;
    struct buf sent;

    if (w->tunneled && w->spdy.out.n > 0) {
        ws_send(&w->ws, w->spdy.out.p, w->spdy.out.n);
        w->ws.out.failed = w->ws.out.failed || w->spdy.out.failed;
        buf_reset(&w->spdy.out);
    }
    if (out->failed) {
        caller_close(c);
        return;
    }
    if (out->n == 0)
        return;
    sent = *out; /* the caller may close, and the wire with it */
    buf_init(out, WIRE_OUT_MAX);
    caller_send(c, sent.p, sent.n);
    buf_done(&sent);
}
