/* SPDX-License-Identifier: Apache-2.0 */
/* The process's streams, between the WebSocket and this process's own. Both directions are independent: input
 * is read only when earlier input was sent, output is written as it arrives. */
#include "agent/cli/stream/internal.h"

#include "base/codec/json.h"
#include "base/codec/websocket.h"
#include "base/parse.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

enum { CHANNEL_STDIN, CHANNEL_STDOUT, CHANNEL_STDERR, CHANNEL_ERROR, CHANNEL_RESIZE, CHANNEL_CLOSE = 255 };

enum {
    PIECE = 32 * 1024,
    STATUS_MAX = 64 * 1024,
    CODE_SIGNAL = 128, /* as in shells: plus the signal's number */
    KEY_P = 'P' & 31,  /* ctrl-p, ctrl-q */
    KEY_Q = 'Q' & 31,
};

struct stream {
    struct cli *cli;
    int fd, input, output, terminal, signals; /* -1: none, or ended */
    bool detaches, held, detached;            /* a ctrl-p is held back until the next byte is known */
    struct ws ws;
    int channel;
    struct buf status; /* of the error channel */
    bool over;
    int code;
    const char *why; /* EXIT_ERROR: printed after the terminal was restored */
};

/* ---- to the daemon ---- */

static void queue_size(struct stream *s)
{
    struct winsize size;
    char text[80];

    if (s->terminal < 0 || ioctl(s->terminal, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        return;
    snprintf(text, sizeof(text), "%c{\"Width\":%u,\"Height\":%u}", CHANNEL_RESIZE, size.ws_col, size.ws_row);
    ws_send(&s->ws, text, strlen(text));
}

static void end_early(struct stream *s, int code, const char *why)
{
    s->over = true;
    s->code = code;
    s->why = why;
}

/* Typed input, without the keys that detach. */
static void queue_typed(struct stream *s, const char *p, size_t n)
{
    char piece[1 + 1 + PIECE] = { CHANNEL_STDIN };
    size_t used = 1;

    for (size_t i = 0; i < n; i++) {
        if (s->held && p[i] == KEY_Q) {
            s->detached = true;
            end_early(s, EXIT_OK, NULL);
            return;
        }
        if (s->held)
            piece[used++] = KEY_P;
        s->held = p[i] == KEY_P;
        if (!s->held)
            piece[used++] = p[i];
    }
    if (used > 1)
        ws_send(&s->ws, piece, used);
}

static void read_input(struct stream *s)
{
    static const char close_stdin[] = { (char)CHANNEL_CLOSE, CHANNEL_STDIN };
    char piece[1 + PIECE];
    ssize_t n = read(s->input, piece + 1, PIECE);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    piece[0] = CHANNEL_STDIN;
    if (n > 0 && s->detaches) {
        queue_typed(s, piece + 1, (size_t)n);
    } else if (n > 0) {
        ws_send(&s->ws, piece, (size_t)n + 1);
    } else {
        ws_send(&s->ws, close_stdin, sizeof(close_stdin));
        s->input = -1;
    }
}

static void send_some(struct stream *s)
{
    ssize_t n = send(s->fd, s->ws.out.p, s->ws.out.n, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n >= 0) {
        buf_remove_front(&s->ws.out, (size_t)n);
    } else if (errno == EPIPE || errno == ECONNRESET) {
        s->input = -1; /* the data still to be read has the reason */
        buf_reset(&s->ws.out);
    } else if (errno != EAGAIN && errno != EINTR) {
        end_early(s, EXIT_ERROR, "the connection to coracle broke");
    }
}

/* ---- from the daemon ---- */

int exec_outcome(struct cli *cli, const char *text, size_t n)
{
    json_auto_t *status = NULL;
    const json_t *cause;
    int64_t code;
    size_t i;

    if (json_parse(text, n, STATUS_MAX, &status, "status", ERR_IGNORED) != ERR_OK)
        return cli_error(cli, "cannot parse coracle's answer");
    if (str_eq(json_str(status, "status"), "Success"))
        return EXIT_OK;
    json_array_foreach (cli_at(status, "details.causes"), i, cause) {
        if (str_eq(json_str(status, "reason"), "NonZeroExitCode") &&
            str_eq(json_str(cause, "reason"), "ExitCode") &&
            parse_i64(cli_text(cause, "message"), 1, 255, &code, "exit code", ERR_IGNORED) == ERR_OK) {
            cli_note(cli, "command terminated with exit code %d\n", (int)code);
            return (int)code;
        }
    }
    return cli_error(cli, "%s", cli_text(status, "message"));
}

static void exec_stream_write_all(struct stream *s, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(s->output, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            end_early(s, EXIT_ERROR, NULL); /* the output's reader is gone */
            return;
        }
        p += done;
        n -= (size_t)done;
    }
}

static void exec_stream_write_out(struct stream *s, const char *p, size_t n)
{
    if (s->channel == CHANNEL_STDERR) {
        fwrite(p, 1, n, s->cli->err);
        fflush(s->cli->err);
    } else if (s->output >= 0) {
        exec_stream_write_all(s, p, n);
    } else if (!cli_write(s->cli, p, n)) { /* the output's reader is gone: end as on SIGPIPE */
        end_early(s, CODE_SIGNAL + SIGPIPE, NULL);
    }
}

static void exec_stream_take_piece(const struct ws_piece *piece, void *owner)
{
    struct stream *s = owner;
    const char *p = piece->p;
    size_t n = piece->n;

    if (s->over)
        return;
    if (piece->first)
        s->channel = -1;
    if (s->channel < 0 && n > 0) {
        s->channel = (unsigned char)*p++;
        n--;
    }
    if (n > 0 && (s->channel == CHANNEL_STDOUT || s->channel == CHANNEL_STDERR))
        exec_stream_write_out(s, p, n);
    else if (s->channel == CHANNEL_ERROR)
        buf_add(&s->status, p, n);
    else if (s->channel == CHANNEL_CLOSE && s->output >= 0)
        shutdown(s->output, SHUT_WR);
}

static void take_bytes(struct stream *s, const char *bytes, size_t n)
{
    if (ws_receive(&s->ws, bytes, n) || s->over)
        return;
    if (s->ws.close_code != 0)
        s->over = true;
    else
        end_early(s, EXIT_ERROR, "cannot parse coracle's answer");
}

static void exec_stream_receive(struct stream *s)
{
    char bytes[64 * 1024];
    ssize_t n = recv(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n > 0)
        take_bytes(s, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        s->over = true;
}

/* ---- signals ---- */

/* Handled as events only while the terminal is raw, so that it can be restored. */
static void take_signal(struct stream *s)
{
    struct signalfd_siginfo info;

    if (read(s->signals, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SIGWINCH) {
        queue_size(s);
    } else {
        end_early(s, CODE_SIGNAL + (int)info.ssi_signo, NULL);
    }
}

static void watch_signals(struct stream *s, sigset_t *ret_before)
{
    static const int wanted[] = { SIGWINCH, SIGTERM, SIGINT, SIGHUP, SIGQUIT };
    sigset_t mask;

    sigemptyset(&mask);
    for (size_t i = 0; s->terminal >= 0 && i < ARRAY_LEN(wanted); i++)
        sigaddset(&mask, wanted[i]);
    sigprocmask(SIG_BLOCK, &mask, ret_before);
    s->signals = s->terminal >= 0 ? signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
}

/* ---- the terminal ---- */

/* Passes bytes as typed, including signal keys and line ends: the container's terminal interprets them. */
static bool make_raw(int terminal, struct termios *ret_before)
{
    struct termios raw;

    if (terminal < 0 || tcgetattr(terminal, ret_before) != 0)
        return false;
    raw = *ret_before;
    cfmakeraw(&raw);
    return tcsetattr(terminal, TCSADRAIN, &raw) == 0;
}

/* ---- all of it ---- */

static void exec_stream_turn(struct stream *s)
{
    struct pollfd p[] = {
        { .fd = s->fd, .events = (short)(POLLIN | (s->ws.out.n > 0 ? POLLOUT : 0)) },
        { .fd = s->ws.out.n == 0 ? s->input : -1, .events = POLLIN },
        { .fd = s->signals, .events = POLLIN },
    };

    if (poll(p, ARRAY_LEN(p), -1) < 0)
        return;
    if ((p[0].revents & POLLOUT) != 0)
        send_some(s);
    if ((p[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
        exec_stream_receive(s);
    if (p[1].revents != 0 && s->input >= 0)
        read_input(s);
    if (p[2].revents != 0)
        take_signal(s);
    if (s->ws.out.failed)
        end_early(s, EXIT_ERROR, "out of memory");
}

static int pump(const struct exec_session *session)
{
    struct stream s = { .cli = session->cli,
                        .fd = session->fd,
                        .input = session->input,
                        .output = session->output,
                        .detaches = session->detaches,
                        .terminal = session->terminal,
                        .channel = -1,
                        .status = BUF_INIT(STATUS_MAX) };
    struct termios terminal_before;
    sigset_t before;
    bool raw;

    if (!ws_init(&s.ws, WS_CLIENT, 8 * PIECE, exec_stream_take_piece, &s))
        return cli_error(s.cli, "out of memory");
    watch_signals(&s, &before);
    raw = make_raw(s.terminal, &terminal_before);
    queue_size(&s);
    take_bytes(&s, session->rest->p, session->rest->n);
    while (!s.over)
        exec_stream_turn(&s);
    if (raw)
        tcsetattr(s.terminal, TCSADRAIN, &terminal_before);
    if (s.why != NULL)
        cli_error(s.cli, "%s", s.why);
    else if (s.code == EXIT_OK && s.status.n > 0)
        s.code = exec_outcome(s.cli, s.status.p, s.status.n);
    else if (s.code == EXIT_OK && !s.detached)
        s.code = cli_error(s.cli, "the connection to coracle ended before the command did");
    if (s.signals >= 0)
        close(s.signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    ws_done(&s.ws);
    buf_done(&s.status);
    return s.code;
}

int exec_stream(const struct exec_session *session, const char *url)
{
    struct exec_session opened = *session;
    struct cli_response r = CLI_RESPONSE_INIT;
    buf_auto rest = BUF_INIT(128 * 1024);
    struct err e = { 0 };
    fd_auto fd = cli_upgrade(session->cli, url, "v5.channel.k8s.io", &r, &rest, &e);
    int code;

    opened.fd = fd;
    opened.rest = &rest;
    if (fd < 0)
        code = e.code != ERR_OK ? cli_failed(session->cli, &e) : cli_server_error(session->cli, &r);
    else
        code = pump(&opened);
    buf_done(&r.body);
    return code;
}
