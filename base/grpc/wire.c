/* SPDX-License-Identifier: Apache-2.0 */
#include "base/grpc/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_SIZE = 16 * 1024,
    READS_A_TURN = 4,       /* then other events of the loop are handled */
    WRITE_SIZE = 48 * 1024, /* of frames that are gathered for one write */
    FRAME_MAX = 17 * 1024, /* the most that nghttp2 returns at once: a frame of the protocol's default size */
    REST_MS = 50,          /* after a shortage of memory in the kernel */
};

struct grpc_wire {
    struct grpc_wire_options o;
    uv_poll_t poll;
    uv_timer_t rest; /* runs while the kernel is short of memory; nothing is watched meanwhile */
    unsigned open;   /* of the two */
    uint8_t *left;   /* did not fit into the socket */
    size_t left_n, left_at;
    uint64_t heard_ms;
    struct err broken; /* a write failed for a reason that the next read does not report */
    int events;
    bool mute; /* nothing can be written any more */
    bool busy; /* the session is at work */
    bool closing;
    void (*on_closed)(void *arg);
};

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(struct grpc_wire *w)
{
    int events = UV_READABLE;

    if (w->o.connecting)
        events = UV_WRITABLE;
    else if (uv_is_active((uv_handle_t *)&w->rest))
        events = 0;
    else if (w->left_n > 0)
        events |= UV_WRITABLE;
    if (w->closing || events == w->events)
        return;
    w->events = events;
    if (events == 0)
        uv_poll_stop(&w->poll);
    else
        uv_poll_start(&w->poll, events, on_poll); /* cannot fail: the descriptor is valid */
}

static void end(struct grpc_wire *w, const struct err *why)
{
    if (w->closing)
        return;
    uv_poll_stop(&w->poll);
    uv_timer_stop(&w->rest);
    w->events = 0;
    w->o.on_end(w->broken.code != ERR_OK ? &w->broken : why, w->o.arg);
}

/* ---- shortages ---- */

static void on_rested(uv_timer_t *timer);

/* The connection stays open: closing it would end a device plugin's registration. */
static bool wait_for_memory(struct grpc_wire *w, int sys)
{
    if (sys != ENOBUFS && sys != ENOMEM)
        return false;
    if (!w->closing && !uv_is_active((uv_handle_t *)&w->rest))
        uv_timer_start(&w->rest, on_rested, REST_MS, 0);
    return true;
}

/* ---- writing ---- */

/* The next read reports the end. */
static void give_up(struct grpc_wire *w, int sys)
{
    if (sys != EPIPE && sys != ECONNRESET && w->broken.code == ERR_OK)
        err_sys(&w->broken, sys, "write");
    w->mute = true;
    free(w->left);
    w->left = NULL;
    w->left_n = 0;
    shutdown(w->o.fd, SHUT_RDWR);
}

/* Returns the bytes written; 0: the socket is full. */
static size_t write_some(struct grpc_wire *w, const uint8_t *p, size_t n)
{
    ssize_t k;

    do
        k = send(w->o.fd, p, n, MSG_NOSIGNAL);
    while (k < 0 && errno == EINTR);
    if (k >= 0)
        return (size_t)k;
    if (errno != EAGAIN && !wait_for_memory(w, errno))
        give_up(w, errno);
    return 0;
}

static bool write_left(struct grpc_wire *w)
{
    while (w->left_n > 0 && !w->mute) {
        size_t k = write_some(w, w->left + w->left_at, w->left_n);
        if (k == 0)
            return false;
        w->left_at += k;
        w->left_n -= k;
    }
    free(w->left);
    w->left = NULL;
    w->left_at = 0;
    return true;
}

static void keep_left(struct grpc_wire *w, const uint8_t *p, size_t n)
{
    w->left = malloc(n);
    if (w->left == NULL) {
        give_up(w, ENOMEM);
        return;
    }
    memcpy(w->left, p, n);
    w->left_n = n;
}

static size_t gather(struct grpc_wire *w, uint8_t block[WRITE_SIZE])
{
    const uint8_t *frame;
    size_t n = 0;
    ssize_t k = 0;

    while (n <= WRITE_SIZE - FRAME_MAX && (k = grpc_session_output(w->o.session, &frame)) > 0) {
        memcpy(block + n, frame, (size_t)k);
        n += (size_t)k;
    }
    if (k < 0)
        give_up(w, ENOMEM);
    return n;
}

static void write_all(struct grpc_wire *w)
{
    uint8_t block[WRITE_SIZE];
    size_t n, done, k;

    if (!write_left(w))
        return;
    while (!w->mute && (n = gather(w, block)) > 0) {
        for (done = 0; done < n; done += k) {
            k = write_some(w, block + done, n - done);
            if (k == 0)
                break;
        }
        if (done < n && !w->mute) {
            keep_left(w, block + done, n - done);
            return;
        }
    }
}

