/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/request.h"

#include "base/clock.h"
#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct http_parser p;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    http_parser_init(&f->p);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    http_parser_done(&f->p);
    free(f);
    return 0;
}

/* Feeds all, in pieces; returns how much was used. */
static size_t feed(struct http_parser *p, const char *text, size_t piece)
{
    size_t at = 0, n = strlen(text);

    while (p->state == PARSE_MORE && at < n)
        at += http_parser_feed(p, text + at, n - at < piece ? n - at : piece);
    return at;
}

static void get(struct fixture *f, const char *url)
{
    char request[HTTP_URL_MAX + 1000];

    http_parser_done(&f->p);
    http_parser_init(&f->p);
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", url);
    feed(&f->p, request, 4096);
}

static void headers_that_are_asked_for_are_kept(void **state)
{
    char token[16], protocols[64];
    const struct http_keep keep[] = { { "Authorization", token, sizeof(token) },
                                      { "X-Stream-Protocol-Version", protocols, sizeof(protocols) } };
    const char *first = "GET / HTTP/1.1\r\nauthorization: Bearer a\r\nX-Stream-Protocol-Version: v4\r\n"
                        "x-stream-protocol-version: v3\r\n\r\n";
    struct fixture *f = *state;

    token[0] = protocols[0] = '\0';
    f->p.keep = keep;
    f->p.n_keep = ARRAY_LEN(keep);
    assert_int_equal(feed(&f->p, first, 3), strlen(first));
    assert_string_equal(token, "Bearer a");
    assert_string_equal(protocols, "v4,v3");
    http_parser_next(&f->p);
    assert_string_equal(token, "");
    assert_string_equal(protocols, "");
    feed(&f->p, "GET / HTTP/1.1\r\nAuthorization: Bearer 0123456789\r\n\r\n", 7);
    assert_int_equal(f->p.state, PARSE_DONE);
    assert_string_equal(token, ""); /* too long: absent */
}

static void a_request_is_understood_whatever_the_pieces(void **state)
{
    const char *text = "GET /api/v1/namespaces/a/pods/web/log?follow=true&container=c%2b1+x&flag HTTP/1.1\r\n"
                       "Host: localhost\r\nAccept: */*\r\n\r\n";
    struct fixture *f = *state;

    for (size_t piece = 1; piece <= strlen(text); piece += 7) {
        const struct http_request *r = &f->p.request;
        struct status_match m;

        assert_int_equal(feed(&f->p, text, piece), strlen(text));
        assert_int_equal(f->p.state, PARSE_DONE);
        assert_int_equal(r->method, METHOD_GET);
        assert_true(r->keep_alive);
        assert_false(r->http10);
        assert_int_equal(r->n_segments, 7);
        assert_string_equal(http_param(r, "follow"), "true");
        assert_string_equal(http_param(r, "container"), "c+1 x");
        assert_string_equal(http_param(r, "flag"), "");
        assert_null(http_param(r, "other"));
        m = status_route(r);
        assert_int_equal(m.route, ROUTE_POD_LOG);
        assert_string_equal(m.namespace_, "a");
        assert_string_equal(m.name, "web");
        http_parser_next(&f->p);
    }
}

static void what_is_pipelined_waits_for_its_turn(void **state)
{
    const char *text =
        "GET /healthz HTTP/1.1\r\n\r\nPOST /images?source=%2Fx HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
        "GET /readyz HTTP/1.0\r\n\r\n";
    struct fixture *f = *state;
    size_t at = feed(&f->p, text, 1000);

    assert_int_equal(at, strlen("GET /healthz HTTP/1.1\r\n\r\n"));
    assert_int_equal(status_route(&f->p.request).route, ROUTE_HEALTHZ);
    http_parser_next(&f->p);
    at += feed(&f->p, text + at, 1000);
    assert_int_equal(f->p.request.method, METHOD_POST);
    assert_string_equal(http_param(&f->p.request, "source"), "/x");
    http_parser_next(&f->p);
    at += feed(&f->p, text + at, 1000);
    assert_int_equal(status_route(&f->p.request).route, ROUTE_READYZ);
    assert_true(f->p.request.http10);
    assert_false(f->p.request.keep_alive);
    assert_int_equal(at, strlen(text));
}

