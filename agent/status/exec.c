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
#include "agent/status/exec_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE = 32 * 1024,         /* of output in one message, as kubelet's copies */
    BACKLOG_HIGH = 256 * 1024, /* bytes not yet taken by the client past which output is not read */
    DRAIN_MS = 200,            /* after the end, for a grandchild that holds the pipes; as base/process.c */
    CLOSE_MS = 5000,           /* for the client to answer our close frame */
};

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
    struct exec_stream *x = ((struct exec_end *)handle->data)->stream;

    x->open_handles--;
    maybe_free(x);
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
    exec_close_end(&x->in);
    exec_close_end(&x->out[0]);
    exec_close_end(&x->out[1]);
    exec_close_end(&x->hangup);
    if (x->control >= 0)
        close(take_fd(&x->control));
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

void exec_close(struct exec_stream *x, uint16_t code, const char *reason, bool linger)
{
    struct buf b = BUF_INIT(256);

    if (x->closing)
        return;
    x->closing = true;
    x->linger = linger;
    exec_close_end(&x->in);
    exec_close_end(&x->out[0]);
    exec_close_end(&x->out[1]);
    buf_reset(&x->pending); /* what it still sends is thrown away */
    ws_add_close(&b, code, reason);
    uv_timer_start(&x->timer, on_close_timer, x->server->write_ms, 0);
    conn_frames(x->conn, &b);
    if (x->conn != NULL)
        conn_resume(x->conn);
}

static void finish(struct exec_stream *x)
{
    char *status = x->plain ? forward_status(&x->result) : exec_status(&x->result, x->exit_code);
    const char *text = x->result.text;
    char words[sizeof(x->result.text) + 64];

    /* It never ran: the only place for the runtime's words beside the exit code. */
    if (x->result.code != ERR_OK && x->exit_code != 0 && (x->wants_stderr || x->tty)) {
        snprintf(words, sizeof(words), "coracle: cannot start the process: %s%s\n", text, x->tty ? "\r" : "");
        say(x, x->tty ? EXEC_CHANNEL_STDOUT : EXEC_CHANNEL_STDERR, words, strlen(words));
    }
    if (x->conn != NULL && status != NULL)
        say(x, EXEC_CHANNEL_ERROR, status, strlen(status));
    if (x->conn != NULL)
        exec_close(x, status != NULL ? WS_CODE_NORMAL : WS_CODE_INTERNAL, "", true);
    free(status);
}

/* ---- output ---------------------------------------------------------------------------------- */

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
    if (x->attached) /* the container's end */
        x->ended = true;
    else if (x->forwards && !x->ended)
        say(x, EXEC_CHANNEL_CLOSE, ended, sizeof(ended));
}

/* Of an attached container: the first byte says which stream it is of. */
static void say_packet(struct exec_stream *x, const char *packet, size_t n)
{
    bool error = packet[0] == 3;

    if (n > 1 && (error ? x->wants_stderr : x->wants_stdout))
        say(x, error ? EXEC_CHANNEL_STDERR : EXEC_CHANNEL_STDOUT, packet + 1, n - 1);
}

/* One piece; false: nothing more now, or the end. */
static bool read_piece(struct exec_end *end)
{
    struct exec_stream *x = end->stream;
    char piece[PIECE];
    ssize_t n = read(end->fd, piece, sizeof(piece));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) { /* EIO: nobody has the terminal open any more */
        end_of_output(end);
        return false;
    }
    if (x->attached)
        say_packet(x, piece, (size_t)n);
    else
        say(x, end->channel, piece, (size_t)n);
    return x->conn != NULL;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct exec_end *end = poll->data;
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
    exec_close_end(&x->out[0]);
    exec_close_end(&x->out[1]);
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
    if (!exec_open_end(x, &x->out[0], master, EXEC_CHANNEL_STDOUT) ||
        (x->wants_stdin && !exec_open_end(x, &x->in, fcntl(master, F_DUPFD_CLOEXEC, 3), EXEC_CHANNEL_STDIN)))
        conn_close(x->conn);
}

