/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/internal.h"
#include "base/codec/percent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define S 1000000000LL
#define M (60 * S)
#define H (60 * M)
#define D (24 * H)

static void durations_are_rounded_as_kubectl_does(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } known[] = {
        { -5 * S, "<invalid>" },
        { -S / 2, "0s" },
        { 0, "0s" },
        { 119 * S, "119s" },
        { 120 * S, "2m" },
        { 125 * S, "2m5s" },
        { 9 * M + 59 * S, "9m59s" },
        { 10 * M + 59 * S, "10m" },
        { 179 * M, "179m" },
        { 180 * M, "3h" },
        { 3 * H + 5 * M, "3h5m" },
        { 7 * H + 59 * M, "7h59m" },
        { 8 * H + 59 * M, "8h" },
        { 47 * H, "47h" },
        { 48 * H, "2d" },
        { 50 * H, "2d2h" },
        { 7 * D + 23 * H, "7d23h" },
        { 8 * D + 5 * H, "8d" },
        { 729 * D, "729d" },
        { 730 * D, "2y" },
        { 735 * D, "2y5d" },
        { 8 * 365 * D, "8y" },
    };
    char text[CLI_AGE_SIZE];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        cli_duration(known[i].ns, text);
        assert_string_equal(text, known[i].text);
    }
}

static void ages_and_times_survive_nonsense(void **state)
{
    struct cli cli = { .now_ns = 1767323050 * S };
    char age[CLI_AGE_SIZE], when[CLI_TIME_SIZE];

    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    cli_age(&cli, "2026-01-02T03:04:05Z", age);
    assert_string_equal(age, "5s");
    cli_age(&cli, "", age);
    assert_string_equal(age, "<unknown>");
    cli_age(&cli, "yesterday", age);
    assert_string_equal(age, "<unknown>");
    cli_time("2026-01-02T03:04:05Z", when);
    assert_string_equal(when, "Fri, 02 Jan 2026 03:04:05 +0000");
    cli_time("", when);
    assert_string_equal(when, "Mon, 01 Jan 0001 00:00:00 +0000");
}

static void sizes_have_three_digits(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } known[] = { { 0, "0B" },           { 999, "999B" },   { 1000, "1kB" },
                  { 1440000, "1.44MB" }, { 999600, "1MB" }, { 52300000000, "52.3GB" } };
    char text[CLI_AGE_SIZE];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        cli_size(known[i].bytes, text);
        assert_string_equal(text, known[i].text);
    }
}

