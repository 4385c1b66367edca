/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/grpc_call.h"

#include "base/codec/go_quote.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CODE_CANCELED = 1,
    CODE_UNKNOWN = 2,
    CODE_PERMISSION = 7,
    CODE_EXHAUSTED = 8,
    CODE_UNIMPLEMENTED = 12,
    CODE_INTERNAL = 13,
    CODE_UNAVAILABLE = 14,
    CODE_UNAUTHENTICATED = 16
};

struct grpc_call {
    nghttp2_session *session;
    enum grpc_call_state state;
    struct grpc_answer answer;
    char *authority, *user_agent;
    char timeout[24];
    struct buf request; /* the part not sent yet begins at `sent` */
    size_t sent;
    int32_t stream;
    struct buf reply; /* length-prefixed message */
    size_t received;
    int http_status;
    char content_type[128];
    int grpc_status; /* -1: none yet */
    char grpc_message[1024];
};

enum grpc_call_state grpc_call_state(const struct grpc_call *c)
{
    return c->state;
}

const struct grpc_answer *grpc_call_answer(const struct grpc_call *c)
{
    return &c->answer;
}

static void probe_grpc_call_answer(struct grpc_call *c, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void probe_grpc_call_answer(struct grpc_call *c, int code, const char *fmt, ...)
{
    va_list ap;

    if (c->state == GRPC_ANSWERED)
        return;
    c->state = GRPC_ANSWERED;
    c->answer.code = code;
    va_start(ap, fmt);
    vsnprintf(c->answer.message, sizeof(c->answer.message), fmt, ap);
    va_end(ap);
}

/* ---- the end of the answer ---- */

/* grpc-go's HTTPStatusConvTab. */
static int code_of_http(int status)
{
    switch (status) {
    case 400:
        return CODE_INTERNAL;
    case 401:
        return CODE_UNAUTHENTICATED;
    case 403:
        return CODE_PERMISSION;
    case 404:
        return CODE_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return CODE_UNAVAILABLE;
    default:
        return CODE_UNKNOWN;
    }
}

static const char *http_text(int status)
{
    switch (status) {
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 415:
        return "Unsupported Media Type";
    case 429:
        return "Too Many Requests";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 502:
        return "Bad Gateway";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    default:
        return "";
    }
}

static bool is_grpc_type(const char *type)
{
    static const char base[] = "application/grpc";

    return strncmp(type, base, sizeof(base) - 1) == 0 &&
           (type[sizeof(base) - 1] == '\0' || type[sizeof(base) - 1] == '+' || type[sizeof(base) - 1] == ';');
}

static void not_grpc(struct grpc_call *c)
{
    buf_auto b = BUF_INIT(900);

    if (c->http_status != 200)
        buf_addf(&b, "unexpected HTTP status code received from server: %d (%s)", c->http_status,
                 http_text(c->http_status));
    if (!is_grpc_type(c->content_type)) {
        buf_adds(&b, b.n > 0 ? "; " : "");
        if (c->content_type[0] == '\0') {
            buf_adds(&b, "malformed header: missing HTTP content-type");
        } else {
            buf_adds(&b, "transport: received unexpected content-type ");
            go_quote(&b, c->content_type, strlen(c->content_type));
        }
    }
    probe_grpc_call_answer(c, code_of_http(c->http_status), "%s", b.p);
}

/* The stream ended properly: evaluates the answer. */
static void grpc_call_conclude(struct grpc_call *c)
{
    const unsigned char *m = (const unsigned char *)c->reply.p;
    size_t size;

    if (c->http_status != 200 || !is_grpc_type(c->content_type)) {
        not_grpc(c);
        return;
    }
    if (c->grpc_status < 0) {
        probe_grpc_call_answer(c, CODE_INTERNAL, "server closed the stream without sending trailers");
        return;
    }
    if (c->grpc_status != 0) {
        probe_grpc_call_answer(c, c->grpc_status, "%s", c->grpc_message);
        return;
    }
    size = c->reply.n < 5 ? 0 : (size_t)m[1] << 24 | (size_t)m[2] << 16 | (size_t)m[3] << 8 | m[4];
    if (c->reply.n == 0)
        probe_grpc_call_answer(
            c, CODE_INTERNAL,
            "cardinality violation: received no response message from non-server-streaming RPC");
    else if (c->reply.n < 5 || c->reply.n - 5 < size)
        probe_grpc_call_answer(c, CODE_INTERNAL, "unexpected EOF");
    else if (m[0] != 0)
        probe_grpc_call_answer(c, CODE_INTERNAL, "grpc: compressed flag set with identity or empty encoding");
    else if (c->reply.n - 5 > size)
        probe_grpc_call_answer(
            c, CODE_INTERNAL,
            "cardinality violation: expected <EOF> for non server-streaming RPCs, but received another "
            "message");
    else if (!grpc_health_response(m + 5, size, &c->answer.serving))
        probe_grpc_call_answer(c, CODE_INTERNAL,
                               "grpc: failed to unmarshal the received message: proto: cannot parse invalid "
                               "wire-format data");
    else
        probe_grpc_call_answer(c, 0, "%s", "");
}

/* ---- nghttp2 callbacks ---- */

static ssize_t on_request_body(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room,
                               uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct grpc_call *c = arg;
    size_t n = c->request.n - c->sent;

    (void)session;
    (void)stream;
    (void)source;
    n = n < room ? n : room;
    memcpy(out, c->request.p + c->sent, n);
    c->sent += n;
    if (c->sent == c->request.n)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

#define HEADER(n, v)                                                                                         \
    {                                                                                                        \
        .name = (uint8_t *)(uintptr_t)(n), .namelen = strlen(n), .value = (uint8_t *)(uintptr_t)(v),         \
        .valuelen = strlen(v)                                                                                \
    }

static int grpc_call_ask(struct grpc_call *c)
{
    const nghttp2_nv headers[] = {
        HEADER(":method", "POST"),
        HEADER(":scheme", "http"),
        HEADER(":path", "/grpc.health.v1.Health/Check"),
        HEADER(":authority", c->authority),
        HEADER("content-type", "application/grpc"),
        HEADER("user-agent", c->user_agent),
        HEADER("te", "trailers"),
        HEADER("grpc-timeout", c->timeout),
    };
    nghttp2_data_provider body = { .read_callback = on_request_body };

    c->stream =
        nghttp2_submit_request(c->session, NULL, headers, sizeof(headers) / sizeof(headers[0]), &body, NULL);
    if (c->stream < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    c->state = GRPC_ASKED;
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct grpc_call *c = arg;

    (void)session;
    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0 &&
        c->state == GRPC_GREETING)
        return grpc_call_ask(c);
    /* Rejects an invalid response at its head, since its end may never come. */
    if (frame->hd.type == NGHTTP2_HEADERS && frame->hd.stream_id == c->stream && c->state == GRPC_ASKED &&
        c->http_status >= 200 && (c->http_status != 200 || !is_grpc_type(c->content_type)))
        not_grpc(c);
    return 0;
}

static int percent(const char *s)
{
    unsigned v;

    return s[0] == '%' && sscanf(s + 1, "%2x", &v) == 1 && s[1] != '\0' && s[2] != '\0' ? (int)v : -1;
}

static void set_message(struct grpc_call *c, const char *value, size_t n)
{
    char raw[sizeof(c->grpc_message)];
    size_t k = 0;

    snprintf(raw, sizeof(raw), "%.*s", (int)(n < sizeof(raw) ? n : sizeof(raw) - 1), value);
    for (const char *p = raw; *p != '\0'; p++) {
        int v = percent(p);
        if (v > 0) {
            c->grpc_message[k++] = (char)v;
            p += 2;
        } else {
            c->grpc_message[k++] = *p;
        }
    }
    c->grpc_message[k] = '\0';
}

static int grpc_call_number(const char *value, size_t n, int max)
{
    int v = 0;

    for (size_t i = 0; i < n; i++) {
        if (value[i] < '0' || value[i] > '9' || v > max)
            return -1;
        v = v * 10 + value[i] - '0';
    }
    return n == 0 || v > max ? -1 : v;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                     const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    struct grpc_call *c = arg;
    const char *key = (const char *)name, *text = (const char *)value; /* NUL-terminated by nghttp2 */

    (void)session;
    (void)flags;
    (void)name_n;
    if (frame->hd.stream_id != c->stream)
        return 0;
    if (strcmp(key, ":status") == 0) {
        c->http_status = grpc_call_number(text, value_n, 999);
    } else if (strcmp(key, "content-type") == 0) {
        snprintf(c->content_type, sizeof(c->content_type), "%s", text);
    } else if (strcmp(key, "grpc-status") == 0) {
        c->grpc_status = grpc_call_number(text, value_n, 100000);
        if (c->grpc_status < 0) {
            c->grpc_status = CODE_UNKNOWN;
            snprintf(c->grpc_message, sizeof(c->grpc_message), "transport: malformed grpc-status");
        }
    } else if (strcmp(key, "grpc-message") == 0) {
        set_message(c, text, value_n);
    }
    return 0;
}

static int grpc_call_on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                             size_t n, void *arg)
{
    struct grpc_call *c = arg;

    (void)session;
    (void)flags;
    if (stream != c->stream)
        return 0;
    buf_add(&c->reply, data, n);
    if (c->reply.failed)
        probe_grpc_call_answer(c, CODE_EXHAUSTED, "grpc: received message larger than max (%zu vs. %d)",
                               c->reply.n + n, GRPC_MESSAGE_MAX);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *arg)
{
    struct grpc_call *c = arg;

    (void)session;
    if (stream != c->stream || c->state == GRPC_ANSWERED)
        return 0;
    if (error == NGHTTP2_NO_ERROR || (c->grpc_status >= 0 && c->http_status == 200)) {
        grpc_call_conclude(c);
        return 0;
    }
    probe_grpc_call_answer(c,
                           error == NGHTTP2_REFUSED_STREAM        ? CODE_UNAVAILABLE
                           : error == NGHTTP2_CANCEL              ? CODE_CANCELED
                           : error == NGHTTP2_ENHANCE_YOUR_CALM   ? CODE_EXHAUSTED
                           : error == NGHTTP2_INADEQUATE_SECURITY ? CODE_PERMISSION
                                                                  : CODE_INTERNAL,
                           "stream terminated by RST_STREAM with error code: %s",
                           nghttp2_http2_strerror(error));
    return 0;
}

/* ---- the session ---- */

static enum err_code open_session(struct grpc_call *c, struct err *e)
{
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MAX },
    };
    nghttp2_session_callbacks *callbacks;
    int status;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return err_nomem(e);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, grpc_call_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    status = nghttp2_session_client_new(&c->session, callbacks, c);
    nghttp2_session_callbacks_del(callbacks);
    if (status == 0)
        status = nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, 2);
    return status == 0 ? ERR_OK : err_nomem(e);
}