static void on_started(void *owner)
{
    struct exec_stream *x = owner;

    if (x->conn == NULL || x->closing || x->started)
        return;
    x->started = true;
    set_polling(&x->out[0], true);
    set_polling(&x->out[1], true);
    /* As kubelet: an empty message on the lowest channel that is written to says that it runs. */
    say(x,
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
    exec_close_end(&x->in);
    if (result->code != ERR_OK && !x->plain) { /* what is in the pipes is the runtime's */
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

/* ---- the beginning --------------------------------------------------------------------------- */

/* A pipe: our end is watched, the other is the process's. */
static bool open_pipe(struct exec_stream *x, struct exec_end *end, int channel, bool wanted, int *ret_theirs)
{
    bool input = channel == EXEC_CHANNEL_STDIN;
    int fds[2];

    if (!wanted)
        return true;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    *ret_theirs = fds[input ? 0 : 1];
    return exec_open_end(x, end, fds[input ? 1 : 0], channel);
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
    x->control = -1;
    x->in.stream = x->out[0].stream = x->out[1].stream = x->hangup.stream = x;
    x->in.fd = x->out[0].fd = x->out[1].fd = x->hangup.fd = -1;
    buf_init(&x->small, EXEC_SMALL_MAX);
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

    if (!open_pipe(x, &x->in, EXEC_CHANNEL_STDIN, o->stdin_ && !o->tty, &in) ||
        !open_pipe(x, &x->out[0], EXEC_CHANNEL_STDOUT, o->stdout_ && !o->tty, &out) ||
        !open_pipe(x, &x->out[1], EXEC_CHANNEL_STDERR, o->stderr_ && !o->tty, &err)) {
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
        .port = (uint16_t)o->port,
        .path = o->path,
        .owner = x,
        .on_terminal = on_terminal,
        .on_started = on_started,
        .on_done = on_done,
    };
    x->forwards = o->port != 0;
    x->plain = x->forwards || o->path != NULL;
    x->process = (x->forwards ? p->forward : o->path != NULL ? p->archive : p->exec)(p->arg, &spec, e);
}

static void attach(struct exec_stream *x, const struct status_exec_options *o, const struct status_match *m,
                   struct err *e)
{
    const struct status_provider *p = &x->server->provider;
    struct status_attached a;

    if (p->attach(p->arg, m->namespace_, m->name, o->container, o->stdin_, &a, e) != ERR_OK)
        return;
    x->attached = true;
    x->control = a.control;
    x->piece_max = a.packet_max;
    if (!exec_open_end(x, &x->out[0], a.stream, EXEC_CHANNEL_STDOUT) ||
        (o->stdin_ && !exec_open_end(x, &x->in, fcntl(a.stream, F_DUPFD_CLOEXEC, 3), EXEC_CHANNEL_STDIN)))
        err_set(e, ERR_EXHAUSTED, "no descriptors to attach with: %s", strerror(errno));
}

static enum err_code options_of(const struct conn *c, const struct status_match *m,
                                struct status_exec_options *ret, struct err *e)
{
    const struct status_request *r = &c->parser.request;

    if (m->route == ROUTE_POD_ARCHIVE)
        return status_archive_options(r, ret, e);
    return m->route == ROUTE_POD_FORWARD  ? status_forward_options(r, ret, e)
           : m->route == ROUTE_POD_ATTACH ? status_attach_options(r, ret, e)
                                          : status_exec_options(r, ret, e);
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

    if (options_of(c, m, &options, &e) != ERR_OK) {
        conn_err(c, &e);
        return;
    }
    if (m->route != ROUTE_POD_FORWARD &&
        p->exec_check(p->arg, m->namespace_, m->name, options.container, &e) != ERR_OK) {
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
    if (m->route == ROUTE_POD_ATTACH)
        attach(x, &options, m, &e);
    else
        start(x, &options, m, &e);
    if (e.code != ERR_OK) {
        exec_gone(c);
        refuse(c, m->name, &e);
        return;
    }
    exec_accept(c, protocol);
    if (c->exec != NULL && (x->attached || x->plain)) /* nothing has to begin first */
        on_started(x);
    if (c->exec != NULL && c->in.n > 0)
        exec_input(c);
}
