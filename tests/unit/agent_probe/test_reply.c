/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/reply.h"
#include "tests/unit/base/helper.h"

/* The same in one piece and byte by byte; then the end of the connection. */
static void read_reply(const char *text, size_t n, struct probe_reply *ret)
{
    struct probe_reply whole;

    probe_reply_init(&whole);
    probe_reply_init(ret);
    probe_reply_feed(&whole, text, n);
    probe_reply_eof(&whole);
    for (size_t i = 0; i < n; i++)
        probe_reply_feed(ret, text + i, 1);
    probe_reply_eof(ret);
    assert_int_equal(whole.state, ret->state);
    assert_int_equal(whole.status, ret->status);
    assert_string_equal(whole.body.p, ret->body.p);
    assert_string_equal(whole.location.p, ret->location.p);
    assert_string_equal(whole.error, ret->error);
    probe_reply_done(&whole);
}

static void is(const char *text, int status, const char *body)
{
    struct probe_reply r;

    read_reply(text, strlen(text), &r);
    if (r.state != REPLY_COMPLETE)
        fail_msg("%s", r.error);
    assert_int_equal(r.status, status);
    assert_string_equal(r.body.p, body);
    probe_reply_done(&r);
}

static void is_broken(const char *text, const char *error)
{
    struct probe_reply r;

    read_reply(text, strlen(text), &r);
    assert_int_equal(r.state, REPLY_BROKEN);
    assert_string_equal(r.error, error);
    probe_reply_done(&r);
}

static void responses_are_framed_in_every_way(void **state)
{
    (void)state;
    is("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloXXXX", 200, "hello");
    is("HTTP/1.0 200 OK\r\n\r\nup to the end", 200, "up to the end");
    is("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 200, "abcde");
    is("HTTP/1.1 204 No Content\r\n\r\n", 204, "");
    is("HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n", 503, "");
    is("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx", 404, "x");
    is("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nzzz", 101, "");
}

static void plain_newlines_are_fine(void **state)
{
    (void)state;
    is("HTTP/1.0 200 OK\n\nfine", 200, "fine");
    is("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 200, "ok");
}

static void the_place_of_a_redirect_is_kept(void **state)
{
    static const char text[] = "HTTP/1.1 302 Found\r\nX: y\r\nLocation:  /next \r\nContent-Length: 0\r\n\r\n";
    struct probe_reply r;

    (void)state;
    read_reply(text, strlen(text), &r);
    assert_int_equal(r.status, 302);
    assert_string_equal(r.location.p, "/next");
    probe_reply_done(&r);
}

static void what_is_no_http_is_told_as_go_does(void **state)
{
    (void)state;
    is_broken("", "EOF");
    is_broken("HTTP/1.1 20", "unexpected EOF");
    is_broken("HTTP/1.1 200 OK\r\nA: b\r\n", "unexpected EOF");
    is_broken("SSH-2.0-OpenSSH_9.2\r\n", "malformed HTTP response \"SSH-2.0-OpenSSH_9.2\"");
    is_broken("\x15\x03\x01 x\n", "malformed HTTP status code \"x\"");
    is_broken("HTTP/1.1 abc\r\n\r\n", "malformed HTTP status code \"abc\"");
    is_broken("HTTQ/1.1 200 OK\r\n\r\n", "malformed HTTP version \"HTTQ/1.1\"");
    is_broken("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "unexpected EOF");
}

static void a_body_is_read_as_far_as_needed(void **state)
{
    struct probe_reply r;
    static char piece[4096];

    (void)state;
    memset(piece, 'x', sizeof(piece));
    probe_reply_init(&r);
    probe_reply_feed(&r, "HTTP/1.1 200 OK\r\n\r\n", 19);
    assert_int_equal(probe_reply_feed(&r, piece, sizeof(piece)), REPLY_BODY);
    assert_int_equal(probe_reply_feed(&r, piece, sizeof(piece)), REPLY_BODY);
    assert_int_equal(probe_reply_feed(&r, piece, sizeof(piece)), REPLY_COMPLETE);
    assert_int_equal(r.body.n, PROBE_BODY_MAX);
    probe_reply_done(&r);
}

static void an_endless_head_is_cut_off(void **state)
{
    struct probe_reply r;
    int lines = 0;

    (void)state;
    probe_reply_init(&r);
    probe_reply_feed(&r, "HTTP/1.1 200 OK\r\n", 17);
    while (probe_reply_feed(&r, "X-Header: some more of it\r\n", 27) == REPLY_HEAD)
        assert_true(lines++ < 20000);
    assert_string_equal(r.error, "net/http: server response headers exceeded 262144 bytes; aborted");
    probe_reply_done(&r);
}

static void an_endless_line_is_cut_off(void **state)
{
    struct probe_reply r;

    (void)state;
    probe_reply_init(&r);
    for (int i = 0; i < 10000 && r.state == REPLY_HEAD; i++)
        probe_reply_feed(&r, "y", 1);
    assert_int_equal(r.state, REPLY_BROKEN);
    assert_true(str_starts(r.error, "malformed HTTP response \"yyyy"));
    probe_reply_done(&r);
}

static void endless_framing_is_cut_off(void **state)
{
    struct probe_reply r;
    static char piece[65536];

    (void)state;
    memset(piece, 'e', sizeof(piece));
    probe_reply_init(&r);
    probe_reply_feed(&r, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", 49);
    for (int i = 0; i < 100 && r.state == REPLY_BODY; i++)
        probe_reply_feed(&r, piece, sizeof(piece));
    assert_int_equal(r.state, REPLY_BROKEN);
    probe_reply_done(&r);
}

static void a_row_of_informational_responses_ends(void **state)
{
    struct probe_reply r;

    (void)state;
    probe_reply_init(&r);
    for (int i = 0; i < 10 && r.state == REPLY_HEAD; i++)
        probe_reply_feed(&r, "HTTP/1.1 103 Early Hints\r\n\r\n", 28);
    assert_string_equal(r.error, "net/http: too many 1xx informational responses");
    probe_reply_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_are_framed_in_every_way),
        cmocka_unit_test(plain_newlines_are_fine),
        cmocka_unit_test(the_place_of_a_redirect_is_kept),
        cmocka_unit_test(what_is_no_http_is_told_as_go_does),
        cmocka_unit_test(a_body_is_read_as_far_as_needed),
        cmocka_unit_test(an_endless_head_is_cut_off),
        cmocka_unit_test(an_endless_line_is_cut_off),
        cmocka_unit_test(endless_framing_is_cut_off),
        cmocka_unit_test(a_row_of_informational_responses_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