static void gos_durations_are_read(void **state)
{
    static const char *const bad[] = { "", "5", "s", "1x", "-5s", "1h 5m", "1.s2", ".h", "999999999999h" };
    struct err e = { 0 };
    int64_t ns;

    (void)state;
    assert_int_equal(cli_parse_duration("10s", &ns, &e), ERR_OK);
    assert_true(ns == 10 * S);
    assert_int_equal(cli_parse_duration("1h30m", &ns, &e), ERR_OK);
    assert_true(ns == 90 * M);
    assert_int_equal(cli_parse_duration("1.5h", &ns, &e), ERR_OK);
    assert_true(ns == 90 * M);
    assert_int_equal(cli_parse_duration("300ms", &ns, &e), ERR_OK);
    assert_true(ns == 300000000);
    assert_int_equal(cli_parse_duration("0", &ns, &e), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(cli_parse_duration(bad[i], &ns, &e), ERR_INVALID);
    assert_int_equal(cli_parse_duration("1x", &ns, &e), ERR_INVALID);
    assert_string_equal(e.text, "\"1x\" is not a duration such as 10s, 5m or 1h30m");
}

static void members_are_found_by_path(void **state)
{
    json_t *object = json_pack("{s:{s:{s:s, s:i, s:b}}}", "a", "b", "c", "text", "n", 7, "t", 1);

    (void)state;
    assert_string_equal(cli_text(object, "a.b.c"), "text");
    assert_string_equal(cli_text(object, "a.x.c"), "");
    assert_string_equal(cli_text(object, "a.b"), "");
    assert_string_equal(cli_text(NULL, "a"), "");
    assert_int_equal(cli_number(object, "a.b.n"), 7);
    assert_true(cli_true(object, "a.b.t"));
    assert_false(cli_true(object, "a.b.n"));
    json_decref(object);
}

static void control_characters_cannot_reach_the_terminal(void **state)
{
    struct buf b = BUF_INIT(1000);

    (void)state;
    cli_add_clean(&b, "a\x1b[2Jb\tc\r\x7f"
                      "\xc3\xa4\xc2\x9b\xc2\xa0\n\x9b\xe2\x80\xae");
    assert_string_equal(b.p, "a^[[2Jb c^M^?\xc3\xa4<9b>\xc2\xa0\n<9b><U+202E>");
    buf_done(&b);
}

static void urls_are_escaped(void **state)
{
    struct buf b = BUF_INIT(1000);

    (void)state;
    percent_add(&b, "app=web,x in (a b)/\xc3\xa4~");
    assert_string_equal(b.p, "app%3Dweb%2Cx%20in%20%28a%20b%29%2F%C3%A4~");
    buf_done(&b);
}

static void columns_align_as_elastic_tabs(void **state)
{
    struct buf b = BUF_INIT(10000);

    (void)state;
    cli_align(
        "Name:\tweb\nLabels:\ta=b\n\tlonger=c\nContainers:\n  c:\n    Image:\tx\n    Image ID:\t\nEnd:\t\n",
        0, 2, &b);
    assert_string_equal(b.p, "Name:    web\n"
                             "Labels:  a=b\n"
                             "         longer=c\n"
                             "Containers:\n"
                             "  c:\n"
                             "    Image:     x\n"
                             "    Image ID:  \n"
                             "End:           \n");
    buf_reset(&b);
    /* A block of the second column lies within one of the first. */
    cli_align("a\tbbbb\tc\naaa\tb\tc\na\tx\naaaaa\tbb\tc\n", 0, 1, &b);
    assert_string_equal(b.p, "a     bbbb c\naaa   b    c\na     x\naaaaa bb c\n");
    buf_reset(&b);
    cli_align("", 0, 2, &b);
    assert_string_equal(b.p, "");
    cli_align("no end", 0, 2, &b);
    assert_string_equal(b.p, "no end\n");
    buf_done(&b);
}

static void tables_have_kubectls_widths_and_remember_them(void **state)
{
    static const char *const headers[] = { "NAME", "AGE", "MESSAGE", NULL };
    struct cli_table t;
    struct cli cli = { 0 };
    char *text = NULL;
    size_t n;

    (void)state;
    cli.out = open_memstream(&text, &n);
    cli_table_init(&t, headers, true);
    cli_table_cell(&t, "a-long-name");
    cli_table_cell(&t, "5s");
    cli_table_cell(&t, "first\nsecond");
    cli_table_print(&t, &cli);
    cli_table_cell(&t, "\xc3\xa4");
    cli_table_cell(&t, "5m");
    cli_table_cell(&t, "x");
    cli_table_print(&t, &cli);
    fclose(cli.out);
    assert_string_equal(text, "NAME          AGE   MESSAGE\n"
                              "a-long-name   5s    first...\n"
                              "\xc3\xa4             5m    x\n");
    cli_table_done(&t);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_rounded_as_kubectl_does),
        cmocka_unit_test(ages_and_times_survive_nonsense),
        cmocka_unit_test(sizes_have_three_digits),
        cmocka_unit_test(gos_durations_are_read),
        cmocka_unit_test(members_are_found_by_path),
        cmocka_unit_test(control_characters_cannot_reach_the_terminal),
        cmocka_unit_test(urls_are_escaped),
        cmocka_unit_test(columns_align_as_elastic_tabs),
        cmocka_unit_test(tables_have_kubectls_widths_and_remember_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
