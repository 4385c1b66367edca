/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of lines from the scripted apiserver, and how a silent connection is noticed. */
#include "tests/unit/agent_kube_client/client_world.h"

static void a_stream_hands_over_lines_and_ends_when_told(void **state)
{
    struct world *w = *state;
    struct asked a = { .stop_after = 2 };
    const struct kube_request_spec spec = { .method = "GET",
                                            .path = PODS
                                            "&watch=true&sendInitialEvents=true&allowWatchBookmarks=true",
                                            .on_line = on_line,
                                            .on_head = on_head,
                                            .deadline_ms = 2000 };

    apiserver_say(&w->server,
                  "{\"do\":\"put\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"annotations\":"
                  "{\"n\":\"x\\u0000y\"}},\"spec\":{\"nodeName\":\"node-1\"}}}");
    trust(w);
    ask(w, &a, &spec);
    wait_for(w, &a);
    assert_int_equal(a.result.code, ERR_OK);
    assert_int_equal(a.lines, 2);
    assert_int_equal(a.heads, 1);
    assert_string_equal(json_str(a.last_line, "type"), "BOOKMARK");
    json_decref(a.last_line);
}

static void a_stream_outlives_its_deadline_and_can_be_cancelled_from_a_line(void **state)
{
    struct world *w = *state;
    struct asked a = { 0 }, other = { 0 };
    struct kube_request_spec spec = { .method = "GET",
                                      .path = PODS "&watch=true&resourceVersion=101",
                                      .on_line = on_line,
                                      .deadline_ms = 300 };

    trust(w);
    a.cancels = &a;
    ask(w, &a, &spec);
    ask(w, &other, &spec);
    usleep(100000);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    get(w, &(struct asked){ 0 }, "/version"); /* the head of both is there by now */
    usleep(400000);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(a.calls, 0);
    apiserver_say(&w->server, "{\"do\":\"put\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},"
                              "\"spec\":{\"nodeName\":\"node-1\"}}}");
    wait_for(w, &a);
    assert_int_equal(a.result.code, ERR_CANCELLED);
    kube_request_cancel(&other.r);
    wait_for(w, &other);
    json_decref(a.last_line);
    json_decref(other.last_line);
}

static void garbage_in_a_stream_ends_it(void **state)
{
    struct world *w = *state;
    struct asked a = { 0 }, b = { 0 };
    const struct kube_request_spec spec = { .method = "GET", .path = PODS "&watch=true", .on_line = on_line };

    trust(w);
    apiserver_say(&w->server, "{\"do\":\"fault\",\"what\":\"garbage\"}");
    ask(w, &a, &spec);
    wait_for(w, &a);
    assert_int_equal(a.result.code, ERR_INTERNAL);
    apiserver_say(&w->server, "{\"do\":\"fault\",\"what\":\"truncate\"}");
    ask(w, &b, &spec);
    wait_for(w, &b);
    assert_int_equal(b.result.code, ERR_UNAVAILABLE);
    assert_int_equal(b.lines, 0);
}

static void a_silent_connection_is_given_up_with_all_its_streams(void **state)
{
    struct world *w = *state;
    struct asked watch = { 0 }, lease = { 0 };

    trust(w);
    get(w, &(struct asked){ 0 }, "/version"); /* what follows shares its connection */
    ask(w, &watch,
        &(struct kube_request_spec){
            .method = "GET", .path = PODS "&watch=true&resourceVersion=101", .on_line = on_line });
    get(w, &(struct asked){ 0 }, "/version");
    apiserver_say(&w->server, "{\"do\":\"freeze\"}");
    /* What was on its way when the server froze may still come: then the next one finds the silence. */
    for (int i = 0; i < 3 && watch.calls == 0; i++) {
        lease = (struct asked){ 0 };
        ask(w, &lease,
            &(struct kube_request_spec){ .method = "GET", .path = "/version", .deadline_ms = 500 });
        wait_for(w, &lease);
        assert_int_equal(lease.result.code, ERR_DEADLINE);
        for (int k = 0; k < 100 && watch.calls == 0; k++)
            uv_run(&w->loop, UV_RUN_NOWAIT);
    }
    wait_for(w, &watch); /* it has no deadline of its own */
    assert_int_equal(watch.result.code, ERR_UNAVAILABLE);
    assert_int_equal(w->lost, 1);
    apiserver_say(&w->server, "{\"do\":\"freeze\",\"frozen\":false}");
    get(w, &lease, PODS);
    assert_int_equal(lease.result.code, ERR_OK);
}

