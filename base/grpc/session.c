/* SPDX-License-Identifier: Apache-2.0 */
/* A session's life, its limits, and nghttp2's events. */
#include "base/grpc/internal.h"

#include "base/grpc/status.h"

#include <stdlib.h>
#include <string.h>

/* For each sent frame, a peer may send headers, two window updates and a ping. */
#define CONTROL_PER_FRAME 4

struct grpc_stream *grpc_stream_of(struct grpc_session *s, int32_t id)
{
    return nghttp2_session_get_stream_user_data(s->http, id);
}

/* ---- limits ---- */

static void control_refill(struct grpc_session *s, uint64_t now_ms)
{
    uint64_t more = s->refilled_ms == 0 ? 0 : (now_ms - s->refilled_ms) * GRPC_CONTROL_PER_S / 1000;

    if (s->refilled_ms != 0 && more == 0)
        return;
    s->refilled_ms = now_ms;
    s->control = more > GRPC_CONTROL_BURST - s->control ? GRPC_CONTROL_BURST : s->control + (unsigned)more;
}

/* Counts frames that cost the sender nothing. DATA is limited by the windows. */
static int on_begin_frame(nghttp2_session *http, const nghttp2_frame_hd *hd, void *arg)
{
    struct grpc_session *s = arg;

    (void)http;
    if (hd->type == NGHTTP2_DATA && hd->length > 0)
        return 0;
    if (s->control == 0) {
        s->flooded = true;
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    s->control--;
    return 0;
}

/* ---- received ---- */

static int on_begin_headers(nghttp2_session *http, const nghttp2_frame *frame, void *arg)
{
    struct grpc_session *s = arg;
    struct grpc_stream *st;

    if (frame->hd.type == NGHTTP2_PUSH_PROMISE)
        return NGHTTP2_ERR_CALLBACK_FAILURE; /* this end has announced that it accepts none */
    st = grpc_stream_of(s, frame->hd.stream_id);
    if (st != NULL) {
        st->header_size = 0;
        return 0;
    }
    if (!s->o.server || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    st = grpc_stream_new(s);
    if (st == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    st->id = frame->hd.stream_id;
    nghttp2_session_set_stream_user_data(http, st->id, st);
    return 0;
}

static int on_header(nghttp2_session *http, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                     const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    struct grpc_stream *st = grpc_stream_of(arg, frame->hd.stream_id);

    (void)http;
    (void)flags;
    if (st == NULL || st->over)
        return 0;
    return grpc_stream_header(st, (const char *)name, name_n, (const char *)value, value_n)
               ? 0
               : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_data(nghttp2_session *http, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *arg)
{
    struct grpc_session *s = arg;
    struct grpc_stream *st = grpc_stream_of(s, id);

    (void)flags;
    /* A paused stream must not stop the others. */
    if (nghttp2_session_consume_connection(http, n) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (st == NULL || st->over)
        nghttp2_session_consume_stream(http, id, n);
    else
        grpc_stream_take(st, data, n);
    return 0;
}

static void settings_arrived(struct grpc_session *s)
{
    if (s->greeted)
        return;
    s->greeted = true;
    if (s->o.on->greeted != NULL)
        s->o.on->greeted(s->o.arg);
}

static int on_frame(nghttp2_session *http, const nghttp2_frame *frame, void *arg)
{
    struct grpc_session *s = arg;
    struct grpc_stream *st = NULL;
    bool ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;

    (void)http;
    if (frame->hd.type == NGHTTP2_SETTINGS && !ack)
        settings_arrived(s);
    else if (frame->hd.type == NGHTTP2_PING && ack && s->o.on->pong != NULL)
        s->o.on->pong(s->o.arg);
    else if (frame->hd.type == NGHTTP2_GOAWAY && s->o.on->leaving != NULL)
        s->o.on->leaving(frame->goaway.error_code, s->o.arg);
    if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA)
        st = grpc_stream_of(s, frame->hd.stream_id);
    if (st == NULL)
        return 0;
    st->peer_done = st->peer_done || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !st->over)
        grpc_stream_head_done(st);
    if (st->peer_done) /* not freed before nghttp2 closes it */
        grpc_stream_peer_done(st);
    return 0;
}

static int on_stream_close(nghttp2_session *http, int32_t id, uint32_t error, void *arg)
{
    struct grpc_stream *st = grpc_stream_of(arg, id);

    (void)http;
    if (st == NULL)
        return 0;
    st->closed = true;
    grpc_stream_drop_queue(st);
    if (st->over || (st->peer_done && st->held_n > 0)) /* the rest waits until the owner continues */
        ;
    else if (st->fault != NULL)
        grpc_stream_end(st, st->fault_code, false, "%s", st->fault);
    else if (!st->sent && !st->session->o.server)
        grpc_stream_end(st, ERR_UNAVAILABLE, true, "the connection is draining");
    else
        grpc_stream_end(st, grpc_code_of_reset(error), error == NGHTTP2_REFUSED_STREAM,
                        "stream terminated by RST_STREAM with error code: %s", nghttp2_http2_strerror(error));
    grpc_stream_release(st);
    return 0;
}

/* ---- sent ---- */

static int on_frame_sent(nghttp2_session *http, const nghttp2_frame *frame, void *arg)
{
    struct grpc_session *s = arg;
    struct grpc_stream *st;

    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    s->control = s->control < GRPC_CONTROL_BURST - CONTROL_PER_FRAME ? s->control + CONTROL_PER_FRAME
                                                                     : GRPC_CONTROL_BURST;
    st = grpc_stream_of(s, frame->hd.stream_id);
    if (st == NULL)
        return 0;
    st->sent = true;
    /* The answer is complete: the rest of the request is not needed. */
    if (s->o.server && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 && !st->peer_done)
        nghttp2_submit_rst_stream(http, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_NO_ERROR);
    return 0;
}

/* ---- life ---- */

static int set_callbacks(nghttp2_session_callbacks **ret)
{
    nghttp2_session_callbacks *c;

    if (nghttp2_session_callbacks_new(&c) != 0)
        return NGHTTP2_ERR_NOMEM;
    nghttp2_session_callbacks_set_on_begin_frame_callback(c, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_sent);
    *ret = c;
    return 0;
}

static int open_http(struct grpc_session *s)
{
    /* SETTINGS_NO_RFC7540_PRIORITIES is not among them: with it nghttp2 1.52 frees twice when a push to its
     * queue finds no memory. */
    const nghttp2_settings_entry server[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, s->o.max_streams },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MAX },
    };
    const nghttp2_settings_entry client[] = {
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MAX },
    };
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    int status;

    if (nghttp2_option_new(&option) != 0)
        return NGHTTP2_ERR_NOMEM;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_no_http_messaging(option, s->o.server); /* request_head.c has the rules */
    /* No header tables: they would cost memory for each connection, and save only a few bytes on a local
     * socket. */
    nghttp2_option_set_max_deflate_dynamic_table_size(option, 0);
    status = set_callbacks(&callbacks);
    if (status == 0) {
        status = s->o.server ? nghttp2_session_server_new2(&s->http, callbacks, s, option)
                             : nghttp2_session_client_new2(&s->http, callbacks, s, option);
        nghttp2_session_callbacks_del(callbacks);
    }
    nghttp2_option_del(option);
    if (status != 0)
        return status;
    return s->o.server ? nghttp2_submit_settings(s->http, NGHTTP2_FLAG_NONE, server,
                                                 sizeof(server) / sizeof(server[0]))
                       : nghttp2_submit_settings(s->http, NGHTTP2_FLAG_NONE, client,
                                                 sizeof(client) / sizeof(client[0]));
}

