/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/server/spdy.h"

#include "agent/kube/server/spdy_internal.h"

#include <string.h>

enum { HEAD = 8, VERSION = 3, FIN = 1, ACKNOWLEDGE = SPDY_WINDOW / 2 };
enum { SYN_STREAM = 1, SYN_REPLY, RST_STREAM, SETTINGS, PING = 6, GOAWAY, HEADERS, WINDOW_UPDATE };
enum { INITIAL_WINDOW_SIZE = 7 }; /* of SETTINGS */

static uint32_t spdy_u32(const void *at)
{
    const unsigned char *b = at;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void spdy_put_u32(unsigned char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* ---- streams ---- */

static struct spdy_stream *spdy_find(const struct spdy *s, uint32_t id)
{
    for (size_t i = 0; id != 0 && i < SPDY_STREAMS_MAX; i++)
        if (s->streams[i].id == id)
            return (struct spdy_stream *)(uintptr_t)&s->streams[i];
    return NULL;
}

static void stream_drop_if_done(struct spdy_stream *st)
{
    if (st->peer_done && st->own_done)
        st->id = 0;
}

/* ---- frames out ---- */

static void spdy_add_control(struct buf *b, unsigned type, uint32_t length)
{
    unsigned char head[HEAD] = { 0x80, VERSION, (unsigned char)(type >> 8), (unsigned char)type };

    spdy_put_u32(head + 4, length);
    buf_add(b, head, HEAD);
}

static void spdy_add_pair(struct spdy *s, unsigned type, uint32_t a, uint32_t b)
{
    unsigned char body[8];

    spdy_put_u32(body, a);
    spdy_put_u32(body + 4, b);
    spdy_add_control(&s->out, type, 8);
    buf_add(&s->out, body, 8);
}

void spdy_reset(struct spdy *s, uint32_t id, enum spdy_status status)
{
    struct spdy_stream *st = spdy_find(s, id);

    if (st != NULL)
        st->id = 0;
    if (!s->over)
        spdy_add_pair(s, RST_STREAM, id, status);
}

static void spdy_end(struct spdy *s, uint32_t status)
{
    if (s->over)
        return;
    s->over = true;
    spdy_add_pair(s, GOAWAY, s->last_id, status);
}

void spdy_goaway(struct spdy *s)
{
    spdy_end(s, 0);
}

static void spdy_add_reply(struct spdy *s, uint32_t id)
{
    unsigned char number[4];
    size_t at = s->out.n;

    spdy_add_control(&s->out, SYN_REPLY, 0);
    spdy_put_u32(number, id);
    buf_add(&s->out, number, 4);
    if (s->out.failed || !spdy_headers_add_none(s, &s->out)) {
        s->out.failed = true;
        return;
    }
    spdy_put_u32((unsigned char *)s->out.p + at + 4, (uint32_t)(s->out.n - at - HEAD));
}

size_t spdy_room(const struct spdy *s, uint32_t id)
{
    const struct spdy_stream *st = spdy_find(s, id);

    if (st == NULL || st->own_done || s->over)
        return 0;
    if (!st->flow)
        return SIZE_MAX;
    return st->window > 0 ? (size_t)st->window : 0;
}

void spdy_send(struct spdy *s, uint32_t id, const void *p, size_t n, bool fin)
{
    struct spdy_stream *st = spdy_find(s, id);
    const char *from = p;

    if (st == NULL || st->own_done || s->over || (n == 0 && !fin))
        return;
    st->window -= (int64_t)n;
    do {
        size_t piece = n < SPDY_DATA_MAX ? n : SPDY_DATA_MAX;
        unsigned char head[HEAD];

        n -= piece;
        spdy_put_u32(head, id);
        spdy_put_u32(head + 4, (uint32_t)piece | (fin && n == 0 ? (uint32_t)FIN << 24 : 0));
        buf_add(&s->out, head, HEAD);
        if (piece > 0)
            buf_add(&s->out, from, piece);
        from += piece;
    } while (n > 0);
    if (fin) {
        st->own_done = true;
        stream_drop_if_done(st);
    }
}

/* ---- frames in ---- */

static void spdy_peer_fin(struct spdy *s, struct spdy_stream *st)
{
    uint32_t id = st->id;

    if (st->peer_done)
        return;
    st->peer_done = true;
    stream_drop_if_done(st);
    s->events->on_fin(id, s->owner);
}

static void spdy_take_syn_stream(struct spdy *s, unsigned flags)
{
    struct spdy_headers headers;
    struct spdy_stream *st = NULL;
    uint32_t id;

    /* The block is read in any case: it changes the state of the decompression. */
    if (s->control.n < 10 || !spdy_headers_read(s, s->control.p + 10, s->control.n - 10, &headers)) {
        spdy_end(s, SPDY_PROTOCOL_ERROR);
        return;
    }
    id = spdy_u32(s->control.p) & 0x7fffffff;
    if (id <= s->last_id || id % 2 == 0) {
        spdy_end(s, SPDY_PROTOCOL_ERROR);
        return;
    }
    s->last_id = id;
    for (size_t i = 0; i < SPDY_STREAMS_MAX && st == NULL; i++)
        if (s->streams[i].id == 0)
            st = &s->streams[i];
    if (st == NULL) {
        spdy_reset(s, id, SPDY_REFUSED_STREAM);
        return;
    }
    *st = (struct spdy_stream){ .id = id, .window = s->initial_window };
    if (!s->events->on_stream(id, &headers, s->owner)) {
        spdy_reset(s, id, SPDY_REFUSED_STREAM);
        return;
    }
    spdy_add_reply(s, id);
    s->events->on_opened(id, s->owner);
    if ((flags & FIN) != 0 && st->id == id)
        spdy_peer_fin(s, st);
}

static void spdy_take_headers(struct spdy *s, unsigned flags)
{
    struct spdy_headers ignored;
    struct spdy_stream *st;

    if (s->control.n < 4 || !spdy_headers_read(s, s->control.p + 4, s->control.n - 4, &ignored)) {
        spdy_end(s, SPDY_PROTOCOL_ERROR);
        return;
    }
    st = spdy_find(s, spdy_u32(s->control.p) & 0x7fffffff);
    if (st != NULL && (flags & FIN) != 0)
        spdy_peer_fin(s, st);
}

static void spdy_take_settings(struct spdy *s)
{
    size_t n = s->control.n < 4 ? 0 : spdy_u32(s->control.p);

    if (s->control.n < 4 || n != (s->control.n - 4) / 8 || (s->control.n - 4) % 8 != 0) {
        spdy_end(s, SPDY_PROTOCOL_ERROR);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const char *entry = s->control.p + 4 + 8 * i;
        int64_t value = (int64_t)(spdy_u32(entry + 4) & 0x7fffffff);

        if ((spdy_u32(entry) & 0xffffff) != INITIAL_WINDOW_SIZE)
            continue;
        for (size_t k = 0; k < SPDY_STREAMS_MAX; k++)
            s->streams[k].window += value - s->initial_window;
        s->initial_window = value;
    }
}

static void spdy_take_window_update(struct spdy *s)
{
    struct spdy_stream *st = spdy_find(s, spdy_u32(s->control.p) & 0x7fffffff);
    int64_t delta = (int64_t)(spdy_u32(s->control.p + 4) & 0x7fffffff);

    if (st == NULL)
        return;
    if (st->window + delta > INT32_MAX) {
        uint32_t id = st->id;

        spdy_reset(s, id, 7 /* FLOW_CONTROL_ERROR */);
        s->events->on_reset(id, s->owner);
        return;
    }
    st->flow = true;
    st->window += delta;
}

static void spdy_take_control(struct spdy *s)
{
    unsigned type = (unsigned)s->head[2] << 8 | s->head[3], flags = s->head[4];
    struct spdy_stream *st;
    uint32_t id;

    switch (type) {
    case SYN_STREAM:
        spdy_take_syn_stream(s, flags);
        return;
    case SYN_REPLY: /* we open no streams; its headers count for the decompression */
    case HEADERS:
        spdy_take_headers(s, flags);
        return;
    case SETTINGS:
        spdy_take_settings(s);
        return;
    case RST_STREAM:
    case WINDOW_UPDATE:
        if (s->control.n != 8)
            break;
        id = spdy_u32(s->control.p) & 0x7fffffff;
        st = spdy_find(s, id);
        if (type == WINDOW_UPDATE) {
            spdy_take_window_update(s);
        } else if (st != NULL) {
            st->id = 0;
            s->events->on_reset(id, s->owner);
        }
        return;
    case PING:
        if (s->control.n != 4)
            break;
        if (spdy_u32(s->control.p) % 2 == 1) { /* the peer's; even ones would answer ours */
            spdy_add_control(&s->out, PING, 4);
            buf_add(&s->out, s->control.p, 4);
        }
        return;
    default: /* GOAWAY: it opens no more streams, the open ones go on; others are to be ignored */
        return;
    }
    spdy_end(s, SPDY_PROTOCOL_ERROR);
}

static void spdy_take_data(struct spdy *s, const char *p, size_t n)
{
    uint32_t id = spdy_u32(s->head) & 0x7fffffff;
    struct spdy_stream *st = spdy_find(s, id);

    if (st == NULL || st->peer_done)
        return; /* it may not know yet that the stream is gone */
    if (n > 0) {
        st->taken += (uint32_t)n;
        if (st->taken >= ACKNOWLEDGE) {
            spdy_add_pair(s, WINDOW_UPDATE, id, st->taken);
            st->taken = 0;
        }
        s->events->on_data(id, p, n, s->owner);
    }
    if (s->left == 0 && (s->head[4] & FIN) != 0) {
        st = spdy_find(s, id);
        if (st != NULL)
            spdy_peer_fin(s, st);
    }
}

static bool spdy_is_control(const struct spdy *s)
{
    return (s->head[0] & 0x80) != 0;
}

/* A head is there. False: it is no frame of this protocol. */
static bool spdy_begin_frame(struct spdy *s)
{
    s->left = spdy_u32(s->head + 4) & 0xffffff;
    buf_reset(&s->control);
    return !spdy_is_control(s) ||
           ((s->head[0] & 0x7f) == 0 && s->head[1] == VERSION && s->left <= SPDY_CONTROL_MAX);
}

static void spdy_end_frame(struct spdy *s)
{
    if (spdy_is_control(s))
        spdy_take_control(s);
    s->head_n = 0;
}

bool spdy_receive(struct spdy *s, const char *bytes, size_t n)
{
    while (n > 0 && !s->over) {
        size_t piece;

        if (s->head_n < HEAD) {
            s->head[s->head_n++] = (unsigned char)*bytes++;
            n--;
            if (s->head_n < HEAD)
                continue;
            if (!spdy_begin_frame(s)) {
                spdy_end(s, SPDY_PROTOCOL_ERROR);
                break;
            }
            if (s->left == 0) {
                if (!spdy_is_control(s))
                    spdy_take_data(s, bytes, 0);
                spdy_end_frame(s);
            }
            continue;
        }
        piece = n < s->left ? n : s->left;
        s->left -= (uint32_t)piece;
        if (spdy_is_control(s))
            buf_add(&s->control, bytes, piece);
        else
            spdy_take_data(s, bytes, piece);
        bytes += piece;
        n -= piece;
        if (s->control.failed)
            spdy_end(s, 2 /* INTERNAL_ERROR */);
        else if (s->left == 0)
            spdy_end_frame(s);
    }
    return !s->over;
}

/* ---- life ---- */

enum err_code spdy_init(struct spdy *s, size_t out_max, const struct spdy_events *events, void *owner,
                        struct err *e)
{
    *s = (struct spdy){ .events = events, .owner = owner, .initial_window = SPDY_WINDOW };
    buf_init(&s->out, out_max);
    buf_init(&s->control, SPDY_CONTROL_MAX);
    buf_init(&s->text, SPDY_HEADERS_MAX + 1024);
    if (inflateInit(&s->inflate) != Z_OK)
        return err_nomem(e);
    if (deflateInit2(&s->deflate, Z_BEST_SPEED, Z_DEFLATED, 11, 1, Z_DEFAULT_STRATEGY) != Z_OK) {
        inflateEnd(&s->inflate);
        return err_nomem(e);
    }
    if (deflateSetDictionary(&s->deflate, spdy_dictionary, SPDY_DICTIONARY_SIZE) != Z_OK) {
        spdy_done(s);
        return err_nomem(e);
    }
    return ERR_OK;
}

void spdy_done(struct spdy *s)
{
    inflateEnd(&s->inflate);
    deflateEnd(&s->deflate);
    buf_done(&s->out);
    buf_done(&s->control);
    buf_done(&s->text);
}
