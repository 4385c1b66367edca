/* SPDX-License-Identifier: Apache-2.0 */
/* The whole check against real servers, TLS and names by coracle-probe included. */
#include "base/clock.h"
#include "server.h"

static struct probe_check http(unsigned port, const char *path, uint64_t timeout_ms, struct probe_http more)
{
    uv_loop_t loop;
    struct probe_world w = { .loop = &loop, .helper = helper_path(), .cgroup_fd = -1 };
    struct probe_check c;
    struct outcome o = { 0 };

    uv_loop_init(&loop);
    more.port = port;
    more.path = path;
    more.user_agent = "kube-probe/1.36";
    if (more.host == NULL)
        more.host = "127.0.0.1";
    probe_http_start(&c, &w, &more, "default/web", timeout_ms, on_outcome, &o);
    run_check(&loop, &o);
    assert_int_equal(o.result.code, ERR_OK);
    return c;
}

/* The check of a server that gives these answers; "@" in the expected text is its address. */
static void expect(const char *const *texts, size_t n, enum serve how, enum probe_outcome outcome,
                   bool errored, const char *text)
{
    struct server s;
    struct probe_check c;
    buf_auto b = BUF_INIT(4096);

    server_start(&s, texts, n, how);
    c = http(s.port, "/x", 1000, (struct probe_http){ 0 });
    server_stop(&s);
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '@')
            buf_addf(&b, "127.0.0.1:%u", s.port);
        else
            buf_addc(&b, *p);
    }
    assert_string_equal(c.text.p, b.p);
    assert_int_equal(c.outcome, outcome);
    assert_int_equal(c.errored, errored);
    buf_done(&c.text);
}

#define ONE(text) (const char *const[]){ text }, 1

