/* SPDX-License-Identifier: Apache-2.0 */
/* caller - a connection of a client: TLS, requests one by one, and the bytes that are sent. One
 * timer covers the handshake and a request, idle time, and a client that accepts nothing. */
#include "agent/kube/server/internal.h"

#include "base/log.h"
#include "base/scope.h"

#include <string.h>

static void caller_parse(struct caller *c);

struct caller_write {
    uv_write_t req;
    struct caller *caller;
    char *data;
};

/* ---- the end ---- */

static void caller_on_closed(uv_handle_t *handle)
{
    struct caller *c = handle->data;
    struct kube_server *s = c->server;

    if (--c->open_handles > 0)
        return;
    LIST_REMOVE(c, all);
    s->n_callers--;
    tls_done(&c->tls);
    buf_wipe(&c->in);
    buf_wipe(&c->body);
    http_parser_done(&c->parser);
    explicit_bzero(c->token, sizeof(c->token));
    if (s->spare == NULL)
        s->spare = c;
    else
        free(c);
    /* libuv accepts no connection of a port while an earlier one is pending. */
    if (s->waits != NULL && !s->closing)
        caller_accept(s, s->waits, s->waits == (uv_stream_t *)&s->read_only_port);
    kube_server_maybe_free(s);
}

static void caller_drop_source(struct caller *c)
{
    const struct caller_source *source = c->source;

    c->source = NULL;
    if (source != NULL)
        source->gone(c);
}

void caller_close(struct caller *c)
{
    if (c->state == CALLER_CLOSING)
        return;
    c->state = CALLER_CLOSING;
    caller_drop_source(c);
    uv_close((uv_handle_t *)&c->tcp, caller_on_closed);
    uv_close((uv_handle_t *)&c->timer, caller_on_closed);
}

void caller_serve(struct caller *c, const struct caller_source *source, void *job)
{
    if (c->state != CALLER_RAW)
        c->state = CALLER_SERVED;
    c->source = source;
    c->job = job;
}

void caller_over(struct caller *c)
{
    if (c->source == NULL)
        return;
    caller_drop_source(c);
    caller_leave(c);
}

/* ---- sending ---- */

size_t caller_backlog(const struct caller *c)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp);
}

void caller_arm(struct caller *c, uint64_t ms)
{
    c->progress = caller_backlog(c);
    uv_timer_start(&c->timer, caller_on_timer, ms, 0);
}

/* Nothing is unsent: how long it may be silent. */
static void caller_rest(struct caller *c)
{
    if (c->state == CALLER_LEAVING)
        caller_arm(c, CALLER_LINGER_MS);
    else if (c->state != CALLER_READING)
        caller_arm(c, c->silent_ms != 0        ? c->silent_ms
                      : c->state == CALLER_RAW ? c->server->rules.idle_ms
                                               : CALLER_STREAM_MS);
}

/* The answer is complete. The next request waits until it is sent, so that a client cannot accumulate unread
 * answers. */
void caller_next(struct caller *c)
{
    c->answered = c->writes > 0 && !c->last;
    if (c->answered)
        return;
    if (c->last) {
        caller_leave(c);
        return;
    }
    c->state = CALLER_READING;
    http_parser_next(&c->parser);
    caller_arm(c, c->in.n > 0 ? CALLER_HEAD_MS : CALLER_IDLE_MS);
    caller_resume(c);
    caller_parse(c);
}

static void caller_on_written(uv_write_t *req, int status)
{
    struct caller_write *w = (struct caller_write *)req;
    struct caller *c = w->caller;

    free(w->data);
    free(w);
    if (c->state == CALLER_CLOSING)
        return;
    c->writes--;
    if (status < 0) {
        caller_close(c);
        return;
    }
    if (c->high && caller_backlog(c) <= CALLER_OUT_HIGH / 2) {
        c->high = false;
        if (c->source != NULL && c->source->drained != NULL)
            c->source->drained(c);
    }
    if (c->state == CALLER_CLOSING || c->writes > 0)
        return;
    caller_rest(c);
    if (c->answered)
        caller_next(c);
}

/* Takes the content. */
static void caller_write(struct caller *c, struct buf *b)
{
    struct caller_write *w = calloc(1, sizeof(*w));
    size_t n = b->n;
    char *data = b->failed || w == NULL ? NULL : buf_detach(b);
    uv_buf_t piece = uv_buf_init(data, (unsigned)n);

    buf_done(b);
    if (data == NULL || caller_backlog(c) + n > CALLER_OUT_MAX) {
        free(w);
        free(data);
        caller_close(c);
        return;
    }
    *w = (struct caller_write){ .caller = c, .data = data };
    if (uv_write(&w->req, (uv_stream_t *)&c->tcp, &piece, 1, caller_on_written) != 0) {
        free(w);
        free(data);
        caller_close(c);
        return;
    }
    if (c->writes++ == 0)
        caller_arm(c, CALLER_WRITE_MS);
    c->high = c->high || caller_backlog(c) > CALLER_OUT_HIGH;
}

void caller_send(struct caller *c, const void *p, size_t n)
{
    struct buf out = BUF_INIT(SIZE_MAX - 1);
    struct err e = { 0 };

    if (c->state == CALLER_CLOSING || c->state == CALLER_LEAVING || n == 0)
        return;
    if (c->tls.ssl == NULL)
        buf_add(&out, p, n);
    else if (tls_send(&c->tls, p, n, &out, &e) != ERR_OK)
        out.failed = true;
    caller_write(c, &out);
}

