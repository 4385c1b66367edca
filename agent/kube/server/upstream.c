/* SPDX-License-Identifier: Apache-2.0 */
/* upstream - a connection of the status socket, asked for over the link, and one request on it. The
 * daemon is trusted to send HTTP; all the same, heads are bounded. */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>
#include <strings.h>

struct upstream {
    LIST_ENTRY(upstream) all;
    struct kube_server *server;
    const struct upstream_ops *ops;
    void *owner;
    uint64_t id; /* of `serve`; 0: it was answered */
    struct buf request;
    uv_pipe_t pipe;
    uv_timer_t timer;
    int open_handles;
    bool opened, closed, ended, paused, high, raw;
    llhttp_t llhttp;
    const char *why; /* reported by the timer */
    char header[32], type[128];
};

struct upstream_write {
    uv_write_t req;
    struct upstream *upstream;
    char *data;
    size_t n;
};

static void upstream_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece);

/* ---- the end ---- */

static void upstream_on_closed(uv_handle_t *handle)
{
    struct upstream *u = handle->data;
    struct kube_server *s = u->server;

    if (--u->open_handles > 0)
        return;
    LIST_REMOVE(u, all);
    s->n_upstreams--;
    buf_wipe(&u->request);
    free(u);
    kube_server_maybe_free(s);
}

void upstream_close(struct upstream *u)
{
    if (u == NULL || u->closed)
        return;
    u->closed = true;
    uv_close((uv_handle_t *)&u->pipe, upstream_on_closed);
    uv_close((uv_handle_t *)&u->timer, upstream_on_closed);
}

static void upstream_end(struct upstream *u, const struct err *failure)
{
    if (u->closed || u->ended)
        return;
    u->ended = true;
    u->ops->end(failure, u->owner);
}

static void upstream_fail(struct upstream *u, enum err_code code, const char *text)
{
    struct err e = { 0 };

    err_set(&e, code, "%s", text);
    upstream_end(u, &e);
}

static void upstream_on_timer(uv_timer_t *timer)
{
    struct upstream *u = timer->data;

    upstream_fail(u, u->id != 0 ? ERR_DEADLINE : ERR_UNAVAILABLE, u->why);
}

/* Not from inside a call of the owner, which would not expect it. */
static void upstream_fail_later(struct upstream *u, const char *why)
{
    u->why = why;
    uv_timer_start(&u->timer, upstream_on_timer, 0, 0);
}

void upstream_close_all(struct kube_server *s)
{
    struct upstream *u;

    LIST_FOREACH (u, &s->upstreams, all)
        upstream_close(u);
}

/* ---- sending ---- */

size_t upstream_backlog(const struct upstream *u)
{
    return u->opened ? uv_stream_get_write_queue_size((const uv_stream_t *)&u->pipe) : u->request.n;
}

static void upstream_on_written(uv_write_t *req, int status)
{
    struct upstream_write *w = (struct upstream_write *)req;
    struct upstream *u = w->upstream;

    explicit_bzero(w->data, w->n); /* it may be a Secret */
    free(w->data);
    free(w);
    if (u->closed)
        return;
    if (status < 0) {
        upstream_fail(u, ERR_UNAVAILABLE, "the daemon does not read");
    } else if (u->high && upstream_backlog(u) <= UPSTREAM_OUT_HIGH / 2) {
        u->high = false;
        if (u->ops->drained != NULL && !u->ended)
            u->ops->drained(u->owner);
    }
}

