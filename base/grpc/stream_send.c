/* SPDX-License-Identifier: Apache-2.0 */
/* Sending on a stream: a client's request, a server's answers and status. */
#include "base/grpc/internal.h"

#include "base/buf.h"
#include "base/codec/base64.h"
#include "base/grpc/status.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX (GRPC_METADATA_MAX + 16)

struct fields {
    nghttp2_nv nv[FIELDS_MAX];
    size_t n;
};

static void add_n(struct fields *f, const char *name, const char *value, size_t n)
{
    if (f->n == FIELDS_MAX)
        return;
    f->nv[f->n++] = (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name,
        .namelen = strlen(name),
        .value = (uint8_t *)(uintptr_t)value,
        .valuelen = n,
    };
}

static void add(struct fields *f, const char *name, const char *value)
{
    if (value != NULL)
        add_n(f, name, value, strlen(value));
}

/* ---- a client's request ---- */

static bool is_binary(const char *name)
{
    return str_ends(name, "-bin");
}

static enum err_code submit(struct grpc_stream *st, struct fields *f, const struct grpc_stream_options *o,
                            struct err *e)
{
    nghttp2_data_provider body = { .read_callback = grpc_stream_read };
    char *binary[GRPC_METADATA_MAX] = { NULL };
    size_t n_binary = 0;

    for (size_t i = 0; i < o->n_metadata && i < GRPC_METADATA_MAX; i++) {
        const struct grpc_metadata *m = &o->metadata[i];
        if (!is_binary(m->name)) {
            add_n(f, m->name, m->value, m->value_n);
            continue;
        }
        buf_auto text = BUF_INIT(GRPC_HEADERS_MAX);
        base64_add(&text, m->value, m->value_n);
        binary[n_binary] = text.failed ? NULL : buf_detach(&text);
        if (binary[n_binary] == NULL)
            err_nomem(e);
        else
            add(f, m->name, binary[n_binary++]);
    }
    if (e->code == ERR_OK)
        st->id = nghttp2_submit_request(st->session->http, NULL, f->nv, f->n, &body, st);
    while (n_binary > 0)
        free(binary[--n_binary]);
    if (e->code != ERR_OK)
        return e->code;
    if (st->id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE)
        return err_set(e, ERR_UNAVAILABLE, "the connection has no stream ids left");
    return st->id < 0 ? err_nomem(e) : ERR_OK;
}

enum err_code grpc_stream_open(struct grpc_stream **ret, struct grpc_session *s,
                               const struct grpc_stream_options *o, struct err *e)
{
    struct grpc_stream *st = grpc_stream_new(s);
    char timeout[GRPC_TIMEOUT_SIZE];
    struct fields f = { .n = 0 };

    if (st == NULL)
        return err_nomem(e);
    st->owner = o->owner;
    st->request = o->request;
    grpc_frame_head(st->request_head, o->request.n);
    add(&f, ":method", "POST");
    add(&f, ":scheme", "http");
    add(&f, ":path", o->path);
    add(&f, ":authority", o->authority);
    add(&f, "content-type", "application/grpc");
    add(&f, "user-agent", o->user_agent);
    add(&f, "te", "trailers");
    if (o->timeout_ms > 0) {
        grpc_timeout_format(o->timeout_ms, timeout);
        add(&f, "grpc-timeout", timeout);
    }
    if (submit(st, &f, o, e) != ERR_OK) {
        grpc_stream_free(st);
        return e->code;
    }
    *ret = st;
    return ERR_OK;
}