enum err_code grpc_session_new(struct grpc_session **ret, const struct grpc_session_options *o, struct err *e)
{
    struct grpc_session *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return err_nomem(e);
    s->o = *o;
    s->control = GRPC_CONTROL_BURST;
    LIST_INIT(&s->streams);
    if (open_http(s) != 0) {
        grpc_session_free(s);
        return err_nomem(e);
    }
    *ret = s;
    return ERR_OK;
}

void grpc_session_free(struct grpc_session *s)
{
    struct grpc_stream *st;

    if (s == NULL)
        return;
    nghttp2_session_del(s->http);
    while ((st = LIST_FIRST(&s->streams)) != NULL)
        grpc_stream_free(st);
    free(s);
}

static void silent_message(struct grpc_stream *st, struct grpc_bytes message, void *arg)
{
    (void)st;
    (void)message;
    (void)arg;
}

static void silent_begin(struct grpc_stream *st, void *arg)
{
    (void)st;
    (void)arg;
}

static void silent_ended(struct grpc_stream *st, const struct grpc_status *status, bool unseen, void *arg)
{
    (void)st;
    (void)status;
    (void)unseen;
    (void)arg;
}

void grpc_session_silence(struct grpc_session *s)
{
    static const struct grpc_session_events none = { .begin = silent_begin,
                                                     .message = silent_message,
                                                     .ended = silent_ended };

    s->o.on = &none;
}