void upstream_send(struct upstream *u, const void *p, size_t n)
{
    struct upstream_write *w;
    uv_buf_t piece;

    if (u->closed || u->ended || n == 0)
        return;
    if (!u->opened) {
        buf_add(&u->request, p, n); /* bounded by its maximum: checked when it is sent */
        return;
    }
    w = calloc(1, sizeof(*w));
    piece = uv_buf_init(malloc(n), (unsigned)n);
    if (w == NULL || piece.base == NULL) {
        free(w);
        free(piece.base);
        upstream_fail_later(u, "out of memory");
        return;
    }
    memcpy(piece.base, p, n);
    *w = (struct upstream_write){ .upstream = u, .data = piece.base, .n = n };
    if (uv_write(&w->req, (uv_stream_t *)&u->pipe, &piece, 1, upstream_on_written) != 0) {
        free(w->data);
        free(w);
        upstream_fail_later(u, "the daemon closed the connection");
        return;
    }
    u->high = u->high || upstream_backlog(u) > UPSTREAM_OUT_HIGH;
}

/* ---- the answer ---- */

static struct upstream *upstream_of(llhttp_t *l)
{
    return l->data;
}

static void upstream_add_text(char *to, size_t size, const char *at, size_t n)
{
    size_t used = strlen(to);

    if (n < size - used) {
        memcpy(to + used, at, n);
        to[used + n] = '\0';
    }
}

static int upstream_on_field(llhttp_t *l, const char *at, size_t n)
{
    upstream_add_text(upstream_of(l)->header, sizeof(upstream_of(l)->header), at, n);
    return 0;
}

static int upstream_on_value(llhttp_t *l, const char *at, size_t n)
{
    if (strcasecmp(upstream_of(l)->header, "Content-Type") == 0)
        upstream_add_text(upstream_of(l)->type, sizeof(upstream_of(l)->type), at, n);
    return 0;
}

static int upstream_on_value_complete(llhttp_t *l)
{
    upstream_of(l)->header[0] = '\0';
    return 0;
}

static int upstream_on_head(llhttp_t *l)
{
    struct upstream *u = upstream_of(l);
    int64_t length = (l->flags & F_CONTENT_LENGTH) != 0 ? (int64_t)l->content_length : -1;

    u->raw = l->status_code == 101;
    u->ops->head(l->status_code, u->type, length, u->raw, u->owner);
    return u->closed ? HPE_USER : 0;
}

static int upstream_on_body(llhttp_t *l, const char *at, size_t n)
{
    upstream_of(l)->ops->body(at, n, upstream_of(l)->owner);
    return upstream_of(l)->closed ? HPE_USER : 0;
}

static int upstream_on_complete(llhttp_t *l)
{
    if (!upstream_of(l)->raw)
        upstream_end(upstream_of(l), NULL);
    return upstream_of(l)->raw ? 0 : HPE_PAUSED;
}

static const llhttp_settings_t upstream_settings = {
    .on_header_field = upstream_on_field,
    .on_header_value = upstream_on_value,
    .on_header_value_complete = upstream_on_value_complete,
    .on_headers_complete = upstream_on_head,
    .on_body = upstream_on_body,
    .on_message_complete = upstream_on_complete,
};

static void upstream_take(struct upstream *u, const char *p, size_t n)
{
    bool was_raw = u->raw;
    enum llhttp_errno code;
    const char *at;

    if (was_raw) {
        u->ops->body(p, n, u->owner);
        return;
    }
    code = llhttp_execute(&u->llhttp, p, n);
    if (u->closed || u->ended)
        return;
    if (code == HPE_PAUSED_UPGRADE && u->raw) {
        at = llhttp_get_error_pos(&u->llhttp);
        if (at != NULL && at < p + n)
            u->ops->body(at, (size_t)(p + n - at), u->owner);
    } else if (code != HPE_OK) {
        upstream_fail(u, ERR_INTERNAL, "the daemon's answer cannot be understood");
    }
}

static void upstream_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct upstream *u = handle->data;

    (void)suggested;
    *ret = uv_buf_init(u->server->read_buffer, sizeof(u->server->read_buffer));
}

