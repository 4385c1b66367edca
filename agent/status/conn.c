/* SPDX-License-Identifier: Apache-2.0 */
/* conn - a connection of the status socket: reads requests one by one (pipelined ones wait). One timer covers
 * receiving a request, idle time, and sending an answer. */
#include "agent/status/internal.h"

#include <string.h>
#include <sys/socket.h>

/* Maximum of unparsed input behind a request: as much as one request can have. */
#define PIPELINE_MAX (HTTP_HEAD_MAX + HTTP_BODY_MAX)

static void conn_on_turn(struct background_client *t);
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret);
static void conn_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece);

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

/* ---- reading ---- */

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
        conn_close(
            c); /* the client sent so much behind its request that its disconnect could not be detected */
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
        /* A client may stop sending and still wait for its answer; but for an endless stream this is the only
         * sign of a disconnect. */
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

void conn_next_request(struct conn *c)
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

void conn_on_timer(uv_timer_t *timer)
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

static enum peer_role role_of_peer(struct conn *c)
{
    struct ucred cred;
    socklen_t size = sizeof(cred);
    gid_t groups[256]; /* more than usual; a larger number is retried below */
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

/* When out of memory, the spare connection is used; while that is in use, clients wait until a connection
 * ends. */
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
        c->role = role_of_peer(c);
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
