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

static void next_is(const char *schedule, const char *after, const char *wanted, bool utc)
{
    struct api_cron c;
    struct err e = { 0 };
    char got[40];
    time_t t;

    assert_int_equal(api_cron_parse(schedule, &c, &e), ERR_OK);
    t = (time_t)api_cron_next(&c, at(after), utc);
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
    next_is("* * * * *", "2026-03-01 10:00:00", "2026-03-01 10:01:00", true);
    next_is("* * * * *", "2026-03-01 10:00:59", "2026-03-01 10:01:00", true);
    next_is("0 3 * * *", "2026-03-01 03:00:00", "2026-03-02 03:00:00", true);
    next_is("*/15 8-9 * * *", "2026-03-01 09:45:00", "2026-03-02 08:00:00", true);
    next_is("5,10 * * * *", "2026-03-01 09:05:00", "2026-03-01 09:10:00", true);
    next_is("30/10 * * * *", "2026-03-01 09:00:00", "2026-03-01 09:30:00", true);
    next_is("@monthly", "2026-12-31 23:59:59", "2027-01-01 00:00:00", true);
    next_is("0 0 29 feb *", "2026-03-01 00:00:00", "2028-02-29 00:00:00", true);
}

static void of_two_kinds_of_days_either_suffices(void **state)
{
    (void)state;
    next_is("0 0 13 * fri", "2026-03-01 00:00:00", "2026-03-06 00:00:00", true); /* a Friday */
    next_is("0 0 13 * *", "2026-03-01 00:00:00", "2026-03-13 00:00:00", true);
    next_is("0 0 * * 1-5", "2026-03-06 12:00:00", "2026-03-09 00:00:00", true);
}

static void the_zone_of_the_node_counts(void **state)
{
    (void)state;
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    if (daylight == 0)
        skip(); /* no zones are installed */
    next_is("0 3 * * *", "2026-01-10 12:00:00", "2026-01-11 02:00:00", false);
    next_is("0 3 * * *", "2026-07-10 12:00:00", "2026-07-11 01:00:00", false);
    /* On 29 March 2026 there is no 02:30. */
    next_is("30 2 * * *", "2026-03-28 12:00:00", "2026-03-30 00:30:00", false);
    setenv("TZ", "UTC", 1);
    tzset();
}

static void a_schedule_without_a_moment_never_runs(void **state)
{
    struct api_cron c;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(api_cron_parse("0 0 30 2 *", &c, &e), ERR_OK);
    assert_int_equal(api_cron_next(&c, at("2026-03-01 00:00:00"), true), -1);
}

static void mistakes_name_the_field(void **state)
{
    (void)state;
    is_bad("", "expected five fields, found 0: ");
    is_bad("* * * *", "expected five fields, found 4: * * * *");
    is_bad("* * * * * *", "expected five fields, found more: * * * * * *");
    is_bad("60 * * * *", "the minute: out of range at \"60\", allowed are 0 to 59");
    is_bad("* 5-2 * * *", "the hour: out of range at \"5-2\", allowed are 0 to 23");
    is_bad("* * 0 * *", "the day of the month: out of range at \"0\", allowed are 1 to 31");
    is_bad("* * * foo *", "the month: expected a number at \"foo\", allowed are 1 to 12");
    is_bad("* * * * 7", "the day of the week: out of range at \"7\", allowed are 0 to 6");
    is_bad("*/0 * * * *", "the minute: a step of 0 at \"*/0\", allowed are 0 to 59");
    is_bad("1;2 * * * *", "the minute: expected a comma at \";2\", allowed are 0 to 59");
    is_bad("@never", "\"@never\" is not supported, allowed are @yearly, @annually, @monthly, @weekly, "
                     "@daily, @midnight and @hourly");
    is_bad("TZ=UTC * * * * *", "TZ= and CRON_TZ= are not allowed, timeZone has the zone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_moment_is_strictly_later),
        cmocka_unit_test(of_two_kinds_of_days_either_suffices),
        cmocka_unit_test(the_zone_of_the_node_counts),
        cmocka_unit_test(a_schedule_without_a_moment_never_runs),
        cmocka_unit_test(mistakes_name_the_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