static void caller_on_shutdown(uv_shutdown_t *req, int status)
{
    struct caller *c = req->data;

    free(req);
    if (status < 0 && c->state != CALLER_CLOSING)
        caller_close(c);
}

/* A client whose bytes are still unread would lose the end of its answer if the socket were closed now. */
void caller_leave(struct caller *c)
{
    uv_shutdown_t *req;
    struct buf out = BUF_INIT(4096);

    if (c->state == CALLER_CLOSING || c->state == CALLER_LEAVING)
        return;
    c->source = NULL;
    if (c->tls.ssl != NULL && SSL_is_init_finished(c->tls.ssl))
        tls_close(&c->tls, &out);
    if (out.n > 0)
        caller_write(c, &out);
    buf_done(&out);
    req = c->state == CALLER_CLOSING ? NULL : calloc(1, sizeof(*req));
    if (req == NULL) {
        caller_close(c);
        return;
    }
    c->state = CALLER_LEAVING;
    req->data = c;
    if (uv_shutdown(req, (uv_stream_t *)&c->tcp, caller_on_shutdown) != 0) {
        free(req);
        caller_close(c);
        return;
    }
    buf_reset(&c->in);
    caller_resume(c);
    if (c->writes == 0)
        caller_rest(c);
}

/* ---- requests ---- */

static void caller_parse(struct caller *c)
{
    while (c->state == CALLER_READING && c->in.n > 0) {
        size_t used = http_parser_feed(&c->parser, c->in.p, c->in.n);

        buf_remove_front(&c->in, used);
        if (c->parser.state == PARSE_MORE)
            continue;
        c->state = CALLER_ASKING;
        caller_arm(c, CALLER_STREAM_MS);
        if (c->parser.state == PARSE_FAILED) {
            c->last = true;
            caller_text(c, c->parser.http_code, c->parser.error);
        } else {
            c->server->on_request(c);
        }
    }
}

static void caller_take(struct caller *c)
{
    if (c->state == CALLER_LEAVING) {
        buf_reset(&c->in);
    } else if (c->state == CALLER_RAW) {
        if (c->writes == 0)
            caller_rest(c);
        if (c->source != NULL && c->source->input != NULL)
            c->source->input(c);
    } else {
        if (c->state == CALLER_READING && !c->parser.begun)
            caller_arm(c, CALLER_HEAD_MS);
        caller_parse(c);
        /* Pipelined requests wait; while the socket is not read, a disconnect is not seen. */
        if (c->state != CALLER_CLOSING && c->in.n > HTTP_HEAD_MAX + HTTP_BODY_MAX)
            caller_pause(c);
    }
}

/* The handshake is over. The body of a request to the local API is kept for the administrator alone: it may
 * be large. */
static void caller_meet(struct caller *c)
{
    json_auto_t *who = NULL;

    c->met = true;
    if (c->server->on_request == access_begin || tls_identity(&c->tls, &who, ERR_IGNORED) != ERR_OK)
        return;
    c->proven = true;
    c->parser.body = &c->body;
}

void caller_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct caller *c = handle->data;

    (void)suggested;
    *ret = uv_buf_init(c->server->read_buffer, sizeof(c->server->read_buffer));
}

void caller_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece)
{
    struct caller *c = stream->data;
    struct buf out = BUF_INIT(SIZE_MAX - 1);
    struct err e = { 0 };
    bool end = false;

    if (n == 0 || c->state == CALLER_CLOSING)
        return;
    if (n < 0) {
        caller_close(c);
        return;
    }
    if (c->tls.ssl == NULL)
        buf_add(&c->in, piece->base, (size_t)n);
    else if (tls_receive(&c->tls, piece->base, (size_t)n, &c->in, &out, &end, &e) != ERR_OK)
        log_debug("a client of the node's port", F_ERR(&e));
    if (out.n > 0 && c->state != CALLER_LEAVING)
        caller_write(c, &out);
    buf_done(&out);
    if (c->state == CALLER_CLOSING)
        return;
    if (c->tls.ssl != NULL && !c->met && SSL_is_init_finished(c->tls.ssl))
        caller_meet(c);
    if (e.code != ERR_OK || c->in.failed) {
        /* An alert that could not be sent is ignored. */
        caller_close(c);
        return;
    }
    if (c->in.n > 0)
        caller_take(c);
    if (end && c->state != CALLER_CLOSING)
        caller_close(c);
}

void caller_pause(struct caller *c)
{
    if (c->paused || c->state == CALLER_CLOSING)
        return;
    uv_read_stop((uv_stream_t *)&c->tcp);
    c->paused = true;
}

void caller_resume(struct caller *c)
{
    if (!c->paused || c->state == CALLER_CLOSING)
        return;
    c->paused = false;
    if (uv_read_start((uv_stream_t *)&c->tcp, caller_alloc, caller_on_read) != 0)
        caller_close(c);
}

void caller_on_timer(uv_timer_t *timer)
{
    struct caller *c = timer->data;

    if (c->writes > 0 && caller_backlog(c) < c->progress)
        caller_arm(c, CALLER_WRITE_MS);
    else
        caller_close(c);
}