enum err_code grpc_call_new(struct grpc_call **ret, const char *authority, const char *service,
                            const char *user_agent, uint64_t timeout_ms, struct err *e)
{
    struct grpc_call *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_nomem(e);
    c->grpc_status = -1;
    buf_init(&c->request, GRPC_MESSAGE_MAX + 5);
    buf_init(&c->reply, GRPC_MESSAGE_MAX + 5);
    c->authority = strdup(authority);
    c->user_agent = strdup(user_agent);
    /* At most eight digits, by the protocol. */
    if (timeout_ms < 100000000)
        snprintf(c->timeout, sizeof(c->timeout), "%llum", (unsigned long long)timeout_ms);
    else
        snprintf(c->timeout, sizeof(c->timeout), "%lluM", (unsigned long long)(timeout_ms / 60000));
    if (c->authority == NULL || c->user_agent == NULL)
        err_nomem(e);
    if (e->code != ERR_OK || grpc_health_request(service, &c->request, e) != ERR_OK ||
        open_session(c, e) != ERR_OK) {
        grpc_call_free(c);
        return e->code;
    }
    *ret = c;
    return ERR_OK;
}

void grpc_call_free(struct grpc_call *c)
{
    if (c == NULL)
        return;
    nghttp2_session_del(c->session);
    buf_done(&c->request);
    buf_done(&c->reply);
    free(c->authority);
    free(c->user_agent);
    free(c);
}

