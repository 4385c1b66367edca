/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_placement/helper.h"

static void lists_are_read_and_printed_shortest(void **state)
{
    static const char *const cases[][2] = {
        { "", "" },           { "0", "0" },         { "0-3", "0-3" },
        { "3,2,1,0", "0-3" }, { "0-1,1-2", "0-2" }, { "0,2,4-6\n", "0,2,4-6" },
        { " 7 ", "7" },       { "1023", "1023" },   { "0-1023", "0-1023" },
        { "63-64", "63-64" }, { "0001", "1" },      { "5-5", "5" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cpus s = cpus_of(cases[i][0]);
        char text[CPUS_TEXT_SIZE];

        cpus_print(&s, text);
        assert_string_equal(text, cases[i][1]);
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const cases[] = { ",",   "0,",  ",0",   "a",     "0-", "-1",
                                         "3-1", "0 1", "0,,1", "0-1-2", "0x1" };
    struct cpus s;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };

        assert_int_equal(cpus_parse(&s, cases[i], "x", &e), ERR_INVALID);
        assert_non_null(strstr(e.text, "is not a list of processors like 0-3,8"));
    }
}

static void great_numbers_are_out_of_range(void **state)
{
    static const char *const cases[] = { "1024", "0-1024", "99999999999999999999" };
    struct cpus s;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };

        assert_int_equal(cpus_parse(&s, cases[i], "x", &e), ERR_RANGE);
    }
}

static void the_longest_list_has_room(void **state)
{
    struct cpus s = { 0 }, again;
    struct err e = { 0 };
    char text[CPUS_TEXT_SIZE];

    (void)state;
    for (unsigned i = 1; i < CPUS_MAX; i += 2)
        cpus_add(&s, i);
    cpus_print(&s, text);
    assert_int_equal(cpus_parse(&again, text, "x", &e), ERR_OK);
    assert_true(cpus_equal(&s, &again));
}

static void sets_of_nodes_come_smallest_first(void **state)
{
    static const uint64_t expected[] = { 1, 2, 8, 32, 3, 9, 33, 10, 34, 40, 11, 35, 41, 42, 43 };
    uint64_t set = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        assert_true(pl_next_set(1 | 2 | 8 | 32, &set));
        assert_int_equal(set, expected[i]);
    }
    assert_false(pl_next_set(1 | 2 | 8 | 32, &set));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read_and_printed_shortest), cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(great_numbers_are_out_of_range),      cmocka_unit_test(the_longest_list_has_room),
        cmocka_unit_test(sets_of_nodes_come_smallest_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
