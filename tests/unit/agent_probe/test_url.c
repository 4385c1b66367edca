/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/url.h"
#include "tests/unit/base/helper.h"

static void made(const char *path, const char *whole, const char *request)
{
    struct probe_url u = { 0 };
    buf_auto shown = BUF_INIT(100000), sent = BUF_INIT(100000);
    struct err e = { 0 };

    assert_int_equal(probe_url_make(&u, false, "10.0.0.1", 8080, path, &e), ERR_OK);
    probe_url_add(&u, &shown);
    probe_url_add_request(&u, &sent);
    assert_string_equal(shown.p, whole);
    assert_string_equal(sent.p, request);
    probe_url_done(&u);
}

static void a_path_may_hold_a_query(void **state)
{
    (void)state;
    made("/", "http://10.0.0.1:8080/", "/");
    made("/x/y", "http://10.0.0.1:8080/x/y", "/x/y");
    made("", "http://10.0.0.1:8080", "/");
    made("/x?a=b&c", "http://10.0.0.1:8080/x?a=b&c", "/x?a=b&c");
    made("/x?", "http://10.0.0.1:8080/x?", "/x?");
    made("/x#part", "http://10.0.0.1:8080/x#part", "/x");
    made("?x=1", "http://10.0.0.1:8080?x=1", "/?x=1");
}

static void a_path_without_a_slash_in_front_gets_one(void **state)
{
    (void)state;
    made("x", "http://10.0.0.1:8080/x", "/x");
    made("cgi-bin/e?x=1", "http://10.0.0.1:8080/cgi-bin/e?x=1", "/cgi-bin/e?x=1");
    made("a b", "http://10.0.0.1:8080/a%20b", "/a%20b");
    made("%2fx", "http://10.0.0.1:8080/%2fx", "/%2fx");
    made("%zz", "http://10.0.0.1:8080/%25zz", "/%25zz");
    made("*", "http://10.0.0.1:8080/*", "/*");
}

static void a_path_is_escaped_where_it_must_be(void **state)
{
    (void)state;
    made("/a b", "http://10.0.0.1:8080/a%20b", "/a%20b");
    made("/a%20b", "http://10.0.0.1:8080/a%20b", "/a%20b");
    made("/a%2fb", "http://10.0.0.1:8080/a%2fb", "/a%2fb");
    made("/a%zz?b", "http://10.0.0.1:8080/a%25zz%3Fb", "/a%25zz%3Fb"); /* no URL: escaped as a whole */
    made("/a\nb", "http://10.0.0.1:8080/a%0Ab", "/a%0Ab");
    made("/\xc3\xa9", "http://10.0.0.1:8080/%C3%A9", "/%C3%A9");
    made("/(ok)", "http://10.0.0.1:8080/(ok)", "/(ok)");
}

static void followed(const char *from_path, const char *location, const char *whole)
{
    struct probe_url u = { 0 }, next = { 0 };
    buf_auto shown = BUF_INIT(100000);
    struct err e = { 0 };

    assert_int_equal(probe_url_make(&u, false, "10.0.0.1", 8080, from_path, &e), ERR_OK);
    if (probe_url_follow(&next, &u, location, &e) == ERR_OK)
        probe_url_add(&next, &shown);
    else
        buf_adds(&shown, e.text);
    assert_string_equal(shown.p, whole);
    probe_url_done(&u);
    probe_url_done(&next);
}

static void redirects_lead_where_the_standard_says(void **state)
{
    (void)state;
    followed("/a/b?q", "/c", "http://10.0.0.1:8080/c");
    followed("/a/b?q", "c?x", "http://10.0.0.1:8080/a/c?x");
    followed("a/b", "c", "http://10.0.0.1:8080/a/c");
    followed("/a/b", "../c/./d", "http://10.0.0.1:8080/c/d");
    followed("/a/b", "../../../..", "http://10.0.0.1:8080/");
    followed("/a/b?q", "?r", "http://10.0.0.1:8080/a/b?r");
    followed("/a", "//10.0.0.2/c", "http://10.0.0.2/c");
    followed("/a", "https://10.0.0.1/c", "https://10.0.0.1/c");
    followed("/a", "http://[fd00::1]:81/c", "http://[fd00::1]:81/c");
    followed("/a", "http://user:pass@10.0.0.3:82", "http://10.0.0.3:82/");
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    followed("/a", "ftp://x/", "unsupported protocol scheme \"ftp\"");
    followed("/a", "http:", "http: no Host in request URL");
    followed("/a", "http://:80/", "no Host in request URL");
    followed("/a", "http://x:99999/", "invalid port \":99999\" after host");
    followed("/a", "http://x:1a/", "invalid port \":1a\" after host");
    followed("/a", "http://[::1/", "missing ']' in host");
    followed("/a", "http://a b/", "invalid character in host name");
    followed("/a", "/%zz", "invalid URL escape");
    followed("/a", "/a\tb", "net/url: invalid control character in URL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_may_hold_a_query),
        cmocka_unit_test(a_path_without_a_slash_in_front_gets_one),
        cmocka_unit_test(a_path_is_escaped_where_it_must_be),
        cmocka_unit_test(redirects_lead_where_the_standard_says),
        cmocka_unit_test(what_is_no_address_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
