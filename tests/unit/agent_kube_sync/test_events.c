/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_kube_sync/script_kube.h"

#include "agent/kube/decide/event_correlate.h"
#include "agent/kube/sync/events.h"

#define EVENTS "/api/v1/namespaces/default/events"

static int joined(void **state)
{
    if (kube_begin(state) != 0)
        return -1;
    tell("{\"type\":\"config\",\"nodeName\":\"peer\",\"eventRate\":1,\"eventBurst\":3}");
    tell("{\"type\":\"credentials\"}");
    return 0;
}

static void say(const char *reason, const char *message)
{
    char text[600];

    snprintf(text, sizeof(text),
             "{\"type\":\"event\",\"object\":{\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"default\","
             "\"name\":\"app\","
             "\"uid\":\"u11\",\"apiVersion\":\"v1\",\"fieldPath\":\"spec.containers{main}\"},\"reason\":\"%"
             "s\",\"message\":\"%s\","
             "\"type\":\"Normal\"}}",
             reason, message);
    tell(text);
}

static void an_event_is_created_and_then_counted(void **state)
{
    struct asked *a;

    (void)state;
    say("Pulled", "there");
    a = expect("POST", EVENTS);
    assert_json(a->body, "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"app."
                         "18fae27693b40000\",\"namespace\":\"default\"},"
                         "\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"app\","
                         "\"uid\":\"u11\",\"apiVersion\":\"v1\","
                         "\"fieldPath\":\"spec.containers{main}\"},\"reason\":\"Pulled\",\"message\":"
                         "\"there\",\"source\":{\"component\":\"kubelet\","
                         "\"host\":\"peer\"},\"firstTimestamp\":\"2027-01-15T08:00:00Z\",\"lastTimestamp\":"
                         "\"2027-01-15T08:00:00Z\",\"count\":1,"
                         "\"type\":\"Normal\",\"eventTime\":null,\"reportingComponent\":\"kubelet\","
                         "\"reportingInstance\":\"peer\"}");
    answer(a, 201, NULL);
    pass_ms(2000);
    say("Pulled", "there");
    a = expect("PATCH", EVENTS "/app.18fae27693b40000");
    assert_string_equal(a->content_type, JSON_PATCH_STRATEGIC);
    assert_json(a->body, "{\"count\":2,\"lastTimestamp\":\"2027-01-15T08:00:02Z\",\"message\":\"there\"}");
    answer(a, 404, NULL);
    /* It has expired: created again, with its first time and its count. */
    a = expect("POST", EVENTS);
    assert_int_equal(json_int(a->body, "count", 0), 2);
    assert_string_equal(json_str(a->body, "firstTimestamp"), "2027-01-15T08:00:00Z");
    answer(a, 201, NULL);
    expect_none();
}

static void an_event_of_the_node_stands_in_default(void **state)
{
    struct asked *a;

    (void)state;
    tell("{\"type\":\"event\",\"object\":{\"involvedObject\":{\"kind\":\"Node\",\"name\":\"peer\"},"
         "\"reason\":\"Starting\"}}");
    a = expect("POST", EVENTS);
    assert_string_equal(json_str(json_object_get(a->body, "metadata"), "namespace"), "default");
    assert_string_equal(json_str(a->body, "type"), "Normal");
}

static void a_refused_event_is_dropped_and_one_without_an_answer_is_not(void **state)
{
    (void)state;
    say("A", "1");
    say("B", "2");
    answer(expect("POST", EVENTS), 403, "namespace is being terminated");
    no_answer(expect("POST", EVENTS));
    expect_none();
    pass_ms(10001);
    for (int i = 0; i < 10; i++) {
        no_answer(expect("POST", EVENTS));
        pass_ms(10001);
    }
    no_answer(expect("POST", EVENTS)); /* the twelfth time */
    pass_ms(10001);
    expect_none();
}

static void requests_keep_to_their_rate(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        char reason[8] = { (char)('A' + i), '\0' };

        say(reason, "x");
    }
    for (int i = 0; i < 3; i++)
        answer(expect("POST", EVENTS), 201, NULL);
    expect_none();
    pass_ms(1002);
    answer(expect("POST", EVENTS), 201, NULL);
    expect_none();
    pass_ms(1002);
    answer(expect("POST", EVENTS), 201, NULL);
    expect_none();
}

