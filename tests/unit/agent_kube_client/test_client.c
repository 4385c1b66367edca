/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the scripted apiserver, over TLS and HTTP/2. */
#include "tests/unit/agent_kube_client/client_world.h"

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
    assert_string_equal(a.result.text, "the answer has more than 20 bytes, or memory is exhausted");
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
        WITH(a_certificate_of_another_name_needs_the_servers_name),
        WITH(a_foreign_authority_is_refused),
        WITH(headers_cannot_be_smuggled_in),
        WITH(many_requests_share_one_connection),
        WITH(closing_ends_what_is_under_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
