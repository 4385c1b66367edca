/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that a server receives. */
#include "base/grpc/serving.h"

#include "base/buf.h"
#include "base/codec/go_quote.h"
#include "base/grpc/status.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void finish_stream(struct grpc_stream *st, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void finish_stream(struct grpc_stream *st, int code, const char *fmt, ...)
{
    struct grpc_status status = { .code = code };
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(status.text, sizeof(status.text), fmt, ap);
    va_end(ap);
    grpc_stream_finish(st, &status);
}

static void request_free(struct grpc_request *r)
{
    struct grpc_conn *c = r->conn;
    bool timed = r->deadline_ms != 0;

    LIST_REMOVE(r, all);
    free(r);
    c->since_ms = uv_now(c->server->o.loop);
    if (timed)
        grpc_server_due(c->server);
}

/* ---- begin ---- */

static bool within_rate(struct grpc_server *s)
{
    uint64_t now = uv_now(s->o.loop), most = (uint64_t)s->o.burst * 1000;

    if (s->o.calls_per_s == 0)
        return true;
    s->tokens += (now - s->filled_ms) * s->o.calls_per_s;
    s->filled_ms = now;
    if (s->tokens > most)
        s->tokens = most;
    if (s->tokens < 1000)
        return false;
    s->tokens -= 1000;
    return true;
}

static bool has_service(const struct grpc_server *s, const char *path, size_t n)
{
    for (size_t i = 0; i < s->o.n_methods; i++)
        if (strncmp(s->o.methods[i].path, path, n) == 0)
            return true;
    return false;
}

static const struct grpc_method *find_method(const struct grpc_server *s, struct grpc_stream *st)
{
    const char *path = grpc_stream_path(st), *slash = strrchr(path, '/');
    buf_auto quoted = BUF_INIT(GRPC_TEXT_MAX);

    for (size_t i = 0; i < s->o.n_methods; i++)
        if (strcmp(s->o.methods[i].path, path) == 0)
            return &s->o.methods[i];
    if (path[0] != '/' || slash == path) {
        go_quote(&quoted, path, strnlen(path, 200));
        finish_stream(st, ERR_UNIMPLEMENTED, "malformed method name: %s", quoted.p);
        return NULL;
    }
    if (has_service(s, path, (size_t)(slash + 1 - path)))
        finish_stream(st, ERR_UNIMPLEMENTED, "unknown method %s for service %.*s", slash + 1,
                      (int)(slash - path - 1), path + 1);
    else
        finish_stream(st, ERR_UNIMPLEMENTED, "unknown service %.*s", (int)(slash - path - 1), path + 1);
    return NULL;
}

void grpc_request_begin(struct grpc_stream *st, void *arg)
{
    struct grpc_conn *c = arg;
    struct grpc_server *s = c->server;
    const struct grpc_method *method;
    struct grpc_request *r;
    uint64_t timeout_ms;

    if (s->o.root_only && (!c->peer_known || c->uid != 0)) {
        finish_stream(st, ERR_PERMISSION, "only root may call");
        return;
    }
    if (!within_rate(s)) {
        finish_stream(st, ERR_EXHAUSTED, "rejected by rate limit");
        return;
    }
    method = find_method(s, st);
    if (method == NULL)
        return;
    r = calloc(1, sizeof(*r));
    if (r == NULL) {
        finish_stream(st, ERR_EXHAUSTED, "out of memory");
        return;
    }
    r->conn = c;
    r->stream = st;
    r->method = method;
    grpc_stream_set_owner(st, r);
    LIST_INSERT_HEAD(&c->requests, r, all);
    if (grpc_stream_timeout(st, &timeout_ms)) {
        r->deadline_ms = uv_now(s->o.loop) + timeout_ms;
        grpc_server_due(s);
    }
}

void grpc_request_message(struct grpc_stream *st, struct grpc_bytes message, void *arg)
{
    struct grpc_request *r = grpc_stream_owner(st);

    (void)arg;
    if (!r->asked) {
        r->asked = true;
        r->method->begin(r, message, r->conn->server->o.arg);
        return;
    }
    grpc_request_ended(st, NULL, false, arg);
    finish_stream(st, ERR_INTERNAL,
                  "cardinality violation: received multiple request messages for non-client-streaming RPC");
}

void grpc_request_asked(struct grpc_stream *st, void *arg)
{
    struct grpc_request *r = grpc_stream_owner(st);

    (void)arg;
    if (r->asked)
        return;
    request_free(r);
    finish_stream(st, ERR_INTERNAL,
                  "cardinality violation: received no request message from non-client-streaming RPC");
}

/* ---- an end that does not come from the server's owner ---- */

void grpc_request_ended(struct grpc_stream *st, const struct grpc_status *status, bool unseen, void *arg)
{
    struct grpc_request *r = grpc_stream_owner(st);

    (void)status;
    (void)unseen;
    (void)arg;
    r->stream = NULL; /* no answer is possible any more */
    if (r->on_cancel != NULL)
        r->on_cancel(r, r->cancel_arg);
    request_free(r);
}

void grpc_request_expire(struct grpc_request *r)
{
    struct grpc_stream *st = r->stream;
    struct grpc_conn *c = r->conn;

    grpc_request_ended(st, NULL, false, NULL);
    finish_stream(st, ERR_DEADLINE, "context deadline exceeded");
    grpc_conn_flush(c);
}

/* ---- calls of the server's owner ---- */

void grpc_request_on_cancel(struct grpc_request *r, void (*fn)(struct grpc_request *r, void *arg), void *arg)
{
    r->on_cancel = fn;
    r->cancel_arg = arg;
}

bool grpc_request_peer(const struct grpc_request *r, pid_t *ret_pid, uid_t *ret_uid)
{
    if (!r->conn->peer_known)
        return false;
    *ret_pid = r->conn->pid;
    *ret_uid = r->conn->uid;
    return true;
}

const char *grpc_request_metadata(const struct grpc_request *r, const char *name)
{
    size_t n = 0;
    const struct grpc_metadata *m = r->stream != NULL ? grpc_stream_metadata(r->stream, &n) : NULL;

    for (size_t i = 0; i < n; i++)
        if (strcmp(m[i].name, name) == 0)
            return m[i].value;
    return NULL;
}

void grpc_end(struct grpc_request *r, const struct grpc_status *status)
{
    static const struct grpc_status fine = { .code = ERR_OK };
    struct grpc_stream *st = r->stream;
    struct grpc_conn *c = r->conn;

    if (st == NULL) /* called within on_cancel */
        return;
    request_free(r);
    grpc_stream_finish(st, status != NULL ? status : &fine);
    grpc_conn_flush(c);
}

void grpc_fail(struct grpc_request *r, const struct err *e)
{
    struct grpc_status status = { .code = e->code };

    snprintf(status.text, sizeof(status.text), "%s", e->text);
    grpc_end(r, &status);
}

void grpc_reply(struct grpc_request *r, struct grpc_bytes message)
{
    struct err e = { 0 };

    if (r->stream == NULL)
        return;
    if (grpc_stream_send(r->stream, message, &e) != ERR_OK)
        grpc_fail(r, &e);
    else
        grpc_end(r, NULL);
}

bool grpc_send(struct grpc_request *r, struct grpc_bytes message)
{
    struct err e = { 0 };

    if (r->stream == NULL)
        return false;
    if (grpc_stream_send(r->stream, message, &e) != ERR_OK) {
        grpc_fail(r, &e);
        return false;
    }
    grpc_conn_flush(r->conn);
    return true;
}
