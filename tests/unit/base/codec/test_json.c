/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/codec/json.h"

static json_t *parsed(const char *text)
{
    struct err e = { 0 };
    json_t *v = NULL;

    assert_int_equal(json_parse(text, strlen(text), 1000, &v, "test", &e), ERR_OK);
    return v;
}

static void members_are_read_with_defaults(void **state)
{
    json_auto_t *v = parsed("{\"s\":\"x\",\"i\":5,\"t\":true,\"f\":false,\"n\":null,\"r\":1.5}");

    (void)state;
    assert_string_equal(json_str(v, "s"), "x");
    assert_null(json_str(v, "i"));
    assert_null(json_str(v, "absent"));
    assert_null(json_str(NULL, "s"));
    assert_int_equal(json_int(v, "i", 9), 5);
    assert_int_equal(json_int(v, "r", 9), 9);
    assert_int_equal(json_int(v, "absent", 9), 9);
    assert_true(json_flag(v, "t"));
    assert_false(json_flag(v, "f"));
    assert_false(json_flag(v, "n"));
    assert_false(json_flag(v, "absent"));
}

static void list_elements_are_found_by_their_name(void **state)
{
    json_auto_t *v = parsed("[{\"name\":\"a\",\"i\":1},{},5,{\"name\":\"b\"},{\"name\":\"a\",\"i\":2}]");

    (void)state;
    assert_int_equal(json_int(json_named(v, "a"), "i", 0), 1);
    assert_ptr_equal(json_named(v, "b"), json_array_get(v, 3));
    assert_null(json_named(v, "c"));
    assert_null(json_named(v, NULL));
    assert_null(json_named(NULL, "a"));
}

static void empty_strings_are_left_out(void **state)
{
    json_auto_t *v = json_object();
    str_auto text = NULL;

    (void)state;
    assert_true(json_put_str(v, "a", "x"));
    assert_true(json_put_str(v, "b", ""));
    assert_true(json_put_str(v, "c", NULL));
    assert_true(json_put_str(v, "d", "y"));
    assert_true(json_put_str(v, "d", NULL));
    text = json_text(v);
    assert_string_equal(text, "{\"a\":\"x\"}");
}

static void bytes_that_are_not_utf8_are_replaced(void **state)
{
    json_auto_t *v = json_object();

    (void)state;
    assert_true(json_put_str(v, "a", "x\xff\xc3\xa4\xed\xa0\x80"));
    assert_string_equal(json_str(v, "a"), "x\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void any_single_value_is_taken(void **state)
{
    json_auto_t *number = parsed(" 7 ");
    json_auto_t *text = parsed("\"x\"");
    str_auto written = json_text(text);

    (void)state;
    assert_int_equal(json_integer_value(number), 7);
    assert_string_equal(written, "\"x\"");
}

static void faults_name_the_place_but_not_the_content(void **state)
{
    struct err e = { 0 };
    json_t *v = NULL;

    (void)state;
    assert_int_equal(json_parse("{\"password\":\n hunter2}", 21, 100, &v, "secret x", &e), ERR_INVALID);
    assert_string_equal(e.text, "secret x: line 2, column 7: invalid token");
    assert_null(strstr(e.text, "hunter2"));
    assert_int_equal(json_parse("{\"a\":1,\"a\":2}", 13, 100, &v, "x", &e), ERR_INVALID);
    assert_string_equal(e.text, "x: line 1, column 10: duplicate object key");
    assert_int_equal(json_parse("{} {}", 5, 100, &v, "x", &e), ERR_INVALID);
    assert_int_equal(json_parse("", 0, 100, &v, "x", &e), ERR_INVALID);
    assert_null(v);
}

static void too_much_is_refused_before_it_is_read(void **state)
{
    struct err e = { 0 };
    json_t *v = NULL;

    (void)state;
    assert_int_equal(json_parse("[1,2,3]", 7, 6, &v, "list", &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "list: 7 bytes are more than the 6 allowed");
}

static void deep_nesting_is_an_error_and_no_crash(void **state)
{
    char text[20000];
    struct err e = { 0 };
    json_t *v = NULL;

    (void)state;
    memset(text, '[', sizeof(text));
    assert_int_equal(json_parse(text, sizeof(text), sizeof(text), &v, "deep", &e), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_read_with_defaults),
        cmocka_unit_test(list_elements_are_found_by_their_name),
        cmocka_unit_test(empty_strings_are_left_out),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(any_single_value_is_taken),
        cmocka_unit_test(faults_name_the_place_but_not_the_content),
        cmocka_unit_test(too_much_is_refused_before_it_is_read),
        cmocka_unit_test(deep_nesting_is_an_error_and_no_crash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
