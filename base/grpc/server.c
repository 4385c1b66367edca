/* SPDX-License-Identifier: Apache-2.0 */
/* A server's socket, its connections, and its deadlines. */
#include "base/grpc/serving.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BACKLOG = 64,
    CONNECTIONS_MAX = 64,
    ACCEPTS_A_TURN = 16,
    ACCEPT_AGAIN_MS = 1000,
    GREETING_MS = 10000, /* limit for a client's SETTINGS */
    STALL_MS = 60000,    /* limit for a client that does not read */
};

static void on_readable(uv_poll_t *listener, int status, int events);

static void server_maybe_free(struct grpc_server *s)
{
    if (!s->closing || s->open_handles > 0 || !LIST_EMPTY(&s->conns))
        return;
    free(s->path);
    free(s);
}

/* ---- connections ---- */

static void conn_closed(void *arg)
{
    struct grpc_conn *c = arg;
    struct grpc_server *s = c->server;

    LIST_REMOVE(c, all);
    free(c);
    server_maybe_free(s);
}

static void conn_close(struct grpc_conn *c)
{
    if (c->closing)
        return;
    c->closing = true;
    c->server->n_conns--;
    grpc_session_lost(grpc_wire_session(c->wire), "the connection is closed");
    grpc_wire_close(c->wire, conn_closed);
    grpc_server_due(c->server);
}

static void conn_ended(const struct err *why, void *arg)
{
    (void)why; /* clients come and go */
    conn_close(arg);
}

static void conn_greeted(void *arg)
{
    struct grpc_conn *c = arg;

    c->greeted = true;
    grpc_server_due(c->server);
}

/* Notes whether the client reads the queued bytes. */
static void conn_look(struct grpc_conn *c, uint64_t now)
{
    uint64_t taken;

    if (grpc_session_queued(grpc_wire_session(c->wire), &taken) == 0)
        c->stalled_ms = 0;
    else if (c->stalled_ms == 0 || taken != c->taken)
        c->stalled_ms = now;
    c->taken = taken;
}

static void conn_flushed(void *arg)
{
    struct grpc_conn *c = arg;
    bool stalled = c->stalled_ms != 0;

    conn_look(c, uv_now(c->server->o.loop));
    if (stalled != (c->stalled_ms != 0))
        grpc_server_due(c->server);
}

void grpc_conn_flush(struct grpc_conn *c)
{
    if (grpc_wire_flush(c->wire) && !c->closing)
        conn_flushed(c);
}

static const struct grpc_session_events conn_events = {
    .greeted = conn_greeted,
    .begin = grpc_request_begin,
    .message = grpc_request_message,
    .asked = grpc_request_asked,
    .ended = grpc_request_ended,
};

static enum err_code conn_open(struct grpc_server *s, int fd, struct err *e)
{
    struct grpc_session_options so = {
        .server = true,
        .message_max = s->o.message_max,
        .queue_max = GRPC_SERVER_QUEUE_MAX,
        .max_streams = GRPC_SERVER_STREAMS_MAX,
        .budget = &s->budget,
        .on = &conn_events,
    };
    struct grpc_wire_options wo = {
        .loop = s->o.loop, .fd = fd, .on_flushed = conn_flushed, .on_end = conn_ended
    };
    struct grpc_conn *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        close(fd);
        return err_nomem(e);
    }
    c->server = s;
    c->since_ms = uv_now(s->o.loop);
    so.arg = wo.arg = c;
    LIST_INIT(&c->requests);
    if (grpc_session_new(&wo.session, &so, e) != ERR_OK) {
        close(fd);
        free(c);
        return e->code;
    }
    if (grpc_wire_open(&c->wire, &wo, e) != ERR_OK) {
        grpc_session_free(wo.session);
        free(c);
        return e->code;
    }
    c->peer_known = grpc_wire_peer(c->wire, &c->pid, &c->uid);
    LIST_INSERT_HEAD(&s->conns, c, all);
    s->n_conns++;
    grpc_wire_flush(c->wire);
    grpc_server_due(s);
    return ERR_OK;
}

/* Closes the connection that has had no call for the longest time: its client connects again for its next
 * call. */
static bool make_room(struct grpc_server *s)
{
    struct grpc_conn *c, *idle = NULL;

    if (s->n_conns < s->o.max_connections)
        return true;
    LIST_FOREACH (c, &s->conns, all)
        if (!c->closing && LIST_EMPTY(&c->requests) && (idle == NULL || c->since_ms <= idle->since_ms))
            idle = c;
    if (idle == NULL)
        return false;
    grpc_session_goaway(grpc_wire_session(idle->wire));
    conn_close(idle);
    return true;
}

/* ---- deadlines ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static uint64_t conn_due(const struct grpc_conn *c)
{
    const struct grpc_request *r;
    uint64_t due = c->greeted ? 0 : c->since_ms + c->server->greeting_ms;

    if (c->stalled_ms != 0)
        due = earlier(due, c->stalled_ms + c->server->stall_ms);
    LIST_FOREACH (r, &c->requests, all)
        due = earlier(due, r->deadline_ms);
    return due;
}

static void conn_check(struct grpc_conn *c, uint64_t now)
{
    struct grpc_request *r;

    conn_look(c, now);
    if ((!c->greeted && now >= c->since_ms + c->server->greeting_ms) ||
        (c->stalled_ms != 0 && now >= c->stalled_ms + c->server->stall_ms)) {
        conn_close(c);
        return;
    }
    do { /* ending a request may end other requests */
        LIST_FOREACH (r, &c->requests, all)
            if (r->deadline_ms != 0 && now >= r->deadline_ms)
                break;
        if (r != NULL)
            grpc_request_expire(r);
    } while (r != NULL && !c->closing);
}

