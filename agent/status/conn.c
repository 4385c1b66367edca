/* SPDX-License-Identifier: Apache-2.0 */
/* conn - a connection of the status socket: reads requests one by one (pipelined ones wait), writes answers
 * and streams. One timer covers receiving a request, idle time, and sending an answer. */
#include "agent/status/internal.h"

#include <string.h>
#include <sys/socket.h>

/* Maximum of unparsed input behind a request: as much as one request can have. */
#define PIPELINE_MAX (HTTP_HEAD_MAX + HTTP_BODY_MAX)

static void conn_on_timer(uv_timer_t *timer);
static void conn_on_turn(struct background_client *t);
static void next_request(struct conn *c);
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret);
static void conn_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece);

struct write {
    uv_write_t req;
    struct conn *conn;
    char *data;
    size_t n;
};

/* ---- the end ---- */

static void conn_on_closed(uv_handle_t *handle)
{
    struct conn *c = handle->data;
    struct status_server *s = c->server;

    if (--c->open_handles > 0)
        return;
    LIST_REMOVE(c, all);
    s->n_conns--;
    if (c->served)
        s->n_served--;
    if (c->served && c->role != PEER_ROOT)
        s->n_others--;
    s->n_giving -= c->giving;
    http_parser_done(&c->parser);
    buf_wipe(&c->in);
    buf_wipe(&c->body);
    conn_unused(s, c);
    server_resume(s);
    server_maybe_free(s);
}

void conn_close(struct conn *c)
{
    if (c->state == CONN_CLOSING)
        return;
    c->state = CONN_CLOSING;
    background_withdraw(&c->server->turns, &c->turn);
    held_forget(c);
    if (c->source != NULL)
        c->source->gone(c);
    if (c->reply != NULL)
        c->reply->conn = NULL;
    uv_close((uv_handle_t *)&c->pipe, conn_on_closed);
    uv_close((uv_handle_t *)&c->timer, conn_on_closed);
}

/* ---- writing ---- */

size_t conn_backlog(const struct conn *c)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&c->pipe);
}

static void conn_arm(struct conn *c, uint64_t ms)
{
    c->progress = conn_backlog(c);
    uv_timer_start(&c->timer, conn_on_timer, ms, 0);
}

static void conn_on_written(uv_write_t *req, int status)
{
    struct write *w = (struct write *)req;
    struct conn *c = w->conn;

    held_remove(c, w->n);
    explicit_bzero(w->data, w->n); /* it may be a Secret */
    free(w->data);
    free(w);
    if (c->state == CONN_CLOSING)
        return;
    if (status < 0) {
        conn_close(c);
    } else if (c->source != NULL && c->source->written != NULL) {
        c->source->written(c);
    } else if (c->writes == 0 && c->awaits) {
        c->awaits = false;
        uv_timer_stop(&c->timer);
        conn_next_turn(c);
    } else if (c->writes == 0 && c->state == CONN_ANSWERING && c->reply == NULL && c->source == NULL &&
               !c->asks) {
        next_request(c);
    }
}

/* Takes over `data` (malloc'ed). */
static void send_data(struct conn *c, char *data, size_t n)
{
    struct write *w = calloc(1, sizeof(*w));
    uv_buf_t piece = uv_buf_init(data, (unsigned)n);

    if (w == NULL || c->state == CONN_CLOSING) {
        free(w);
        free(data);
        conn_close(c);
        return;
    }
    w->conn = c;
    w->data = data;
    w->n = n;
    held_add(c, n);
    if (uv_write(&w->req, (uv_stream_t *)&c->pipe, &piece, 1, conn_on_written) != 0) {
        held_remove(c, n);
        free(w);
        free(data);
        conn_close(c);
    }
}

static void send_buf(struct conn *c, struct buf *b)
{
    size_t n = b->n;
    char *data;

    if (b->failed || (data = buf_detach(b)) == NULL) {
        buf_done(b);
        conn_close(c);
        return;
    }
    send_data(c, data, n);
}

/* ---- answers ---- */