static void statuses_decide(void **state)
{
    (void)state;
    expect(ONE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"), SERVE_HOLD, PROBE_SUCCESS, false, "hi");
    expect(ONE("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"), SERVE_CLOSE, PROBE_FAILURE, false,
           "HTTP probe failed with statuscode: 404");
    expect(ONE("HTTP/1.1 304 Not Modified\r\n\r\n"), SERVE_CLOSE, PROBE_WARNING, false,
           "Probe terminated redirects, Response body: ");
}

static void nobody_listens(void **state)
{
    struct server s;
    struct probe_check c;
    char text[256];

    (void)state;
    server_listen(&s);
    close(s.fd); /* the port is free again */
    c = http(s.port, "/x", 1000, (struct probe_http){ 0 });
    snprintf(text, sizeof(text),
             "Get \"http://127.0.0.1:%u/x\": dial tcp 127.0.0.1:%u: connect: connection refused", s.port,
             s.port);
    assert_string_equal(c.text.p, text);
    assert_int_equal(c.outcome, PROBE_FAILURE);
    assert_int_equal(c.status, 0);
    buf_done(&c.text);
}

static void silence_and_dripping_end_at_the_deadline(void **state)
{
    uint64_t began = clock_mono_ms();

    (void)state;
    expect(ONE(""), SERVE_HOLD, PROBE_FAILURE, false,
           "Get \"http://@/x\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
    expect(ONE("HTTP/1.1 200 OK\r\nX: "), SERVE_DRIP, PROBE_FAILURE, false,
           "Get \"http://@/x\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
    expect(ONE("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"), SERVE_HOLD, PROBE_FAILURE, true,
           "context deadline exceeded (Client.Timeout or context cancellation while reading body)");
    assert_true(clock_mono_ms() - began < 10000);
}

static void floods_are_cut_off(void **state)
{
    (void)state;
    expect(ONE("HTTP/1.1 200 OK\r\nX: "
               "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"),
           SERVE_FLOOD, PROBE_FAILURE, false,
           "Get \"http://@/x\": net/http: HTTP/1.x transport connection broken: malformed MIME header: "
           "Invalid header "
           "token");
    struct server s;
    struct probe_check c;

    server_start(&s, ONE("HTTP/1.0 200 OK\r\n\r\nmore and more and more "), SERVE_FLOOD);
    c = http(s.port, "/x", 5000, (struct probe_http){ 0 });
    server_stop(&s);
    assert_int_equal(c.outcome, PROBE_SUCCESS);
    assert_int_equal(c.text.n, 10 * 1024);
    buf_done(&c.text);
}

static void broken_answers_are_told_in_gos_words(void **state)
{
    (void)state;
    expect(ONE(""), SERVE_CLOSE, PROBE_FAILURE, false, "Get \"http://@/x\": EOF");
    expect(ONE("SSH-2.0-x\r\n"), SERVE_CLOSE, PROBE_FAILURE, false,
           "Get \"http://@/x\": net/http: HTTP/1.x transport connection broken: malformed HTTP response "
           "\"SSH-2.0-x\"");
    expect(ONE("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), SERVE_CLOSE, PROBE_FAILURE, true,
           "unexpected EOF");
}

static void a_reset_names_both_ends(void **state)
{
    struct server s;
    struct probe_check c;
    char end[128];

    (void)state;
    server_start(&s, ONE(""), SERVE_RESET);
    c = http(s.port, "/x", 5000, (struct probe_http){ 0 });
    server_stop(&s);
    snprintf(end, sizeof(end), "->127.0.0.1:%u: read: connection reset by peer", s.port);
    assert_non_null(strstr(c.text.p, "\": read tcp 127.0.0.1:"));
    assert_non_null(strstr(c.text.p, end));
    buf_done(&c.text);
}

static void redirects_on_the_host_are_followed(void **state)
{
    static const char *const texts[] = { "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n",
                                         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nthen" };

    (void)state;
    expect(texts, 2, SERVE_CLOSE, PROBE_SUCCESS, false, "then");
    expect(ONE("HTTP/1.1 302 Found\r\nLocation: /round\r\n\r\n"), SERVE_CLOSE, PROBE_FAILURE, false,
           "Get \"/round\": stopped after 10 redirects");
    expect(ONE("HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.2/\r\nContent-Length: 3\r\n\r\nbye"),
           SERVE_CLOSE, PROBE_WARNING, false, "Probe terminated redirects, Response body: bye");
    expect(ONE("HTTP/1.1 302 Found\r\nContent-Length: 3\r\n\r\nbye"), SERVE_CLOSE, PROBE_WARNING, false,
           "Probe terminated redirects, Response body: bye");
}

static void a_name_is_looked_up_by_the_helper(void **state)
{
    struct server s;
    struct probe_check c;

    (void)state;
    server_start(&s, ONE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"), SERVE_HOLD);
    c = http(s.port, "/x", 5000, (struct probe_http){ .host = "localhost" });
    server_stop(&s);
    assert_string_equal(c.text.p, "hi");
    assert_int_equal(c.outcome, PROBE_SUCCESS);
    buf_done(&c.text);
}

static void https_to_a_plain_server_says_so(void **state)
{
    struct server s;
    struct probe_check c;
    char text[256];

    (void)state;
    server_start(&s, ONE("HTTP/1.0 400 Bad Request\r\n\r\n"), SERVE_CLOSE);
    c = http(s.port, "/x", 5000, (struct probe_http){ .https = true });
    server_stop(&s);
    snprintf(text, sizeof(text),
             "Get \"https://127.0.0.1:%u/x\": http: server gave HTTP response to HTTPS client", s.port);
    assert_string_equal(c.text.p, text);
    assert_true(c.plain_http);
    buf_done(&c.text);
}

static void https_ends_at_the_deadline(void **state)
{
    struct server s;
    struct probe_check c;
    uint64_t began = clock_mono_ms();

    (void)state;
    server_start(&s, ONE(""), SERVE_HOLD);
    c = http(s.port, "/x", 500, (struct probe_http){ .https = true });
    server_stop(&s);
    assert_non_null(
        strstr(c.text.p, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"));
    assert_true(clock_mono_ms() - began < 10000);
    buf_done(&c.text);
}

static void an_address_of_the_other_family(void **state)
{
    struct probe_check c = http(1, "/", 2000, (struct probe_http){ .host = "::1" });

    (void)state;
    assert_string_equal(c.text.p, "Get \"http://[::1]:1/\": dial tcp [::1]:1: connect: connection refused");
    buf_done(&c.text);
}

static void a_cancel_is_answered(void **state)
{
    uv_loop_t loop;
    struct probe_world w = { .loop = &loop, .cgroup_fd = -1 };
    struct probe_http spec = { .host = "127.0.0.1", .path = "/", .user_agent = "k" };
    struct probe_check c;
    struct outcome o = { 0 };
    struct server s;

    (void)state;
    server_listen(&s);
    spec.port = s.port;
    uv_loop_init(&loop);
    probe_http_start(&c, &w, &spec, "default/web", 0, on_outcome, &o);
    op_cancel(&c.op);
    assert_int_equal(o.calls, 0);
    run_check(&loop, &o);
    assert_int_equal(o.result.code, ERR_CANCELLED);
    server_stop(&s);
}

static void tcp(const char *host, unsigned port, bool refused)
{
    uv_loop_t loop;
    struct probe_world w = { .loop = &loop, .helper = helper_path(), .cgroup_fd = -1 };
    struct probe_check c;
    struct outcome o = { 0 };
    char expected[256] = "";

    uv_loop_init(&loop);
    probe_tcp_start(&c, &w, host, port, "default/web", 2000, on_outcome, &o);
    run_check(&loop, &o);
    if (refused)
        snprintf(expected, sizeof(expected), "dial tcp %s:%u: connect: connection refused", host, port);
    assert_int_equal(c.outcome, refused ? PROBE_FAILURE : PROBE_SUCCESS);
    assert_string_equal(c.text.p, expected);
    buf_done(&c.text);
}

static void tcp_connects_or_says_why_not(void **state)
{
    struct server s;

    (void)state;
    server_listen(&s);
    tcp("127.0.0.1", s.port, false);
    tcp("localhost", s.port, false);
    server_stop(&s);
    tcp("127.0.0.1", s.port, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_decide),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(silence_and_dripping_end_at_the_deadline),
        cmocka_unit_test(floods_are_cut_off),
        cmocka_unit_test(broken_answers_are_told_in_gos_words),
        cmocka_unit_test(a_reset_names_both_ends),
        cmocka_unit_test(redirects_on_the_host_are_followed),
        cmocka_unit_test(a_name_is_looked_up_by_the_helper),
        cmocka_unit_test(https_to_a_plain_server_says_so),
        cmocka_unit_test(https_ends_at_the_deadline),
        cmocka_unit_test(an_address_of_the_other_family),
        cmocka_unit_test(a_cancel_is_answered),
        cmocka_unit_test(tcp_connects_or_says_why_not),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
