/*
 * exec - one process in a container for one client, over a WebSocket with Kubernetes' channels: the first
 * byte of each message is its channel.
 *
 *     0  standard input           3  how it ended: a Status, once, at the end
 *     1  standard output          4  size of the terminal: {"Width": 80, "Height": 24}
 *     2  standard error         255  v5 only: half-close of the channel whose number follows
 *
 * Nothing piles up: while the client does not take what was written, the process's output is not read; while
 * the process does not read its input, the client's bytes are not read.  A client that goes takes the process
 * with it.
 */
#include "agent/status/internal.h"

#include "base/json.h"
#include "base/log.h"
#include "base/websocket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { CHANNEL_STDIN, CHANNEL_STDOUT, CHANNEL_STDERR, CHANNEL_ERROR, CHANNEL_RESIZE, CHANNEL_CLOSE = 255 };

enum {
    PIECE = 32 * 1024,         /* of output in one message, as kubelet's copies */
    BACKLOG_HIGH = 256 * 1024, /* bytes not yet taken by the client past which output is not read */
    SMALL_MAX = 1024,          /* messages of channels 4 and 255 */
    DRAIN_MS = 200,            /* after the end, for a grandchild that holds the pipes; as base/process.c */
    CLOSE_MS = 5000,           /* for the client to answer our close frame */
};

struct end { /* one of our ends of the process's streams */
    struct exec_stream *stream;
    int fd; /* -1: closed */
    uv_poll_t poll;
    int channel;
    bool polling;
};

struct exec_stream {
    struct status_server *server;
    struct conn *conn;           /* NULL: gone */
    struct status_exec *process; /* NULL: ended */
    int protocol;
    bool wants_stdin, wants_stdout, wants_stderr, tty;
    struct ws_reader reader;
    int channel;      /* of the message that comes; -1: not known yet */
    struct buf small; /* of channels 4 and 255, so far */
    struct end in, out[2];
    struct end hangup;  /* the connection once more, while it is not read */
    struct buf pending; /* input that the process did not take yet */
    bool input_over;    /* the client has no more: close when `pending` is written */
    struct winsize size;
    bool started, ended;
    bool closing; /* our close frame is on its way */
    bool linger;  /* the client's is waited for */
    struct err result;
    int exit_code;
    uv_timer_t timer;
    bool has_timer;
    int open_handles;
};

static void pump_input(struct exec_stream *x);
static void maybe_finish(struct exec_stream *x);

/* ---- ends ------------------------------------------------------------------------------------ */

static void maybe_free(struct exec_stream *x)
{
    struct status_server *s = x->server;

    if (x->conn != NULL || x->process != NULL || x->open_handles > 0)
        return;
    buf_done(&x->small);
    buf_wipe(&x->pending);
    s->n_execs--;
    free(x);
    server_maybe_free(s);
}

static void on_end_closed(uv_handle_t *handle)
{
    struct exec_stream *x = ((struct end *)handle->data)->stream;

    x->open_handles--;
    maybe_free(x);
}

static void close_end(struct end *end)
{
    if (end->fd < 0)
        return;
    uv_close((uv_handle_t *)&end->poll, on_end_closed);
    close(take_fd(&end->fd));
}

/* Takes the descriptor. */
static bool open_end(struct exec_stream *x, struct end *end, int fd, int channel)
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

static void on_timer_closed(uv_handle_t *handle)
{
    struct exec_stream *x = handle->data;

    x->open_handles--;
    maybe_free(x);
}

void exec_gone(struct conn *c)
{
    struct exec_stream *x = c->exec;

    c->exec = NULL;
    x->conn = NULL;
    x->closing = true;
    if (x->process != NULL)
        x->server->provider.exec_cancel(x->process);
    close_end(&x->in);
    close_end(&x->out[0]);
    close_end(&x->out[1]);
    close_end(&x->hangup);
    if (x->has_timer) {
        x->has_timer = false;
        uv_close((uv_handle_t *)&x->timer, on_timer_closed);
    }
    maybe_free(x);
}

/* ---- to the client --------------------------------------------------------------------------- */

static void say(struct exec_stream *x, int channel, const char *text, size_t n)
{
    struct buf b = BUF_INIT(n + 1 + WS_HEAD_MAX);
    unsigned char head[WS_HEAD_MAX];

    buf_add(&b, head, ws_head(head, WS_BINARY, n + 1, NULL));
    buf_addc(&b, (char)channel);
    buf_add(&b, text, n);
    conn_frames(x->conn, &b);
}

