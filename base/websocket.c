/* SPDX-License-Identifier: Apache-2.0 */
#include "base/websocket.h"

#include "base/scope.h"

#include <string.h>

/* ---- reading --------------------------------------------------------------------------------- */

void ws_reader_init(struct ws_reader *r, enum ws_role role)
{
    *r = (struct ws_reader){ .role = role };
}

static enum ws_event websocket_fail(struct ws_reader *r, const char *error)
{
    r->over = true;
    r->close_code = WS_CODE_PROTOCOL;
    r->error = error;
    return WS_FAILED;
}

static bool is_control(const struct ws_reader *r)
{
    return (r->opcode & 8) != 0;
}

/* How long the head is, as far as it is known. */
static size_t head_length(const struct ws_reader *r)
{
    size_t n = 2;

    if (r->head_n < 2)
        return n;
    if ((r->head[1] & 0x7f) == 126)
        n += 2;
    else if ((r->head[1] & 0x7f) == 127)
        n += 8;
    return n + ((r->head[1] & 0x80) != 0 ? 4 : 0);
}

/* As soon as they are there, so that nonsense is not waited for. */
static const char *check_first_two(const struct ws_reader *r)
{
    unsigned opcode = r->head[0] & 0x0f, length = r->head[1] & 0x7f;
    bool fin = (r->head[0] & 0x80) != 0, masked = (r->head[1] & 0x80) != 0;

    if ((r->head[0] & 0x70) != 0)
        return "a reserved bit is set";
    if ((opcode > WS_BINARY && opcode < WS_OP_CLOSE) || opcode > WS_OP_PONG)
        return "an unknown opcode";
    if (masked != (r->role == WS_SERVER))
        return masked ? "a server's frame is masked" : "a client's frame is not masked";
    if (opcode >= WS_OP_CLOSE)
        return !fin                      ? "a control frame is fragmented"
               : length > WS_CONTROL_MAX ? "a control frame is too long"
                                         : NULL;
    if (opcode == WS_CONTINUATION && !r->in_message)
        return "a continuation of nothing";
    if (opcode != WS_CONTINUATION && r->in_message)
        return "a message begins within another";
    return NULL;
}

static const char *take_head(struct ws_reader *r)
{
    unsigned length = r->head[1] & 0x7f;
    size_t at = 2, extra = length == 126 ? 2 : length == 127 ? 8 : 0;
    uint64_t n = extra == 0 ? length : 0;

    for (; extra > 0; extra--)
        n = n << 8 | r->head[at++];
    if (length == 126 ? n < 126 : length == 127 && n <= UINT16_MAX)
        return "a length is not in its shortest form";
    if (n > INT64_MAX)
        return "a length is out of range";
    if (r->role == WS_SERVER)
        memcpy(r->mask, r->head + at, 4);
    r->opcode = r->head[0] & 0x0f;
    r->fin = (r->head[0] & 0x80) != 0;
    r->left = n;
    r->mask_at = r->control_n = 0;
    r->in_frame = true;
    if (!is_control(r)) {
        r->first = r->opcode != WS_CONTINUATION;
        r->in_message = true;
    }
    return NULL;
}

/* Codes that an endpoint may send. */
static bool close_code_valid(unsigned code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
           (code >= 3000 && code <= 4999);
}

static enum ws_event control_event(struct ws_reader *r, struct ws_piece *ret)
{
    const unsigned char *p = (const unsigned char *)r->control;
    unsigned code;

    r->in_frame = false;
    r->head_n = 0;
    r->control[r->control_n] = '\0';
    *ret = (struct ws_piece){ .p = r->control, .n = r->control_n, .first = true, .last = true };
    if (r->opcode != WS_OP_CLOSE)
        return r->opcode == WS_OP_PING ? WS_PING : WS_PONG;
    code = r->control_n >= 2 ? (unsigned)p[0] << 8 | p[1] : WS_CODE_NONE;
    if (r->control_n == 1 || (r->control_n >= 2 && !close_code_valid(code)))
        return websocket_fail(r, "a close frame with an invalid code");
    r->over = true;
    r->close_code = (uint16_t)code;
    return WS_CLOSE;
}

static enum ws_event read_payload(struct ws_reader *r, char *bytes, size_t n, size_t *used,
                                  struct ws_piece *ret)
{
    size_t take = n < r->left ? n : (size_t)r->left;

    if (r->role == WS_SERVER)
        ws_mask(bytes, take, r->mask, &r->mask_at);
    r->left -= take;
    *used += take;
    if (is_control(r)) {
        memcpy(r->control + r->control_n, bytes, take);
        r->control_n += take;
        return r->left == 0 ? control_event(r, ret) : WS_MORE;
    }
    *ret = (struct ws_piece){ .p = bytes, .n = take, .first = r->first, .last = r->left == 0 && r->fin };
    if (take == 0 && r->left > 0)
        return WS_MORE;
    r->first = false;
    if (r->left == 0) {
        r->in_frame = false;
        r->head_n = 0;
        r->in_message = !r->fin;
    }
    return WS_DATA;
}

enum ws_event ws_read(struct ws_reader *r, char *bytes, size_t n, size_t *ret_used, struct ws_piece *ret)
{
    const char *error = NULL;

    *ret_used = 0;
    *ret = (struct ws_piece){ .p = bytes };
    if (r->over) {
        *ret_used = n;
        return WS_MORE;
    }
    while (!r->in_frame) {
        if (*ret_used == n)
            return WS_MORE;
        r->head[r->head_n++] = (unsigned char)bytes[(*ret_used)++];
        if (r->head_n == 2)
            error = check_first_two(r);
        if (error == NULL && r->head_n >= 2 && r->head_n == head_length(r))
            error = take_head(r);
        if (error != NULL)
            return websocket_fail(r, error);
    }
    return read_payload(r, bytes + *ret_used, n - *ret_used, ret_used, ret);
}

/* ---- writing --------------------------------------------------------------------------------- */

size_t ws_head(unsigned char ret[WS_HEAD_MAX], enum ws_opcode opcode, uint64_t n, const unsigned char *mask)
{
    size_t at = 2, extra = n < 126 ? 0 : n <= UINT16_MAX ? 2 : 8;

    ret[0] = (unsigned char)(0x80 | opcode);
    ret[1] = (unsigned char)(extra == 0 ? n : extra == 2 ? 126 : 127);
    for (; extra > 0; extra--)
        ret[at++] = (unsigned char)(n >> (8 * (extra - 1)));
    if (mask != NULL) {
        ret[1] |= 0x80;
        memcpy(ret + at, mask, 4);
        at += 4;
    }
    return at;
}

void ws_mask(char *p, size_t n, const unsigned char mask[4], size_t *at)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(p[i] ^ mask[(*at + i) & 3]);
    *at = (*at + n) & 3;
}

void ws_add_frame(struct buf *b, enum ws_opcode opcode, const void *payload, size_t n)
{
    unsigned char head[WS_HEAD_MAX];

    buf_add(b, head, ws_head(head, opcode, n, NULL));
    buf_add(b, payload, n);
}

void ws_add_close(struct buf *b, uint16_t code, const char *reason)
{
    char payload[WS_CONTROL_MAX];
    size_t n = strnlen(reason, sizeof(payload) - 2);

    payload[0] = (char)(code >> 8);
    payload[1] = (char)(code & 0xff);
    memcpy(payload + 2, reason, n);
    ws_add_frame(b, WS_OP_CLOSE, payload, n + 2);
}
