/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the scripted apiserver, over TLS and HTTP/2. */
#include "tests/unit/agent_kube_client/apiserver.h"

#include "base/clock.h"

struct world {
    struct apiserver server;
    uv_loop_t loop;
    struct kube_client *client;
    unsigned unauthorized, expired, reached, lost;
    char why[600];
    json_t *credentials;
};

/* All answers of a test: it looks at them when they are over. */
static json_t *answers;

struct asked {
    struct kube_request r;
    int calls, http;
    struct err result;
    json_t *answer;
    uint64_t retry_after_ms;
    unsigned lines, heads;
    json_t *last_line;
    unsigned stop_after;   /* lines */
    struct asked *cancels; /* upon a line */
};

static void on_unauthorized(bool expired, void *arg)
{
    struct world *w = arg;

    w->expired += expired;

    w->unauthorized++;
}

static void on_reachable(bool reachable, const char *why, void *arg)
{
    struct world *w = arg;

    reachable ? w->reached++ : w->lost++;
    snprintf(w->why, sizeof(w->why), "%s", why);
}

static int world_make_with(void **state, const char *option, uint64_t ping_ms)
{
    struct world *w = calloc(1, sizeof(*w));
    struct err e = { 0 };
    const struct kube_client_options o = { .loop = &w->loop,
                                           .user_agent = "coracle/test",
                                           .on_unauthorized = on_unauthorized,
                                           .on_reachable = on_reachable,
                                           .arg = w,
                                           .ping_ms = ping_ms,
                                           .pong_ms = 1000 };

    signal(SIGPIPE, SIG_IGN);
    answers = json_array();
    apiserver_start(&w->server, option);
    uv_loop_init(&w->loop);
    assert_int_equal(kube_client_open(&w->client, &o, &e), ERR_OK);
    w->credentials = json_object_get(w->server.first, "credentials");
    *state = w;
    return 0;
}

static int world_make(void **state)
{
    return world_make_with(state, NULL, 0);
}

static int world_make_1(void **state)
{
    return world_make_with(state, "--http1", 0);
}

static int world_make_pinging(void **state)
{
    return world_make_with(state, NULL, 300);
}

static int world_make_1_pinging(void **state)
{
    return world_make_with(state, "--http1", 300);
}

static int world_end(void **state)
{
    struct world *w = *state;

    kube_client_close(w->client);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(op_count(), 0);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    apiserver_end(&w->server);
    json_decref(answers);
    free(w);
    return 0;
}