static void on_close_timer(uv_timer_t *timer)
{
    struct exec_stream *x = timer->data;

    conn_close(x->conn);
}

/* Our close frame; with `linger` the client may have the last word, as it should when it did not begin. */
static void close_with(struct exec_stream *x, uint16_t code, const char *reason, bool linger)
{
    struct buf b = BUF_INIT(256);

    if (x->closing)
        return;
    x->closing = true;
    x->linger = linger;
    close_end(&x->in);
    close_end(&x->out[0]);
    close_end(&x->out[1]);
    buf_reset(&x->pending); /* what it still sends is thrown away */
    ws_add_close(&b, code, reason);
    uv_timer_start(&x->timer, on_close_timer, x->server->write_ms, 0);
    conn_frames(x->conn, &b);
    if (x->conn != NULL)
        conn_resume(x->conn);
}

static void finish(struct exec_stream *x)
{
    char *status = exec_status(&x->result, x->exit_code);
    const char *text = x->result.text;
    char words[sizeof(x->result.text) + 64];

    /* It never ran: the only place for the runtime's words beside the exit code. */
    if (x->result.code != ERR_OK && x->exit_code != 0 && (x->wants_stderr || x->tty)) {
        snprintf(words, sizeof(words), "coracle: cannot start the process: %s%s\n", text, x->tty ? "\r" : "");
        say(x, x->tty ? CHANNEL_STDOUT : CHANNEL_STDERR, words, strlen(words));
    }
    if (x->conn != NULL && status != NULL)
        say(x, CHANNEL_ERROR, status, strlen(status));
    if (x->conn != NULL)
        close_with(x, status != NULL ? WS_CODE_NORMAL : WS_CODE_INTERNAL, "", true);
    free(status);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void on_readable(uv_poll_t *poll, int status, int events);

static void set_polling(struct end *end, bool on)
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

/* One piece; false: nothing more now, or the end. */
static bool read_piece(struct end *end)
{
    struct exec_stream *x = end->stream;
    char piece[PIECE];
    ssize_t n = read(end->fd, piece, sizeof(piece));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) { /* EIO: nobody has the terminal open any more */
        close_end(end);
        return false;
    }
    say(x, end->channel, piece, (size_t)n);
    return x->conn != NULL;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct end *end = poll->data;
    struct exec_stream *x = end->stream;

    (void)status; /* an error shows in read() as well */
    (void)events;
    read_piece(end);
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

    /* What the pipes hold, and no more: the grandchild may go on writing. */
    for (size_t i = 0; i < ARRAY_LEN(x->out); i++)
        for (int k = 0; k < 64 && x->conn != NULL && x->out[i].fd >= 0 && read_piece(&x->out[i]); k++)
            ;
    if (x->conn == NULL)
        return;
    close_end(&x->out[0]);
    close_end(&x->out[1]);
    maybe_finish(x);
}

/* Once the process has ended: all that it wrote goes first. */
static void maybe_finish(struct exec_stream *x)
{
    bool open = x->out[0].fd >= 0 || x->out[1].fd >= 0;

    if (!x->ended || x->closing)
        return;
    if (!open)
        finish(x);
    else if (backlogged(x))
        uv_timer_stop(&x->timer); /* the client's time does not count */
    else if (!uv_is_active((uv_handle_t *)&x->timer))
        uv_timer_start(&x->timer, on_drain_timer, DRAIN_MS, 0);
}

void exec_drained(struct conn *c)
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

/* ---- input ----------------------------------------------------------------------------------- */

static bool blocked(const struct exec_stream *x)
{
    return x->pending.n > 0;
}

static void on_hangup(uv_poll_t *poll, int status, int events)
{
    struct end *end = poll->data;

    (void)status;
    (void)events;
    conn_close(end->stream->conn);
}

/* While the connection is not read, its end shows only here. */
static void watch_hangup(struct exec_stream *x)
{
    uv_os_fd_t fd;

    if (x->hangup.fd < 0 && (uv_fileno((uv_handle_t *)&x->conn->pipe, &fd) != 0 ||
                             !open_end(x, &x->hangup, fcntl(fd, F_DUPFD_CLOEXEC, 3), -1)))
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
    if (x->tty && x->in.fd >= 0)
        end_terminal_input(x->in.fd);
    close_end(&x->in);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct exec_stream *x = ((struct end *)poll->data)->stream;

    (void)status;
    (void)events;
    pump_input(x);
    if (x->conn != NULL && !blocked(x))
        exec_input(x->conn);
}

