/* SPDX-License-Identifier: Apache-2.0 */
/* The check against a server of nghttp2, and against peers that are none. */
#include "agent/probe/grpc_health.h"
#include "base/clock.h"
#include "server.h"

#include <nghttp2/nghttp2.h>

/* ---- a server ---- */

struct peer {
    nghttp2_session *session;
    const char *http_status, *content_type, *grpc_status, *grpc_message;
    const unsigned char *body;
    size_t body_n, sent;
    bool no_trailers, reset;
    char path[64], request[64];
    size_t request_n;
};

static ssize_t give_body(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *arg)
{
    struct peer *p = arg;
    size_t n = p->body_n - p->sent < room ? p->body_n - p->sent : room;
    const nghttp2_nv trailers[] = {
        { (uint8_t *)(uintptr_t) "grpc-status", (uint8_t *)(uintptr_t)p->grpc_status, 11,
          strlen(p->grpc_status), 0 },
        { (uint8_t *)(uintptr_t) "grpc-message", (uint8_t *)(uintptr_t)p->grpc_message, 12,
          strlen(p->grpc_message), 0 },
    };

    (void)source;
    memcpy(out, p->body + p->sent, n);
    p->sent += n;
    if (p->sent == p->body_n) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (!p->no_trailers) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            nghttp2_submit_trailer(session, stream, trailers, 2);
        }
    }
    return (ssize_t)n;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct peer *p = arg;
    nghttp2_data_provider body = { .read_callback = give_body };
    const nghttp2_nv headers[] = {
        { (uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t)p->http_status, 7, strlen(p->http_status),
          0 },
        { (uint8_t *)(uintptr_t) "content-type", (uint8_t *)(uintptr_t)p->content_type, 12,
          strlen(p->content_type), 0 },
    };

    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0 || frame->hd.stream_id == 0)
        return 0;
    if (p->reset)
        return nghttp2_submit_rst_stream(session, 0, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
    return nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &body);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                     const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    struct peer *p = arg;

    (void)session;
    (void)frame;
    (void)flags;
    (void)name_n;
    (void)value_n;
    if (strcmp((const char *)name, ":path") == 0)
        snprintf(p->path, sizeof(p->path), "%s", (const char *)value);
    return 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t n,
                    void *arg)
{
    struct peer *p = arg;

    (void)session;
    (void)flags;
    (void)stream;
    assert_true(p->request_n + n <= sizeof(p->request));
    memcpy(p->request + p->request_n, data, n);
    p->request_n += n;
    return 0;
}