bool grpc_wire_flush(struct grpc_wire *w)
{
    if (w->busy)
        return false;
    if (w->closing || w->o.connecting)
        return true;
    w->busy = true;
    write_all(w);
    w->busy = false;
    watch(w);
    return true;
}

/* ---- reading ---- */

static enum err_code wire_read(struct grpc_wire *w, struct err *e)
{
    uint8_t block[READ_SIZE];

    for (int i = 0; i < READS_A_TURN && !w->closing; i++) {
        ssize_t n = recv(w->o.fd, block, sizeof(block), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || wait_for_memory(w, errno)))
            break;
        if (n < 0)
            return err_sys(e, errno, "read");
        if (n == 0)
            return err_set(e, ERR_UNAVAILABLE, "EOF");
        w->heard_ms = uv_now(w->o.loop);
        if (grpc_session_feed(w->o.session, block, (size_t)n, w->heard_ms, e) != ERR_OK)
            return e->code;
        if ((size_t)n < sizeof(block))
            break;
    }
    return ERR_OK;
}

static void finish_connect(struct grpc_wire *w)
{
    struct err e = { 0 };
    socklen_t n = sizeof(int);
    int sys = 0;

    if (getsockopt(w->o.fd, SOL_SOCKET, SO_ERROR, &sys, &n) != 0)
        sys = errno;
    if (sys != 0) {
        err_sys(&e, sys, "connect");
        end(w, &e);
        return;
    }
    w->o.connecting = false;
    if (w->o.on_connect != NULL)
        w->o.on_connect(w->o.arg);
    grpc_wire_flush(w);
    watch(w);
}

static void turn(struct grpc_wire *w, int status, bool readable)
{
    struct err e = { 0 };

    w->busy = true;
    if (status < 0)
        err_sys(&e, -status, "poll");
    else if (readable)
        ERR_IGNORE(wire_read(w, &e));
    w->busy = false;
    grpc_wire_flush(w);
    if (w->o.on_flushed != NULL && !w->closing)
        w->o.on_flushed(w->o.arg);
    if (e.code == ERR_OK && grpc_session_over(w->o.session) && w->left_n == 0)
        err_set(&e, ERR_UNAVAILABLE, "EOF");
    if (e.code != ERR_OK)
        end(w, &e);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct grpc_wire *w = poll->data;

    if (w->o.connecting)
        finish_connect(w);
    else
        turn(w, status, (events & ~UV_WRITABLE) != 0);
}

/* The next poll finds readable bytes. */
static void on_rested(uv_timer_t *timer)
{
    turn(timer->data, 0, false);
}

/* ---- life ---- */

enum err_code grpc_wire_open(struct grpc_wire **ret, const struct grpc_wire_options *o, struct err *e)
{
    struct grpc_wire *w = calloc(1, sizeof(*w));
    int status = w == NULL ? UV_ENOMEM : uv_poll_init(o->loop, &w->poll, o->fd);

    if (status != 0) {
        close(o->fd);
        free(w);
        return err_sys(e, -status, "watch a connection");
    }
    w->o = *o;
    uv_timer_init(o->loop, &w->rest);
    w->poll.data = w->rest.data = w;
    w->open = 2;
    w->heard_ms = uv_now(o->loop);
    watch(w);
    *ret = w;
    return ERR_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct grpc_wire *w = handle->data;
    void (*closed)(void *) = w->on_closed;
    void *arg = w->o.arg;

    if (--w->open > 0)
        return;
    grpc_session_free(w->o.session);
    free(w->left);
    free(w);
    if (closed != NULL)
        closed(arg);
}

void grpc_wire_close(struct grpc_wire *w, void (*closed)(void *arg))
{
    if (w == NULL || w->closing)
        return;
    if (!w->busy)
        grpc_wire_flush(w);
    w->closing = true;
    w->on_closed = closed;
    grpc_session_silence(w->o.session);
    uv_close((uv_handle_t *)&w->poll, on_closed);
    uv_close((uv_handle_t *)&w->rest, on_closed);
    close(w->o.fd);
}

struct grpc_session *grpc_wire_session(const struct grpc_wire *w)
{
    return w->o.session;
}

uint64_t grpc_wire_heard_ms(const struct grpc_wire *w)
{
    return w->heard_ms;
}

bool grpc_wire_peer(const struct grpc_wire *w, pid_t *ret_pid, uid_t *ret_uid)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);

    if (getsockopt(w->o.fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0 || peer.pid <= 0)
        return false;
    *ret_pid = peer.pid;
    *ret_uid = peer.uid;
    return true;
}
