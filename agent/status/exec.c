/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec - a process in a container for one client, over a WebSocket with Kubernetes' channels: the first byte
 * of each message is the channel.
 *
 *     0  standard input           3  how it ended: a Status, once, at the end
 *     1  standard output          4  size of the terminal: {"Width": 80, "Height": 24}
 *     2  standard error         255  v5 only: half-close of the channel whose number follows
 *
 * Nothing is queued without limit: while the client does not accept data, the process's output is not read;
 * while the process does not read its input, the client is not read. When the client disconnects, the process
 * is ended.
 */
#include "agent/status/exec_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE = 32 * 1024,         /* of output per message, as in kubelet */
    BACKLOG_HIGH = 256 * 1024, /* unsent bytes beyond which output is not read */
    DRAIN_MS =
        200, /* after the end, wait for a grandchild that holds the pipes, as in base/process/process.c */
    CLOSE_MS = 5000, /* wait for the client's answer to our close frame */
};

static void maybe_finish(struct exec_stream *x);

/* ---- ends ---- */

static void status_exec_maybe_free(struct exec_stream *x)
{
    struct status_server *s = x->server;

    if (x->conn != NULL || x->process != NULL || x->open_handles > 0)
        return;
    buf_done(&x->small);
    ws_done(&x->ws);
    buf_wipe(&x->pending);
    s->n_execs--;
    free(x);
    server_maybe_free(s);
}

static void on_end_closed(uv_handle_t *handle)
{
    struct exec_stream *x = ((struct exec_end *)handle->data)->stream;

    x->open_handles--;
    status_exec_maybe_free(x);
}

void exec_close_end(struct exec_end *end)
{
    if (end->fd < 0)
        return;
    uv_close((uv_handle_t *)&end->poll, on_end_closed);
    close(take_fd(&end->fd));
}

bool exec_open_end(struct exec_stream *x, struct exec_end *end, int fd, int channel)
{
    if (fd < 0 || uv_poll_init(x->server->loop, &end->poll, fd) != 0) { /* makes it non-blocking */
        if (fd >= 0)
            close(fd);
        return false;
    }
    end->fd = fd;
    end->channel = channel;
    end->poll.data = end;
    x->open_handles++;
    return true;
}

static void status_exec_on_timer_closed(uv_handle_t *handle)
{
    struct exec_stream *x = handle->data;

    x->open_handles--;
    status_exec_maybe_free(x);
}

void exec_gone(struct conn *c)
{
    struct exec_stream *x = c->exec;

    c->exec = NULL;
    c->source = NULL;
    x->conn = NULL;
    x->closing = true;
    if (x->process != NULL)
        x->server->provider.exec_cancel(x->process);
    exec_close_end(&x->in);
    exec_close_end(&x->out[0]);
    exec_close_end(&x->out[1]);
    exec_close_end(&x->hangup);
    if (x->control >= 0)
        close(take_fd(&x->control));
    if (x->has_timer) {
        x->has_timer = false;
        uv_close((uv_handle_t *)&x->timer, status_exec_on_timer_closed);
    }
    status_exec_maybe_free(x);
}

/* ---- to the client ---- */

void exec_flush(struct exec_stream *x)
{
    if (x->ws.out.n > 0 || x->ws.out.failed)
        conn_frames(x->conn, &x->ws.out);
}

static void status_exec_say(struct exec_stream *x, int channel, const char *text, size_t n)
{
    struct buf b = BUF_INIT(n + 1);

    buf_addc(&b, (char)channel);
    buf_add(&b, text, n);
    if (b.failed)
        x->ws.out.failed = true;
    else
        ws_send(&x->ws, b.p, b.n);
    buf_wipe(&b);
    exec_flush(x);
}

static void on_close_timer(uv_timer_t *timer)
{
    struct exec_stream *x = timer->data;

    conn_close(x->conn);
}

