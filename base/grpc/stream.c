/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's life, the messages that arrive on it, and its end. */
#include "base/grpc/internal.h"

#include "base/buf.h"
#include "base/codec/go_quote.h"
#include "base/grpc/status.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct grpc_stream *grpc_stream_new(struct grpc_session *s)
{
    struct grpc_stream *st = calloc(1, sizeof(*st));

    if (st == NULL)
        return NULL;
    st->session = s;
    st->code = -1;
    st->frames = (struct grpc_frames){ .max = s->o.message_max, .budget = s->o.budget };
    STAILQ_INIT(&st->queue);
    LIST_INSERT_HEAD(&s->streams, st, all);
    s->n_streams++;
    return st;
}

static void drop_held(struct grpc_stream *st)
{
    grpc_budget_give(st->session->o.budget, st->held_n);
    free(st->held);
    st->held = NULL;
    st->held_n = 0;
}

void grpc_stream_free(struct grpc_stream *st)
{
    LIST_REMOVE(st, all);
    if (!st->over)
        st->session->n_streams--;
    grpc_stream_drop_queue(st);
    grpc_frames_done(&st->frames);
    drop_held(st);
    grpc_budget_give(st->session->o.budget, st->charged);
    grpc_metadata_free(st->metadata, st->n_metadata);
    free(st->path);
    free(st->text);
    free(st->details);
    free(st->trailer.message);
    free(st->trailer.details);
    free(st);
}

void grpc_stream_release(struct grpc_stream *st)
{
    if (st->over && st->closed && !st->delivering)
        grpc_stream_free(st);
}

void grpc_stream_forget(struct grpc_stream *st)
{
    if (st->over)
        return;
    st->over = true;
    st->session->n_streams--;
    if (st->held_n > 0 && !st->closed)
        nghttp2_session_consume_stream(st->session->http, st->id, st->held_n);
    drop_held(st);
    if (!st->delivering) /* otherwise its message is being read */
        grpc_frames_done(&st->frames);
}

/* ---- the end ---- */

/* A client's stream closes when both sides are complete. */
static void reset(struct grpc_stream *st, uint32_t error)
{
    bool complete = !st->session->o.server && st->peer_done && st->at == st->request.n + GRPC_FRAME_HEAD;

    if (!st->closed && !complete)
        nghttp2_submit_rst_stream(st->session->http, NGHTTP2_FLAG_NONE, st->id, error);
}

static void report_end(struct grpc_stream *st, const struct grpc_status *status, bool unseen)
{
    const struct grpc_session *s = st->session;
    bool announced = st->begun || !s->o.server;

    if (st->over)
        return;
    if (announced) /* its metadata can be read until then */
        s->o.on->ended(st, status, unseen, s->o.arg);
    grpc_stream_forget(st);
}

void grpc_stream_end(struct grpc_stream *st, int code, bool unseen, const char *fmt, ...)
{
    struct grpc_status status = { .code = code };
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(status.text, sizeof(status.text), fmt, ap);
    va_end(ap);
    report_end(st, &status, unseen);
}

void grpc_stream_cancel(struct grpc_stream *st)
{
    reset(st, NGHTTP2_CANCEL);
    grpc_stream_forget(st);
    grpc_stream_drop_queue(st);
    grpc_stream_release(st);
}

void grpc_stream_reject(struct grpc_stream *st)
{
    reset(st, NGHTTP2_PROTOCOL_ERROR);
    grpc_stream_end(st, ERR_INTERNAL, false, "malformed headers");
}

/* This end refuses the received data. */
static void fail(struct grpc_stream *st, int code, const char *text)
{
    if (st->session->o.server) {
        struct grpc_status status = { .code = code };
        snprintf(status.text, sizeof(status.text), "%s", text);
        if (st->begun)
            st->session->o.on->ended(st, &status, false, st->session->o.arg);
        if (!st->over)
            grpc_stream_finish(st, &status);
        return;
    }
    reset(st, NGHTTP2_CANCEL);
    grpc_stream_end(st, code, false, "%s", text);
}

/* ---- messages ---- */

static void refuse_frame(struct grpc_stream *st, enum grpc_frame why)
{
    char text[128] = "";

    if (why == GRPC_FRAME_TOO_LARGE)
        snprintf(text, sizeof(text), "grpc: received message larger than max (%zu vs. %zu)", st->frames.size,
                 st->frames.max);
    switch (why) {
    case GRPC_FRAME_TOO_LARGE:
        fail(st, ERR_EXHAUSTED, text);
        break;
    case GRPC_FRAME_COMPRESSED:
        if (st->encoding[0] == '\0' || strcmp(st->encoding, "identity") == 0) {
            fail(st, ERR_INTERNAL, "grpc: compressed flag set with identity or empty encoding");
        } else {
            buf_auto b = BUF_INIT(256);
            buf_adds(&b, "grpc: Decompressor is not installed for grpc-encoding ");
            go_quote(&b, st->encoding, strlen(st->encoding));
            fail(st, st->session->o.server ? ERR_UNIMPLEMENTED : ERR_INTERNAL, b.p);
        }
        break;
    case GRPC_FRAME_NO_ROOM:
        fail(st, ERR_EXHAUSTED, "too much is received at once");
        break;
    case GRPC_FRAME_NO_MEMORY:
        fail(st, ERR_EXHAUSTED, "out of memory");
        break;
    case GRPC_FRAME_MORE:
    case GRPC_FRAME_MESSAGE:
        break;
    }
}