static void peer_open(struct peer *p)
{
    nghttp2_session_callbacks *callbacks;

    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_chunk);
    assert_int_equal(nghttp2_session_server_new(&p->session, callbacks, p), 0);
    nghttp2_session_callbacks_del(callbacks);
    assert_int_equal(nghttp2_submit_settings(p->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

static const unsigned char serving[] = { 0, 0, 0, 0, 2, 0x08, 1 }, not_serving[] = { 0, 0, 0, 0, 2, 0x08, 2 },
                           other[] = { 0, 0, 0, 0, 2, 0x08, 7 };

static void serve_peer(struct server *s, struct peer *p)
{
    int fd = accept(s->fd, NULL, NULL);
    uint8_t in[4096];
    const uint8_t *out;
    ssize_t n;

    alarm(60);
    peer_open(p);
    do {
        while ((n = nghttp2_session_mem_send(p->session, &out)) > 0)
            for (ssize_t i = 0; i < n; i++) /* byte by byte */
                if (send(fd, out + i, 1, MSG_NOSIGNAL) != 1)
                    _exit(1);
        n = recv(fd, in, sizeof(in), 0);
    } while (n > 0 && nghttp2_session_mem_recv(p->session, in, (size_t)n) == n);
    _exit(strcmp(p->path, "/grpc.health.v1.Health/Check") == 0 &&
                  p->request_n >= 10 && /* more: it was refused, and asked again */
                  memcmp(p->request, "\0\0\0\0\5\x0a\3web", 10) == 0
              ? 0
              : 2);
}

/* What a check of this server says. */
static void expect(struct peer p, enum probe_outcome outcome, const char *text)
{
    struct probe_grpc spec = { .host = "127.0.0.1", .service = "web", .user_agent = "kube-probe/1.36" };
    struct probe_check c;
    struct outcome o = { 0 };
    struct server s;
    uv_loop_t loop;
    struct probe_world w = { .loop = &loop, .cgroup_fd = -1 };
    int status;

    p.http_status = p.http_status != NULL ? p.http_status : "200";
    p.content_type = p.content_type != NULL ? p.content_type : "application/grpc";
    p.grpc_status = p.grpc_status != NULL ? p.grpc_status : "0";
    p.grpc_message = p.grpc_message != NULL ? p.grpc_message : "";
    if (p.body == NULL) {
        p.body = serving;
        p.body_n = sizeof(serving);
    }
    server_listen(&s);
    s.pid = fork();
    assert_true(s.pid >= 0);
    if (s.pid == 0)
        serve_peer(&s, &p);
    spec.port = s.port;
    uv_loop_init(&loop);
    probe_grpc_start(&c, &w, &spec, "default/web", 20000, on_outcome, &o);
    run_check(&loop, &o);
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
    assert_int_equal(status, 0);
    close(s.fd);
    assert_int_equal(o.result.code, ERR_OK);
    assert_string_equal(c.text.p, text);
    assert_int_equal(c.outcome, outcome);
    buf_done(&c.text);
}

#define FAILED "error: health rpc probe failed: rpc error: code = "

static void the_status_of_the_service_comes_back(void **state)
{
    (void)state;
    expect((struct peer){ 0 }, PROBE_SUCCESS, "service healthy");
    expect((struct peer){ .body = not_serving, .body_n = sizeof(not_serving) }, PROBE_FAILURE,
           "service unhealthy (responded with \"NOT_SERVING\")");
    expect((struct peer){ .body = other, .body_n = sizeof(other) }, PROBE_FAILURE,
           "service unhealthy (responded with \"7\")");
}

static void an_error_comes_back_with_its_words(void **state)
{
    (void)state;
    expect((struct peer){ .grpc_status = "5", .grpc_message = "unknown%20service%21" }, PROBE_FAILURE,
           FAILED "NotFound desc = unknown service!");
    expect((struct peer){ .grpc_status = "12", .grpc_message = "no" }, PROBE_FAILURE,
           "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): no");
    expect((struct peer){ .grpc_status = "4", .grpc_message = "late" }, PROBE_FAILURE,
           "timeout: health rpc did not complete within 20s");
    expect((struct peer){ .grpc_status = "42", .grpc_message = "odd" }, PROBE_FAILURE,
           FAILED "Code(42) desc = odd");
    expect((struct peer){ .grpc_status = "x" }, PROBE_FAILURE,
           FAILED "Unknown desc = transport: malformed grpc-status");
    expect((struct peer){ .reset = true }, PROBE_FAILURE,
           FAILED "Unavailable desc = stream terminated by RST_STREAM with error code: REFUSED_STREAM");
}

static void what_is_no_grpc_is_told(void **state)
{
    (void)state;
    expect(
        (struct peer){ .http_status = "404", .content_type = "text/html" }, PROBE_FAILURE,
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
        "unexpected HTTP status code received from server: 404 (Not Found); transport: received unexpected "
        "content-type \"text/html\"");
    expect((struct peer){ .no_trailers = true }, PROBE_FAILURE,
           FAILED "Internal desc = server closed the stream without sending trailers");
}

static void odd_messages_are_refused(void **state)
{
    static const unsigned char cut[] = { 0, 0, 0, 0, 9, 8 }, compressed[] = { 1, 0, 0, 0, 2, 8, 1 },
                               two[] = { 0, 0, 0, 0, 2, 8, 1, 0, 0, 0, 0, 0 }, bad[] = { 0, 0, 0, 0, 1, 8 },
                               large[] = { 0, 0, 0, 0x4e, 0x20 };

    (void)state;
    expect((struct peer){ .body = cut, .body_n = sizeof(cut) }, PROBE_FAILURE,
           FAILED "Internal desc = unexpected EOF");
    expect((struct peer){ .body = compressed, .body_n = sizeof(compressed) }, PROBE_FAILURE,
           FAILED "Internal desc = grpc: compressed flag set with identity or empty encoding");
    expect((struct peer){ .body = two, .body_n = sizeof(two) }, PROBE_FAILURE,
           FAILED "Internal desc = cardinality violation: expected <EOF> for non server-streaming RPCs, but "
                  "received another message");
    expect((struct peer){ .body = bad, .body_n = sizeof(bad) }, PROBE_FAILURE,
           FAILED
           "Internal desc = grpc: failed to unmarshal the received message: proto: cannot parse invalid "
           "wire-format data");
    expect((struct peer){ .body = cut, .body_n = 0 }, PROBE_FAILURE,
           FAILED "Internal desc = cardinality violation: received no response message from "
                  "non-server-streaming RPC");
    expect((struct peer){ .body = large, .body_n = sizeof(large) }, PROBE_FAILURE,
           FAILED "ResourceExhausted desc = grpc: received message larger than max (20000 vs. 16384)");
}

static void health_messages_are_read_whatever_else_is_in_them(void **state)
{
    static const unsigned char more[] = { 0x12, 2, 'a', 'b', 0x1d, 1, 2, 3,    4,    0x21, 1,
                                          2,    3, 4,   5,   6,    7, 8, 0x08, 0x83, 0x01 };
    uint64_t status = 9;

    (void)state;
    assert_true(grpc_health_response(more, sizeof(more), &status));
    assert_int_equal(status, 131);
    assert_true(grpc_health_response(more, 0, &status));
    assert_int_equal(status, 0);
    for (size_t n = 1; n < sizeof(more); n++)
        (void)grpc_health_response(more, n, &status);
    assert_false(grpc_health_response((const unsigned char *)"\x12\xff\xff\xff\xff\x7f", 6, &status));
    assert_false(grpc_health_response((const unsigned char *)"\x0b", 1, &status));
}

/* ---- the whole check ---- */

static void check(const char *text, enum serve how, bool listening, uint64_t timeout_ms, const char *words)
{
    uv_loop_t loop;
    struct probe_world w = { .loop = &loop, .cgroup_fd = -1 };
    struct probe_grpc spec = { .host = "127.0.0.1", .service = "", .user_agent = "kube-probe/1.36" };
    struct probe_check c;
    struct outcome o = { 0 };
    struct server s;
    char expected[256];

    if (listening)
        server_start(&s, &text, 1, how);
    else
        server_listen(&s);
    if (!listening)
        close(s.fd);
    spec.port = s.port;
    uv_loop_init(&loop);
    probe_grpc_start(&c, &w, &spec, "default/web", timeout_ms, on_outcome, &o);
    run_check(&loop, &o);
    if (listening)
        server_stop(&s);
    assert_int_equal(o.result.code, ERR_OK);
    assert_int_equal(c.outcome, PROBE_FAILURE);
    snprintf(expected, sizeof(expected),
             "timeout: failed to connect service \"127.0.0.1:%u\" within %s: context "
             "deadline exceeded",
             s.port, words);
    assert_string_equal(c.text.p, expected);
    buf_done(&c.text);
}

static void nobody_listens_is_told_when_the_time_is_over(void **state)
{
    uint64_t began = clock_mono_ms();

    (void)state;
    check(NULL, SERVE_CLOSE, false, 1000, "1s");
    assert_true(clock_mono_ms() - began >= 900);
    check("HTTP/1.1 400 Bad Request\r\n\r\n", SERVE_CLOSE, true, 2000, "2s");
    check("", SERVE_HOLD, true, 1000, "1s");
    check("x", SERVE_DRIP, true, 1000, "1s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_status_of_the_service_comes_back),
        cmocka_unit_test(an_error_comes_back_with_its_words),
        cmocka_unit_test(what_is_no_grpc_is_told),
        cmocka_unit_test(odd_messages_are_refused),
        cmocka_unit_test(health_messages_are_read_whatever_else_is_in_them),
        cmocka_unit_test(nobody_listens_is_told_when_the_time_is_over),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