static int64_t pings(struct world *w)
{
    json_t *n = apiserver_do(&w->server, "{\"do\":\"pings\"}");
    int64_t value = json_integer_value(n);

    json_decref(n);
    return value;
}

/* No request has a deadline here: nobody but the PING finds out. */
static void a_stream_without_events_is_kept_while_pings_are_answered(void **state)
{
    struct world *w = *state;
    struct asked watch = { 0 };
    int64_t before;

    trust(w);
    ask(w, &watch,
        &(struct kube_request_spec){ .method = "GET",
                                     .path = PODS "&watch=true&resourceVersion=101",
                                     .on_line = on_line,
                                     .on_head = on_head });
    wait_ms(w, 2000);
    assert_int_equal(watch.heads, 1);
    assert_int_equal(watch.calls, 0);
    before = pings(w);
    assert_in_range(before, 2, 7);
    /* The session of TLS and the one of HTTP/2 are whole: requests and events go on. */
    apiserver_say(&w->server, "{\"do\":\"put\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},"
                              "\"spec\":{\"nodeName\":\"node-1\"}}}");
    get(w, &(struct asked){ 0 }, PODS);
    wait_ms(w, 1000);
    assert_int_equal(watch.lines, 1);
    assert_true(pings(w) > before);
    apiserver_say(&w->server, "{\"do\":\"freeze\"}"); /* its kernel acknowledges */
    wait_for(w, &watch);
    assert_int_equal(watch.result.code, ERR_UNAVAILABLE);
    apiserver_say(&w->server, "{\"do\":\"freeze\",\"frozen\":false}");
    json_decref(watch.last_line);
}

static void without_http_2_there_are_no_pings(void **state)
{
    struct world *w = *state;
    struct asked watch = { 0 };

    trust(w);
    ask(w, &watch,
        &(struct kube_request_spec){
            .method = "GET", .path = PODS "&watch=true&resourceVersion=101", .on_line = on_line });
    wait_ms(w, 1500);
    assert_int_equal(watch.calls, 0);
    assert_int_equal(pings(w), 0);
    kube_request_cancel(&watch.r);
    wait_for(w, &watch);
}

static void a_slow_answer_is_no_silent_connection(void **state)
{
    struct world *w = *state;
    struct asked watch = { 0 }, slow = { 0 };

    trust(w);
    get(w, &(struct asked){ 0 }, "/version"); /* what follows shares its connection */
    ask(w, &watch,
        &(struct kube_request_spec){
            .method = "GET", .path = PODS "&watch=true&resourceVersion=101", .on_line = on_line });
    get(w, &(struct asked){ 0 }, "/version");
    apiserver_say(&w->server, "{\"do\":\"fault\",\"what\":\"hang\"}");
    ask(w, &slow, &(struct kube_request_spec){ .method = "GET", .path = "/version", .deadline_ms = 500 });
    get(w, &(struct asked){ 0 }, "/api/v1/nodes/node-1"); /* others are answered meanwhile */
    wait_for(w, &slow);
    assert_int_equal(slow.result.code, ERR_DEADLINE);
    get(w, &slow, "/api/v1/nodes/node-1");
    assert_int_equal(watch.calls, 0);
    kube_request_cancel(&watch.r);
    wait_for(w, &watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_stream_hands_over_lines_and_ends_when_told),
        WITH(a_stream_outlives_its_deadline_and_can_be_cancelled_from_a_line),
        WITH(garbage_in_a_stream_ends_it),
        WITH(a_silent_connection_is_given_up_with_all_its_streams),
        cmocka_unit_test_setup_teardown(a_stream_without_events_is_kept_while_pings_are_answered,
                                        world_make_pinging, world_end),
        cmocka_unit_test_setup_teardown(without_http_2_there_are_no_pings, world_make_1_pinging, world_end),
        WITH(a_slow_answer_is_no_silent_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