/* Returns how many bytes are left because the owner paused or ended the stream. */
static size_t deliver(struct grpc_stream *st, const uint8_t *data, size_t n)
{
    const struct grpc_session *s = st->session;
    struct grpc_bytes message;
    size_t used;

    st->delivering = true;
    while (n > 0 && !st->over && !st->paused) {
        enum grpc_frame got = grpc_frames_take(&st->frames, data, n, &used, &message);
        data += used;
        n -= used;
        if (got == GRPC_FRAME_MESSAGE)
            s->o.on->message(st, message, s->o.arg);
        else if (got != GRPC_FRAME_MORE)
            refuse_frame(st, got);
    }
    st->delivering = false;
    if (st->over)
        grpc_frames_done(&st->frames);
    return n;
}

static void hold(struct grpc_stream *st, const uint8_t *data, size_t n)
{
    uint8_t *p;

    if (!grpc_budget_take(st->session->o.budget, n)) {
        refuse_frame(st, GRPC_FRAME_NO_ROOM);
        return;
    }
    p = realloc(st->held, st->held_n + n);
    if (p == NULL) {
        grpc_budget_give(st->session->o.budget, n);
        refuse_frame(st, GRPC_FRAME_NO_MEMORY);
        return;
    }
    memcpy(p + st->held_n, data, n);
    st->held = p;
    st->held_n += n;
}

static void consume(struct grpc_stream *st, size_t n)
{
    if (!st->closed && n > 0)
        nghttp2_session_consume_stream(st->session->http, st->id, n);
}

void grpc_stream_take(struct grpc_stream *st, const uint8_t *data, size_t n)
{
    size_t left = n;

    if (st->held_n == 0 && !st->delivering)
        left = deliver(st, data, n);
    consume(st, st->over ? n : n - left);
    if (left > 0 && !st->over)
        hold(st, data + n - left, left);
    grpc_stream_release(st);
}

void grpc_stream_pause(struct grpc_stream *st, bool on)
{
    st->paused = on;
    if (on || st->delivering)
        return;
    while (st->held_n > 0 && !st->paused && !st->over) {
        uint8_t *held = st->held;
        size_t n = st->held_n, left;

        st->held = NULL;
        st->held_n = 0;
        left = deliver(st, held, n);
        grpc_budget_give(st->session->o.budget, n);
        consume(st, st->over ? n : n - left);
        if (left > 0 && !st->over)
            hold(st, held + n - left, left);
        free(held);
    }
    if (!st->over && st->held_n == 0 && st->peer_done)
        grpc_stream_peer_done(st);
    grpc_stream_release(st);
}

/* ---- the end of the peer's side ---- */

static void not_grpc(struct grpc_stream *st)
{
    buf_auto b = BUF_INIT(900);

    if (st->http_status != 200)
        buf_addf(&b, "unexpected HTTP status code received from server: %d (%s)", st->http_status,
                 grpc_http_text(st->http_status));
    if (!grpc_is_content_type(st->content_type)) {
        buf_adds(&b, b.n > 0 ? "; " : "");
        if (st->content_type[0] == '\0') {
            buf_adds(&b, "malformed header: missing HTTP content-type");
        } else {
            buf_adds(&b, "transport: received unexpected content-type ");
            go_quote(&b, st->content_type, strlen(st->content_type));
        }
    }
    reset(st, NGHTTP2_CANCEL);
    grpc_stream_end(st, grpc_code_of_http(st->http_status), false, "%s", b.p);
}

void grpc_stream_conclude(struct grpc_stream *st)
{
    struct grpc_status status = { .code = st->code };

    if (st->code > ERR_UNAUTHENTICATED)
        status = (struct grpc_status){ .code = ERR_UNKNOWN, .number = st->code };
    if (st->http_status != 200 || !grpc_is_content_type(st->content_type)) {
        not_grpc(st);
        return;
    }
    if (!st->peer_done)
        return;
    reset(st, NGHTTP2_NO_ERROR); /* the rest of the request is not needed */
    if (st->code < 0) {
        grpc_stream_end(st, ERR_INTERNAL, false, "server closed the stream without sending trailers");
        return;
    }
    if (st->code == ERR_OK && !grpc_frames_between(&st->frames)) {
        grpc_stream_end(st, ERR_INTERNAL, false, "unexpected EOF");
        return;
    }
    if (st->text != NULL)
        snprintf(status.text, sizeof(status.text), "%s", st->text);
    status.details = (struct grpc_bytes){ st->details, st->n_details };
    report_end(st, &status, false);
}

void grpc_stream_peer_done(struct grpc_stream *st)
{
    const struct grpc_session *s = st->session;

    if (st->over || st->held_n > 0)
        return;
    if (!s->o.server)
        grpc_stream_conclude(st);
    else if (st->begun && s->o.on->asked != NULL)
        s->o.on->asked(st, s->o.arg);
}

/* ---- for the owner ---- */

void *grpc_stream_owner(const struct grpc_stream *st)
{
    return st->owner;
}

void grpc_stream_set_owner(struct grpc_stream *st, void *owner)
{
    st->owner = owner;
}

const char *grpc_stream_path(const struct grpc_stream *st)
{
    return st->path != NULL ? st->path : "";
}

bool grpc_stream_timeout(const struct grpc_stream *st, uint64_t *ret_ms)
{
    if (st->has_timeout)
        *ret_ms = st->timeout_ms;
    return st->has_timeout;
}

const struct grpc_metadata *grpc_stream_metadata(const struct grpc_stream *st, size_t *ret_n)
{
    *ret_n = st->n_metadata;
    return st->metadata;
}

struct grpc_metadata *grpc_stream_take_metadata(struct grpc_stream *st, size_t *ret_n)
{
    *ret_n = st->n_metadata;
    st->n_metadata = 0;
    return take_ptr(&st->metadata);
}

void grpc_metadata_free(struct grpc_metadata *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((char *)(uintptr_t)m[i].name);
    free(m);
}
