/* SPDX-License-Identifier: Apache-2.0 */
/* Paths, rights and parameters of the node's port. */
#include "agent/kube/server/review_cache.h"
#include "agent/kube/server/route.h"
#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct http_parser p;

static const struct http_request *request(const char *url)
{
    char text[4096];

    http_parser_done(&p);
    http_parser_init(&p);
    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", url);
    http_parser_feed(&p, text, strlen(text));
    assert_int_equal(p.state, PARSE_DONE);
    return &p.request;
}

static void paths_are_kubelets(void **state)
{
    static const struct {
        const char *path;
        enum path_kind kind;
        const char *target;
    } wanted[] = { { "/healthz", PATH_HEALTHZ, "/healthz" },
                   { "/healthz/ping", PATH_HEALTHZ, "/healthz" },
                   { "/healthz/x", PATH_NONE, NULL },
                   { "/pods", PATH_PODS, "/api/v1/pods" },
                   { "/pods/", PATH_PODS, "/api/v1/pods" },
                   { "/metrics/cadvisor", PATH_METRICS, "/metrics/cadvisor" },
                   { "/metrics/probes", PATH_METRICS, "/metrics/probes" },
                   { "/metrics/slis", PATH_SLIS, NULL },
                   { "/metrics/other", PATH_NONE, NULL },
                   { "/containerLogs/a/b/c", PATH_LOGS, NULL },
                   { "/containerLogs/a/b", PATH_NONE, NULL },
                   { "/exec/a/b/c", PATH_EXEC, NULL },
                   { "/exec/a/b/u/c", PATH_EXEC, NULL },
                   { "/exec/a/b/u/c/d", PATH_NONE, NULL },
                   { "/portForward/a/b", PATH_FORWARD, NULL },
                   { "/logs", PATH_SYSTEM_LOGS, NULL },
                   { "/logs/a/b/c/d", PATH_SYSTEM_LOGS, NULL },
                   { "/debug/pprof/profile", PATH_DEBUG, NULL },
                   { "/", PATH_NONE, NULL },
                   { "/images", PATH_NONE, NULL } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        struct route r = route_find(request(wanted[i].path));

        assert_int_equal(r.kind, wanted[i].kind);
        if (wanted[i].target == NULL)
            assert_null(r.target);
        else
            assert_string_equal(r.target, wanted[i].target);
    }
}

static void parts_of_a_path_have_their_names(void **state)
{
    struct route r = route_find(request("/exec/ns/pod/uid/ctr"));

    (void)state;
    assert_string_equal(r.namespace_, "ns");
    assert_string_equal(r.pod, "pod");
    assert_string_equal(r.uid, "uid");
    assert_string_equal(r.container, "ctr");
    r = route_find(request("/portForward/ns/pod"));
    assert_null(r.uid);
    assert_null(r.container);
    assert_true(r.debugging);
}

static void rights_are_fine_grained_with_proxy_behind(void **state)
{
    static const struct {
        const char *path, *first, *second;
    } wanted[] = { { "/pods", "pods", "proxy" },
                   { "/runningpods/", "pods", "proxy" },
                   { "/healthz/ping", "healthz", "proxy" },
                   { "/configz", "configz", "proxy" },
                   { "/stats/summary", "stats", NULL },
                   { "/metrics/cadvisor", "metrics", NULL },
                   { "/metrics/slis", "metrics", NULL },
                   { "/logs/x", "log", NULL },
                   { "/checkpoint/a/b/c", "checkpoint", NULL },
                   { "/statusz", "statusz", NULL },
                   { "/flagz", "flagz", NULL },
                   { "/exec/a/b/c", "proxy", NULL },
                   { "/podsandmore", "proxy", NULL },
                   { "/", "proxy", NULL } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        const char *rights[ROUTE_RIGHTS_MAX];
        size_t n = route_rights(request(wanted[i].path), rights);

        assert_string_equal(rights[0], wanted[i].first);
        assert_int_equal(n, wanted[i].second != NULL ? 2 : 1);
        if (n == 2)
            assert_string_equal(rights[1], wanted[i].second);
    }
    assert_string_equal(route_verb("GET"), "get");
    assert_string_equal(route_verb("POST"), "create");
    assert_string_equal(route_verb("PATCH"), "patch");
    assert_string_equal(route_verb("HEAD"), "");
}

static void check_log(const char *query, enum err_code code, const char *wanted)
{
    struct buf target = BUF_INIT(4096);
    struct err e = { 0 };
    char url[1024];
    struct route r;

    snprintf(url, sizeof(url), "/containerLogs/ns/pod/ctr?%s", query);
    r = route_find(request(url));
    assert_int_equal(route_log_target(&p.request, &r, &target, &e), code);
    assert_string_equal(code == ERR_OK ? target.p : e.text, wanted);
    buf_done(&target);
}

