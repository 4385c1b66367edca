/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/exec_internal.h"

#include "base/codec/json.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

/* ---- input ---- */

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

/* While the connection is not read, only this poll detects its end. */
static void watch_hangup(struct exec_stream *x)
{
    uv_os_fd_t fd;

    if (x->hangup.fd < 0 && (uv_fileno((uv_handle_t *)&x->conn->pipe, &fd) != 0 ||
                             !exec_open_end(x, &x->hangup, fcntl(fd, F_DUPFD_CLOEXEC, 3), -1)))
        return; /* out of memory or descriptors: the end is detected when the process continues to read */
    uv_poll_start(&x->hangup.poll, UV_DISCONNECT, on_hangup);
}

/* Sends Ctrl-D if the terminal would interpret it as the end of input. */
static void end_terminal_input(int master)
{
    struct termios t;

    if (tcgetattr(master, &t) == 0 && (t.c_lflag & ICANON) != 0 && write(master, &t.c_cc[VEOF], 1) != 1)
        log_debug("cannot send the end of input to a terminal");
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
        if (n < 0) /* the process no longer reads: the rest is discarded */
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
    if (x->wants_stdin && !x->input_over && (x->in.fd >= 0 || !x->started))
        buf_add(&x->pending, p, n);
}

static void exec_input_resize(struct exec_stream *x)
{
    json_auto_t *size = NULL;
    json_int_t width, height;

    if (!x->tty ||
        json_parse(x->small.p, x->small.n, EXEC_SMALL_MAX, &size, "terminal size", ERR_IGNORED) != ERR_OK)
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

/* A complete message of channel 4 or 255. */
static void small_message(struct exec_stream *x)
{
    if (x->channel == EXEC_CHANNEL_RESIZE)
        exec_input_resize(x);
    else if (x->protocol == EXEC_V5 && x->small.n == 1 && x->small.p[0] == EXEC_CHANNEL_STDIN)
        x->input_over = true;
    buf_reset(&x->small);
}

void exec_take_piece(const struct ws_piece *piece, void *owner)
{
    struct exec_stream *x = owner;
    const char *p = piece->p;
    size_t n = piece->n;

    if (x->closing || x->small.failed)
        return;
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
        if (piece->last && !x->small.failed)
            small_message(x);
    } /* other channels are ignored, as in Kubernetes */
}

static void exec_input_take_bytes(struct exec_stream *x, struct conn *c)
{
    bool open = ws_receive(&x->ws, c->in.p, c->in.n);

    buf_reset(&c->in);
    if (x->pending.failed || (!open && x->closing) ||
        (x->ws.out.n > 0 && conn_backlog(c) > STATUS_BACKLOG_MAX))
        conn_close(c); /* the client sends pings and does not read the answers */
    else if (!open)    /* the client does not wait for the end of the process */
        exec_close(x, 0, "", false);
    else if (x->small.failed)
        exec_close(x, WSLAY_CODE_MESSAGE_TOO_BIG, "the message is too long", false);
    else
        exec_flush(x);
    if (c->exec != NULL)
        exec_pump_input(x);
}

void exec_input(struct conn *c)
{
    struct exec_stream *x = c->exec;

    if (!exec_blocked(x) && c->in.n > 0)
        exec_input_take_bytes(x, c);
    if (c->exec == NULL)
        return;
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