void exec_close(struct exec_stream *x, uint16_t code, const char *reason, bool linger)
{
    if (x->closing)
        return;
    x->closing = true;
    x->linger = linger;
    exec_close_end(&x->in);
    exec_close_end(&x->out[0]);
    exec_close_end(&x->out[1]);
    buf_reset(&x->pending); /* discards further input of the client */
    ws_close(&x->ws, code, reason);
    uv_timer_start(&x->timer, on_close_timer, x->server->write_ms, 0);
    exec_flush(x);
    if (x->conn != NULL)
        conn_resume(x->conn);
}

static void status_exec_finish(struct exec_stream *x)
{
    const bool never_ran = x->result.code != ERR_OK && x->exit_code != 0;
    char words[sizeof(x->result.text) + 64];
    char *status;

    if (x->result.code == ERR_OK && x->unread != 0)
        err_sys(&x->result, x->unread, "a part of its output is lost: read");
    status = x->plain ? forward_status(&x->result) : exec_status(&x->result, x->exit_code);
    /* Standard error is the only way to send the runtime's message, or a loss of output beside an exit code.
     */
    if (x->result.code != ERR_OK && x->exit_code != 0 && (x->wants_stderr || x->tty)) {
        snprintf(words, sizeof(words), "coracle: %s%s%s\n", never_ran ? "cannot start the process: " : "",
                 x->result.text, x->tty ? "\r" : "");
        status_exec_say(x, x->tty ? EXEC_CHANNEL_STDOUT : EXEC_CHANNEL_STDERR, words, strlen(words));
    }
    if (x->conn != NULL && status != NULL)
        status_exec_say(x, EXEC_CHANNEL_ERROR, status, strlen(status));
    if (x->conn != NULL)
        exec_close(x, status != NULL ? WSLAY_CODE_NORMAL_CLOSURE : WSLAY_CODE_INTERNAL_SERVER_ERROR, "",
                   true);
    free(status);
}

/* ---- output ---- */

static void on_readable(uv_poll_t *poll, int status, int events);

static void set_polling(struct exec_end *end, bool on)
{
    if (end->fd < 0 || end->polling == on)
        return;
    end->polling = on;
    if (on)
        uv_poll_start(&end->poll, UV_READABLE, on_readable);
    else
        uv_poll_stop(&end->poll);
}

static bool backlogged(const struct exec_stream *x)
{
    return conn_backlog(x->conn) > BACKLOG_HIGH;
}

static void end_of_output(struct exec_end *end)
{
    static const char ended[] = { EXEC_CHANNEL_STDOUT };
    struct exec_stream *x = end->stream;

    exec_close_end(end);
    if (x->attached) /* the container ended */
        x->ended = true;
    else if (x->forwards && !x->ended)
        status_exec_say(x, EXEC_CHANNEL_CLOSE, ended, sizeof(ended));
}

/* A packet of an attached container: the first byte is the stream. */
static void send_packet(struct exec_stream *x, const char *packet, size_t n)
{
    bool error = packet[0] == 3;

    if (n > 1 && (error ? x->wants_stderr : x->wants_stdout))
        status_exec_say(x, error ? EXEC_CHANNEL_STDERR : EXEC_CHANNEL_STDOUT, packet + 1, n - 1);
}

/* Reads a piece; false if there is nothing more now, or at the end. */
static bool status_exec_read_piece(struct exec_end *end)
{
    struct exec_stream *x = end->stream;
    char piece[PIECE];
    ssize_t n = read(end->fd, piece, sizeof(piece));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    /* conmon closed its socket with unread input of the client. The socket reports that once, before the
     * output. */
    if (n < 0 && errno == ECONNRESET && x->attached)
        return true;
    if (n <= 0) {
        const bool at_end = n == 0 || x->forwards || (x->tty && errno == EIO /* closed by all processes */);

        if (!at_end && x->unread == 0)
            x->unread = errno;
        end_of_output(end);
        return false;
    }
    if (x->attached)
        send_packet(x, piece, (size_t)n);
    else
        status_exec_say(x, end->channel, piece, (size_t)n);
    return x->conn != NULL;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct exec_end *end = poll->data;
    struct exec_stream *x = end->stream;

    (void)status; /* read() reports errors as well */
    (void)events;
    status_exec_read_piece(end);
    if (x->conn == NULL)
        return;
    if (backlogged(x)) {
        set_polling(&x->out[0], false);
        set_polling(&x->out[1], false);
    }
    maybe_finish(x);
}