static void trust(struct world *w)
{
    struct err e = { 0 };

    if (kube_client_credentials(w->client, w->credentials, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static void on_asked(struct op *op, const struct err *result)
{
    struct asked *a = op->owner;

    a->calls++;
    a->http = a->r.http;
    a->answer = a->r.answer;
    json_array_append(answers, a->answer); /* none is not added */
    a->retry_after_ms = a->r.retry_after_ms;
    a->result = *result;
}

static bool on_line(json_t *line, void *owner)
{
    struct asked *a = owner;

    json_decref(a->last_line);
    a->last_line = json_incref(line);
    a->lines++;
    if (a->cancels != NULL)
        kube_request_cancel(&a->cancels->r);
    return a->stop_after == 0 || a->lines < a->stop_after;
}

static void on_head(void *owner)
{
    struct asked *a = owner;

    a->heads++;
}

static bool is_asked(void *arg)
{
    const struct asked *a = arg;

    return a->calls > 0;
}

static void ask(struct world *w, struct asked *a, const struct kube_request_spec *spec)
{
    kube_request_start(&a->r, w->client, spec, on_asked, a);
}

static void wait_for(struct world *w, struct asked *a)
{
    assert_true(run_until(&w->loop, is_asked, a));
    assert_int_equal(a->calls, 1);
}

static bool is_past(void *arg)
{
    return clock_mono_ms() >= *(const uint64_t *)arg;
}

static void wait_ms(struct world *w, uint64_t ms)
{
    uint64_t end = clock_mono_ms() + ms;
    uv_timer_t timer;

    uv_timer_init(&w->loop, &timer);
    uv_timer_start(&timer, on_tick, 10, 10);
    assert_true(run_until(&w->loop, is_past, &end));
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
}

static void get(struct world *w, struct asked *a, const char *path)
{
    *a = (struct asked){ 0 };
    ask(w, a,
        &(struct kube_request_spec){ .method = "GET", .path = path, .subject = "it", .deadline_ms = 8000 });
    wait_for(w, a);
}

#define PODS "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1"

static void a_list_comes_over_http_2_and_the_server_knows_the_node(void **state)
{
    struct world *w = *state;
    struct asked a;
    json_t *requests;

    trust(w);
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_OK);
    assert_int_equal(a.http, 200);
    assert_string_equal(json_str(a.answer, "kind"), "PodList");
    requests = apiserver_do(&w->server, "{\"do\":\"requests\"}");
    assert_int_equal(json_array_size(requests), 1);
    assert_string_equal(json_str(json_array_get(requests, 0), "http"), "2");
    assert_string_equal(json_str(json_array_get(requests, 0), "user"), "system:node:node-1");
    assert_string_equal(json_str(json_object_get(json_array_get(requests, 0), "headers"), "user-agent"),
                        "coracle/test");
    json_decref(requests);
    assert_int_equal(w->reached, 1);
}

static void a_server_without_http_2_is_spoken_to_as_well(void **state)
{
    struct world *w = *state;
    struct asked a;

    trust(w);
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_OK);
}

static void requests_wait_for_the_first_credentials(void **state)
{
    struct world *w = *state;
    struct asked a = { 0 };

    ask(w, &a, &(struct kube_request_spec){ .method = "GET", .path = PODS, .subject = "pods" });
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(a.calls, 0);
    trust(w);
    wait_for(w, &a);
    assert_int_equal(a.result.code, ERR_OK);
}

static void the_rate_of_requests_is_limited_and_that_of_heartbeats_is_not(void **state)
{
    struct world *w = *state;
    struct asked paced[4] = { 0 }, heartbeat = { 0 }, stream = { 0 };
    struct kube_request_spec spec = { .method = "GET", .path = PODS, .subject = "pods", .deadline_ms = 8000 };
    int64_t began = clock_boot().ns;

    kube_client_pace(w->client, 10, 2);
    trust(w);
    for (size_t i = 0; i < ARRAY_LEN(paced); i++)
        ask(w, &paced[i], &spec);
    spec.unpaced = true;
    ask(w, &heartbeat, &spec);
    spec.unpaced = false;
    spec.path = PODS "&watch=true";
    spec.on_line = on_line;
    ask(w, &stream, &spec);
    assert_int_equal(kube_client_counts(w->client).requests, 4); /* the burst, the heartbeat, the watch */
    assert_int_equal(kube_client_counts(w->client).waiting, 2);
    wait_for(w, &heartbeat);
    for (size_t i = 0; i < ARRAY_LEN(paced); i++) {
        wait_for(w, &paced[i]);
        assert_int_equal(paced[i].result.code, ERR_OK);
    }
    assert_true(clock_boot().ns - began >= 200 * INT64_C(1000000));
    kube_request_cancel(&stream.r);
    wait_for(w, &stream);
}

static void the_deadline_of_a_request_that_waits_for_its_turn_begins_when_it_is_sent(void **state)
{
    struct world *w = *state;
    struct asked first = { 0 }, second = { 0 };
    const struct kube_request_spec spec = {
        .method = "GET", .path = PODS, .subject = "pods", .deadline_ms = 900
    };

    trust(w);
    get(w, &first, PODS); /* the connection stands */
    kube_client_pace(w->client, 1, 1);
    get(w, &first, PODS);
    ask(w, &second, &spec);
    wait_for(w, &second);
    assert_int_equal(second.result.code, ERR_OK);
}

static void a_request_that_waits_for_its_turn_can_be_cancelled(void **state)
{
    struct world *w = *state;
    struct asked first = { 0 }, second = { 0 };

    kube_client_pace(w->client, 0, 1);
    trust(w);
    get(w, &first, PODS);
    ask(w, &second, &(struct kube_request_spec){ .method = "GET", .path = PODS });
    assert_int_equal(kube_client_counts(w->client).waiting, 1);
    kube_request_cancel(&second.r);
    wait_for(w, &second);
    assert_int_equal(second.result.code, ERR_CANCELLED);
}

static void a_body_is_sent_and_conflicts_have_their_codes(void **state)
{
    struct world *w = *state;
    struct asked a = { 0 }, b = { 0 };
    json_t *node =
        json_pack("{s:s,s:s,s:{s:s}}", "apiVersion", "v1", "kind", "Node", "metadata", "name", "node-1");
    const struct kube_request_spec spec = { .method = "POST", .path = "/api/v1/nodes", .body = node };

    trust(w);
    ask(w, &a, &spec);
    wait_for(w, &a);
    assert_int_equal(a.result.code, ERR_OK);
    assert_int_equal(a.http, 201);
    ask(w, &b, &spec);
    wait_for(w, &b);
    assert_int_equal(b.result.code, ERR_EXISTS);
    assert_string_equal(b.result.text, "nodes \"node-1\" already exists");
    json_decref(node);
}

static void refusals_have_the_words_of_the_server(void **state)
{
    struct world *w = *state;
    struct asked a;

    trust(w);
    get(w, &a, "/api/v1/pods");
    assert_int_equal(a.result.code, ERR_PERMISSION);
    assert_string_equal(a.result.text,
                        "pods is forbidden: User \"system:node:node-1\" cannot list resource \"pods\" in "
                        "API group \"\" at the cluster scope: can only list/watch pods with "
                        "spec.nodeName field selector");
    get(w, &a, "/api/v1/nodes/node-1");
    assert_int_equal(a.result.code, ERR_NOT_FOUND);
}

static void retry_after_is_told(void **state)
{
    struct world *w = *state;
    struct asked a;

    trust(w);
    apiserver_say(&w->server, "{\"do\":\"fault\",\"code\":429,\"headers\":{\"Retry-After\":\"7\"}}");
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_EXHAUSTED);
    assert_int_equal(a.retry_after_ms, 7000);
    assert_int_equal(kube_client_counts(w->client).put_off, 1);
    assert_int_equal(w->lost, 0);
}