static ssize_t read_request(struct grpc_stream *st, uint8_t *out, size_t room, uint32_t *flags)
{
    size_t n = 0, k;

    if (st->over) /* the bytes belong to the caller again; a reset will be sent */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    while (n < room && st->at < GRPC_FRAME_HEAD)
        out[n++] = st->request_head[st->at++];
    if (st->at >= GRPC_FRAME_HEAD) {
        k = st->request.n - (st->at - GRPC_FRAME_HEAD);
        k = k < room - n ? k : room - n;
        if (k > 0)
            memcpy(out + n, st->request.p + (st->at - GRPC_FRAME_HEAD), k);
        n += k;
        st->at += k;
    }
    if (st->at == st->request.n + GRPC_FRAME_HEAD)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* ---- a server's answers ---- */

static void drop_first(struct grpc_stream *st)
{
    struct grpc_outgoing *m = STAILQ_FIRST(&st->queue);

    STAILQ_REMOVE_HEAD(&st->queue, link);
    st->session->queued -= m->n;
    grpc_budget_give(st->session->o.budget, m->n);
    free(m);
    st->at = 0;
}

void grpc_stream_drop_queue(struct grpc_stream *st)
{
    while (!STAILQ_EMPTY(&st->queue))
        drop_first(st);
}

static void add_status(struct fields *f, const struct grpc_trailer *t, char code[8])
{
    snprintf(code, 8, "%d", t->code);
    add(f, "grpc-status", code);
    add(f, "grpc-message", t->message);
    add(f, "grpc-status-details-bin", t->details);
}

static ssize_t read_answers(struct grpc_stream *st, uint8_t *out, size_t room, uint32_t *flags)
{
    struct grpc_outgoing *m;
    struct fields f = { .n = 0 };
    char code[8];
    size_t n = 0;

    while (n < room && (m = STAILQ_FIRST(&st->queue)) != NULL) {
        size_t k = m->n - st->at < room - n ? m->n - st->at : room - n;
        memcpy(out + n, m->data + st->at, k);
        n += k;
        st->at += k;
        st->session->taken += k;
        if (st->at == m->n)
            drop_first(st);
    }
    if (STAILQ_EMPTY(&st->queue) && st->finishing) {
        add_status(&f, &st->trailer, code);
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(st->session->http, st->id, f.nv, f.n) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        return (ssize_t)n;
    }
    if (n == 0) {
        st->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)n;
}

ssize_t grpc_stream_read(nghttp2_session *http, int32_t id, uint8_t *out, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *arg)
{
    struct grpc_stream *st = grpc_stream_of(arg, id);

    (void)http;
    (void)source;
    if (st == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return st->session->o.server ? read_answers(st, out, room, flags) : read_request(st, out, room, flags);
}

static enum err_code begin_answer(struct grpc_stream *st, struct err *e)
{
    nghttp2_data_provider body = { .read_callback = grpc_stream_read };
    struct fields f = { .n = 0 };

    if (st->answering)
        return ERR_OK;
    add(&f, ":status", "200");
    add(&f, "content-type", "application/grpc");
    if (nghttp2_submit_response(st->session->http, st->id, f.nv, f.n, &body) != 0)
        return err_nomem(e);
    st->answering = true;
    return ERR_OK;
}

static void resume(struct grpc_stream *st)
{
    if (!st->deferred)
        return;
    st->deferred = false;
    if (nghttp2_session_resume_data(st->session->http, st->id) != 0)
        nghttp2_submit_rst_stream(st->session->http, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_INTERNAL_ERROR);
}

enum err_code grpc_stream_send(struct grpc_stream *st, struct grpc_bytes message, struct err *e)
{
    struct grpc_session *s = st->session;
    size_t n = message.n + GRPC_FRAME_HEAD;
    struct grpc_outgoing *m;

    if (message.n > UINT32_MAX || (s->queued > 0 && (n > s->o.queue_max || s->queued > s->o.queue_max - n)) ||
        !grpc_budget_take(s->o.budget, n))
        return err_set(e, ERR_EXHAUSTED, "%zu bytes are queued for a client that does not read", s->queued);
    m = malloc(sizeof(*m) + n);
    if (m == NULL || begin_answer(st, e) != ERR_OK) {
        free(m);
        grpc_budget_give(s->o.budget, n);
        return err_nomem(e);
    }
    m->n = n;
    grpc_frame_head(m->data, message.n);
    if (message.n > 0)
        memcpy(m->data + GRPC_FRAME_HEAD, message.p, message.n);
    STAILQ_INSERT_TAIL(&st->queue, m, link);
    s->queued += n;
    resume(st);
    return ERR_OK;
}

/* Out of memory: a part that cannot be encoded is left out, because clients act on the code. */
static void set_trailer(struct grpc_stream *st, const struct grpc_status *status)
{
    st->trailer.code = status->code;
    if (status->text[0] != '\0') {
        buf_auto text = BUF_INIT(3 * GRPC_TEXT_MAX);
        grpc_message_encode(&text, status->text);
        st->trailer.message = text.failed ? NULL : buf_detach(&text);
    }
    if (status->details.n > 0 && status->details.n <= GRPC_DETAILS_MAX) {
        buf_auto text = BUF_INIT(2 * GRPC_DETAILS_MAX);
        base64_add(&text, status->details.p, status->details.n);
        st->trailer.details = text.failed ? NULL : buf_detach(&text);
    }
}

static void finish_at_once(struct grpc_stream *st, int http_status)
{
    struct fields f = { .n = 0 };
    char code[8], http[8];

    snprintf(http, sizeof(http), "%d", http_status);
    add(&f, ":status", http);
    add(&f, "content-type", "application/grpc");
    add_status(&f, &st->trailer, code);
    st->answering = true;
    if (nghttp2_submit_response(st->session->http, st->id, f.nv, f.n, NULL) != 0)
        nghttp2_submit_rst_stream(st->session->http, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_INTERNAL_ERROR);
}

static void finish(struct grpc_stream *st, const struct grpc_status *status, int http_status)
{
    if (!st->closed) {
        set_trailer(st, status);
        st->finishing = true;
        if (st->answering)
            resume(st);
        else
            finish_at_once(st, http_status);
    }
    grpc_stream_forget(st);
    grpc_stream_release(st);
}

void grpc_stream_finish(struct grpc_stream *st, const struct grpc_status *status)
{
    finish(st, status, 200);
}

void grpc_stream_refuse(struct grpc_stream *st, int http_status, int code, const char *fmt, ...)
{
    struct grpc_status status = { .code = code };
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(status.text, sizeof(status.text), fmt, ap);
    va_end(ap);
    finish(st, &status, http_status);
}
