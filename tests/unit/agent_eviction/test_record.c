/* SPDX-License-Identifier: Apache-2.0 */
/* Records of decisions: what they show, that they survive, and that a damaged file does no harm. */
#include "tests/unit/agent_eviction/helper.h"

#include "agent/eviction/record_internal.h"
#include "base/codec/json.h"

#define WALL 1700000000123456000LL

static struct ev_crossing crossing(void)
{
    return (struct ev_crossing){
        .threshold = { .signal = EV_MEMORY, .value = { .quantity = 100 * MI, .format = QUANTITY_BINARY_SI } },
        .value = { true, 90 * MI, 2048 * MI }
    };
}

static uint64_t add_whole(struct ev_records *r)
{
    const struct ev_pod pods[] = {
        { .key = "default/hog", .uid = "u1", .memory_known = true, .memory = 500 * MI, .priority = -5 },
        { .key = "default/crit", .uid = "u2", .memory_known = true, .memory = 9, .critical = true },
    };
    const struct ev_pod *ranked[] = { &pods[0], &pods[1] };
    const struct ev_choice choice = {
        .ranked = ranked, .n_ranked = 2, .victims = (size_t[]){ 0 }, .n_victims = 1
    };
    const struct ev_value after = { true, 600 * MI, 2048 * MI };
    const struct ev_crossing c = crossing();
    uint64_t n = ev_records_add(r, &c, WALL);

    ev_records_reclaimed(r, n, "images", 5 * MI, 2);
    ev_records_ranked(r, n, EV_MEMORY, EV_LAYOUT_ONE, &choice);
    ev_records_killed(r, n, "u1", 42000);
    ev_records_killed(r, n, "nobody", 1);
    ev_records_ended(r, n, "relieved", &after, 300000);
    return n;
}

static json_t *saved_of(struct ev_records *r)
{
    buf_auto text = BUF_INIT(1 << 20);
    struct err e = { 0 };
    json_t *ret = NULL;

    assert_int_equal(ev_records_save(r, &text, &e), ERR_OK);
    assert_int_equal(json_parse(text.p, text.n, 1 << 20, &ret, "saved", &e), ERR_OK);
    return ret;
}

static void expect(const json_t *got, const char *want)
{
    mem_auto char *text = json_dumps(got, JSON_COMPACT | JSON_SORT_KEYS);

    assert_string_equal(text, want);
}

static void a_decision_is_shown_whole(void **state)
{
    struct ev_records *r = ev_records_new();
    json_auto_t *list = NULL;

    (void)state;
    assert_int_equal(add_whole(r), 1);
    assert_int_equal(ev_records_add_local(r, "default/p", "u3", "Usage of EmptyDir volume", WALL), 2);
    list = ev_records_json(r);
    expect(
        json_array_get(list, 0),
        "{\"available\":\"90Mi\",\"availableAfter\":\"600Mi\",\"capacity\":\"2Gi\",\"number\":1,"
        "\"outcome\":\"relieved\",\"ranked\":[{\"critical\":false,\"known\":true,\"pod\":\"default/hog\","
        "\"priority\":-5,\"request\":0,\"uid\":\"u1\",\"usage\":524288000},{\"critical\":true,\"known\":true,"
        "\"pod\":\"default/crit\",\"priority\":0,\"request\":0,\"uid\":\"u2\",\"usage\":9}],\"reclaimed\":"
        "[{\"bytes\":5242880,\"objects\":2,\"what\":\"images\"}],\"resource\":\"memory\",\"signal\":"
        "\"memory.available\",\"soft\":false,\"threshold\":\"100Mi\",\"time\":\"2023-11-14T22:13:20."
        "123456Z\","
        "\"tookUs\":300000,\"urgent\":false,\"victims\":[{\"killedAfterUs\":42000,\"pod\":\"default/hog\","
        "\"uid\":\"u1\"}]}");
    expect(json_array_get(list, 1),
           "{\"message\":\"Usage of EmptyDir volume\",\"number\":2,\"pod\":\"default/p\",\"time\":"
           "\"2023-11-14T22:13:20.123456Z\",\"uid\":\"u3\"}");
    ev_records_free(r);
}

static void what_is_saved_is_loaded(void **state)
{
    struct ev_records *a = ev_records_new(), *b = ev_records_new();
    json_auto_t *saved = NULL, *again = NULL, *shown = NULL, *shown_again = NULL;
    const struct ev_crossing c = crossing();
    size_t bad = 9;

    (void)state;
    add_whole(a);
    ev_records_add_local(a, "default/p", "u3", "message", WALL);
    ev_records_add(a, &c, WALL); /* goes on */
    saved = saved_of(a);
    ev_records_load(b, saved, &bad);
    assert_int_equal(bad, 0);
    again = saved_of(b);
    shown = ev_records_json(a);
    shown_again = ev_records_json(b);
    assert_true(json_equal(saved, again));
    assert_true(json_equal(shown, shown_again));
    assert_int_equal(ev_records_add(b, &c, WALL), 4);
    ev_records_free(a);
    ev_records_free(b);
}

