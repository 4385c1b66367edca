/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"
#include "tests/unit/base/helper.h"

static void durations_are_those_of_go(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
        const char *canonical;
    } good[] = {
        { "0", 0, "0s" },
        { "1m", 60000000000, "1m0s" },
        { "1h30m", 5400000000000, "1h30m0s" },
        { "1.5s", 1500000000, "1.5s" },
        { "90s", 90000000000, "1m30s" },
        { "100ms", 100000000, "100ms" },
        { "2500us", 2500000, "2.5ms" },
        { "7\xc2\xb5s", 7000, "7\xc2\xb5s" },
        { "12ns", 12, "12ns" },
        { "-1.25h", -4500000000000, "-1h15m0s" },
        { ".5m", 30000000000, "30s" },
        { "1s1s", 2000000000, "2s" },
    };
    static const char *const bad[] = {
        "", "1", "s", "1 s", "1x", "-", "1..5s", "99999999999h", "9223372036854775808ns"
    };
    int64_t ns;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_true(duration_parse(good[i].text, &ns));
        assert_int_equal(ns, good[i].ns);
        assert_string_equal(duration_format(ns).s, good[i].canonical);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (duration_parse(bad[i], &ns))
            fail_msg("taken: \"%s\"", bad[i]);
}

static void milliseconds_are_shown_like_any_duration(void **state)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {
        { 0, "0s" },           { 12, "12ms" },
        { 250, "250ms" },      { 1000, "1s" },
        { 1500, "1.5s" },      { 59000, "59s" },
        { 60000, "1m0s" },     { 61050, "1m1.05s" },
        { 80000, "1m20s" },    { 300000, "5m0s" },
        { 3600000, "1h0m0s" }, { 5025000, "1h23m45s" },
        { 120050, "2m0.05s" }, { 5025001, "1h23m45.001s" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(duration_format_ms(cases[i].ms).s, cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_those_of_go),
        cmocka_unit_test(milliseconds_are_shown_like_any_duration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
