/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/exec_internal.h"

#include "base/json.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

/* ---- input ----------------------------------------------------------------------------------- */

bool exec_blocked(const struct exec_stream *x)
{
    return x->pending.n > 0;
}

static void on_hangup(uv_poll_t *poll, int status, int events)
{
    struct exec_end *end = poll->data;

    (void)status;
    (void)events;
    conn_close(end->stream->conn);
}

/* While the connection is not read, its end shows only here. */
static void watch_hangup(struct exec_stream *x)
{
    uv_os_fd_t fd;

    if (x->hangup.fd < 0 && (uv_fileno((uv_handle_t *)&x->conn->pipe, &fd) != 0 ||
                             !exec_open_end(x, &x->hangup, fcntl(fd, F_DUPFD_CLOEXEC, 3), -1)))
        return; /* no memory or descriptors: it is noticed when the process reads on */
    uv_poll_start(&x->hangup.poll, UV_DISCONNECT, on_hangup);
}

/* Ctrl-D, where the terminal would make it the end of the input. */
static void end_terminal_input(int master)
{
    struct termios t;

    if (tcgetattr(master, &t) == 0 && (t.c_lflag & ICANON) != 0 && write(master, &t.c_cc[VEOF], 1) != 1)
        log_debug("a terminal does not take the end of its input");
}

static void end_input(struct exec_stream *x)
{
    if (x->attached && x->in.fd >= 0)
        shutdown(x->in.fd, SHUT_WR);
    else if (x->tty && x->in.fd >= 0)
        end_terminal_input(x->in.fd);
    exec_close_end(&x->in);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct exec_stream *x = ((struct exec_end *)poll->data)->stream;

    (void)status;
    (void)events;
    exec_pump_input(x);
    if (x->conn != NULL && !exec_blocked(x))
        exec_input(x->conn);
}

void exec_pump_input(struct exec_stream *x)
{
    size_t done = 0;

    while (x->in.fd >= 0 && done < x->pending.n) {
        size_t piece = x->pending.n - done;
        ssize_t n;

        if (x->piece_max > 0 && piece > x->piece_max)
            piece = x->piece_max;
        n = write(x->in.fd, x->pending.p + done, piece);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) /* it reads no more: the rest is nobody's */
            exec_close_end(&x->in);
        else
            done += (size_t)n;
    }
    buf_remove_front(&x->pending, done);
    if (x->in.fd < 0 && x->started)
        buf_reset(&x->pending);
    if (x->in.fd < 0)
        return;
    if (exec_blocked(x)) {
        uv_poll_start(&x->in.poll, UV_WRITABLE, on_writable);
    } else {
        uv_poll_stop(&x->in.poll);
        if (x->input_over)
            end_input(x);
    }
}

static void take_input(struct exec_stream *x, const char *p, size_t n)
{
    if (!x->wants_stdin || x->input_over || n == 0 || (x->in.fd < 0 && x->started))
        return;
    buf_add(&x->pending, p, n);
    if (x->pending.failed)
        conn_close(x->conn);
    else
        exec_pump_input(x);
}

static void exec_input_resize(struct exec_stream *x)
{
    json_auto_t *size = NULL;
    struct err ignored = { 0 };
    json_int_t width, height;

    if (!x->tty ||
        json_parse(x->small.p, x->small.n, EXEC_SMALL_MAX, &size, "terminal size", &ignored) != ERR_OK)
        return;
    width = json_int(size, "Width", 0);
    height = json_int(size, "Height", 0);
    if (width < 1 || height < 1 || width > UINT16_MAX || height > UINT16_MAX)
        return;
    x->size = (struct winsize){ .ws_row = (unsigned short)height, .ws_col = (unsigned short)width };
    if (x->attached)
        x->server->provider.attach_resize(x->control, x->size.ws_row, x->size.ws_col);
    else if (x->out[0].fd >= 0)
        ioctl(x->out[0].fd, TIOCSWINSZ, &x->size);
}

/* A whole message of channel 4 or 255. */
static void small_message(struct exec_stream *x)
{
    if (x->channel == EXEC_CHANNEL_RESIZE)
        exec_input_resize(x);
    else if (x->protocol == EXEC_V5 && x->small.n == 1 && x->small.p[0] == EXEC_CHANNEL_STDIN) {
        x->input_over = true;
        exec_pump_input(x);
    }
    buf_reset(&x->small);
}

static void exec_input_take_piece(struct exec_stream *x, const struct ws_piece *piece)
{
    const char *p = piece->p;
    size_t n = piece->n;

    if (piece->first)
        x->channel = -1;
    if (x->channel < 0 && n > 0) {
        x->channel = (unsigned char)*p++;
        n--;
    }
    if (x->channel == EXEC_CHANNEL_STDIN) {
        take_input(x, p, n);
    } else if (x->channel == EXEC_CHANNEL_RESIZE || x->channel == EXEC_CHANNEL_CLOSE) {
        buf_add(&x->small, p, n);
        if (x->small.failed)
            exec_close(x, WS_CODE_TOO_BIG, "the message is too long", false);
        else if (piece->last)
            small_message(x);
    } /* as Kubernetes: what comes on another channel is nobody's */
}

static void pong(struct exec_stream *x, const struct ws_piece *piece)
{
    struct buf b = BUF_INIT(256);

    if (conn_backlog(x->conn) > STATUS_BACKLOG_MAX) { /* it asks and does not listen */
        conn_close(x->conn);
        return;
    }
    ws_add_frame(&b, WS_OP_PONG, piece->p, piece->n);
    conn_frames(x->conn, &b);
}

static void take_event(struct exec_stream *x, enum ws_event event, const struct ws_piece *piece)
{
    switch (event) {
    case WS_MORE:
    case WS_PONG:
        return;
    case WS_DATA:
        if (!x->closing)
            exec_input_take_piece(x, piece);
        return;
    case WS_PING:
        if (!x->closing)
            pong(x, piece);
        return;
    case WS_CLOSE:
    case WS_FAILED:
        if (x->closing)
            conn_close(x->conn);
        else if (event == WS_FAILED)
            exec_close(x, x->reader.close_code, x->reader.error, false);
        else /* it does not wait for the end of the process */
            exec_close(x, x->reader.close_code == WS_CODE_NONE ? WS_CODE_NORMAL : x->reader.close_code, "",
                       false);
        return;
    }
}

void exec_input(struct conn *c)
{
    struct exec_stream *x = c->exec;
    size_t at = 0;

    while (c->exec != NULL && !exec_blocked(x) && at < c->in.n) {
        struct ws_piece piece;
        size_t used;
        enum ws_event event = ws_read(&x->reader, c->in.p + at, c->in.n - at, &used, &piece);

        at += used;
        take_event(x, event, &piece);
    }
    if (c->exec == NULL)
        return;
    buf_remove_front(&c->in, at);
    if (x->closing && x->process != NULL)
        x->server->provider.exec_cancel(x->process);
    if (exec_blocked(x)) {
        conn_pause(c);
        watch_hangup(x);
    } else {
        if (x->hangup.fd >= 0)
            uv_poll_stop(&x->hangup.poll);
        conn_resume(c);
    }
}