static void on_drain_timer(uv_timer_t *timer)
{
    struct exec_stream *x = timer->data;

    /* Only the present content of the pipes: a grandchild may continue to write. */
    for (size_t i = 0; i < ARRAY_LEN(x->out); i++)
        for (int k = 0; k < 64 && x->conn != NULL && x->out[i].fd >= 0 && status_exec_read_piece(&x->out[i]);
             k++)
            ;
    if (x->conn == NULL)
        return;
    exec_close_end(&x->out[0]);
    exec_close_end(&x->out[1]);
    maybe_finish(x);
}

/* After the process has ended and all its output was sent. */
static void maybe_finish(struct exec_stream *x)
{
    bool open = x->out[0].fd >= 0 || x->out[1].fd >= 0;

    if (!x->ended || x->closing)
        return;
    if (!open)
        status_exec_finish(x);
    else if (backlogged(x))
        uv_timer_stop(&x->timer); /* the client's time is not limited by it */
    else if (!uv_is_active((uv_handle_t *)&x->timer))
        uv_timer_start(&x->timer, on_drain_timer, DRAIN_MS, 0);
}

void exec_written(struct conn *c)
{
    struct exec_stream *x = c->exec;

    if (x->closing) {
        if (c->writes == 0 && !x->linger)
            conn_close(c);
        else if (c->writes == 0)
            uv_timer_start(&x->timer, on_close_timer, CLOSE_MS, 0);
        return;
    }
    if (x->started && conn_backlog(c) <= BACKLOG_HIGH / 2) {
        set_polling(&x->out[0], true);
        set_polling(&x->out[1], true);
        maybe_finish(x);
    }
}

/* ---- the process ---- */

void exec_on_terminal(int master, void *owner)
{
    struct exec_stream *x = owner;

    if (x->conn == NULL || x->closing) {
        close(master);
        return;
    }
    if (x->size.ws_row != 0)
        ioctl(master, TIOCSWINSZ, &x->size);
    if (!exec_open_end(x, &x->out[0], master, EXEC_CHANNEL_STDOUT) ||
        (x->wants_stdin && !exec_open_end(x, &x->in, fcntl(master, F_DUPFD_CLOEXEC, 3), EXEC_CHANNEL_STDIN)))
        conn_close(x->conn);
}

void exec_on_started(void *owner)
{
    struct exec_stream *x = owner;

    if (x->conn == NULL || x->closing || x->started)
        return;
    x->started = true;
    set_polling(&x->out[0], true);
    set_polling(&x->out[1], true);
    /* As in kubelet, an empty message on the lowest output channel reports that the process runs. */
    status_exec_say(x,
                    x->wants_stdout || x->tty ? EXEC_CHANNEL_STDOUT
                    : x->wants_stderr         ? EXEC_CHANNEL_STDERR
                                              : EXEC_CHANNEL_ERROR,
                    "", 0);
    if (x->conn == NULL)
        return;
    exec_pump_input(x);
    if (x->conn != NULL && !exec_blocked(x))
        exec_input(x->conn);
}

void exec_on_done(const struct err *result, int exit_code, void *owner)
{
    struct exec_stream *x = owner;

    x->process = NULL;
    x->ended = true;
    x->result = *result;
    x->exit_code = exit_code;
    if (x->conn == NULL) {
        status_exec_maybe_free(x);
        return;
    }
    exec_close_end(&x->in);
    if (result->code != ERR_OK && !x->plain) { /* the pipes contain the runtime's output */
        exec_close_end(&x->out[0]);
        exec_close_end(&x->out[1]);
    }
    if (exec_blocked(x)) {
        buf_reset(&x->pending);
        exec_input(x->conn);
    }
    if (x->conn != NULL)
        maybe_finish(x);
}
