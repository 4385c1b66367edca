/* SPDX-License-Identifier: Apache-2.0 */
/* What became of requests, as it is told for /metrics. */
#include "tests/unit/agent_kube_client/client_world.h"

#include "agent/kube/client/internal.h"

static unsigned tallied(struct world *w, const char *method, int http)
{
    json_t *all = kube_client_answers(w->client), *row;
    unsigned n = 0;
    size_t i;

    json_array_foreach (json_object_get(all, "counts"), i, row)
        if (strcmp(json_string_value(json_array_get(row, 0)), method) == 0 &&
            json_integer_value(json_array_get(row, 1)) == http)
            n += (unsigned)json_integer_value(json_array_get(row, 2));
    json_decref(all);
    return n;
}

static bool has_a_head(void *arg)
{
    const struct asked *a = arg;

    return a->heads > 0;
}

static void answers_are_counted_by_method_and_status(void **state)
{
    struct world *w = *state;
    static struct asked a, stream; /* a test that fails leaves requests to its end */
    json_t *all;

    trust(w);
    get(w, &a, PODS);
    get(w, &a, PODS);
    get(w, &a, "/api/v1/nodes/node-1");
    assert_int_equal(tallied(w, "GET", 200), 2);
    assert_int_equal(tallied(w, "GET", 404), 1);
    ask(w, &stream,
        &(struct kube_request_spec){
            .method = "GET", .path = PODS "&watch=true", .on_line = on_line, .on_head = on_head });
    assert_true(run_until(&w->loop, has_a_head, &stream));
    assert_int_equal(tallied(w, "GET", 200), 3); /* it goes on */
    kube_request_cancel(&stream.r);
    wait_for(w, &stream);
    json_decref(stream.last_line);
    assert_int_equal(tallied(w, "GET", 200), 3);
    assert_int_equal(tallied(w, "GET", 0), 0);
    all = kube_client_answers(w->client);
    assert_non_null(strstr(json_str(w->credentials, "server"), json_str(all, "host")));
    assert_memory_equal(json_str(all, "host"), "127.0.0.1:", 10);
    json_decref(all);
    trust(w); /* the same server */
    assert_int_equal(tallied(w, "GET", 404), 1);
    json_object_set_new(w->credentials, "server", json_string("https://127.0.0.1:1"));
    trust(w);
    assert_int_equal(tallied(w, "GET", 404), 0);
    get(w, &a, PODS);
    assert_int_equal(a.http, 0);
    assert_int_equal(tallied(w, "GET", 0), 1);
    json_object_set_new(w->credentials, "server", json_string("https://localhost/api"));
    trust(w);
    all = kube_client_answers(w->client);
    assert_string_equal(json_str(all, "host"), "localhost"); /* as Go's URL.Host */
    json_decref(all);
}

static void a_server_that_invents_statuses_takes_no_memory(void **state)
{
    struct kube_tally t = { .n = 0 };

    (void)state;
    for (int http = 100; http < 100 + 2 * KUBE_TALLY_MAX; http++)
        kube_tally_add(&t, "GET", http);
    kube_tally_add(&t, "GET", 100);
    assert_int_equal(t.n, KUBE_TALLY_MAX);
    assert_int_equal(t.rows[0].requests, 2);
    assert_int_equal(t.rows[KUBE_TALLY_MAX - 1].requests, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_are_counted_by_method_and_status, world_make, world_end),
        cmocka_unit_test(a_server_that_invents_statuses_takes_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
