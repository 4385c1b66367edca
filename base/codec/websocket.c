/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec/websocket.h"

#include "base/codec/base64.h"

#include <sha1.h>
#include <string.h>
#include <sys/random.h>

/* ---- libwslay's side ---- */

static ssize_t websocket_on_wanted(uint8_t *ret, size_t size, int flags, void *arg)
{
    struct ws *w = arg;
    size_t n = w->in_n < size ? w->in_n : size;

    (void)flags;
    memcpy(ret, w->in, n);
    w->in += n;
    w->in_n -= n;
    return n > 0 ? (ssize_t)n : -1;
}

static ssize_t websocket_on_send(const uint8_t *p, size_t n, int flags, void *arg)
{
    struct ws *w = arg;

    (void)flags;
    buf_add(&w->out, p, n);
    return (ssize_t)n;
}

/* Masking keeps intermediaries from being misled; there are none on our socket, so any mask will do. */
static int websocket_on_mask(uint8_t *ret, size_t n, void *arg)
{
    (void)arg;
    if (getrandom(ret, n, GRND_NONBLOCK) < 0)
        memset(ret, 0, n);
    return 0;
}

bool ws_init(struct ws *w, enum ws_role role, size_t out_max,
             void (*on_piece)(const struct ws_piece *piece, void *owner), void *owner)
{
    static const struct wslay_frame_callbacks callbacks = { websocket_on_send, websocket_on_wanted,
                                                            websocket_on_mask };

    *w = (struct ws){ .role = role, .on_piece = on_piece, .owner = owner };
    buf_init(&w->out, out_max);
    return wslay_frame_context_init(&w->context, &callbacks, w) == 0;
}

void ws_done(struct ws *w)
{
    wslay_frame_context_free(w->context);
    buf_wipe(&w->out);
}

/* ---- sending ---- */

static void websocket_frame(struct ws *w, uint8_t opcode, const void *p, size_t n)
{
    struct wslay_frame_iocb frame = {
        .fin = 1,
        .opcode = opcode,
        .payload_length = n,
        .mask = w->role == WS_CLIENT,
        .data = p,
        .data_length = n,
    };

    if (!w->closed && wslay_frame_send(w->context, &frame) != (ssize_t)n)
        w->out.failed = true;
}

void ws_send(struct ws *w, const void *p, size_t n)
{
    websocket_frame(w, WSLAY_BINARY_FRAME, p, n);
}

void ws_close(struct ws *w, uint16_t code, const char *reason)
{
    char payload[sizeof(w->control)] = { (char)(code >> 8), (char)code };
    size_t n = strnlen(reason, sizeof(payload) - 2);

    memcpy(payload + 2, reason, n);
    websocket_frame(w, WSLAY_CONNECTION_CLOSE, payload, n + 2);
    w->closed = true;
}

/* ---- receiving ---- */

static void websocket_fail(struct ws *w, const char *why)
{
    w->over = true;
    ws_close(w, WSLAY_CODE_PROTOCOL_ERROR, why);
}

/* The checks that libwslay's frame functions leave to the caller. */
static const char *websocket_violation(const struct ws *w, const struct wslay_frame_iocb *f)
{
    if (f->rsv != 0)
        return "a reserved bit is set";
    if (f->opcode > WSLAY_PONG || (f->opcode > WSLAY_BINARY_FRAME && !wslay_is_ctrl_frame(f->opcode)))
        return "an unknown opcode";
    if (f->mask != (w->role == WS_SERVER))
        return f->mask ? "a server's frame is masked" : "a client's frame is not masked";
    if (wslay_is_ctrl_frame(f->opcode) || (f->opcode == WSLAY_CONTINUATION_FRAME) == w->in_message)
        return NULL;
    return w->in_message ? "a message begins within another" : "a continuation of nothing";
}

/* Codes that an endpoint may send. */
static bool websocket_code_valid(unsigned code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
           (code >= 3000 && code <= 4999);
}

static void websocket_control(struct ws *w, uint8_t opcode)
{
    const unsigned char *p = (const unsigned char *)w->control;
    unsigned code = w->control_n >= 2 ? (unsigned)p[0] << 8 | p[1] : WSLAY_CODE_NORMAL_CLOSURE;

    if (opcode == WSLAY_PING) {
        websocket_frame(w, WSLAY_PONG, w->control, w->control_n);
    } else if (opcode == WSLAY_CONNECTION_CLOSE) {
        if (w->control_n == 1 || !websocket_code_valid(code)) {
            websocket_fail(w, "a close frame with an invalid code");
            return;
        }
        w->over = true;
        w->close_code = w->control_n > 0 ? code : WSLAY_CODE_NO_STATUS_RCVD;
        ws_close(w, (uint16_t)code, "");
    }
}

static void websocket_take(struct ws *w, const struct wslay_frame_iocb *f)
{
    const char *why = w->in_frame ? NULL : websocket_violation(w, f);
    struct ws_piece piece = { .p = (const char *)f->data, .n = f->data_length };

    if (why != NULL) {
        websocket_fail(w, why);
        return;
    }
    if (!w->in_frame) {
        w->left = f->payload_length;
        w->control_n = 0;
        w->first = f->opcode != WSLAY_CONTINUATION_FRAME;
    }
    w->left -= f->data_length;
    w->in_frame = w->left > 0;
    if (wslay_is_ctrl_frame(f->opcode)) {
        memcpy(w->control + w->control_n, f->data, f->data_length);
        w->control_n += f->data_length;
        if (!w->in_frame)
            websocket_control(w, f->opcode);
        return;
    }
    piece.first = w->first;
    piece.last = f->fin && !w->in_frame;
    w->first = false;
    w->in_message = !piece.last;
    w->on_piece(&piece, w->owner);
}

bool ws_receive(struct ws *w, const char *bytes, size_t n)
{
    struct wslay_frame_iocb frame;
    ssize_t got = WSLAY_ERR_WANT_READ;

    w->in = bytes;
    w->in_n = n;
    while (!w->over && (got = wslay_frame_recv(w->context, &frame)) >= 0)
        websocket_take(w, &frame);
    if (!w->over && got != WSLAY_ERR_WANT_READ)
        websocket_fail(w, "a malformed frame");
    return !w->over;
}

/* ---- the handshake ---- */

void ws_add_accept_key(struct buf *out, const char *key)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455, 1.3 */
    uint8_t digest[SHA1_DIGEST_LENGTH];
    SHA1_CTX sha1;

    SHA1Init(&sha1);
    SHA1Update(&sha1, (const uint8_t *)key, strlen(key));
    SHA1Update(&sha1, (const uint8_t *)guid, sizeof(guid) - 1);
    SHA1Final(digest, &sha1);
    base64_add(out, digest, sizeof(digest));
}

bool ws_key_valid(const char *key)
{
    size_t n = strspn(key, base64_digits);

    /* The last digit encodes 2 bits. */
    return n == 22 && strcmp(key + n, "==") == 0 && strchr("AQgw", key[n - 1]) != NULL;
}
