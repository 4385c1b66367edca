/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts and thresholds: what is accepted, in which precision, and how it is written. */
#include "tests/unit/agent_eviction/helper.h"

static const struct amount_row {
    const char *text;
    uint64_t capacity, value;
    const char *shown;
} amounts[] = {
    { "100Mi", 0, 100 * MI, "100Mi" },
    { "1.5Gi", 0, 1536 * MI, "1536Mi" },
    { "1000000", 0, 1000000, "1M" },
    { "100m", 0, 1, "1" }, /* rounded up, as in kubelet */
    { "10%", 1000, 100, "100" },
    { "5%", 1119264, 55963, "55963" },                /* float32: 0.05 is a little more than 1/20 */
    { "10%", 10737418240, 1073741840, "1073741840" }, /* likewise: 16 bytes more than 1Gi */
    { "12.5%", 8ull << 30, 1ull << 30, "1Gi" },
    { "0%", 1000, 0, "0" },
    { "100%", 1000, 0, "0" },
    { "100.0%", 1000, 0, "0" },
    { "9223372036854775807", 0, INT64_MAX, "9223372036854775807" },
    { "16Ei", 0, INT64_MAX, "9223372036854775807" }, /* as large as a quantity can be */
};

static void amounts_are_numbers_and_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++) {
        char text[QUANTITY_TEXT_SIZE];
        struct ev_amount a;

        assert_int_equal(ev_amount_parse(amounts[i].text, false, &a, ERR_IGNORED), ERR_OK);
        if (ev_amount_of(&a, amounts[i].capacity) != amounts[i].value)
            fail_msg("%s: %llu", amounts[i].text, (unsigned long long)ev_amount_of(&a, amounts[i].capacity));
        ev_amount_text(&a, amounts[i].capacity, text);
        assert_string_equal(text, amounts[i].shown);
    }
}

static void what_is_no_amount_is_refused(void **state)
{
    static const char *const bad[] = {
        "",     "%",      ".%",  "-1%",  "101%",  "1e1%", "nan%",
        "inf%", "1.2.3%", "1%%", " 1%",  "0x10%", "-1Gi", "Gi",
        "1 Gi", "0",      "-0",  "1GiB", "٣%",    "1,5%", "00000000000000000000000000000000000000000000001%"
    };
    struct ev_amount a = { .quantity = 7 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = { 0 };

        if (ev_amount_parse(bad[i], false, &a, &e) != ERR_INVALID || e.text[0] == '\0')
            fail_msg("\"%s\" is accepted", bad[i]);
        assert_int_equal(a.quantity, 7);
    }
    assert_int_equal(ev_amount_parse("0", true, &a, ERR_IGNORED), ERR_OK);
}

static void values_are_written_as_kubelet_does(void **state)
{
    char text[QUANTITY_TEXT_SIZE];

    (void)state;
    ev_value_text(EV_MEMORY, 2048, text);
    assert_string_equal(text, "2Ki");
    ev_value_text(EV_IMAGEFS, 1500, text);
    assert_string_equal(text, "1500");
    ev_value_text(EV_NODEFS_INODES, 55000, text);
    assert_string_equal(text, "55k");
    ev_value_text(EV_PID, 2048, text);
    assert_string_equal(text, "2048");
    ev_value_text(EV_MEMORY, UINT64_MAX, text);
    assert_string_equal(text, "9223372036854775807");
}

static void parsed(const char *maps, struct ev_settings *ret)
{
    json_auto_t *v = json_loads(maps, 0, NULL);
    struct err e = { 0 };

    assert_non_null(v);
    *ret = (struct ev_settings){ 0 };
    if (ev_settings_parse(ret, json_object_get(v, "hard"), json_object_get(v, "soft"),
                          json_object_get(v, "grace"), json_object_get(v, "reclaim"), &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static size_t count(const struct ev_settings *s, enum ev_signal signal)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += s->v[i].signal == signal;
    return n;
}

static void all_pods_have_the_nodes_hard_threshold(void **state)
{
    struct ev_settings s, without;

    (void)state;
    parsed(
        "{\"hard\": {\"memory.available\": \"1Gi\", \"pid.available\": \"1%\"}, \"soft\": "
        "{\"memory.available\": "
        "\"2Gi\"}, \"grace\": {\"memory.available\": \"1s\"}, \"reclaim\": {\"memory.available\": \"5Mi\"}}",
        &s);
    without = s;
    ev_settings_complete(&without, EV_LAYOUT_ONE, false);
    assert_int_equal(without.n, 3);
    ev_settings_complete(&s, EV_LAYOUT_ONE, true);
    assert_int_equal(s.n, 4);
    assert_int_equal(s.v[3].signal, EV_ALLOCATABLE_MEMORY);
    assert_int_equal(s.v[3].value.quantity, 1024 * MI);
    assert_int_equal(s.v[3].reclaim.quantity, 5 * MI);
    assert_false(s.v[3].soft);
}

static void layers_have_the_thresholds_of_their_file_system(void **state)
{
    struct ev_settings s, copy;

    (void)state;
    parsed("{\"hard\": {\"nodefs.available\": \"1Gi\", \"nodefs.inodesFree\": \"7\", \"imagefs.available\": "
           "\"2Gi\", "
           "\"containerfs.available\": \"3Gi\", \"containerfs.inodesFree\": \"8\"}, \"soft\": "
           "{\"imagefs.available\": \"4Gi\"}, \"grace\": {\"imagefs.available\": \"1s\"}}",
           &s);
    copy = s;
    ev_settings_complete(&copy, EV_LAYOUT_ONE, true);
    assert_int_equal(count(&copy, EV_CONTAINERFS), 1);
    assert_int_equal(count(&copy, EV_CONTAINERFS_INODES), 1);
    copy = s;
    ev_settings_complete(&copy, EV_LAYOUT_IMAGEFS, true);
    assert_int_equal(count(&copy, EV_CONTAINERFS), 2);
    assert_int_equal(count(&copy, EV_CONTAINERFS_INODES), 0);
    for (size_t i = 0; i < copy.n; i++)
        assert_true(copy.v[i].signal != EV_CONTAINERFS || copy.v[i].value.quantity != 3 * 1024 * MI);
}

static void every_signal_may_have_both(void **state)
{
    json_auto_t *map = json_object(), *grace = json_object();
    struct ev_settings s = { 0 };
    struct err e = { 0 };

    (void)state;
    for (enum ev_signal i = 0; i < EV_SIGNALS; i++) {
        json_object_set_new(map, ev_signal_name(i), json_string("5%"));
        json_object_set_new(grace, ev_signal_name(i), json_string("1h"));
    }
    assert_int_equal(ev_settings_parse(&s, map, map, grace, map, &e), ERR_OK);
    for (enum ev_layout layout = EV_LAYOUT_ONE; layout <= EV_LAYOUT_SPLIT; layout++) {
        struct ev_settings copy = s;

        ev_settings_complete(&copy, layout, true);
        assert_int_equal(copy.n, EV_THRESHOLDS_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_numbers_and_texts),
        cmocka_unit_test(what_is_no_amount_is_refused),
        cmocka_unit_test(values_are_written_as_kubelet_does),
        cmocka_unit_test(all_pods_have_the_nodes_hard_threshold),
        cmocka_unit_test(layers_have_the_thresholds_of_their_file_system),
        cmocka_unit_test(every_signal_may_have_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