static void a_revoked_certificate_asks_for_other_credentials(void **state)
{
    struct world *w = *state;
    struct asked a;

    trust(w);
    apiserver_say(&w->server, "{\"do\":\"revoke\",\"who\":\"system:node:node-1\"}");
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_UNAUTHENTICATED);
    get(w, &a, PODS);
    assert_int_equal(w->unauthorized, 1); /* not at each request */
    json_object_set_new(w->credentials, "token", json_string("admin-token"));
    trust(w);
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_OK);
}

static void an_expired_certificate_asks_for_another_however_it_is_refused(void **state)
{
    struct world *w = *state;
    json_t *expired = apiserver_do(&w->server, "{\"do\":\"credentials\",\"node\":\"node-1\",\"days\":-1}");
    struct asked a;

    json_object_update(w->credentials, expired);
    json_decref(expired);
    trust(w);
    get(w, &a, PODS); /* this one's TLS refuses it */
    assert_int_equal(a.result.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(a.result.text, "certificate expired"));
    assert_non_null(strstr(a.result.text, "; the client certificate expired at 2020-01-02T00:00:00Z"));
    assert_int_equal(w->expired, 1);
}

static void a_certificate_that_is_not_valid_yet_names_our_clock(void **state)
{
    struct world *w = *state;
    struct asked a;

    apiserver_say(&w->server, "{\"do\":\"reissue\",\"future\":true}");
    apiserver_say(&w->server, "{\"do\":\"stop\"}");
    apiserver_say(&w->server, "{\"do\":\"start\"}");
    trust(w);
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(a.result.text, "certificate is not yet valid; this node's clock says 20"));
    assert_int_equal(w->unauthorized, 0);
}

static void many_streams_share_few_connections(void **state)
{
    struct world *w = *state;
    struct asked *many = calloc(230, sizeof(*many));
    json_t *requests;
    int most = 0;

    trust(w);
    get(w, &(struct asked){ 0 }, "/version");
    for (int i = 0; i < 230; i++)
        ask(w, &many[i],
            &(struct kube_request_spec){ .method = "GET",
                                         .path = PODS "&watch=true&resourceVersion=101",
                                         .on_line = on_line,
                                         .on_head = on_head });
    for (int i = 0; i < 500 && kube_client_counts(w->client).waiting > 0; i++)
        wait_ms(w, 10);
    assert_int_equal(kube_client_counts(w->client).streams, 230);
    wait_ms(w, 500);
    requests = apiserver_do(&w->server, "{\"do\":\"requests\"}");
    assert_int_equal(json_array_size(requests), 231);
    for (size_t i = 0; i < json_array_size(requests); i++) {
        int n = (int)json_int(json_array_get(requests, i), "connection", 0);

        most = n > most ? n : most;
    }
    assert_in_range(most, 2, 4);
    json_decref(requests);
    for (int i = 0; i < 230; i++) {
        kube_request_cancel(&many[i].r);
        wait_for(w, &many[i]);
    }
    free(many);
}