/* As much of `pending` as the process takes. */
static void pump_input(struct exec_stream *x)
{
    size_t done = 0;

    while (x->in.fd >= 0 && done < x->pending.n) {
        ssize_t n = write(x->in.fd, x->pending.p + done, x->pending.n - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) /* it reads no more: the rest is nobody's */
            close_end(&x->in);
        else
            done += (size_t)n;
    }
    buf_remove_front(&x->pending, done);
    if (x->in.fd < 0 && x->started)
        buf_reset(&x->pending);
    if (x->in.fd < 0)
        return;
    if (blocked(x)) {
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
        pump_input(x);
}

static void resize(struct exec_stream *x)
{
    json_auto_t *size = NULL;
    struct err ignored = { 0 };
    json_int_t width, height;

    if (!x->tty || json_parse(x->small.p, x->small.n, SMALL_MAX, &size, "terminal size", &ignored) != ERR_OK)
        return;
    width = json_int(size, "Width", 0);
    height = json_int(size, "Height", 0);
    if (width < 1 || height < 1 || width > UINT16_MAX || height > UINT16_MAX)
        return;
    x->size = (struct winsize){ .ws_row = (unsigned short)height, .ws_col = (unsigned short)width };
    if (x->out[0].fd >= 0)
        ioctl(x->out[0].fd, TIOCSWINSZ, &x->size);
}

/* A whole message of channel 4 or 255. */
static void small_message(struct exec_stream *x)
{
    if (x->channel == CHANNEL_RESIZE)
        resize(x);
    else if (x->protocol == EXEC_V5 && x->small.n == 1 && x->small.p[0] == CHANNEL_STDIN) {
        x->input_over = true;
        pump_input(x);
    }
    buf_reset(&x->small);
}

static void take_piece(struct exec_stream *x, const struct ws_piece *piece)
{
    const char *p = piece->p;
    size_t n = piece->n;

    if (piece->first)
        x->channel = -1;
    if (x->channel < 0 && n > 0) {
        x->channel = (unsigned char)*p++;
        n--;
    }
    if (x->channel == CHANNEL_STDIN) {
        take_input(x, p, n);
    } else if (x->channel == CHANNEL_RESIZE || x->channel == CHANNEL_CLOSE) {
        buf_add(&x->small, p, n);
        if (x->small.failed)
            close_with(x, WS_CODE_TOO_BIG, "the message is too long", false);
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
            take_piece(x, piece);
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
            close_with(x, x->reader.close_code, x->reader.error, false);
        else /* it does not wait for the end of the process */
            close_with(x, x->reader.close_code == WS_CODE_NONE ? WS_CODE_NORMAL : x->reader.close_code, "",
                       false);
        return;
    }
}

void exec_input(struct conn *c)
{
    struct exec_stream *x = c->exec;
    size_t at = 0;

    while (c->exec != NULL && !blocked(x) && at < c->in.n) {
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
    if (blocked(x)) {
        conn_pause(c);
        watch_hangup(x);
    } else {
        if (x->hangup.fd >= 0)
            uv_poll_stop(&x->hangup.poll);
        conn_resume(c);
    }
}

/* ---- the process ----------------------------------------------------------------------------- */

static void on_terminal(int master, void *owner)
{
    struct exec_stream *x = owner;

    if (x->conn == NULL || x->closing) {
        close(master);
        return;
    }
    if (x->size.ws_row != 0)
        ioctl(master, TIOCSWINSZ, &x->size);
    if (!open_end(x, &x->out[0], master, CHANNEL_STDOUT) ||
        (x->wants_stdin && !open_end(x, &x->in, fcntl(master, F_DUPFD_CLOEXEC, 3), CHANNEL_STDIN)))
        conn_close(x->conn);
}

static void on_started(void *owner)
{
    struct exec_stream *x = owner;

    if (x->conn == NULL || x->closing)
        return;
    x->started = true;
    set_polling(&x->out[0], true);
    set_polling(&x->out[1], true);
    /* As kubelet: an empty message on the lowest channel that is written to says that it runs. */
    say(x,
        x->wants_stdout || x->tty ? CHANNEL_STDOUT
        : x->wants_stderr         ? CHANNEL_STDERR
                                  : CHANNEL_ERROR,
        "", 0);
    if (x->conn == NULL)
        return;
    pump_input(x);
    if (x->conn != NULL && !blocked(x))
        exec_input(x->conn);
}

static void on_done(const struct err *result, int exit_code, void *owner)
{
    struct exec_stream *x = owner;

    x->process = NULL;
    x->ended = true;
    x->result = *result;
    x->exit_code = exit_code;
    if (x->conn == NULL) {
        maybe_free(x);
        return;
    }
    close_end(&x->in);
    if (result->code != ERR_OK) { /* what is in the pipes is the runtime's */
        close_end(&x->out[0]);
        close_end(&x->out[1]);
    }
    if (blocked(x)) {
        buf_reset(&x->pending);
        exec_input(x->conn);
    }
    if (x->conn != NULL)
        maybe_finish(x);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* A pipe: our end is watched, the other is the process's. */
static bool open_pipe(struct exec_stream *x, struct end *end, int channel, bool wanted, int *ret_theirs)
{
    bool input = channel == CHANNEL_STDIN;
    int fds[2];

    if (!wanted)
        return true;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    *ret_theirs = fds[input ? 0 : 1];
    return open_end(x, end, fds[input ? 1 : 0], channel);
}

static struct exec_stream *new_stream(struct conn *c, const struct status_exec_options *o, int protocol)
{
    struct exec_stream *x = calloc(1, sizeof(*x));

    if (x == NULL)
        return NULL;
    x->server = c->server;
    x->conn = c;
    x->protocol = protocol;
    x->wants_stdin = o->stdin_;
    x->wants_stdout = o->stdout_;
    x->wants_stderr = o->stderr_;
    x->tty = o->tty;
    x->in.stream = x->out[0].stream = x->out[1].stream = x->hangup.stream = x;
    x->in.fd = x->out[0].fd = x->out[1].fd = x->hangup.fd = -1;
    buf_init(&x->small, SMALL_MAX);
    buf_init(&x->pending, 2 * sizeof(c->server->read_buffer) + STATUS_HEAD_MAX + STATUS_BODY_MAX);
    ws_reader_init(&x->reader, WS_SERVER);
    uv_timer_init(c->server->loop, &x->timer);
    x->timer.data = x;
    x->has_timer = true;
    x->open_handles = 1;
    c->server->n_execs++;
    c->exec = x;
    return x;
}

static void start(struct exec_stream *x, const struct status_exec_options *o, const struct status_match *m,
                  struct err *e)
{
    const struct status_provider *p = &x->server->provider;
    fd_auto in = -1;
    fd_auto out = -1;
    fd_auto err = -1;

    if (!open_pipe(x, &x->in, CHANNEL_STDIN, o->stdin_ && !o->tty, &in) ||
        !open_pipe(x, &x->out[0], CHANNEL_STDOUT, o->stdout_ && !o->tty, &out) ||
        !open_pipe(x, &x->out[1], CHANNEL_STDERR, o->stderr_ && !o->tty, &err)) {
        err_set(e, ERR_EXHAUSTED, "no pipes for the process: %s", strerror(errno));
        return;
    }
    const struct status_exec_spec spec = {
        .namespace_ = m->namespace_,
        .name = m->name,
        .container = o->container,
        .command = o->command,
        .stdin_fd = in,
        .stdout_fd = out,
        .stderr_fd = err,
        .tty = o->tty,
        .owner = x,
        .on_terminal = on_terminal,
        .on_started = on_started,
        .on_done = on_done,
    };
    x->process = p->exec(p->arg, &spec, e);
}

static void refuse(struct conn *c, const char *name, const struct err *e)
{
    int http_code = e->code == ERR_PRECONDITION ? 400 : status_http_code(e->code);

    conn_status(c, http_code, status_reason(http_code), "pods", name, e->text);
}

/*
 * The pod is asked about before the protocol is looked at: kubectl, refused, tries again with another
 * protocol, and shows the answer to that.
 */
void exec_begin(struct conn *c, const struct status_match *m)
{
    const struct status_provider *p = &c->server->provider;
    struct status_exec_options options;
    struct exec_stream *x;
    struct err e = { 0 };
    int protocol;

    if (status_exec_options(&c->parser.request, &options, &e) != ERR_OK) {
        conn_err(c, &e);
        return;
    }
    if (p->exec_check(p->arg, m->namespace_, m->name, options.container, &e) != ERR_OK) {
        refuse(c, m->name, &e);
        return;
    }
    if (!exec_handshake(c, &protocol))
        return;
    if (c->eof) { /* it is gone already */
        conn_close(c);
        return;
    }
    x = new_stream(c, &options, protocol);
    if (x == NULL) {
        conn_json(c, 500, NULL);
        return;
    }
    start(x, &options, m, &e);
    if (x->process == NULL) {
        exec_gone(c);
        refuse(c, m->name, &e);
        return;
    }
    exec_accept(c, protocol);
    if (c->exec != NULL && c->in.n > 0)
        exec_input(c);
}
