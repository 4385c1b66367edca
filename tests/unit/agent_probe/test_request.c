/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/request.h"
#include "tests/unit/base/helper.h"

static char *built(const struct probe_request *q, const char *path, struct err *e)
{
    struct probe_url u = { 0 };
    buf_auto out = BUF_INIT(PROBE_REQUEST_MAX);

    assert_int_equal(probe_url_make(&u, false, "fd00::1", 80, path, e), ERR_OK);
    if (probe_request_build(q, &u, &out, e) != ERR_OK)
        buf_reset(&out);
    probe_url_done(&u);
    return buf_detach(&out);
}

static void without_headers_it_is_kubelets(void **state)
{
    const struct probe_request q = { .user_agent = "kube-probe/1.36" };
    struct err e = { 0 };
    str_auto text = built(&q, "/ok?x", &e);

    (void)state;
    assert_string_equal(text, "GET /ok?x HTTP/1.1\r\nHost: [fd00::1]:80\r\nUser-Agent: kube-probe/1.36\r\n"
                              "Accept: */*\r\nConnection: close\r\n\r\n");
}

static void headers_of_the_manifest_win(void **state)
{
    const struct probe_header headers[] = { { "x-b", " two " }, { "user-agent", "mine" },
                                            { "X-A", "1" },     { "X-A", "2" },
                                            { "accept", "" },   { "Connection", "keep" } };
    const struct probe_request q = {
        .user_agent = "kube-probe/1.36", .headers = headers, .n_headers = 6, .host = "example.test"
    };
    struct err e = { 0 };
    str_auto text = built(&q, "/", &e);

    (void)state;
    assert_string_equal(text,
                        "GET / HTTP/1.1\r\nHost: example.test\r\nUser-Agent: mine\r\nX-A: 1\r\nX-A: 2\r\n"
                        "X-B: two\r\nConnection: close\r\n\r\n");
}

static void an_empty_user_agent_sends_none(void **state)
{
    const struct probe_header headers[] = { { "User-Agent", "" } };
    const struct probe_request q = { .user_agent = "kube-probe/1.36", .headers = headers, .n_headers = 1 };
    struct err e = { 0 };
    str_auto text = built(&q, "/", &e);

    (void)state;
    assert_string_equal(text,
                        "GET / HTTP/1.1\r\nHost: [fd00::1]:80\r\nAccept: */*\r\nConnection: close\r\n\r\n");
}

static void a_value_cannot_begin_another_header(void **state)
{
    const struct probe_header headers[] = { { "x-evil", "a\r\nHost: b" } };
    const struct probe_request q = { .user_agent = "kube-probe/1.36", .headers = headers, .n_headers = 1 };
    struct err e = { 0 };
    str_auto text = built(&q, "/", &e);

    (void)state;
    assert_string_equal(text, "");
    assert_int_equal(e.code, ERR_INVALID);
    assert_string_equal(e.text, "net/http: invalid header field value for \"X-Evil\"");
}

static void credentials_do_not_go_to_other_hosts(void **state)
{
    const struct probe_header headers[] = { { "Authorization", "secret" }, { "Cookie", "c" }, { "X", "y" } };
    const struct probe_request q = {
        .user_agent = "k", .headers = headers, .n_headers = 3, .foreign = true, .referer = "http://10.0.0.1/a"
    };
    struct err e = { 0 };
    str_auto text = built(&q, "/", &e);

    (void)state;
    assert_string_equal(text, "GET / HTTP/1.1\r\nHost: [fd00::1]:80\r\nUser-Agent: k\r\nAccept: */*\r\n"
                              "Referer: http://10.0.0.1/a\r\nX: y\r\nConnection: close\r\n\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_headers_it_is_kubelets),
        cmocka_unit_test(headers_of_the_manifest_win),
        cmocka_unit_test(an_empty_user_agent_sends_none),
        cmocka_unit_test(a_value_cannot_begin_another_header),
        cmocka_unit_test(credentials_do_not_go_to_other_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