static void what_is_no_request_is_refused(void **state)
{
    static const char *const bad[] = {
        "\x16\x03\x01 hello", "GET\r\n\r\n", "GET / HTTP/7.1\r\n\r\n", "BREW /pot HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        http_parser_done(&f->p);
        http_parser_init(&f->p);
        feed(&f->p, bad[i], 1000);
        assert_int_equal(f->p.state, PARSE_FAILED);
        assert_int_equal(f->p.http_code, 400);
        assert_string_equal(f->p.error, "this is not a HTTP/1.1 request");
    }
}

static void a_url_that_cannot_be_decoded_is_refused(void **state)
{
    static const char *const bad[] = { "/a%2",     "/a%zz",   "/a%00b",         "/a?x=%00",
                                       "/a?x=%ff", "/%c0%80", "/%ed%a0%80",     "/%f4%90%80%80",
                                       "/%e2%82",  "nothing", "http://hostonly" };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        get(f, bad[i]);
        assert_int_equal(f->p.state, PARSE_FAILED);
        assert_int_equal(f->p.http_code, 400);
    }
    get(f, "http://localhost/healthz");
    assert_int_equal(f->p.state, PARSE_DONE);
    assert_int_equal(status_route(&f->p.request).route, ROUTE_HEALTHZ);
}

static void headers_of_an_upgrade_are_kept_and_nothing_else(void **state)
{
    const char *text =
        "GET /x HTTP/1.1\r\nHost: a\r\nconnection: keep-alive, Upgrade\r\nUPGRADE: websocket\r\n"
        "Sec-WebSocket-Protocol: v9.channel.k8s.io\r\nSec-WebSocket-Key: abc\r\n"
        "X-A-Header-With-A-Name-Longer-Than-Any-That-Is-Known: Upgrade\r\n"
        "sec-websocket-protocol: v5.channel.k8s.io\r\nSec-WebSocket-Version:13\r\n\r\n";
    struct fixture *f = *state;
    char long_key[400];

    for (size_t piece = 1; piece <= strlen(text); piece += 5) {
        const struct http_upgrade *u = &f->p.request.upgrade;

        assert_int_equal(feed(&f->p, text, piece), strlen(text));
        assert_int_equal(f->p.state, PARSE_DONE);
        assert_true(u->asked);
        assert_string_equal(u->protocol, "websocket");
        assert_string_equal(u->key, "abc");
        assert_string_equal(u->version, "13");
        assert_string_equal(u->subprotocols, "v9.channel.k8s.io,v5.channel.k8s.io");
        assert_false(f->p.request.keep_alive);
        http_parser_done(&f->p);
        http_parser_init(&f->p);
    }
    snprintf(long_key, sizeof(long_key),
             "GET /x HTTP/1.1\r\nSec-WebSocket-Key: %0200d\r\nSec-WebSocket-Version: 13\r\nUpgrade: "
             "websocket\r\n\r\n",
             0);
    feed(&f->p, long_key, 7);
    assert_int_equal(f->p.state, PARSE_DONE);
    assert_false(f->p.request.upgrade.asked); /* no Connection: upgrade */
    assert_string_equal(f->p.request.upgrade.key, "");
    assert_string_equal(f->p.request.upgrade.version, "13");
}

static void options_of_exec_are_checked(void **state)
{
    struct status_exec_options o;
    struct fixture *f = *state;
    struct err e = { 0 };

    get(f, "/x?command=a&tty=1&stdin=true&container=&command=&command=c%20d&stderr=1");
    assert_int_equal(status_exec_options(&f->p.request, &o, &e), ERR_OK);
    assert_null(o.container);
    assert_true(o.stdin_ && o.tty && !o.stdout_ && !o.stderr_); /* a terminal has no standard error */
    assert_string_equal(o.command[0], "a");
    assert_string_equal(o.command[1], "");
    assert_string_equal(o.command[2], "c d");
    assert_null(o.command[3]);
    get(f, "/x?command=a&tty=1&stderr=1");
    assert_int_equal(status_exec_options(&f->p.request, &o, &e), ERR_INVALID);
    assert_string_equal(e.text, "you must specify at least 1 of stdin, stdout, stderr");
}

