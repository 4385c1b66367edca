/* SPDX-License-Identifier: Apache-2.0 */
#include "base/zone.h"

#include "base/clock.h"
#include "base/files/fs.h"
#include "helper.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static int64_t at(const char *text)
{
    int64_t ns;

    assert_int_equal(clock_parse(text, &ns, ERR_IGNORED), ERR_OK);
    return ns / 1000000000;
}

static void is(const struct zone *z, const char *when, int32_t seconds)
{
    if (zone_offset(z, at(when)) != seconds)
        print_message("%s: %d, wanted %d\n", when, (int)zone_offset(z, at(when)), (int)seconds);
    assert_int_equal(zone_offset(z, at(when)), seconds);
}

static void rules_have_summers(void **state)
{
    scoped(zone_free) struct zone *north = NULL, *south = NULL, *plain = NULL, *west = NULL, *days = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(zone_parse_rule(&north, "CET-1CEST,M3.5.0,M10.5.0/3", &e), ERR_OK);
    is(north, "2026-03-29T00:59:59Z", 3600);
    is(north, "2026-03-29T01:00:00Z", 7200);
    is(north, "2026-10-25T00:59:59Z", 7200);
    is(north, "2026-10-25T01:00:00Z", 3600);
    assert_int_equal(zone_parse_rule(&south, "NZST-12NZDT,M9.5.0,M4.1.0/3", &e), ERR_OK);
    is(south, "2026-01-01T00:00:00Z", 13 * 3600);
    is(south, "2026-07-01T00:00:00Z", 12 * 3600);
    is(south, "2026-12-31T12:00:00Z", 13 * 3600);
    assert_int_equal(zone_parse_rule(&plain, "<-0330>3:30", &e), ERR_OK);
    is(plain, "2026-07-01T00:00:00Z", -12600);
    assert_int_equal(zone_parse_rule(&west, "EST5EDT", &e), ERR_OK);
    is(west, "2026-03-08T06:59:59Z", -18000);
    is(west, "2026-03-08T07:00:00Z", -14400);
    is(west, "2026-11-01T06:00:00Z", -18000);
    assert_int_equal(zone_parse_rule(&days, "AAA0BBB,J60/0,365/24", &e), ERR_OK);
    is(days, "2024-02-29T12:00:00Z", 0);
    is(days, "2024-03-01T00:00:00Z", 3600);
}

static void what_is_no_rule_is_refused(void **state)
{
    static const char *const bad[] = { "",
                                       "CE",
                                       "CET",
                                       "CET-25",
                                       "CET-1CEST,M13.5.0,M10.5.0",
                                       "CET-1CEST,M3.5.0",
                                       "CET-1CEST,M3.5.0,M10.5.0/3x",
                                       "<CET-1",
                                       "CET-1CEST,J0,J5",
                                       "CET-1:60",
                                       "CET-1CEST,M3.5.0/168,M10.5.0" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct zone *z = NULL;
        struct err e = { 0 };

        assert_int_equal(zone_parse_rule(&z, bad[i], &e), ERR_INVALID);
    }
}

/* The same as libc, from the file of the same zone. */
static void files_say_the_same_as_libc(void **state)
{
    static const char *const names[] = { "Europe/Berlin",     "America/New_York", "Australia/Lord_Howe",
                                         "Asia/Kolkata",      "Pacific/Apia",     "Africa/Casablanca",
                                         "America/Sao_Paulo", "Etc/UTC" };
    size_t found = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        scoped(zone_free) struct zone *z = NULL;
        str_auto path = str_printf("/usr/share/zoneinfo/%s", names[i]);
        str_auto data = NULL;
        struct err e = { 0 };
        size_t n;

        if (fs_read_at(AT_FDCWD, path, ZONE_FILE_MAX, &data, &n, &e) != ERR_OK)
            continue;
        found++;
        assert_int_equal(zone_parse(&z, data, n, &e), ERR_OK);
        setenv("TZ", names[i], 1);
        tzset();
        for (int64_t t = 0; t < INT64_C(4000000000); t += 1800 * 13) {
            time_t when = (time_t)t;
            struct tm tm;

            localtime_r(&when, &tm);
            if (tm.tm_gmtoff != zone_offset(z, t))
                print_message("%s at %lld\n", names[i], (long long)t);
            assert_int_equal(tm.tm_gmtoff, zone_offset(z, t));
        }
        for (size_t cut = 0; cut < n; cut += cut < 100 ? 1 : 13) { /* damaged: refused, or understood */
            struct zone *half = NULL;

            if (zone_parse(&half, data, cut, &e) == ERR_OK)
                zone_offset(half, 0);
            zone_free(half);
        }
    }
    if (found == 0)
        skip(); /* no zones are installed */
}

static void names_stay_in_their_folder(void **state)
{
    (void)state;
    assert_true(zone_name_is_valid("Europe/Berlin"));
    assert_true(zone_name_is_valid("Etc/GMT+3"));
    assert_true(zone_name_is_valid("America/Port-au-Prince"));
    assert_false(zone_name_is_valid(""));
    assert_false(zone_name_is_valid("/etc/passwd"));
    assert_false(zone_name_is_valid("../../etc/passwd"));
    assert_false(zone_name_is_valid("Europe/../x"));
    assert_false(zone_name_is_valid("Local"));
    assert_false(zone_name_is_valid("Europe/"));
    assert_false(zone_name_is_valid("Europe//Berlin"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_have_summers),
        cmocka_unit_test(what_is_no_rule_is_refused),
        cmocka_unit_test(files_say_the_same_as_libc),
        cmocka_unit_test(names_stay_in_their_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