/* ---- bytes ---- */

enum err_code grpc_session_feed(struct grpc_session *s, const uint8_t *data, size_t n, uint64_t now_ms,
                                struct err *e)
{
    ssize_t used;

    if (s->broken)
        return err_set(e, ERR_UNAVAILABLE, "the connection is broken");
    control_refill(s, now_ms);
    used = nghttp2_session_mem_recv(s->http, data, n);
    if (used >= 0)
        return ERR_OK;
    if (s->flooded) {
        nghttp2_session_terminate_session(s->http, NGHTTP2_ENHANCE_YOUR_CALM);
        return err_set(e, ERR_EXHAUSTED, "too many empty frames");
    }
    s->broken = true;
    if (used == NGHTTP2_ERR_NOMEM)
        return err_nomem(e);
    return err_set(e, ERR_UNAVAILABLE, "%s", nghttp2_strerror((int)used));
}

ssize_t grpc_session_output(struct grpc_session *s, const uint8_t **ret)
{
    ssize_t n = s->broken ? -1 : nghttp2_session_mem_send(s->http, ret);

    s->broken = n < 0;
    return n;
}

bool grpc_session_over(const struct grpc_session *s)
{
    return !nghttp2_session_want_read(s->http) && !nghttp2_session_want_write(s->http);
}

bool grpc_session_greeted(const struct grpc_session *s)
{
    return s->greeted;
}

bool grpc_session_can_ask(const struct grpc_session *s)
{
    return nghttp2_session_check_request_allowed(s->http) != 0;
}

size_t grpc_session_queued(const struct grpc_session *s, uint64_t *ret_taken)
{
    *ret_taken = s->taken;
    return s->queued;
}

size_t grpc_session_streams(const struct grpc_session *s)
{
    return s->n_streams;
}

static struct grpc_stream *known_stream(struct grpc_session *s)
{
    struct grpc_stream *st;

    LIST_FOREACH (st, &s->streams, all)
        if (!st->over)
            return st;
    return NULL;
}

void grpc_session_lost(struct grpc_session *s, const char *text)
{
    struct grpc_stream *st;

    while ((st = known_stream(s)) != NULL) /* an event may end other streams */
        grpc_stream_end(st, ERR_UNAVAILABLE, !s->o.server && !st->sent, "%s", text);
}

void grpc_session_ping(struct grpc_session *s)
{
    nghttp2_submit_ping(s->http, NGHTTP2_FLAG_NONE, NULL);
}

void grpc_session_goaway(struct grpc_session *s)
{
    nghttp2_submit_goaway(s->http, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(s->http),
                          NGHTTP2_NO_ERROR, NULL, 0);
}