static void conn_add_head(struct conn *c, struct buf *b, int http_code, const char *type,
                          const char *extra_head)
{
    buf_addf(b, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s%s", http_code, status_phrase(http_code), type,
             extra_head != NULL ? extra_head : "", c->last ? "Connection: close\r\n" : "");
}

void conn_answer(struct conn *c, int http_code, const char *type, const char *extra_head, const void *body,
                 size_t n)
{
    struct buf b = BUF_SECRET(SIZE_MAX - 1);

    if (!held_room(c, n)) {
        c->server->count.no_room++;
        conn_status(c, 503, status_reason(503), NULL, NULL,
                    "too many answers are pending for other clients of the socket; try again");
        return;
    }
    if (!c->parser.request.keep_alive)
        c->last = true;
    conn_add_head(c, &b, http_code, type, extra_head);
    buf_addf(&b, "Content-Length: %zu\r\n\r\n", n);
    if (c->parser.request.method != METHOD_HEAD)
        buf_add(&b, body, n);
    c->state = CONN_ANSWERING;
    send_buf(c, &b);
    if (c->state == CONN_ANSWERING)
        conn_arm(c, c->server->write_ms);
}

void conn_json(struct conn *c, int http_code, json_t *body)
{
    char *text = body != NULL ? json_dumps(body, c->pretty ? JSON_INDENT(2) : JSON_COMPACT) : NULL;
    size_t n = text != NULL ? strlen(text) : 0;

    json_decref(body);
    if (text == NULL) {
        conn_answer(c, 500, "text/plain; charset=utf-8", NULL, "out of memory\n", strlen("out of memory\n"));
        return;
    }
    text[n] = '\n'; /* for terminals; the zero byte is not sent */
    conn_answer(c, http_code, "application/json", NULL, text, n + 1);
    explicit_bzero(text, n);
    free(text);
}

void conn_status(struct conn *c, int http_code, const char *reason, const char *kind, const char *name,
                 const char *message)
{
    conn_json(c, http_code, status_object(http_code, reason, kind, name, message));
}

void conn_err(struct conn *c, const struct err *e)
{
    int http_code = status_http_code(e->code);

    conn_status(c, http_code, status_reason(http_code), NULL, NULL, e->text);
}

/* ---- streams ---- */

void conn_stream_begin(struct conn *c, const char *type)
{
    struct buf b = BUF_INIT(HTTP_HEAD_MAX);

    c->chunked = !c->parser.request.http10;
    if (!c->parser.request.keep_alive || !c->chunked)
        c->last = true;
    conn_add_head(c, &b, 200, type, c->chunked ? "Transfer-Encoding: chunked\r\n" : NULL);
    buf_adds(&b, "\r\n");
    c->state = CONN_STREAMING;
    uv_timer_stop(&c->timer);
    send_buf(c, &b);
}

void conn_stream(struct conn *c, const void *data, size_t n)
{
    struct buf b = BUF_SECRET(SIZE_MAX - 1);

    if (n == 0 || c->state != CONN_STREAMING)
        return;
    if (c->chunked)
        buf_addf(&b, "%zx\r\n", n);
    buf_add(&b, data, n);
    if (c->chunked)
        buf_adds(&b, "\r\n");
    send_buf(c, &b);
}

void conn_tick_after(struct conn *c, uint64_t ms)
{
    if (c->state == CONN_STREAMING)
        uv_timer_start(&c->timer, conn_on_timer, ms, 0);
}

void conn_stream_end(struct conn *c)
{
    char *end;

    if (c->state != CONN_STREAMING)
        return;
    c->state = CONN_ANSWERING;
    conn_arm(c, c->server->write_ms);
    end = strdup(c->chunked && c->parser.request.method != METHOD_HEAD ? "0\r\n\r\n" : "");
    if (end == NULL)
        conn_close(c);
    else
        send_data(c, end, strlen(end));
}

void conn_next_turn(struct conn *c)
{
    if (c->state != CONN_CLOSING)
        background_ask(&c->server->turns, &c->turn);
}

void conn_await(struct conn *c)
{
    if (c->state == CONN_CLOSING)
        return;
    if (c->writes == 0) {
        conn_next_turn(c);
        return;
    }
    c->awaits = true;
    if (c->finite)
        conn_arm(c, c->server->write_ms);
}

