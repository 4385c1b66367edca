/* SPDX-License-Identifier: Apache-2.0 */
/* The health call against a server of nghttp2 in memory, and the whole check against sockets. */
#include "agent/probe/grpc_call.h"
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

static const unsigned char serving[] = { 0, 0, 0, 0, 2, 0x08, 1 }, not_serving[] = { 0, 0, 0, 0, 2, 0x08, 2 };

/* Both ends talk until nothing moves any more. */
static struct grpc_answer talk(struct peer p)
{
    struct grpc_call *c = NULL;
    struct grpc_answer answer;
    struct err e = { 0 };
    bool moved = true;

    if (p.http_status == NULL)
        p.http_status = "200";
    if (p.content_type == NULL)
        p.content_type = "application/grpc";
    if (p.grpc_status == NULL)
        p.grpc_status = "0";
    if (p.grpc_message == NULL)
        p.grpc_message = "";
    if (p.body == NULL) {
        p.body = serving;
        p.body_n = sizeof(serving);
    }
    peer_open(&p);
    assert_int_equal(grpc_call_new(&c, "10.0.0.1:50051", "web", "kube-probe/1.36", 1000, &e), ERR_OK);
    while (moved && grpc_call_state(c) != GRPC_ANSWERED) {
        buf_auto out = BUF_INIT(1 << 20);
        const uint8_t *data;
        ssize_t n;
        moved = false;
        grpc_call_output(c, &out);
        if (out.n > 0) {
            assert_int_equal(nghttp2_session_mem_recv(p.session, (uint8_t *)out.p, out.n), (ssize_t)out.n);
            moved = true;
        }
        while ((n = nghttp2_session_mem_send(p.session, &data)) > 0) {
            for (ssize_t i = 0; i < n; i++) /* byte by byte */
                grpc_call_feed(c, (const char *)data + i, 1, "");
            moved = true;
        }
    }
    assert_int_equal(grpc_call_state(c), GRPC_ANSWERED);
    assert_string_equal(p.path, "/grpc.health.v1.Health/Check");
    assert_memory_equal(p.request, "\0\0\0\0\5\x0a\3web", 10);
    answer = *grpc_call_answer(c);
    grpc_call_free(c);
    nghttp2_session_del(p.session);
    return answer;
}

static void the_status_of_the_service_comes_back(void **state)
{
    struct grpc_answer a = talk((struct peer){ 0 });

    (void)state;
    assert_int_equal(a.code, 0);
    assert_int_equal(a.serving, 1);
    a = talk((struct peer){ .body = not_serving, .body_n = sizeof(not_serving) });
    assert_int_equal(a.serving, 2);
}

static void an_error_comes_back_with_its_words(void **state)
{
    struct grpc_answer a = talk((struct peer){ .grpc_status = "5", .grpc_message = "unknown%20service%21" });

    (void)state;
    assert_int_equal(a.code, 5);
    assert_string_equal(a.message, "unknown service!");
    a = talk((struct peer){ .grpc_status = "x" });
    assert_int_equal(a.code, 2);
    a = talk((struct peer){ .reset = true });
    assert_int_equal(a.code, 14);
    assert_string_equal(a.message, "stream terminated by RST_STREAM with error code: REFUSED_STREAM");
}

static void what_is_no_grpc_is_told(void **state)
{
    struct grpc_answer a = talk((struct peer){ .http_status = "404", .content_type = "text/html" });

    (void)state;
    assert_int_equal(a.code, 12);
    assert_string_equal(a.message,
                        "unexpected HTTP status code received from server: 404 (Not Found); transport: "
                        "received unexpected content-type \"text/html\"");
    a = talk((struct peer){ .no_trailers = true });
    assert_int_equal(a.code, 13);
    assert_string_equal(a.message, "server closed the stream without sending trailers");
}

static void odd_messages_are_refused(void **state)
{
    static const unsigned char cut[] = { 0, 0, 0, 0, 9, 8 }, compressed[] = { 1, 0, 0, 0, 2, 8, 1 },
                               two[] = { 0, 0, 0, 0, 2, 8, 1, 0 }, bad[] = { 0, 0, 0, 0, 1, 8 };
    static const unsigned char large[20000];

    (void)state;
    assert_int_equal(talk((struct peer){ .body = cut, .body_n = sizeof(cut) }).code, 13);
    assert_int_equal(talk((struct peer){ .body = compressed, .body_n = sizeof(compressed) }).code, 13);
    assert_int_equal(talk((struct peer){ .body = two, .body_n = sizeof(two) }).code, 13);
    assert_int_equal(talk((struct peer){ .body = bad, .body_n = sizeof(bad) }).code, 13);
    assert_int_equal(talk((struct peer){ .body = cut, .body_n = 0 }).code, 13);
    assert_int_equal(talk((struct peer){ .body = large, .body_n = sizeof(large) }).code, 8);
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

static void a_lost_connection(void **state)
{
    struct grpc_call *c = NULL;
    buf_auto out = BUF_INIT(10000);
    struct err e = { 0 };

    (void)state;
    assert_int_equal(grpc_call_new(&c, "a:1", "", "k", 1000, &e), ERR_OK);
    assert_int_equal(grpc_call_feed(c, NULL, 0, "EOF"), GRPC_BROKEN); /* before a word: another try */
    grpc_call_free(c);
    assert_int_equal(grpc_call_new(&c, "a:1", "", "k", 1000, &e), ERR_OK);
    assert_int_equal(grpc_call_feed(c, "\0\0\0\4\0\0\0\0\0", 9, ""), GRPC_ASKED);
    assert_int_equal(grpc_call_feed(c, NULL, 0, "EOF"), GRPC_ANSWERED);
    assert_int_equal(grpc_call_answer(c)->code, 14);
    assert_string_equal(grpc_call_answer(c)->message, "error reading from server: EOF");
    grpc_call_free(c);
    assert_int_equal(grpc_call_new(&c, "a:1", "", "k", 1000, &e), ERR_OK);
    grpc_call_feed(c, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, "");
    grpc_call_output(c, &out);
    assert_int_equal(grpc_call_state(c), GRPC_BROKEN);
    grpc_call_free(c);
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
        cmocka_unit_test(a_lost_connection),
        cmocka_unit_test(nobody_listens_is_told_when_the_time_is_over),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
