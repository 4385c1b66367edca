/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_ws - port-forward over WebSocket with v4.channel.k8s.io: one connection for each `port` of the
 * query, channels 2n (data, both ways) and 2n+1 (an error, to the client). Each begins with the port, 16
 * bits, little endian. A channel cannot be closed separately: the WebSocket ends when all connections have
 * ended. Source: k8s.io/cri-streaming/pkg/streaming/portforward/websocket.go.
 */
#include "agent/kube/server/internal.h"

#include "base/parse.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PORTS_MAX = 32, STATUS_MAX = 64 * 1024 };

#define PROTOCOL "v4.channel.k8s.io"

struct ported;
struct ported_one {
    struct ported *all;
    uint16_t port;
    struct channels *channels;
    struct buf status;
    bool pod_done, ended, told;
    struct err failure;
};

struct ported {
    struct caller *caller;
    struct ws ws;
    bool has_ws;
    int channel; /* of the message that comes; -1: none yet */
    size_t n;
    struct ported_one v[PORTS_MAX];
};

static void ported_step(struct ported *f);

static void ported_free(struct ported *f)
{
    for (size_t i = 0; i < f->n; i++) {
        channels_close(f->v[i].channels);
        buf_done(&f->v[i].status);
    }
    if (f->has_ws)
        ws_done(&f->ws);
    free(f);
}

static void ported_gone(struct caller *c)
{
    ported_free(c->job);
}

static void ported_send(struct ported *f, size_t channel, const void *p, size_t n)
{
    struct buf b = BUF_INIT(n + 1);

    buf_addc(&b, (char)channel);
    buf_add(&b, p, n);
    if (b.failed)
        f->ws.out.failed = true;
    else
        ws_send(&f->ws, b.p, b.n);
    buf_done(&b);
}

/* ---- the pod's side ---- */

/* The pod sends no more. WebSocket has no message for the end of one direction: both end. */
static void ported_end_input(struct ported_one *v)
{
    v->pod_done = true;
    if (v->channels != NULL && !v->ended)
        channels_end_input(v->channels);
}

static void ported_data(unsigned char channel, const char *p, size_t n, void *owner)
{
    struct ported_one *v = owner;

    if (channel == CHANNEL_STDOUT)
        ported_send(v->all, 2 * (size_t)(v - v->all->v), p, n);
    else if (channel == CHANNEL_ERROR)
        buf_add(&v->status, p, n);
    else if (channel == CHANNEL_CLOSE && n == 1 && p[0] == CHANNEL_STDOUT)
        ported_end_input(v);
    else
        return;
    ported_step(v->all);
}

static void ported_end(const struct err *failure, int http, void *owner)
{
    struct ported_one *v = owner;

    (void)http;
    v->ended = true;
    if (failure != NULL)
        v->failure = *failure;
    ported_step(v->all);
}

static void ported_channels_drained(void *owner)
{
    ported_step(((struct ported_one *)owner)->all);
}

static const struct channels_ops ported_channels = { .data = ported_data,
                                                     .end = ported_end,
                                                     .drained = ported_channels_drained };

/* ---- the client's side ---- */

static void ported_on_piece(const struct ws_piece *piece, void *owner)
{
    struct ported *f = owner;
    const char *p = piece->p;
    size_t n = piece->n;
    struct ported_one *v;

    if (piece->first)
        f->channel = -1;
    if (f->channel < 0 && n > 0) {
        f->channel = (unsigned char)*p++;
        n--;
    }
    if (n == 0 || f->channel % 2 != 0 || (size_t)f->channel / 2 >= f->n)
        return;
    v = &f->v[f->channel / 2];
    if (v->channels != NULL && !v->ended)
        channels_send(v->channels, CHANNEL_STDIN, p, n);
}

/* ---- both ---- */

static void ported_flush(struct ported *f)
{
    struct caller *c = f->caller;
    struct buf sent = f->ws.out; /* the caller may close, and this be freed */

    if (sent.failed) {
        caller_close(c);
        return;
    }
    if (sent.n == 0)
        return;
    buf_init(&f->ws.out, CALLER_OUT_MAX);
    caller_send(c, sent.p, sent.n);
    buf_done(&sent);
}

static void ported_finish(struct ported_one *v)
{
    struct buf text = BUF_INIT(4096);

    v->told = true;
    if (forward_failure(v->all->caller, v->port, &v->status, &v->failure, v->pod_done, &text) && !text.failed)
        ported_send(v->all, 2 * (size_t)(v - v->all->v) + 1, text.p, text.n);
    buf_done(&text);
    channels_close(take_ptr(&v->channels));
}

/* Never from inside the codec. May free `f`. */
static void ported_step(struct ported *f)
{
    struct caller *c = f->caller;
    bool full = false, over = true;

    for (size_t i = 0; i < f->n; i++) {
        if (f->v[i].ended && !f->v[i].told)
            ported_finish(&f->v[i]);
        over = over && f->v[i].told;
    }
    if (over)
        ws_close(&f->ws, WSLAY_CODE_NORMAL_CLOSURE, "");
    ported_flush(f);
    if (c->source == NULL)
        return; /* it closed */
    if (over) {
        caller_over(c);
        return;
    }
    for (size_t i = 0; i < f->n; i++) {
        if (f->v[i].channels == NULL)
            continue;
        if (c->high)
            channels_pause(f->v[i].channels);
        else
            channels_resume(f->v[i].channels);
        full = full || channels_backlog(f->v[i].channels) > UPSTREAM_OUT_HIGH;
    }
    if (full)
        caller_pause(c);
    else
        caller_resume(c);
}

