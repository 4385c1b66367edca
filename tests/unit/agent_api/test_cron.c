/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "agent/api/cron.h"

#include <stdlib.h>
#include <string.h>

/* Seconds of a moment in UTC. */
static int64_t at(const char *text)
{
    struct tm tm = { 0 };

    assert_non_null(strptime(text, "%Y-%m-%d %H:%M:%S", &tm));
    return timegm(&tm);
}

static const char berlin[] = "CET-1CEST,M3.5.0,M10.5.0/3";

static void next_in(const char *rule, const char *schedule, const char *after, const char *wanted)
{
    scoped(zone_free) struct zone *zone = NULL;
    struct api_cron c;
    struct err e = { 0 };
    char got[40];
    time_t t;

    assert_int_equal(api_cron_parse(schedule, &c, &e), ERR_OK);
    assert_int_equal(zone_parse_rule(&zone, rule, &e), ERR_OK);
    t = (time_t)api_cron_next(&c, zone, at(after));
    strftime(got, sizeof(got), "%Y-%m-%d %H:%M:%S", gmtime(&t));
    if (strcmp(got, wanted) != 0)
        print_message("%s after %s: %s, wanted %s\n", schedule, after, got, wanted);
    assert_string_equal(got, wanted);
}

static void is_bad(const char *schedule, const char *why)
{
    struct api_cron c;
    struct err e = { 0 };

    assert_int_equal(api_cron_parse(schedule, &c, &e), ERR_INVALID);
    assert_string_equal(e.text, why);
}

static void the_next_moment_is_strictly_later(void **state)
{
    (void)state;
    next_in("UTC0", "* * * * *", "2026-03-01 10:00:00", "2026-03-01 10:01:00");
    next_in("UTC0", "* * * * *", "2026-03-01 10:00:59", "2026-03-01 10:01:00");
    next_in("UTC0", "0 3 * * *", "2026-03-01 03:00:00", "2026-03-02 03:00:00");
    next_in("UTC0", "*/15 8-9 * * *", "2026-03-01 09:45:00", "2026-03-02 08:00:00");
    next_in("UTC0", "5,10 * * * *", "2026-03-01 09:05:00", "2026-03-01 09:10:00");
    next_in("UTC0", "30/10 * * * *", "2026-03-01 09:00:00", "2026-03-01 09:30:00");
    next_in("UTC0", "@monthly", "2026-12-31 23:59:59", "2027-01-01 00:00:00");
    next_in("UTC0", "0 0 29 feb *", "2026-03-01 00:00:00", "2028-02-29 00:00:00");
}

static void of_two_kinds_of_days_either_suffices(void **state)
{
    (void)state;
    next_in("UTC0", "0 0 13 * fri", "2026-03-01 00:00:00", "2026-03-06 00:00:00"); /* a Friday */
    next_in("UTC0", "0 0 13 * *", "2026-03-01 00:00:00", "2026-03-13 00:00:00");
    next_in("UTC0", "0 0 * * 1-5", "2026-03-06 12:00:00", "2026-03-09 00:00:00");
}

static void the_zone_counts(void **state)
{
    (void)state;
    next_in(berlin, "0 3 * * *", "2026-01-10 12:00:00", "2026-01-11 02:00:00");
    next_in(berlin, "0 3 * * *", "2026-07-10 12:00:00", "2026-07-11 01:00:00");
    next_in("<+0545>-5:45", "0 0 * * *", "2026-07-10 12:00:00", "2026-07-10 18:15:00");
}

static void a_time_that_is_left_out_is_not_run(void **state)
{
    (void)state; /* on 29 March 2026 there is no 02:30 */
    next_in(berlin, "30 2 * * *", "2026-03-28 12:00:00", "2026-03-30 00:30:00");
    next_in(berlin, "0 * * * *", "2026-03-29 00:00:00", "2026-03-29 01:00:00"); /* 01:00, then 03:00 */
    next_in(berlin, "0 3 * * *", "2026-03-28 12:00:00", "2026-03-29 01:00:00");
    next_in(berlin, "0 0 30 3 *", "2026-03-28 12:00:00", "2026-03-29 22:00:00");
}

static void a_time_that_comes_twice_is_run_twice(void **state)
{
    (void)state; /* on 25 October 2026 02:30 comes at 00:30 and 01:30 UTC */
    next_in(berlin, "30 2 * * *", "2026-10-24 12:00:00", "2026-10-25 00:30:00");
    next_in(berlin, "30 2 * * *", "2026-10-25 00:30:00", "2026-10-25 01:30:00");
    next_in(berlin, "30 2 * * *", "2026-10-25 01:30:00", "2026-10-26 01:30:00");
    next_in(berlin, "0 3 * * *", "2026-10-24 12:00:00", "2026-10-25 02:00:00");
    /* Lord Howe's clock goes back by half an hour: 01:45 comes twice, 02:15 once. */
    next_in("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "45 1 * * *", "2026-04-04 12:00:00",
            "2026-04-04 14:45:00");
    next_in("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "45 1 * * *", "2026-04-04 14:45:00",
            "2026-04-04 15:15:00");
}

