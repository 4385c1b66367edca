/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "base/utf8.h"

static size_t one(const char *text)
{
    return utf8_char(text, strlen(text));
}

static void well_formed_characters_are_measured(void **state)
{
    (void)state;
    assert_int_equal(one("a"), 1);
    assert_int_equal(one("\xc3\xa4"), 2);
    assert_int_equal(one("\xe2\x82\xac"), 3);
    assert_int_equal(one("\xf0\x9f\x90\x9a"), 4);
    assert_int_equal(one("\xf4\x8f\xbf\xbf"), 4);
    assert_int_equal(utf8_char("", 0), 0);
}

static void code_points_are_read(void **state)
{
    static const struct {
        const char *text;
        uint32_t code;
    } cases[] = {
        { "a", 'a' }, { "\xc2\x80", 0x80 }, { "\xe2\x82\xac", 0x20ac }, { "\xf4\x8f\xbf\xbf", 0x10ffff }
    };
    uint32_t code = 7;

    (void)state;
    assert_int_equal(utf8_decode("\xed\xa0\x80", 3, &code), 0);
    assert_int_equal(code, 7);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(utf8_decode(cases[i].text, 4, &code), strlen(cases[i].text));
        assert_int_equal(code, cases[i].code);
    }
}

static void malformed_ones_are_not(void **state)
{
    static const char *const bad[] = {
        "\x80",         "\xff",         "\xc0\x80",     "\xc1\xbf",         "\xe0\x80\x80",
        "\xed\xa0\x80", "\xf0\x80\x80", "\xf4\x90\x80", "\xf5\x80\x80\x80", "\xf0\x80\x80\x80",
        "\xc3",         "\xc3x",        "\xe2\x82",     "\xe2\x82x",        "\xf0\x9f\x90",
    };
    size_t i;

    (void)state;
    for (i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(one(bad[i]), 0);
}

static void cutting_keeps_characters_whole(void **state)
{
    const char *text = "a\xe2\x82\xac"
                       "b";

    (void)state;
    assert_int_equal(utf8_cut(text, 0), 0);
    assert_int_equal(utf8_cut(text, 1), 1);
    assert_int_equal(utf8_cut(text, 2), 1);
    assert_int_equal(utf8_cut(text, 3), 1);
    assert_int_equal(utf8_cut(text, 4), 4);
    assert_int_equal(utf8_cut(text, 5), 5);
    assert_int_equal(utf8_cut("\x80\x80\x80\x80\x80\x80", 5), 5);
}

static void terminal_control_is_made_harmless(void **state)
{
    char text[] = "a\033[1m\x7f\xc2\x9b\xff\xc3\xa4\n";

    (void)state;
    text_printable(text);
    assert_string_equal(text, "a?[1m???\xc3\xa4?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_characters_are_measured),
        cmocka_unit_test(code_points_are_read),
        cmocka_unit_test(malformed_ones_are_not),
        cmocka_unit_test(cutting_keeps_characters_whole),
        cmocka_unit_test(terminal_control_is_made_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
