/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/cron_due.h"

#include "base/clock.h"
#include "tests/unit/agent_api/helper.h"

static int64_t at(const char *text)
{
    int64_t ns;

    assert_int_equal(clock_parse(text, &ns, ERR_IGNORED), ERR_OK);
    return ns / 1000000000;
}

static struct cron_due due(const char *schedule, const char *since, int64_t deadline_s, const char *now)
{
    struct api_cron c;
    struct err e = { 0 };

    assert_int_equal(api_cron_parse(schedule, &c, &e), ERR_OK);
    return cron_due(&c, NULL, at(since), deadline_s, at(now));
}

static void a_moment_is_due_once(void **state)
{
    struct cron_due d = due("*/5 * * * *", "2026-03-01T10:00:00Z", -1, "2026-03-01T10:04:59Z");

    (void)state;
    assert_int_equal(d.at, -1);
    assert_int_equal(d.next, at("2026-03-01T10:05:00Z"));
    d = due("*/5 * * * *", "2026-03-01T10:00:00Z", -1, "2026-03-01T10:05:00Z");
    assert_int_equal(d.at, at("2026-03-01T10:05:00Z"));
    assert_int_equal(d.missed, 0);
    assert_int_equal(d.next, at("2026-03-01T10:10:00Z"));
    assert_int_equal(due("*/5 * * * *", "2026-03-01T10:05:00Z", -1, "2026-03-01T10:05:00Z").at, -1);
}

static void of_those_missed_the_newest_is_due(void **state)
{
    struct cron_due d = due("0 * * * *", "2026-03-01T10:00:00Z", -1, "2026-03-02T11:30:00Z");

    (void)state;
    assert_int_equal(d.at, at("2026-03-02T11:00:00Z"));
    assert_int_equal(d.missed, 24);
    d = due("* * * * *", "2020-01-01T00:00:00Z", -1, "2026-03-02T11:30:30Z");
    assert_int_equal(d.at, at("2026-03-02T11:30:00Z"));
    assert_int_equal(d.missed, CRON_MISSED_MAX + 1);
}

static void what_is_too_late_is_not_made_up_for(void **state)
{
    (void)state;
    assert_int_equal(due("0 3 * * *", "2026-03-01T03:00:00Z", 600, "2026-03-02T03:10:01Z").at, -1);
    assert_int_equal(due("0 3 * * *", "2026-03-01T03:00:00Z", 600, "2026-03-02T03:09:59Z").at,
                     at("2026-03-02T03:00:00Z"));
}

static void a_clock_that_is_set_back_runs_nothing_twice(void **state)
{
    struct cron_due d = due("0 * * * *", "2026-03-01T10:00:00Z", -1, "2026-03-01T08:30:00Z");

    (void)state;
    assert_int_equal(d.at, -1);
    assert_int_equal(d.next, at("2026-03-01T11:00:00Z"));
    assert_int_equal(d.since, at("2026-03-01T10:00:00Z"));
    d = due("0 * * * *", "2026-03-01T10:00:00Z", -1, "2025-03-01T08:30:00Z"); /* by a year: from now on */
    assert_int_equal(d.at, -1);
    assert_int_equal(d.since, at("2025-03-01T08:30:00Z"));
    assert_int_equal(d.next, at("2025-03-01T09:00:00Z"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moment_is_due_once),
        cmocka_unit_test(of_those_missed_the_newest_is_due),
        cmocka_unit_test(what_is_too_late_is_not_made_up_for),
        cmocka_unit_test(a_clock_that_is_set_back_runs_nothing_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