/* ---- another protocol ---- */

void conn_upgrade(struct conn *c, struct buf *head)
{
    c->last = true;
    c->state = CONN_STREAMING;
    uv_timer_stop(&c->timer);
    send_buf(c, head);
}

void conn_frames(struct conn *c, struct buf *b)
{
    if (c->state == CONN_STREAMING)
        send_buf(c, b);
    else
        buf_done(b);
}

void conn_pause(struct conn *c)
{
    if (c->stopped || c->state == CONN_CLOSING)
        return;
    uv_read_stop((uv_stream_t *)&c->pipe);
    c->stopped = true;
}

void conn_resume(struct conn *c)
{
    if (!c->stopped || c->state == CONN_CLOSING)
        return;
    c->stopped = false;
    if (uv_read_start((uv_stream_t *)&c->pipe, on_alloc, conn_on_read) != 0)
        conn_close(c);
}

/* ---- requests ---- */

static void conn_refuse(struct conn *c)
{
    int http_code = c->parser.http_code;

    c->last = true;
    conn_status(c, http_code, status_reason(http_code), NULL, NULL, c->parser.error);
}

/* Parses input until a request is complete. */
static void conn_parse(struct conn *c)
{
    while (c->state == CONN_READING && c->in.n > 0) {
        size_t used = http_parser_feed(&c->parser, c->in.p, c->in.n);

        buf_remove_front(&c->in, used);
        if (c->parser.state == PARSE_MORE)
            continue;
        uv_timer_stop(&c->timer);
        c->server->count.requests++;
        c->state = CONN_ANSWERING;
        c->asks = true;
        conn_next_turn(c);
    }
    if (c->state == CONN_READING && c->eof)
        conn_close(c);
}

static void conn_on_turn(struct background_client *t)
{
    struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, turn));

    if (!c->asks) {
        if (c->source != NULL && c->source->turn != NULL)
            c->source->turn(c);
        return;
    }
    c->asks = false;
    if (c->parser.state == PARSE_FAILED)
        conn_refuse(c);
    else
        c->server->on_request(c);
    if (c->state == CONN_STREAMING && !c->finite && (c->source == NULL || c->source->input == NULL) &&
        c->stopped)
        conn_close(c); /* it sent so much behind its request that its disconnect would go unnoticed */
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct conn *c = handle->data;

    (void)suggested;
    *ret = uv_buf_init(c->server->read_buffer, sizeof(c->server->read_buffer));
}

static void conn_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece)
{
    struct conn *c = stream->data;

    if (n == UV_EOF) {
        /* A client may stop sending and still want its answer; but for an endless one this is the only sign
         * of a disconnect. */
        c->eof = c->last = true;
        if (c->state == CONN_READING || (c->state == CONN_STREAMING && !c->finite))
            conn_close(c);
        return;
    }
    if (n < 0) {
        conn_close(c);
        return;
    }
    if (n == 0 || c->state == CONN_CLOSING)
        return;
    if (c->idle) {
        c->idle = false;
        conn_arm(c, c->server->head_ms);
    }
    buf_add(&c->in, piece->base, (size_t)n);
    explicit_bzero(piece->base, (size_t)n);
    if (c->in.failed) {
        conn_close(c);
        return;
    }
    if (c->source != NULL && c->source->input != NULL) {
        c->source->input(c);
        return;
    }
    conn_parse(c);
    held_input(c);
    if (c->in.n > PIPELINE_MAX) {
        if (c->state == CONN_STREAMING && !c->finite)
            conn_close(c);
        else if (c->state == CONN_ANSWERING || c->state == CONN_STREAMING)
            conn_pause(c);
    }
}

static void next_request(struct conn *c)
{
    if (c->last) {
        conn_close(c);
        return;
    }
    c->state = CONN_READING;
    c->pretty = c->finite = false;
    http_parser_next(&c->parser);
    c->idle = c->in.n == 0;
    conn_arm(c, c->idle ? c->server->idle_ms : c->server->head_ms);
    conn_parse(c);
    held_input(c);
    if (c->in.n <= PIPELINE_MAX)
        conn_resume(c);
}

