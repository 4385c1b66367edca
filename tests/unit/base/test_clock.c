/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "base/clock.h"

#define T INT64_C(1767323045) /* 2026-01-02T03:04:05Z */
#define NS INT64_C(1000000000)

static void times_are_written_as_kubernetes_writes_them(void **state)
{
    char text[CLOCK_RFC3339_SIZE];

    (void)state;
    clock_format_s(T * NS + 999999999, text);
    assert_string_equal(text, "2026-01-02T03:04:05Z");
    clock_format_us(T * NS + 123456789, text);
    assert_string_equal(text, "2026-01-02T03:04:05.123456Z");
    clock_format_us(T * NS, text);
    assert_string_equal(text, "2026-01-02T03:04:05.000000Z");
    clock_format_nano(T * NS + 123456789, text);
    assert_string_equal(text, "2026-01-02T03:04:05.123456789Z");
    clock_format_nano(T * NS + 120000000, text);
    assert_string_equal(text, "2026-01-02T03:04:05.12Z");
    clock_format_nano(T * NS, text);
    assert_string_equal(text, "2026-01-02T03:04:05Z");
    clock_format_nano(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999999999Z");
    clock_format_s(INT64_MIN, text);
    assert_string_equal(text, "1677-09-21T00:12:43Z");
}

static void dates_are_those_of_libc(void **state)
{
    (void)state;
    for (int64_t day = -110000; day < 110000; day++) { /* every day of 600 years, each at another time */
        int64_t s = day * 86400 + (day * 7919 % 86400 + 86400) % 86400;
        time_t seconds = (time_t)s;
        struct tm ours, libc;

        clock_utc(s, &ours);
        gmtime_r(&seconds, &libc);
        assert_true(ours.tm_year == libc.tm_year && ours.tm_mon == libc.tm_mon &&
                    ours.tm_mday == libc.tm_mday && ours.tm_hour == libc.tm_hour &&
                    ours.tm_min == libc.tm_min && ours.tm_sec == libc.tm_sec);
    }
}

static int64_t parsed(const char *text)
{
    struct err e = { 0 };
    int64_t t = 0;

    assert_int_equal(clock_parse(text, &t, &e), ERR_OK);
    return t;
}

static void times_are_read(void **state)
{
    (void)state;
    assert_true(parsed("2026-01-02T03:04:05Z") == T * NS);
    assert_true(parsed("2026-01-02T05:34:05+02:30") == T * NS);
    assert_true(parsed("2026-01-01T22:04:05-05:00") == T * NS);
    assert_true(parsed("2026-01-02T03:04:05.5Z") == T * NS + 500000000);
    assert_true(parsed("2026-01-02T03:04:05.1234567899999Z") == T * NS + 123456789);
    assert_true(parsed("1970-01-01T00:00:00Z") == 0);
    assert_true(parsed("1969-12-31T23:59:59.999999999Z") == -1);
    assert_true(parsed("2024-02-29T00:00:00Z") == INT64_C(1709164800) * NS);
    assert_true(parsed("2000-02-29T00:00:00Z") == INT64_C(951782400) * NS);
}

static void what_is_written_reads_back(void **state)
{
    static const int64_t times[] = { 0, 1, -1, T * NS + 1, INT64_MAX, -T * NS - 5 };
    char text[CLOCK_RFC3339_SIZE];
    size_t i;

    (void)state;
    for (i = 0; i < ARRAY_LEN(times); i++) {
        clock_format_nano(times[i], text);
        assert_true(parsed(text) == times[i]);
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "2026-01-02",
        "2026-01-02 03:04:05Z",
        "2026-01-02t03:04:05z",
        "2026-01-02T03:04:05",
        "2026-13-02T03:04:05Z",
        "2026-00-02T03:04:05Z",
        "2026-02-29T03:04:05Z",
        "1900-02-29T03:04:05Z",
        "2026-04-31T03:04:05Z",
        "2026-01-02T24:04:05Z",
        "2026-01-02T03:60:05Z",
        "2026-01-02T03:04:60Z",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05Zx",
        "2026-01-02T03:04:05+0200",
        "2026-01-02T03:04:05+25:00",
        "26-01-02T03:04:05Z",
        "2026-1-2T03:04:05Z",
    };
    struct err e = { 0 };
    int64_t t = 42;
    size_t i;

    (void)state;
    for (i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(clock_parse(bad[i], &t, &e), ERR_INVALID);
    assert_string_equal(e.text, "\"2026-1-2T03:04:05Z\" is not an RFC 3339 time");
    assert_int_equal(clock_parse("0001-01-01T00:00:00Z", &t, &e), ERR_RANGE);
    assert_string_equal(e.text, "time \"0001-01-01T00:00:00Z\" is outside the years 1678 to 2261");
    assert_int_equal(t, 42);
}

static void monotonic_time_does_not_go_back(void **state)
{
    uint64_t a = clock_mono_ms(), b = clock_mono_ms();

    (void)state;
    assert_true(b >= a);
    assert_true(clock_wall_ns() > T * NS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_written_as_kubernetes_writes_them),
        cmocka_unit_test(dates_are_those_of_libc),
        cmocka_unit_test(times_are_read),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(monotonic_time_does_not_go_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
