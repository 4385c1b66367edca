/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of events: what is counted, what is combined, what goes. */
#include "agent/pod/core/events.h"
#include "tests/unit/agent_pod/world.h"

static size_t count(struct world *w)
{
    json_t *events = events_json(&w->node);
    size_t n = json_array_size(events);

    json_decref(events);
    return n;
}

static void assert_last(struct world *w, const char *message, int times)
{
    json_t *events = events_json(&w->node);
    json_t *last = json_array_get(events, json_array_size(events) - 1);

    assert_string_equal(json_string_value(json_object_get(last, "message")), message);
    assert_int_equal(json_integer_value(json_object_get(last, "count")), times);
    json_decref(events);
}

static void the_same_again_is_counted(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [{name: c, image: i}]");

    pod_event(p, NULL, true, "BackOff", "back-off");
    pod_event(p, NULL, false, "Pulled", "pulled");
    pod_event(p, NULL, true, "BackOff", "back-off");
    assert_int_equal(count(w), 2);
    assert_last(w, "back-off", 2);
    pod_event(p, p->ctrs[0], true, "BackOff", "back-off"); /* of a container: another one */
    assert_int_equal(count(w), 3);
}

static void each_is_found_by_its_name(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [{name: c, image: i}]");
    json_t *keys, *one, *key;
    size_t i;

    pod_event(p, NULL, true, "BackOff", "back-off");
    pod_event(p, NULL, false, "Pulled", "pulled");
    keys = events_keys(&w->node);
    assert_int_equal(json_array_size(keys), 2);
    json_array_foreach (keys, i, key) {
        const char *text = json_string_value(key);

        assert_memory_equal(text, "default/", 8);
        one = events_find_json(&w->node, text + 8);
        assert_string_equal(json_string_value(json_object_get(one, "reason")), i == 0 ? "BackOff" : "Pulled");
        assert_string_equal(json_string_value(json_object_get(json_object_get(one, "metadata"), "name")),
                            text + 8);
        json_decref(one);
    }
    json_decref(keys);
    assert_null(events_find_json(&w->node, "p.1"));
    assert_null(events_find_json(&w->node, "p"));
}

static void the_tenth_text_about_the_same_and_those_after_it_are_one_event(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [{name: c, image: i}]");

    for (int i = 1; i <= 9; i++)
        pod_event(p, NULL, true, "OOMKilling", "process %d", i);
    assert_int_equal(count(w), 9);
    assert_last(w, "process 9", 1);
    for (int i = 10; i <= 3000; i++)
        pod_event(p, NULL, true, "OOMKilling", "process %d", i);
    assert_int_equal(count(w), 10);
    assert_last(w, "(combined from similar events): process 3000", 2991);
    pod_event(p, NULL, true, "OOMKilling", "process 3"); /* that one is known */
    assert_int_equal(count(w), 10);
    assert_last(w, "process 3", 2);
    pod_event(p, NULL, true, "Failed", "process 3001");
    assert_int_equal(count(w), 11);
}

static void there_are_at_most_a_thousand(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [{name: c, image: i}]");
    char reason[32];

    for (int i = 0; i < 1500; i++) {
        snprintf(reason, sizeof(reason), "Reason%d", i);
        pod_event(p, NULL, false, reason, "message");
    }
    assert_int_equal(count(w), 1000);
    assert_last(w, "message", 1);
}

static void long_messages_are_kept_and_displace_old_events(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [{name: c, image: i}]");
    char text[10 * 1024 + 1], reason[32]; /* what kubelet reads of a command's output */
    json_t *events, *last;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    pod_event(p, p->ctrs[0], true, "Unhealthy", "Readiness probe failed: %s", text);
    events = events_json(&w->node);
    last = json_array_get(events, 0);
    assert_int_equal(strlen(json_string_value(json_object_get(last, "message"))),
                     strlen("Readiness probe failed: ") + strlen(text));
    json_decref(events);

    for (int i = 0; i < 900; i++) { /* together 9 MB */
        snprintf(reason, sizeof(reason), "Reason%d", i);
        pod_event(p, NULL, false, reason, "%s", text);
    }
    assert_in_range(count(w), 100, 2 * 1024 * 1024 / (sizeof(text) - 1));
    for (int i = 0; i < 950; i++) {
        snprintf(reason, sizeof(reason), "Short%d", i);
        pod_event(p, NULL, false, reason, "message");
    }
    assert_int_equal(count(w), 1000);
}

static void details_stand_beside_the_message_and_the_newest_is_kept(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [{name: c, image: i}]");
    json_t *events, *one;

    pod_event_detail(p, p->ctrs[0], true, "FailedPostStartHook", "PostStartHook failed", "exit code 1: a");
    pod_event_detail(p, p->ctrs[0], true, "FailedPostStartHook", "PostStartHook failed", "exit code 2: b");
    assert_int_equal(count(w), 1);
    assert_last(w, "PostStartHook failed", 2); /* kubelet's words */
    events = events_json(&w->node);
    one = json_object_get(json_array_get(events, 0), "metadata");
    assert_string_equal(json_string_value(json_object_get(json_object_get(one, "annotations"), EVENT_DETAIL)),
                        "exit code 2: b");
    json_decref(events);
    pod_event(p, p->ctrs[0], true, "FailedPostStartHook", "PostStartHook failed");
    events = events_json(&w->node);
    one = json_object_get(json_array_get(events, 0), "metadata");
    assert_null(json_object_get(one, "annotations"));
    json_decref(events);
}

static void details_that_grow_displace_old_events(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [{name: c, image: i}]");
    char text[10 * 1024 + 1], reason[32];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 500; i++) {
            snprintf(reason, sizeof(reason), "Reason%d", i);
            pod_event_detail(p, NULL, true, reason, "failed", round == 0 ? "exit code 1" : text);
        }
    assert_in_range(count(w), 100, 2 * 1024 * 1024 / (sizeof(text) - 1));
}

int main(void)
{
#define T(name) WORLD_TEST(name)
    const struct CMUnitTest tests[] = {
        T(the_same_again_is_counted),
        WORLD_TEST(each_is_found_by_its_name),
        T(the_tenth_text_about_the_same_and_those_after_it_are_one_event),
        T(there_are_at_most_a_thousand),
        T(details_stand_beside_the_message_and_the_newest_is_kept),
        T(long_messages_are_kept_and_displace_old_events),
        T(details_that_grow_displace_old_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