static void everything_has_a_limit(void **state)
{
    struct fixture *f = *state;
    char *big = malloc(200001);
    char params[4 * HTTP_PARAMS_MAX + 16] = "/x?";

    memset(big, 'a', 200000);
    big[0] = '/';
    big[200000] = '\0';
    big[HTTP_URL_MAX + 2] = '\0';
    get(f, big);
    assert_int_equal(f->p.http_code, 414);

    http_parser_done(&f->p);
    http_parser_init(&f->p);
    feed(&f->p, "GET / HTTP/1.1\r\nX: ", 1000);
    memset(big, 'a', 200000);
    big[HTTP_HEAD_MAX + 1000] = '\0';
    feed(&f->p, big, 1000);
    assert_int_equal(f->p.http_code, 431);

    http_parser_done(&f->p);
    http_parser_init(&f->p);
    feed(&f->p, "GET / HTTP/1.1\r\nX: ", 1000);
    memset(big, ' ', 200000); /* blanks before a value are not part of it */
    feed(&f->p, big, 1000);
    assert_int_equal(f->p.http_code, 431);

    http_parser_done(&f->p);
    http_parser_init(&f->p);
    feed(&f->p, "POST /images HTTP/1.1\r\nContent-Length: 100000\r\n\r\n", 1000);
    memset(big, 'a', 200000);
    feed(&f->p, big, 1000);
    assert_int_equal(f->p.http_code, 413);

    for (int i = 0; i <= HTTP_PARAMS_MAX; i++)
        strcat(params, "a=b&");
    get(f, params);
    assert_int_equal(f->p.http_code, 400);
    free(big);
}

static void paths_lead_to_their_routes_and_nothing_else(void **state)
{
    static const struct {
        const char *url;
        enum status_route route;
    } known[] = {
        { "/healthz", ROUTE_HEALTHZ },
        { "/api/v1/pods", ROUTE_PODS },
        { "/api/v1/pods/", ROUTE_PODS },
        { "/api/v1/namespaces/default/pods", ROUTE_PODS },
        { "/api/v1/namespaces/default/pods/web", ROUTE_POD },
        { "/api/v1/namespaces/default/events", ROUTE_EVENTS },
        { "/api/v1/nodes", ROUTE_NODES },
        { "/api/v1/nodes/n1", ROUTE_NODES },
        { "/api/v1/configmaps", ROUTE_CONFIG_MAPS },
        { "/devices", ROUTE_DEVICES },
        { "/api/v1/namespaces/default/secrets", ROUTE_SECRETS },
        { "/api/v1/namespaces/default/secrets/s", ROUTE_SECRETS },
        { "/apis/scheduling.k8s.io/v1/priorityclasses/high", ROUTE_PRIORITY_CLASSES },
        { "/explain/default/web", ROUTE_EXPLAIN },
        { "/explain", ROUTE_EXPLAIN },
        { "/debug/operations", ROUTE_OPERATIONS },
        { "/", ROUTE_NONE },
        { "//healthz", ROUTE_NONE },
        { "/api/v1", ROUTE_NONE },
        { "/api/v1/namespaces//pods", ROUTE_NONE },
        { "/api/v1/namespaces/default/pods/web/exec", ROUTE_POD_EXEC },
        { "/api/v1/namespaces/default/pods/web/attach", ROUTE_POD_ATTACH },
        { "/api/v1/namespaces/default/pods/web/portforward", ROUTE_POD_FORWARD },
        { "/api/v1/namespaces/default/pods/web/restart", ROUTE_POD_RESTART },
        { "/api/v1/namespaces/default/pods/web/ephemeralcontainers", ROUTE_POD_DEBUG },
        { "/api/v1/namespaces/default/pods/web/proxy", ROUTE_NONE },
        { "/healthz/x", ROUTE_NONE },
        { "/a/b/c/d/e/f/g/h/i/j", ROUTE_NONE },
        { "/explain/a/b%2Fc", ROUTE_EXPLAIN }, /* one segment whatever it decodes to */
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        get(f, known[i].url);
        assert_int_equal(f->p.state, PARSE_DONE);
        assert_int_equal(status_route(&f->p.request).route, known[i].route);
    }
    get(f, "/images");
    assert_int_equal(status_route(&f->p.request).methods,
                     METHOD_GET | METHOD_HEAD | METHOD_POST | METHOD_DELETE);
}