static void ported_input(struct caller *c)
{
    struct ported *f = c->job;
    bool more = ws_receive(&f->ws, c->in.p, c->in.n);

    buf_reset(&c->in);
    if (more) {
        ported_step(f);
        return;
    }
    ported_flush(f);
    caller_over(c);
}

static void ported_drained(struct caller *c)
{
    ported_step(c->job);
}

static const struct caller_source ported_source = { .gone = ported_gone,
                                                    .drained = ported_drained,
                                                    .input = ported_input };

/* ---- the beginning ---- */

static enum err_code ports_add(struct ported *f, const char *text, struct err *e)
{
    char one[16];
    uint64_t port;
    size_t n;

    do {
        n = strcspn(text, ",");
        snprintf(one, sizeof(one), "%.*s", (int)(n < sizeof(one) ? n : sizeof(one) - 1), text);
        if (parse_u64(one, 1, UINT16_MAX, &port, "port", e) != ERR_OK)
            return err_wrap(e, "query parameter \"port\"");
        if (f->n == PORTS_MAX)
            return err_set(e, ERR_INVALID, "at most %d ports are allowed", PORTS_MAX);
        f->v[f->n++] = (struct ported_one){ .all = f, .port = (uint16_t)port };
        buf_init(&f->v[f->n - 1].status, STATUS_MAX);
        text += n;
    } while (*text++ == ',');
    return ERR_OK;
}

static enum err_code ports_read(struct ported *f, const struct http_request *r, struct err *e)
{
    for (size_t i = 0; i < r->n_params; i++)
        if (strcmp(r->params[i].key, "port") == 0 && ports_add(f, r->params[i].value, e) != ERR_OK)
            return e->code;
    if (f->n == 0)
        return err_set(e, ERR_INVALID, "query parameter \"port\" is required");
    return ERR_OK;
}

/* Whether the client names the protocol, or none. *ret: which. */
static bool protocol_is_served(const char *list, bool *ret_named)
{
    *ret_named = list[0] != '\0';
    if (!*ret_named)
        return true;
    while (*list != '\0') {
        size_t n;

        list += strspn(list, ", ");
        n = strcspn(list, ", ");
        if (n == strlen(PROTOCOL) && strncmp(list, PROTOCOL, n) == 0)
            return true;
        list += n;
    }
    return false;
}

bool forward_ws_is_asked(const struct caller *c)
{
    const struct http_upgrade *u = &c->parser.request.upgrade;
    bool named;

    return u->asked && strcasecmp(u->protocol, "websocket") == 0 &&
           protocol_is_served(u->subprotocols, &named);
}

static void ported_upgrade(struct caller *c)
{
    const struct http_upgrade *u = &c->parser.request.upgrade;
    struct buf head = BUF_INIT(1024);
    bool named = false;

    buf_adds(&head, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n");
    if (protocol_is_served(u->subprotocols, &named) && named)
        buf_adds(&head, "Sec-WebSocket-Protocol: " PROTOCOL "\r\n");
    buf_adds(&head, "Sec-WebSocket-Accept: ");
    ws_add_accept_key(&head, u->key);
    buf_adds(&head, "\r\n\r\n");
    caller_upgrade(c, &head);
    buf_done(&head);
}

static void ported_connect(struct ported *f, struct ported_one *v, const char *target)
{
    const unsigned char port[] = { v->port & 0xff, v->port >> 8 };
    size_t channel = 2 * (size_t)(v - f->v);
    struct buf one = BUF_INIT(HTTP_URL_MAX);

    ported_send(f, channel, port, sizeof(port));
    ported_send(f, channel + 1, port, sizeof(port));
    buf_addf(&one, "%s?port=%u", target, v->port);
    if (one.failed)
        err_nomem(&v->failure);
    else
        v->channels = channels_open(f->caller->server, one.p, &ported_channels, v, &v->failure);
    v->ended = v->channels == NULL;
    buf_done(&one);
}

void forward_ws_begin(struct caller *c, const char *target)
{
    const struct http_upgrade *u = &c->parser.request.upgrade;
    struct ported *f = calloc(1, sizeof(*f));
    struct err e = { 0 };

    if (f == NULL || !ws_init(&f->ws, WS_SERVER, CALLER_OUT_MAX, ported_on_piece, f)) {
        free(f);
        caller_text(c, 500, "out of memory\n");
        return;
    }
    f->has_ws = true;
    f->caller = c;
    f->channel = -1;
    if (!ws_key_valid(u->key) || strcmp(u->version, "13") != 0)
        err_set(&e, ERR_INVALID, "this is not a WebSocket handshake");
    else if (ports_read(f, &c->parser.request, &e) == ERR_OK)
        ported_upgrade(c);
    if (e.code != ERR_OK) {
        caller_text(c, 400, e.text);
        ported_free(f);
        return;
    }
    if (c->state != CALLER_RAW) {
        ported_free(f);
        return;
    }
    caller_serve(c, &ported_source, f);
    for (size_t i = 0; i < f->n; i++)
        ported_connect(f, &f->v[i], target);
    if (c->in.n > 0)
        ported_input(c);
    else
        ported_step(f);
}