static void the_last_hundred_are_kept_and_numbers_go_on(void **state)
{
    struct ev_records *r = ev_records_new();
    const struct ev_crossing c = crossing();
    json_auto_t *list = NULL, *saved = NULL;
    size_t bad;

    (void)state;
    for (unsigned i = 0; i < 250; i++)
        ev_records_add(r, &c, WALL);
    ev_records_ended(r, 3, "too late", NULL, 0); /* not kept any more */
    list = ev_records_json(r);
    assert_int_equal(json_array_size(list), EV_RECORDS_MAX);
    assert_int_equal(json_int(json_array_get(list, 0), "number", 0), 151);
    saved = saved_of(r);
    assert_int_equal(json_array_clear(json_object_get(saved, "records")), 0);
    ev_records_load(r, saved, &bad);
    assert_int_equal(ev_records_add(r, &c, WALL), 251);
    ev_records_free(r);
}

#define LOCAL "\"time\":\"2023-11-14T22:13:20Z\",\"pod\":\"a/b\",\"uid\":\"u\",\"message\":\"m\""
#define CROSSED                                                                                              \
    "\"number\":5,\"time\":\"2023-11-14T22:13:20Z\",\"signal\":\"memory.available\",\"soft\":false,"         \
    "\"urgent\":false,\"threshold\":\"1Mi\",\"available\":1,\"capacity\":2"

static const struct hostile {
    const char *text;
    size_t kept, bad;
} hostile[] = {
    { "[]", 0, 1 },
    { "{}", 0, 1 },
    { "{\"next\": -1, \"records\": []}", 0, 1 },
    { "{\"next\": 5, \"records\": {}}", 0, 1 },
    { "{\"next\": 5, \"records\": [1, null, \"x\", [], {}]}", 0, 5 },
    { "{\"next\": 5, \"records\": [{\"number\":1," LOCAL "}]}", 1, 0 },
    { "{\"next\": 5, \"records\": [{\"number\":1," LOCAL "}, {\"number\":1," LOCAL "}]}", 1, 1 },
    { "{\"next\": 5, \"records\": [{\"number\":0," LOCAL "}]}", 0, 1 },
    { "{\"next\": 5, \"records\": [{\"number\":9223372036854775807," LOCAL "}]}", 0, 1 },
    { "{\"next\": 5, \"records\": [{\"number\":2,\"time\":\"yesterday\",\"message\":\"m\"}]}", 0, 1 },
    { "{\"next\": 5, \"records\": [{" CROSSED "}]}", 1, 0 },
    { "{\"next\": 5, \"records\": [{" CROSSED ",\"ranked\":{}}]}", 0, 1 },
    { "{\"next\": 5, \"records\": [{" CROSSED
      ",\"ranked\":[{\"pod\":\"a\",\"uid\":\"b\",\"priority\":2147483648,"
      "\"critical\":false,\"known\":true,\"usage\":1,\"request\":1}]}]}",
      0, 1 },
    { "{\"next\": 5, \"records\": [{" CROSSED ",\"victims\":[{\"pod\":\"a\",\"uid\":7}]}]}", 0, 1 },
    { "{\"next\": 5, \"records\": [{" CROSSED ",\"victims\":[{\"pod\":\"a\",\"killedAfterUs\":-7}]}]}", 0,
      1 },
    { "{\"next\": 5, \"records\": [{" CROSSED
      ",\"reclaimed\":[{\"what\":\"a\",\"bytes\":1.5,\"objects\":1}]}]}",
      0, 1 },
    { "{\"next\": 5, \"records\": [{" CROSSED ",\"reclaimed\":[0,0,0,0,0,0,0,0,0]}]}", 0, 1 },
    { "{\"next\": 5, \"records\": [{" CROSSED ",\"outcome\":\"x\"}]}", 0, 1 },
    { "{\"next\": 5, \"records\": [{" CROSSED ",\"outcome\":\"x\",\"tookUs\":3,\"availableAfter\":[]}]}", 0,
      1 },
};

static void a_damaged_record_is_ignored_and_counted(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        json_auto_t *v = json_loads(hostile[i].text, 0, NULL), *list = NULL;
        struct ev_records *r = ev_records_new();
        size_t bad;

        assert_non_null(v);
        ev_records_load(r, v, &bad);
        list = ev_records_json(r);
        if (json_array_size(list) != hostile[i].kept || bad != hostile[i].bad)
            fail_msg("%s: %zu kept, %zu bad", hostile[i].text, json_array_size(list), bad);
        ev_records_free(r);
    }
}

static void a_long_text_is_cut_whatever_it_is_cut_in(void **state)
{
    struct ev_records *a = ev_records_new(), *b = ev_records_new();
    json_auto_t *saved = NULL;
    char message[2000] = "x";
    size_t bad = 9;

    (void)state;
    for (size_t i = 1; i + 2 < sizeof(message); i += 2)
        memcpy(message + i, "\xc3\xa9", 2);
    ev_records_add_local(a, "a/b", "u", message, WALL);
    saved = saved_of(a);
    assert_non_null(saved);
    ev_records_load(b, saved, &bad);
    assert_int_equal(bad, 0);
    assert_null(
        strstr(json_str(json_array_get(json_object_get(saved, "records"), 0), "message"), "\xef\xbf\xbd"));
    memset(message, 0xff, sizeof(message) - 1); /* three bytes for each */
    ev_records_add_local(b, "a/b", "u", message, WALL);
    json_decref(saved);
    saved = saved_of(b);
    ev_records_load(a, saved, &bad);
    assert_int_equal(bad, 0);
    ev_records_free(a);
    ev_records_free(b);
}