static void log_parameters_are_checked(void **state)
{
    static const struct {
        const char *query, *error;
    } bad[] = {
        { "follow=maybe", "follow: \"maybe\" is neither true nor false" },
        { "stream=x", "stream: \"x\" is none of All, Stdout, Stderr" },
        { "stream=Stdout&tailLines=1", "tailLines and one stream may not be given together" },
        { "tailLines=-1", "tailLines: \"-1\" is not a whole number between 0 and 9223372036854775807" },
        { "limitBytes=0", "limitBytes: \"0\" is not a whole number between 1 and 9223372036854775807" },
        { "sinceTime=now", "sinceTime: \"now\" is not an RFC 3339 time" },
        { "sinceTime=2026-01-02T03:04:05Z&sinceSeconds=5",
          "at most one of sinceTime and sinceSeconds may be given" },
    };
    struct fixture *f = *state;
    struct status_log_options o;
    struct err e = { 0 };
    char url[200];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(url, sizeof(url), "/x?%s", bad[i].query);
        get(f, url);
        e = (struct err){ 0 };
        assert_int_equal(status_log_options(&f->p.request, &o, &e), ERR_INVALID);
        assert_string_equal(e.text, bad[i].error);
    }
    get(f, "/x?container=c&follow=1&previous=false&tailLines=0&sinceSeconds=10&timestamps=true&limitBytes=7");
    assert_int_equal(status_log_options(&f->p.request, &o, &e), ERR_OK);
    assert_string_equal(o.container, "c");
    assert_true(o.follow && !o.previous && o.timestamps && o.has_tail);
    assert_int_equal(o.tail_lines, 0);
    assert_int_equal(o.limit_bytes, 7);
    assert_true(clock_wall_ns() - o.since_ns >= 10 * 1000000000LL);
    get(f, "/x?tailLines=&container=");
    assert_int_equal(status_log_options(&f->p.request, &o, &e), ERR_OK);
    assert_null(o.container);
    assert_false(o.has_tail);
}

static void an_upgrade_is_answered_like_a_plain_request_that_ends_the_connection(void **state)
{
    struct fixture *f = *state;

    feed(&f->p, "GET /healthz HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05hello",
         1000);
    assert_int_equal(f->p.state, PARSE_DONE);
    assert_int_equal(status_route(&f->p.request).route, ROUTE_HEALTHZ);
    assert_false(f->p.request.keep_alive);
}

static void only_some_requests_have_bodies(void **state)
{
    (void)state;
    assert_true(status_takes_body("/store/object"));
    assert_true(status_takes_body("/store/object?x=/y"));
    assert_true(status_takes_body("/api/v1/namespaces/a/pods/b%2Fc/ephemeralcontainers"));
    assert_false(status_takes_body("/store"));
    assert_false(status_takes_body("/store/objects"));
    assert_false(status_takes_body("/store/object/more"));
    assert_false(status_takes_body("/healthz?/store/object"));
    assert_false(status_takes_body("/api/v1/namespaces//pods/b/ephemeralcontainers"));
    assert_false(status_takes_body("/images?source=/ephemeralcontainers"));
    assert_false(status_takes_body(""));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(headers_that_are_asked_for_are_kept),
        T(a_request_is_understood_whatever_the_pieces),
        T(what_is_pipelined_waits_for_its_turn),
        T(what_is_no_request_is_refused),
        T(a_url_that_cannot_be_decoded_is_refused),
        T(headers_of_an_upgrade_are_kept_and_nothing_else),
        T(options_of_exec_are_checked),
        T(everything_has_a_limit),
        T(paths_lead_to_their_routes_and_nothing_else),
        T(only_some_requests_have_bodies),
        T(log_parameters_are_checked),
        T(an_upgrade_is_answered_like_a_plain_request_that_ends_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