static void garbage_and_too_much_are_errors(void **state)
{
    struct world *w = *state;
    struct asked a;

    trust(w);
    apiserver_say(&w->server, "{\"do\":\"fault\",\"what\":\"garbage\"}");
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_INTERNAL);
    assert_null(a.answer);
    apiserver_say(&w->server, "{\"do\":\"fault\",\"what\":\"truncate\"}");
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_UNAVAILABLE);
    a = (struct asked){ 0 };
    ask(w, &a, &(struct kube_request_spec){ .method = "GET", .path = PODS, .answer_max = 20 });
    wait_for(w, &a);
    assert_int_equal(a.result.code, ERR_INTERNAL);
    assert_string_equal(a.result.text, "the answer has more than 20 bytes, or memory is short");
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_OK);
}

static void large_answers_come_compressed_and_are_bounded_by_what_they_hold(void **state)
{
    struct world *w = *state;
    struct asked a = { 0 };
    trust(w);
    apiserver_say(&w->server,
                  "{\"do\":\"put\",\"object\":{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-1\"}}}");
    json_object_set_new(w->credentials, "token", json_string("admin-token"));
    trust(w);
    {
        buf_auto call = BUF_INIT(1 << 20);

        buf_adds(&call, "{\"do\":\"put\",\"object\":{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"big\"},"
                        "\"data\":{\"a\":\"");
        for (int i = 0; i < 300000; i++)
            buf_addc(&call, 'x');
        buf_adds(&call, "\"}}}");
        apiserver_say(&w->server, call.p);
    }
    get(w, &a, "/api/v1/namespaces/default/configmaps/big");
    assert_int_equal(a.result.code, ERR_OK);
    assert_int_equal(strlen(json_str(json_object_get(a.answer, "data"), "a")), 300000);
    a = (struct asked){ 0 };
    ask(w, &a,
        &(struct kube_request_spec){
            .method = "GET", .path = "/api/v1/namespaces/default/configmaps/big", .answer_max = 100000 });
    wait_for(w, &a);
    assert_int_equal(a.result.code, ERR_INTERNAL);
}

static void no_server_is_an_error_with_the_errno(void **state)
{
    struct world *w = *state;
    struct asked a;

    trust(w);
    get(w, &a, PODS);
    apiserver_say(&w->server, "{\"do\":\"stop\"}");
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_UNAVAILABLE);
    get(w, &a, PODS); /* the first one may have found the old connection */
    assert_int_equal(a.result.sys, ECONNREFUSED);
    assert_non_null(strstr(a.result.text, "it: Failed to connect to 127.0.0.1 port"));
    assert_int_equal(w->lost, 1);
    apiserver_say(&w->server, "{\"do\":\"start\"}");
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_OK);
    assert_int_equal(w->reached, 2);
}

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

static void a_certificate_of_another_name_needs_the_servers_name(void **state)
{
    struct world *w = *state;
    struct asked a;
    const char *url = json_str(w->server.first, "url"), *port = strrchr(url, ':');
    char other[64];
    json_t *requests;

    snprintf(other, sizeof(other), "https://127.0.0.1%s", port);
    json_object_set_new(w->credentials, "tlsServerName", json_string("wrong.example"));
    trust(w);
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(a.result.text, "wrong.example"));
    json_object_set_new(w->credentials, "tlsServerName", json_string("kubernetes"));
    trust(w);
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_OK);
    requests = apiserver_do(&w->server, "{\"do\":\"requests\"}");
    assert_string_equal(json_str(json_array_get(requests, 0), "sni"), "kubernetes");
    assert_string_equal(json_str(json_object_get(json_array_get(requests, 0), "headers"), "host"), other + 8);
    json_decref(requests);
}

static void a_foreign_authority_is_refused(void **state)
{
    struct world *w = *state;
    struct asked a;
    struct err e = { 0 };

    json_object_set(w->credentials, "ca", json_object_get(w->credentials, "certificate"));
    trust(w);
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(a.result.text, "SSL certificate problem"));
    json_object_set_new(w->credentials, "insecure", json_true());
    trust(w);
    get(w, &a, PODS);
    assert_int_equal(a.result.code, ERR_OK);

    json_object_set_new(w->credentials, "ca", json_string("garbage"));
    assert_int_equal(kube_client_credentials(w->client, w->credentials, &e), ERR_INVALID);
    assert_string_equal(e.text, "certificate of the authority: no start line");
    json_object_del(w->credentials, "ca");
    json_object_set_new(w->credentials, "key", json_string(""));
    assert_int_equal(kube_client_credentials(w->client, w->credentials, &e), ERR_INVALID);
    json_object_set_new(w->credentials, "server", json_string("ftp://x"));
    assert_int_equal(kube_client_credentials(w->client, w->credentials, &e), ERR_INVALID);
    assert_string_equal(e.text, "server \"ftp://x\": neither https nor http");
    get(w, &a, PODS); /* those of before */
    assert_int_equal(a.result.code, ERR_OK);
}