static void on_timer(uv_timer_t *timer)
{
    struct grpc_server *s = timer->data;
    uint64_t now = uv_now(s->o.loop);
    struct grpc_conn *c;

    s->due_ms = 0;
    if (s->rests_until_ms != 0 && now >= s->rests_until_ms) {
        s->rests_until_ms = 0;
        uv_poll_start(&s->listener, UV_READABLE, on_readable);
    }
    s->checking = true; /* conns stay in the list until a later turn */
    LIST_FOREACH (c, &s->conns, all)
        if (!c->closing && !s->closing)
            conn_check(c, now);
    s->checking = false;
    grpc_server_due(s);
}

void grpc_server_due(struct grpc_server *s)
{
    uint64_t due = s->rests_until_ms, now = uv_now(s->o.loop);
    const struct grpc_conn *c;

    if (s->closing || s->checking)
        return;
    LIST_FOREACH (c, &s->conns, all)
        if (!c->closing)
            due = earlier(due, conn_due(c));
    if (due == s->due_ms)
        return;
    s->due_ms = due;
    if (due == 0)
        uv_timer_stop(&s->timer);
    else
        uv_timer_start(&s->timer, on_timer, due > now ? due - now : 0, 0);
}

/* ---- the socket ---- */

/* The socket stays readable while clients wait, so it is not polled until accepting may succeed. */
static void rest(struct grpc_server *s, const char *why)
{
    log_warn("cannot accept a gRPC client", F_STR("socket", s->path), F_STR("err", why));
    uv_poll_stop(&s->listener);
    s->rests_until_ms = uv_now(s->o.loop) + s->rest_ms;
    grpc_server_due(s);
}

static void on_readable(uv_poll_t *listener, int status, int events)
{
    struct grpc_server *s = listener->data;
    struct err e = { 0 };

    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN && !s->closing; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0) {
            rest(s, strerror(errno));
            return;
        }
        if (!make_room(s)) {
            close(fd);
            continue;
        }
        if (conn_open(s, fd, &e) != ERR_OK) {
            rest(s, e.text);
            return;
        }
    }
}

/* Binds under a temporary name, sets the mode before anyone can connect, then renames the socket over the old
 * one: there is never a moment without a socket, or with a wrong mode. */
static enum err_code bind_socket(struct grpc_server *s, struct err *e)
{
    str_auto beside = str_printf("%s.new", s->path);
    struct grpc_address address;
    struct stat st;
    fd_auto fd = -1;

    if (beside == NULL)
        return err_nomem(e);
    if (grpc_address_unix(beside, &address, e) != ERR_OK)
        return e->code;
    if (unlink(beside) < 0 && errno != ENOENT)
        return err_sys(e, errno, "remove %s", beside);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, errno, "socket");
    if (bind(fd, &address.to.any, address.n) < 0)
        return err_sys(e, errno, "bind %s", beside);
    if (chmod(beside, s->o.mode) < 0)
        err_sys(e, errno, "chmod %s", beside);
    else if (listen(fd, BACKLOG) < 0)
        err_sys(e, errno, "listen");
    else if (lstat(beside, &st) < 0)
        err_sys(e, errno, "stat %s", beside);
    else if (rename(beside, s->path) < 0)
        err_sys(e, errno, "rename %s", beside);
    if (e->code != ERR_OK) {
        unlink(beside);
        return e->code;
    }
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    s->fd = take_fd(&fd);
    return ERR_OK;
}

/* ---- life ---- */

static enum err_code server_watch(struct grpc_server *s, struct err *e)
{
    int status = uv_poll_init(s->o.loop, &s->listener, s->fd);

    if (status != 0)
        return err_sys(e, -status, "watch the socket");
    uv_timer_init(s->o.loop, &s->timer);
    s->listener.data = s->timer.data = s;
    s->open_handles = 2;
    uv_poll_start(&s->listener, UV_READABLE, on_readable);
    return ERR_OK;
}

enum err_code grpc_server_open(struct grpc_server **ret, const struct grpc_server_options *o, struct err *e)
{
    struct grpc_server *s = calloc(1, sizeof(*s));

    if (s == NULL || (s->path = strdup(o->path)) == NULL) {
        free(s);
        return err_nomem(e);
    }
    s->o = *o;
    s->fd = -1;
    s->o.message_max = o->message_max > 0 ? o->message_max : GRPC_MESSAGE_MAX;
    s->o.max_connections = o->max_connections > 0 ? o->max_connections : CONNECTIONS_MAX;
    s->greeting_ms = GREETING_MS;
    s->stall_ms = STALL_MS;
    s->rest_ms = ACCEPT_AGAIN_MS;
    s->budget.max = GRPC_SERVER_BUDGET + 2 * s->o.message_max;
    s->tokens = (uint64_t)o->burst * 1000;
    LIST_INIT(&s->conns);
    if (bind_socket(s, e) != ERR_OK || server_watch(s, e) != ERR_OK) {
        grpc_server_close(s);
        return err_wrap(e, "gRPC socket %s", o->path);
    }
    *ret = s;
    return ERR_OK;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct grpc_server *s = handle->data;

    s->open_handles--;
    server_maybe_free(s);
}

void grpc_server_close(struct grpc_server *s)
{
    struct grpc_conn *c;
    struct stat st;

    if (s == NULL)
        return;
    s->closing = true;
    if (s->fd >= 0 && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
        unlink(s->path);
    if (s->open_handles > 0) {
        uv_close((uv_handle_t *)&s->listener, on_handle_closed);
        uv_close((uv_handle_t *)&s->timer, on_handle_closed);
    }
    if (s->fd >= 0)
        close(s->fd);
    LIST_FOREACH (c, &s->conns, all)
        conn_close(c); /* freed on a later turn */
    server_maybe_free(s);
}