static void conn_on_timer(uv_timer_t *timer)
{
    struct conn *c = timer->data;

    if (c->state == CONN_READING && c->parser.begun) {
        c->state = CONN_ANSWERING;
        c->last = true;
        conn_status(c, 408, status_reason(408), NULL, NULL, "the request was not received in time");
    } else if ((c->state == CONN_ANSWERING || c->finite) && conn_backlog(c) < c->progress) {
        conn_arm(c, c->server->write_ms);
    } else if (c->state == CONN_STREAMING && c->source != NULL && c->source->tick != NULL) {
        c->source->tick(c);
    } else {
        conn_close(c);
    }
}

/* ---- the beginning ---- */

static enum peer_role who_is_it(struct conn *c)
{
    struct ucred cred;
    socklen_t size = sizeof(cred);
    gid_t groups[256]; /* more than a login has; a larger number is retried below */
    mem_auto gid_t *more = NULL;
    gid_t *all = groups;
    socklen_t groups_size = sizeof(groups);
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)&c->pipe, &fd) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return PEER_NOBODY;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &groups_size) < 0) {
        all = more = errno == ERANGE ? malloc(groups_size) : NULL;
        if (more == NULL || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, more, &groups_size) < 0)
            groups_size = 0;
    }
    return server_peer_role(c->server, cred.uid, cred.gid, all, groups_size / sizeof(gid_t));
}

static void turn_away(struct conn *c, int http_code, const char *message)
{
    c->state = CONN_ANSWERING;
    c->last = true;
    c->server->count.refused++;
    conn_status(c, http_code, status_reason(http_code), NULL, NULL, message);
}

/* When out of memory, the spare one is used; while that is in use, clients wait until a connection ends. */
struct conn *conn_new(struct status_server *s)
{
    struct conn *c = s->unused != NULL ? take_ptr(&s->unused) : malloc(sizeof(*c));

    if (c == NULL)
        c = take_ptr(&s->spare);
    if (c != NULL)
        *c = (struct conn){ 0 };
    return c;
}

void conn_unused(struct status_server *s, struct conn *c)
{
    if (s->spare == NULL)
        s->spare = c;
    else if (s->unused == NULL)
        s->unused = c;
    else
        free(c);
}

void conn_accept(struct status_server *s, struct conn *c, int fd)
{
    c->server = s;
    buf_init_secret(&c->in, PIPELINE_MAX + sizeof(s->read_buffer));
    buf_init_secret(&c->body, STATUS_BODY_MAX);
    http_parser_init(&c->parser);
    uv_pipe_init(s->loop, &c->pipe, 0);
    uv_timer_init(s->loop, &c->timer);
    c->pipe.data = c->timer.data = c;
    c->turn = (struct background_client){ .run = conn_on_turn };
    c->open_handles = 2;
    LIST_INSERT_HEAD(&s->conns, c, all);
    s->n_conns++;
    s->count.connections++;
    if (uv_pipe_open(&c->pipe, fd) != 0) {
        close(fd);
        conn_close(c);
        return;
    }
    if (c->role == PEER_NOBODY)
        c->role = who_is_it(c);
    c->turn.first = c->role == PEER_ROOT;
    if (c->role >= PEER_LENT) {
        c->parser.body = &c->body;
        c->parser.wants_body = status_takes_body;
    }
    if (c->role == PEER_NOBODY) {
        turn_away(c, 403, "only root and the members of the socket's group may use this socket");
    } else if (s->n_served >= STATUS_CONNS_MAX ||
               (c->role != PEER_ROOT && s->n_others >= STATUS_CONNS_OTHERS)) {
        turn_away(c, 503, "too many connections");
    } else if (!watch_give_way(s, c->role == PEER_ROOT)) {
        c->server->count.few_files++;
        turn_away(c, 503, STATUS_FEW_FILES);
    } else {
        c->served = true;
        s->n_served++;
        if (c->role != PEER_ROOT)
            s->n_others++;
        conn_arm(c, c->server->head_ms);
        if (uv_read_start((uv_stream_t *)&c->pipe, on_alloc, conn_on_read) != 0)
            conn_close(c);
    }
}