static void options_of_logs_are_checked_and_passed_on(void **state)
{
#define LOG "/api/v1/namespaces/ns/pods/pod/log?container=ctr"
    (void)state;
    check_log("", ERR_OK, LOG);
    check_log("follow=true&previous=false&timestamps=1", ERR_OK, LOG "&follow=true&timestamps=true");
    check_log("tailLines=5&limitBytes=7&sinceSeconds=9", ERR_OK,
              LOG "&tailLines=5&limitBytes=7&sinceSeconds=9");
    check_log("tail=3", ERR_OK, LOG "&tailLines=3");
    check_log("tail=all&tailLines=3", ERR_OK, LOG);
    check_log("sinceTime=2026-01-02T03:04:05Z", ERR_OK, LOG "&sinceTime=2026-01-02T03%3A04%3A05Z");
    check_log("stream=All", ERR_OK, LOG);
    check_log("stream=Stderr", ERR_OK, LOG "&stream=Stderr");
    check_log("follow=x", ERR_INVALID, "{\"message\": \"Unable to decode query.\"}");
    check_log("tailLines=x", ERR_INVALID, "{\"message\": \"Unable to decode query.\"}");
    check_log("tailLines=-1", ERR_RANGE, "{\"message\": \"Invalid request.\"}");
    check_log("limitBytes=0", ERR_RANGE, "{\"message\": \"Invalid request.\"}");
    check_log("sinceTime=2026-01-02T03:04:05Z&sinceSeconds=1", ERR_RANGE,
              "{\"message\": \"Invalid request.\"}");
    check_log("stream=Stdin", ERR_RANGE, "{\"message\": \"Invalid request.\"}");
    check_log("stream=Stdout&tailLines=1", ERR_RANGE, "{\"message\": \"Invalid request.\"}");
}

static void check_stream(const char *path, enum err_code code, const char *wanted)
{
    struct buf target = BUF_INIT(4096);
    struct err e = { 0 };
    struct route r = route_find(request(path));

    assert_int_equal(route_stream_target(&p.request, &r, &target, &e), code);
    assert_string_equal(code == ERR_OK ? target.p : e.text, wanted);
    buf_done(&target);
}

static void options_of_streams_are_translated(void **state)
{
#define POD "/api/v1/namespaces/ns/pods/pod/"
    (void)state;
    check_stream("/exec/ns/pod/c?command=a&command=b%20%26&input=1&output=1&error=1", ERR_OK,
                 POD "exec?container=c&command=a&command=b%20%26&stdin=true&stdout=true&stderr=true");
    check_stream("/exec/ns/pod/c?command=a&output=1&error=1&tty=1", ERR_OK,
                 POD "exec?container=c&command=a&stdout=true&tty=true");
    check_stream("/attach/ns/pod/c?output=1&command=a", ERR_OK, POD "attach?container=c&stdout=true");
    check_stream("/run/ns/pod/c?cmd=ls+-l++%2Ftmp", ERR_OK,
                 POD "exec?container=c&command=ls&command=-l&command=%2Ftmp&stdout=true&stderr=true");
    check_stream("/exec/ns/pod/c?command=a&output=true", ERR_INVALID,
                 "you must specify at least 1 of stdin, stdout, stderr"); /* kubelet knows "1" only */
    check_stream("/exec/ns/p%2F..%2Fq/c?command=a&output=1", ERR_OK,
                 "/api/v1/namespaces/ns/pods/p%2F..%2Fq/exec?container=c&command=a&stdout=true");
}

static void answers_are_kept_for_a_while_and_within_bounds(void **state)
{
    struct review_cache c;
    char question[32];

    (void)state;
    review_cache_init(&c);
    assert_null(review_cache_get(&c, "a", 1, 0));
    review_cache_put(&c, "a", 1, json_true(), 1000, 500);
    assert_true(json_is_true(review_cache_get(&c, "a", 1, 1499)));
    assert_null(review_cache_get(&c, "a", 1, 1500));
    assert_int_equal(c.n, 0);
    review_cache_put(&c, "a", 1, json_true(), 1000, 0); /* a time of 0: not kept */
    assert_null(review_cache_get(&c, "a", 1, 1000));
    review_cache_put(&c, "a", 1, json_true(), 1000, 500);
    review_cache_put(&c, "a", 1, json_string("x"), 1000, 500);
    assert_string_equal(json_string_value(review_cache_get(&c, "a", 1, 1000)), "x");
    assert_int_equal(c.n, 1);
    for (int i = 0; i < REVIEW_CACHE_MAX; i++) {
        snprintf(question, sizeof(question), "q%d", i);
        review_cache_put(&c, question, strlen(question), json_integer(i), 1000, 500);
    }
    assert_int_equal(c.n, REVIEW_CACHE_MAX);
    assert_null(review_cache_get(&c, "a", 1, 1000)); /* the oldest one went */
    assert_int_equal(json_integer_value(review_cache_get(&c, "q0", 2, 1000)), 0);
    review_cache_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_kubelets),
        cmocka_unit_test(parts_of_a_path_have_their_names),
        cmocka_unit_test(rights_are_fine_grained_with_proxy_behind),
        cmocka_unit_test(options_of_logs_are_checked_and_passed_on),
        cmocka_unit_test(options_of_streams_are_translated),
        cmocka_unit_test(answers_are_kept_for_a_while_and_within_bounds),
    };
    int failed;

    http_parser_init(&p);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    http_parser_done(&p);
    return failed;
}