static void break_off(struct grpc_call *c, const char *why)
{
    if (c->state == GRPC_ASKED)
        probe_grpc_call_answer(c, CODE_UNAVAILABLE, "error reading from server: %s", why);
    else if (c->state == GRPC_GREETING)
        c->state = GRPC_BROKEN;
}

enum grpc_call_state grpc_call_feed(struct grpc_call *c, const char *data, size_t n, const char *why)
{
    ssize_t used;

    if (c->state == GRPC_ANSWERED || c->state == GRPC_BROKEN)
        return c->state;
    if (n == 0) {
        break_off(c, why);
        return c->state;
    }
    c->received += n;
    used = nghttp2_session_mem_recv(c->session, (const uint8_t *)data, n);
    if (used < 0)
        break_off(c, nghttp2_strerror((int)used));
    else if (c->received > GRPC_RECEIVED_MAX)
        break_off(c, "too much of an answer");
    else if (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session))
        break_off(c, "EOF"); /* GOAWAY */
    return c->state;
}

void grpc_call_output(struct grpc_call *c, struct buf *out)
{
    const uint8_t *data;
    ssize_t n;

    while ((n = nghttp2_session_mem_send(c->session, &data)) > 0)
        buf_add(out, data, (size_t)n);
    if (n < 0)
        break_off(c, nghttp2_strerror((int)n));
    else if (!nghttp2_session_want_read(c->session)) /* our own GOAWAY: it was not HTTP/2 */
        break_off(c, "EOF");
}
