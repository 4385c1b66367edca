/* SPDX-License-Identifier: Apache-2.0 */
/* Starts an exec, attach, forward or copy: the pipes, the provider's process, the upgrade. */
#include "agent/status/exec_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Makes a pipe: our end is watched, the other belongs to the process. */
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

static const struct conn_source exec_source = { .gone = exec_gone,
                                                .written = exec_written,
                                                .input = exec_input };

static struct exec_stream *new_stream(struct conn *c, const struct status_exec_options *o, int protocol)
{
    struct exec_stream *x = calloc(1, sizeof(*x));

    if (x == NULL || !ws_init(&x->ws, WS_SERVER, EXEC_OUT_MAX, exec_take_piece, x)) {
        free(x);
        return NULL;
    }
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
    buf_init(&x->pending, 2 * sizeof(c->server->read_buffer) + HTTP_HEAD_MAX + HTTP_BODY_MAX);
    uv_timer_init(c->server->loop, &x->timer);
    x->timer.data = x;
    x->has_timer = true;
    x->open_handles = 1;
    c->server->n_execs++;
    c->exec = x;
    c->source = &exec_source;
    return x;
}

static void exec_begin_start(struct exec_stream *x, const struct status_exec_options *o,
                             const struct status_match *m, struct err *e)
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
        .on_terminal = exec_on_terminal,
        .on_started = exec_on_started,
        .on_done = exec_on_done,
    };
    x->forwards = o->port != 0;
    x->plain = x->forwards || o->path != NULL;
    x->process = (x->forwards ? p->forward : o->path != NULL ? p->archive : p->exec)(p->arg, &spec, e);
}

static void exec_begin_attach(struct exec_stream *x, const struct status_exec_options *o,
                              const struct status_match *m, struct err *e)
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
    const struct http_request *r = &c->parser.request;

    if (m->route == ROUTE_POD_ARCHIVE)
        return status_archive_options(r, ret, e);
    return m->route == ROUTE_POD_FORWARD  ? status_forward_options(r, ret, e)
           : m->route == ROUTE_POD_ATTACH ? status_attach_options(r, ret, e)
                                          : status_exec_options(r, ret, e);
}

static void exec_begin_refuse(struct conn *c, const char *name, const struct err *e)
{
    int http_code = e->code == ERR_PRECONDITION ? 400 : status_http_code(e->code);

    conn_status(c, http_code, status_reason(http_code), "pods", name, e->text);
}

/* The pod is checked before the protocol: after a refusal, kubectl retries with another protocol and shows
 * the answer to that request. */
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
    if (m->route != ROUTE_POD_FORWARD && p->exec_check(p->arg, m->namespace_, m->name, options.container,
                                                       m->route == ROUTE_POD_ATTACH, &e) != ERR_OK) {
        exec_begin_refuse(c, m->name, &e);
        return;
    }
    if (!exec_handshake(c, &protocol))
        return;
    if (c->eof) { /* the client has already disconnected */
        conn_close(c);
        return;
    }
    x = new_stream(c, &options, protocol);
    if (x == NULL) {
        conn_json(c, 500, NULL);
        return;
    }
    if (m->route == ROUTE_POD_ATTACH)
        exec_begin_attach(x, &options, m, &e);
    else
        exec_begin_start(x, &options, m, &e);
    if (e.code != ERR_OK) {
        exec_gone(c);
        exec_begin_refuse(c, m->name, &e);
        return;
    }
    exec_accept(c, protocol);
    if (c->exec != NULL && (x->attached || x->plain)) /* these have no process to wait for */
        exec_on_started(x);
    if (c->exec != NULL && c->in.n > 0)
        exec_input(c);
}