static void the_last_moment_is_found(void **state)
{
    static const struct {
        const char *schedule, *after, *until, *wanted;
    } cases[] = {
        { "* * * * *", "2020-01-01 00:00:00", "2026-03-01 10:00:30", "2026-03-01 10:00:00" },
        { "0 3 * * *", "2026-02-01 00:00:00", "2026-03-01 02:59:00", "2026-02-28 03:00:00" },
        { "0 0 1 1 *", "2020-01-01 00:00:00", "2026-03-01 00:00:00", "2026-01-01 00:00:00" },
        { "0 0 29 2 *", "2020-01-01 00:00:00", "2026-03-01 00:00:00", "2024-02-29 00:00:00" },
        { "0 3 * * *", "2026-03-01 03:00:00", "2026-03-02 03:00:00", "2026-03-02 03:00:00" },
    };
    struct api_cron c;
    struct err e = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(api_cron_parse(cases[i].schedule, &c, &e), ERR_OK);
        assert_int_equal(api_cron_last(&c, NULL, at(cases[i].after), at(cases[i].until)),
                         at(cases[i].wanted));
    }
    assert_int_equal(api_cron_last(&c, NULL, at("2026-03-01 03:00:00"), at("2026-03-02 02:59:59")), -1);
}

static void a_schedule_without_a_moment_never_runs(void **state)
{
    struct api_cron c;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(api_cron_parse("0 0 30 2 *", &c, &e), ERR_OK);
    assert_int_equal(api_cron_next(&c, NULL, at("2026-03-01 00:00:00")), -1);
}

static void every_counts_from_the_last_moment(void **state)
{
    struct api_cron c;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(api_cron_parse("@every 1m30s", &c, &e), ERR_OK);
    assert_int_equal(api_cron_next(&c, NULL, 1000), 1090);
    assert_int_equal(api_cron_last(&c, NULL, 1000, 1089), -1);
    assert_int_equal(api_cron_last(&c, NULL, 1000, 1090), 1090);
    assert_int_equal(api_cron_last(&c, NULL, 1000, 1271), 1270);
    assert_int_equal(api_cron_parse("@every -1h", &c, &e), ERR_OK);
    assert_int_equal(c.every_s, 1);
    assert_int_equal(api_cron_parse("@every 1500ms", &c, &e), ERR_OK);
    assert_int_equal(c.every_s, 1);
}

static void odd_texts_are_read_as_by_kubernetes(void **state)
{
    static const char *const good[] = { "1, * * * *",    "* * * * *\n",  "0  0\t* * *",
                                        "*/61 * * * *",  "?/5 * * * *",  "0 0 * JAN-mar mon,FRI",
                                        "0,0,0 * * * *", "00 007 * * *", "@annually" };
    struct api_cron c;
    struct err e = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(api_cron_parse(good[i], &c, &e), ERR_OK);
    assert_int_equal(api_cron_parse("5/10 * * * *", &c, &e), ERR_OK);
    assert_int_equal(c.minutes, UINT64_C(1) << 5 | UINT64_C(1) << 15 | UINT64_C(1) << 25 | UINT64_C(1) << 35 |
                                    UINT64_C(1) << 45 | UINT64_C(1) << 55);
}

static void mistakes_are_told_as_by_kubernetes(void **state)
{
    (void)state;
    is_bad("", "empty spec string");
    is_bad("* * * *", "expected exactly 5 fields, found 4: [* * * *]");
    is_bad("* * * * * 2026", "expected exactly 5 fields, found 6: [* * * * * 2026]");
    is_bad("60 * * * *", "end of range (60) above maximum (59): 60");
    is_bad("* 5-2 * * *", "beginning of range (5) beyond end of range (2): 5-2");
    is_bad("* * 0 * *", "beginning of range (0) below minimum (1): 0");
    is_bad("0 0 * january *",
           "failed to parse int from january: strconv.Atoi: parsing \"january\": invalid syntax");
    is_bad("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax");
    is_bad("* * * * 7", "end of range (7) above maximum (6): 7");
    is_bad("*/0 * * * *", "step of range should be a positive number: */0");
    is_bad("1-2-3 * * * *", "too many hyphens: 1-2-3");
    is_bad("1/2/3 * * * *", "too many slashes: 1/2/3");
    is_bad("99999999999 * * * *", "end of range (99999999999) above maximum (59): 99999999999");
    is_bad("@reboot", "unrecognized descriptor: @reboot");
    is_bad("@HOURLY", "unrecognized descriptor: @HOURLY");
    is_bad("@every", "unrecognized descriptor: @every");
    is_bad("@every 1d", "failed to parse duration @every 1d: time: unknown unit \"d\" in duration \"1d\"");
    is_bad("CRON_TZ=UTC 0 0 * * *", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_moment_is_strictly_later),
        cmocka_unit_test(of_two_kinds_of_days_either_suffices),
        cmocka_unit_test(the_zone_counts),
        cmocka_unit_test(a_time_that_is_left_out_is_not_run),
        cmocka_unit_test(a_time_that_comes_twice_is_run_twice),
        cmocka_unit_test(the_last_moment_is_found),
        cmocka_unit_test(a_schedule_without_a_moment_never_runs),
        cmocka_unit_test(every_counts_from_the_last_moment),
        cmocka_unit_test(odd_texts_are_read_as_by_kubernetes),
        cmocka_unit_test(mistakes_are_told_as_by_kubernetes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