/* ---- correlation ---- */

static json_t *event(const char *reason, const char *message, int64_t now_ns)
{
    json_t *said =
        json_pack("{s:{s:s, s:s, s:s}, s:s, s:s, s:s}", "involvedObject", "kind", "Pod", "name", "app",
                  "namespace", "default", "reason", reason, "message", message, "type", "Warning");
    json_t *e = event_object(said, "peer", now_ns);

    json_decref(said);
    return e;
}

static void ten_that_are_alike_become_one(void **state)
{
    struct event_correlator c;
    int64_t boot = SCRIPT_BOOT_NS;

    (void)state;
    event_correlator_init(&c);
    for (int i = 1; i <= 12; i++) {
        char text[16];
        json_t *e;
        struct event_verdict v;

        snprintf(text, sizeof(text), "try %d", i);
        e = event("BackOff", text, SCRIPT_WALL_NS + i);
        v = event_correlate(&c, e, SCRIPT_WALL_NS + i, boot + i);
        assert_false(v.dropped);
        if (i < 10)
            assert_string_equal(json_str(v.event, "message"), text);
        else
            assert_memory_equal(json_str(v.event, "message"), "(combined from similar events): try 1", 37);
        assert_int_equal(v.is_patch, i > 10);
        event_correlate_sent(&c, v.key, v.event);
        event_verdict_done(&v);
        json_decref(e);
    }
    /* Ten minutes later texts count anew. */
    json_t *e = event("BackOff", "late", SCRIPT_WALL_NS);
    struct event_verdict v = event_correlate(&c, e, SCRIPT_WALL_NS, boot + EVENT_SIMILAR_NS + 13);

    assert_string_equal(json_str(v.event, "message"), "late");
    event_verdict_done(&v);
    json_decref(e);
    event_correlator_done(&c);
}

static void of_one_source_25_go_and_then_one_in_five_minutes(void **state)
{
    struct event_correlator c;
    int sent = 0;
    json_t *e = event("Unhealthy", "probe failed", SCRIPT_WALL_NS);

    (void)state;
    event_correlator_init(&c);
    for (int i = 0; i < 40; i++) {
        struct event_verdict v = event_correlate(&c, e, SCRIPT_WALL_NS, SCRIPT_BOOT_NS);

        sent += !v.dropped;
        event_verdict_done(&v);
    }
    assert_int_equal(sent, 25);
    for (int i = 1; i <= 10; i++) { /* one a minute */
        struct event_verdict v =
            event_correlate(&c, e, SCRIPT_WALL_NS, SCRIPT_BOOT_NS + i * 60 * SCRIPT_SECOND);

        sent += !v.dropped;
        event_verdict_done(&v);
    }
    assert_int_equal(sent, 27);
    json_decref(e);
    event_correlator_done(&c);
}

static void what_was_not_used_longest_is_forgotten(void **state)
{
    struct event_lru l;

    (void)state;
    event_lru_init(&l, sizeof(struct event_lru_entry), NULL);
    for (uint64_t i = 1; i <= EVENT_LRU_MAX; i++)
        assert_non_null(event_lru_make(&l, i));
    assert_non_null(event_lru_get(&l, 1));
    assert_non_null(event_lru_make(&l, 5000));
    assert_non_null(event_lru_get(&l, 1));
    assert_null(event_lru_get(&l, 2));
    event_lru_done(&l);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, joined, kube_end)
    const struct CMUnitTest tests[] = {
        T(an_event_is_created_and_then_counted),
        T(an_event_of_the_node_stands_in_default),
        T(a_refused_event_is_dropped_and_one_without_an_answer_is_not),
        T(requests_keep_to_their_rate),
        cmocka_unit_test(ten_that_are_alike_become_one),
        cmocka_unit_test(of_one_source_25_go_and_then_one_in_five_minutes),
        cmocka_unit_test(what_was_not_used_longest_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
