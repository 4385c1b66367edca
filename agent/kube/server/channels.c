/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/server/internal.h"

#include "base/codec/base64.h"
#include "base/codec/json.h"

#include <openssl/rand.h>

enum { CHANNELS_OUT_MAX = 2 * 1024 * 1024, CHANNELS_ERROR_MAX = 64 * 1024 };

struct channels {
    struct upstream *upstream;
    const struct channels_ops *ops;
    void *owner;
    struct ws ws;
    int channel; /* of the incoming message; -1: its first byte has not arrived */
    int http;    /* of a refusal */
    struct buf error;
    bool busy, closed, ended;
};

static void channels_free(struct channels *x)
{
    upstream_close(x->upstream);
    ws_done(&x->ws);
    buf_done(&x->error);
    free(x);
}

/* When called from inside one of its callbacks, the memory stays until that callback returns. */
void channels_close(struct channels *x)
{
    if (x == NULL || x->closed)
        return;
    x->closed = true;
    if (!x->busy)
        channels_free(x);
}

/* Around every call to the owner. */
static bool channels_enter(struct channels *x)
{
    bool outer = !x->busy;

    x->busy = true;
    return outer;
}

static void channels_leave(struct channels *x, bool outer)
{
    if (!outer)
        return;
    x->busy = false;
    if (x->closed)
        channels_free(x);
}

static void channels_end(struct channels *x, const struct err *failure, int http)
{
    if (x->closed || x->ended)
        return;
    x->ended = true;
    x->ops->end(failure, http, x->owner);
}

static void channels_flush(struct channels *x)
{
    if (x->ws.out.n > 0)
        upstream_send(x->upstream, x->ws.out.p, x->ws.out.n);
    buf_reset(&x->ws.out);
}

static void on_channel_piece(const struct ws_piece *piece, void *owner)
{
    struct channels *x = owner;
    const char *p = piece->p;
    size_t n = piece->n;

    if (piece->first)
        x->channel = -1;
    if (x->channel < 0 && n > 0) {
        x->channel = (unsigned char)*p++;
        n--;
    }
    if (n > 0 && !x->closed && !x->ended)
        x->ops->data((unsigned char)x->channel, p, n, x->owner);
    /* A half-close is a whole message, not bytes of a stream. */
}

static void channels_on_head(int http, const char *type, int64_t length, bool upgraded, void *owner)
{
    struct channels *x = owner;
    bool outer = channels_enter(x);

    (void)type;
    (void)length;
    if (!upgraded)
        x->http = http;
    else if (x->ops->opened != NULL)
        x->ops->opened(x->owner);
    channels_leave(x, outer);
}

static void channels_on_body(const char *p, size_t n, void *owner)
{
    struct channels *x = owner;
    bool outer;

    if (x->http != 0) {
        buf_add(&x->error, p, n);
        return;
    }
    outer = channels_enter(x);
    if (!ws_receive(&x->ws, p, n)) {
        channels_flush(x);
        if (x->ws.close_code == WSLAY_CODE_NORMAL_CLOSURE)
            channels_end(x, NULL, 0);
        else
            channels_end(x, &(struct err){ .code = ERR_UNAVAILABLE, .text = "the daemon ended the stream" },
                         0);
    } else {
        channels_flush(x);
    }
    channels_leave(x, outer);
}

static void channels_on_end(const struct err *failure, void *owner)
{
    struct channels *x = owner;
    bool outer = channels_enter(x);
    json_auto_t *status = NULL;
    struct err e = { 0 };

    if (failure != NULL) {
        channels_end(x, failure, 0);
    } else {
        if (json_parse(x->error.p, x->error.n, CHANNELS_ERROR_MAX, &status, "status", ERR_IGNORED) != ERR_OK)
            status = NULL;
        err_set(&e, ERR_UNAVAILABLE, "%s", relay_message(status));
        channels_end(x, &e, x->http);
    }
    channels_leave(x, outer);
}

static void channels_on_drained(void *owner)
{
    struct channels *x = owner;
    bool outer = channels_enter(x);

    if (!x->closed && !x->ended && x->ops->drained != NULL)
        x->ops->drained(x->owner);
    channels_leave(x, outer);
}

static const struct upstream_ops channels_upstream = {
    .head = channels_on_head, .body = channels_on_body, .end = channels_on_end, .drained = channels_on_drained
};

void channels_send(struct channels *x, unsigned char channel, const void *p, size_t n)
{
    struct buf b = BUF_INIT(n + 1);

    buf_addc(&b, (char)channel);
    buf_add(&b, p, n);
    if (!b.failed)
        ws_send(&x->ws, b.p, b.n);
    buf_wipe(&b);
    channels_flush(x);
}

void channels_end_input(struct channels *x)
{
    static const char input[] = { CHANNEL_STDIN };

    channels_send(x, CHANNEL_CLOSE, input, sizeof(input));
}

size_t channels_backlog(const struct channels *x)
{
    return upstream_backlog(x->upstream);
}

void channels_pause(struct channels *x)
{
    upstream_pause(x->upstream);
}

void channels_resume(struct channels *x)
{
    upstream_resume(x->upstream);
}

struct channels *channels_open(struct kube_server *s, const char *target, const struct channels_ops *ops,
                               void *owner, struct err *e)
{
    struct channels *x = calloc(1, sizeof(*x));
    struct buf request = BUF_INIT(HTTP_HEAD_MAX);
    unsigned char key[16];

    if (x == NULL || !ws_init(&x->ws, WS_CLIENT, CHANNELS_OUT_MAX, on_channel_piece, x)) {
        free(x);
        err_nomem(e);
        return NULL;
    }
    x->ops = ops;
    x->owner = owner;
    x->channel = -1;
    buf_init(&x->error, CHANNELS_ERROR_MAX);
    if (RAND_bytes(key, sizeof(key)) != 1)
        request.failed = true;
    buf_addf(&request,
             "GET %s HTTP/1.1\r\nHost: coracle\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\nSec-WebSocket-Key: ",
             target);
    base64_add(&request, key, sizeof(key));
    buf_adds(&request, "\r\n\r\n");
    x->upstream = upstream_open(s, &request, &channels_upstream, x, e);
    if (x->upstream != NULL)
        return x;
    channels_free(x);
    return NULL;
}