static void headers_cannot_be_smuggled_in(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };

    json_object_set_new(w->credentials, "token", json_string("a\r\nX-Remote-User: root"));
    assert_int_equal(kube_client_credentials(w->client, w->credentials, &e), ERR_INVALID);
    assert_string_equal(e.text, "header Authorization: its value has a control character");
}

static void many_requests_share_one_connection(void **state)
{
    struct world *w = *state;
    struct asked *many = calloc(200, sizeof(*many));
    json_t *requests;
    int most = 0;

    trust(w);
    for (int i = 0; i < 200; i++)
        ask(w, &many[i],
            &(struct kube_request_spec){ .method = "GET", .path = "/version", .subject = "many" });
    assert_int_equal(kube_client_counts(w->client).under_way, KUBE_REQUESTS_MAX);
    for (int i = 0; i < 200; i++) {
        wait_for(w, &many[i]);
        assert_int_equal(many[i].result.code, ERR_OK);
    }
    requests = apiserver_do(&w->server, "{\"do\":\"requests\"}");
    for (size_t i = 0; i < json_array_size(requests); i++) {
        int n = (int)json_int(json_array_get(requests, i), "connection", 0);

        most = n > most ? n : most;
    }
    assert_int_equal(most, 1);
    json_decref(requests);
    free(many);
}

static void closing_ends_what_is_under_way(void **state)
{
    struct world *w = *state;
    struct asked running = { 0 }, stream = { 0 };

    trust(w);
    apiserver_say(&w->server, "{\"do\":\"fault\",\"what\":\"hang\"}");
    ask(w, &running, &(struct kube_request_spec){ .method = "GET", .path = "/version" });
    ask(w, &stream,
        &(struct kube_request_spec){
            .method = "GET", .path = PODS "&watch=true&resourceVersion=101", .on_line = on_line });
    for (int i = 0; i < 20; i++) {
        uv_run(&w->loop, UV_RUN_NOWAIT);
        usleep(5000);
    }
    kube_client_close(w->client);
    w->client = NULL;
    wait_for(w, &running);
    wait_for(w, &stream);
    assert_int_equal(running.result.code, ERR_CANCELLED);
    assert_int_equal(stream.result.code, ERR_CANCELLED);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, world_make, world_end)
    const struct CMUnitTest tests[] = {
        WITH(a_list_comes_over_http_2_and_the_server_knows_the_node),
        cmocka_unit_test_setup_teardown(a_server_without_http_2_is_spoken_to_as_well, world_make_1,
                                        world_end),
        WITH(requests_wait_for_the_first_credentials),
        WITH(the_rate_of_requests_is_limited_and_that_of_heartbeats_is_not),
        WITH(the_deadline_of_a_request_that_waits_for_its_turn_begins_when_it_is_sent),
        WITH(a_request_that_waits_for_its_turn_can_be_cancelled),
        WITH(a_body_is_sent_and_conflicts_have_their_codes),
        WITH(refusals_have_the_words_of_the_server),
        WITH(retry_after_is_told),
        WITH(a_revoked_certificate_asks_for_other_credentials),
        WITH(an_expired_certificate_asks_for_another_however_it_is_refused),
        WITH(a_certificate_that_is_not_valid_yet_names_our_clock),
        WITH(many_streams_share_few_connections),
        WITH(garbage_and_too_much_are_errors),
        WITH(large_answers_come_compressed_and_are_bounded_by_what_they_hold),
        WITH(no_server_is_an_error_with_the_errno),
        WITH(a_stream_hands_over_lines_and_ends_when_told),
        WITH(a_stream_outlives_its_deadline_and_can_be_cancelled_from_a_line),
        WITH(garbage_in_a_stream_ends_it),
        WITH(a_silent_connection_is_given_up_with_all_its_streams),
        cmocka_unit_test_setup_teardown(a_stream_without_events_is_kept_while_pings_are_answered,
                                        world_make_pinging, world_end),
        cmocka_unit_test_setup_teardown(without_http_2_there_are_no_pings, world_make_1_pinging, world_end),
        WITH(a_slow_answer_is_no_silent_connection),
        WITH(a_certificate_of_another_name_needs_the_servers_name),
        WITH(a_foreign_authority_is_refused),
        WITH(headers_cannot_be_smuggled_in),
        WITH(many_requests_share_one_connection),
        WITH(closing_ends_what_is_under_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
