/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "base/parse.h"

static void whole_numbers_in_range_are_taken(void **state)
{
    struct err e = { 0 };
    uint64_t u = 0;
    int64_t i = 0;

    (void)state;
    assert_int_equal(parse_u64("0", 0, 65535, &u, "port", &e), ERR_OK);
    assert_int_equal(u, 0);
    assert_int_equal(parse_u64("18446744073709551615", 0, UINT64_MAX, &u, "x", &e), ERR_OK);
    assert_true(u == UINT64_MAX);
    assert_int_equal(parse_u64("007", 0, 9, &u, "x", &e), ERR_OK);
    assert_int_equal(u, 7);
    assert_int_equal(parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &i, "x", &e), ERR_OK);
    assert_true(i == INT64_MIN);
    assert_int_equal(parse_i64("9223372036854775807", INT64_MIN, INT64_MAX, &i, "x", &e), ERR_OK);
    assert_true(i == INT64_MAX);
    assert_int_equal(parse_i64("+5", 0, 9, &i, "x", &e), ERR_OK);
    assert_int_equal(i, 5);
}

static void anything_else_is_refused_and_the_output_kept(void **state)
{
    static const char *const bad_u[] = { "",
                                         " 1",
                                         "1 ",
                                         "+1",
                                         "-1",
                                         "0x10",
                                         "1\n2",
                                         "65536",
                                         "12.0",
                                         "1e3",
                                         "18446744073709551616",
                                         "99999999999999999999999999" };
    static const char *const bad_i[] = {
        "", "-", "+", "--1", "-+1", "- 1", "9223372036854775808", "-9223372036854775809", "1-"
    };
    struct err e = { 0 };
    uint64_t u = 77;
    int64_t i = 77;
    size_t k;

    (void)state;
    for (k = 0; k < ARRAY_LEN(bad_u); k++)
        assert_int_equal(parse_u64(bad_u[k], 0, 65535, &u, "port", &e), ERR_INVALID);
    for (k = 0; k < ARRAY_LEN(bad_i); k++)
        assert_int_equal(parse_i64(bad_i[k], INT64_MIN, INT64_MAX, &i, "port", &e), ERR_INVALID);
    assert_int_equal(parse_u64(NULL, 0, 1, &u, "port", &e), ERR_INVALID);
    assert_int_equal(parse_i64(NULL, 0, 1, &i, "port", &e), ERR_INVALID);
    assert_int_equal(parse_i64("-6", -5, 5, &i, "port", &e), ERR_INVALID);
    assert_int_equal(u, 77);
    assert_int_equal(i, 77);
}

static void the_message_names_value_and_range(void **state)
{
    struct err e = { 0 };
    uint64_t u;
    int64_t i;

    (void)state;
    assert_int_equal(parse_u64("12x", 0, 65535, &u, "containerPort", &e), ERR_INVALID);
    assert_string_equal(e.text, "containerPort: \"12x\" is not a whole number between 0 and 65535");
    assert_int_equal(parse_i64("9", -5, 5, &i, "offset", &e), ERR_INVALID);
    assert_string_equal(e.text, "offset: \"9\" is not a whole number between -5 and 5");
    assert_int_equal(parse_u64("a\033[2J\nb", 0, 1, &u, "x", &e), ERR_INVALID);
    assert_string_equal(e.text, "x: \"a?[2J?b\" is not a whole number between 0 and 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_in_range_are_taken),
        cmocka_unit_test(anything_else_is_refused_and_the_output_kept),
        cmocka_unit_test(the_message_names_value_and_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