/* Each change of a decision is in the next file, and the others are not formatted again. */
static void only_what_has_changed_is_formatted(void **state)
{
    struct ev_records *a = ev_records_new(), *b = ev_records_new();
    const struct ev_pod pods[] = { { .key = "default/hog", .uid = "u1" } };
    const struct ev_pod *ranked[] = { &pods[0] };
    const struct ev_choice choice = {
        .ranked = ranked, .n_ranked = 1, .victims = (size_t[]){ 0 }, .n_victims = 1
    };
    const struct ev_crossing c = crossing();
    const char *first;

    (void)state;
    add_whole(a);
    json_decref(saved_of(a));
    first = a->v[0]->saved;
    ev_records_add(a, &c, WALL);
    for (unsigned change = 0; change < 5; change++) {
        json_auto_t *saved = NULL, *again = NULL;
        size_t bad = 9;

        if (change == 1)
            ev_records_reclaimed(a, 2, "images", MI, 1);
        if (change == 2)
            ev_records_ranked(a, 2, EV_MEMORY, EV_LAYOUT_ONE, &choice);
        if (change == 3)
            ev_records_killed(a, 2, "u1", 42);
        if (change == 4)
            ev_records_ended(a, 2, "relieved", NULL, 43);
        saved = saved_of(a);
        assert_ptr_equal(a->v[0]->saved, first);
        for (size_t i = 0; i < a->n; i++) {
            json_auto_t *whole = ev_record_json(a->v[i], true);

            assert_true(json_equal(whole, json_array_get(json_object_get(saved, "records"), i)));
        }
        ev_records_load(b, saved, &bad);
        assert_int_equal(bad, 0);
        again = saved_of(b);
        assert_true(json_equal(saved, again));
    }
    ev_records_free(a);
    ev_records_free(b);
}

static void a_file_that_is_too_long_is_an_error(void **state)
{
    struct ev_records *r = ev_records_new();
    buf_auto text = BUF_INIT(100);
    struct err e = { 0 };

    (void)state;
    add_whole(r);
    assert_int_equal(ev_records_save(r, &text, &e), ERR_EXHAUSTED);
    ev_records_free(r);
}

static void note_unfinished(const struct ev_unfinished *u, void *arg)
{
    struct ev_unfinished *seen = arg;

    assert_true(u->n_victims < 2);
    seen[u->number] = *u;
}

static void what_has_no_outcome_is_found_again(void **state)
{
    struct ev_records *a = ev_records_new(), *b = ev_records_new();
    const struct ev_pod pods[] = { { .key = "default/hog", .uid = "u1" },
                                   { .key = "default/two", .uid = "u2" } };
    const struct ev_pod *ranked[] = { &pods[0], &pods[1] };
    const struct ev_choice choice = {
        .ranked = ranked, .n_ranked = 2, .victims = (size_t[]){ 0, 1 }, .n_victims = 2
    };
    const struct ev_crossing c = crossing();
    struct ev_unfinished seen[5] = { 0 };
    json_auto_t *saved = NULL;
    size_t bad = 9;

    (void)state;
    add_whole(a); /* 1 has ended */
    ev_records_add_local(a, "default/p", "u3", "Usage of EmptyDir volume", WALL);
    ev_records_add(a, &c, WALL); /* 3 has no victims yet */
    ev_records_add(a, &c, WALL + 1000);
    ev_records_ranked(a, 4, EV_MEMORY, EV_LAYOUT_ONE, &choice);
    ev_records_killed(a, 4, "u1", 42000);
    saved = saved_of(a);
    ev_records_load(b, saved, &bad);
    assert_int_equal(bad, 0);
    ev_records_unfinished(b, note_unfinished, seen);
    assert_int_equal(seen[1].number + seen[2].number, 0);
    assert_int_equal(seen[3].number, 3);
    assert_int_equal(seen[3].n_victims, 0);
    assert_int_equal(seen[4].wall_ns, WALL + 1000);
    assert_int_equal(seen[4].signal, EV_MEMORY);
    assert_int_equal(seen[4].n_victims, 1);
    assert_string_equal(seen[4].uids[0], "u2");
    ev_records_free(a);
    ev_records_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decision_is_shown_whole),
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(the_last_hundred_are_kept_and_numbers_go_on),
        cmocka_unit_test(a_damaged_record_is_ignored_and_counted),
        cmocka_unit_test(a_long_text_is_cut_whatever_it_is_cut_in),
        cmocka_unit_test(what_has_no_outcome_is_found_again),
        cmocka_unit_test(only_what_has_changed_is_formatted),
        cmocka_unit_test(a_file_that_is_too_long_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