static void upstream_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece)
{
    struct upstream *u = stream->data;

    if (u->closed || u->ended || n == 0)
        return;
    if (n > 0) {
        char *base = piece->base;

        upstream_take(u, base, (size_t)n);
        explicit_bzero(base, (size_t)n);
        return;
    }
    if (!u->raw && llhttp_finish(&u->llhttp) == HPE_OK && u->ended)
        return; /* an answer without a length ends with the connection */
    upstream_fail(u, ERR_UNAVAILABLE, "the daemon closed the connection");
}

void upstream_pause(struct upstream *u)
{
    if (u->paused || u->closed)
        return;
    u->paused = true;
    if (u->opened)
        uv_read_stop((uv_stream_t *)&u->pipe);
}

void upstream_resume(struct upstream *u)
{
    if (!u->paused || u->closed)
        return;
    u->paused = false;
    if (u->opened && uv_read_start((uv_stream_t *)&u->pipe, upstream_alloc, upstream_on_read) != 0)
        upstream_fail_later(u, "read from the daemon: too few descriptors, or no memory");
}

/* ---- the beginning ---- */

void upstream_served(struct kube_server *s, uint64_t id, int fd, const char *error)
{
    struct upstream *u;
    struct buf request;

    LIST_FOREACH (u, &s->upstreams, all)
        if (u->id == id)
            break;
    if (u == NULL || u->closed || u->ended || fd < 0) {
        if (fd >= 0)
            close(fd);
        if (u != NULL && fd < 0)
            upstream_fail(u, ERR_UNAVAILABLE, error != NULL ? error : "the daemon gave no connection");
        return;
    }
    u->id = 0;
    uv_timer_stop(&u->timer);
    if (uv_pipe_open(&u->pipe, fd) != 0) {
        close(fd);
        upstream_fail(u, ERR_INTERNAL, "the daemon passed a descriptor that is no socket");
        return;
    }
    u->opened = true;
    request = u->request;
    buf_init(&u->request, 1);
    if (request.failed)
        upstream_fail(u, ERR_EXHAUSTED, "too much was sent before the daemon gave a connection");
    else
        upstream_send(u, request.p, request.n);
    buf_wipe(&request);
    if (!u->paused && !u->closed && !u->ended &&
        uv_read_start((uv_stream_t *)&u->pipe, upstream_alloc, upstream_on_read) != 0)
        upstream_fail(u, ERR_EXHAUSTED, "read from the daemon");
}

struct upstream *upstream_open(struct kube_server *s, struct buf *request, const struct upstream_ops *ops,
                               void *owner, struct err *e)
{
    struct upstream *u = NULL;
    json_t *message = NULL;

    if (s->n_upstreams >= UPSTREAMS_MAX)
        err_set(e, ERR_EXHAUSTED, "too many requests are in progress");
    else if (buf_check(request, e) != ERR_OK || (u = calloc(1, sizeof(*u))) == NULL ||
             (message = json_pack("{s:s, s:I}", "type", "serve", "id", (json_int_t)s->next_id + 1)) == NULL)
        err_nomem(e);
    if (e->code != ERR_OK || kube_link_send(s->o.link, message, -1, e) != ERR_OK) {
        buf_wipe(request);
        free(u);
        return NULL;
    }
    u->server = s;
    u->ops = ops;
    u->owner = owner;
    u->id = ++s->next_id;
    u->request = *request;
    u->request.max = request->n + 2 * UPSTREAM_OUT_HIGH;
    buf_init(request, 1);
    llhttp_init(&u->llhttp, HTTP_RESPONSE, &upstream_settings);
    u->llhttp.data = u;
    uv_pipe_init(s->o.loop, &u->pipe, 0);
    uv_timer_init(s->o.loop, &u->timer);
    u->pipe.data = u->timer.data = u;
    u->open_handles = 2;
    u->why = "the daemon did not hand over a connection in time";
    uv_timer_start(&u->timer, upstream_on_timer, UPSTREAM_SERVE_MS, 0);
    LIST_INSERT_HEAD(&s->upstreams, u, all);
    s->n_upstreams++;
    return u;
}
