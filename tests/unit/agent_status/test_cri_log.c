/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/cri_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define T "2026-01-02T03:04:05.123456789Z "

static struct str str_of(const char *s)
{
    return (struct str){ s, strlen(s) };
}

static void assert_str(struct str got, const char *want)
{
    assert_int_equal(got.n, strlen(want));
    assert_memory_equal(got.p, want, got.n);
}

static void a_full_line_is_taken_apart(void **state)
{
    struct cri_log_line l;

    (void)state;
    assert_true(cri_log_parse(str_of(T "stdout F hello  world "), &l));
    assert_str(l.timestamp, "2026-01-02T03:04:05.123456789Z");
    assert_false(l.is_stderr);
    assert_false(l.partial);
    assert_str(l.text, "hello  world ");
}

static void parts_stderr_more_tags_offsets_and_empty_text_are_understood(void **state)
{
    struct cri_log_line l;

    (void)state;
    assert_true(cri_log_parse(str_of("2026-01-02T03:04:05.123456789+00:00 stderr P:x:y text"), &l));
    assert_true(l.is_stderr);
    assert_true(l.partial);
    assert_true(cri_log_parse(str_of(T "stdout F "), &l));
    assert_str(l.text, "");
}

static void anything_else_is_not_a_line(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "hello",
        T,
        T "stdout",
        T "stdout F", /* the blank after the tag is missing */
        T "stdout  F text",
        T "stdin F text",
        T "stdout X text",
        T "stdout FF text",
        "yesterday-at-noon-or-so stdout F text",
        "2026 stdout F text",
        "2026-01-02T03:04:05.12345678901234567890123Z stdout F text",
    };
    struct cri_log_line l;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(cri_log_parse(str_of(bad[i]), &l));
}

/* ---- files ---------------------------------------------------------------------------------- */

static int make_log(const char *content, char path[64])
{
    int fd;

    strcpy(path, "/tmp/test-cri-log.XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    return fd;
}

static uint64_t tail_offset(const char *content, uint64_t lines)
{
    struct err e = { 0 };
    uint64_t at = 12345;
    char path[64];
    int fd = make_log(content, path);

    assert_int_equal(cri_log_tail_offset(fd, lines, &at, &e), ERR_OK);
    close(fd);
    unlink(path);
    return at;
}

static void the_tail_begins_at_the_last_lines(void **state)
{
    const char *log = T "stdout F one\n" T "stdout F two\n" T "stderr F three\n";

    (void)state;
    assert_string_equal(log + tail_offset(log, 1), T "stderr F three\n");
    assert_string_equal(log + tail_offset(log, 2), T "stdout F two\n" T "stderr F three\n");
    assert_int_equal(tail_offset(log, 3), 0);
    assert_int_equal(tail_offset(log, UINT64_MAX), 0);
    assert_int_equal(tail_offset(log, 0), strlen(log));
    assert_int_equal(tail_offset("", 5), 0);
}

static void parts_belong_to_their_line_in_the_tail(void **state)
{
    const char *log =
        T "stdout F one\n" T "stdout P tw\n" T "stdout P -\n" T "stdout F o\n" T "stdout P open\n";

    (void)state;
    assert_string_equal(log + tail_offset(log, 1), T "stdout P open\n");
    assert_string_equal(log + tail_offset(log, 2),
                        T "stdout P tw\n" T "stdout P -\n" T "stdout F o\n" T "stdout P open\n");
}

static void lines_that_are_none_and_a_line_being_written_do_not_count(void **state)
{
    const char *log = T "stdout F one\n" T "stdout F two\ngarbage\n\n" T "stdout F thr";

    (void)state;
    assert_string_equal(log + tail_offset(log, 1), T "stdout F two\ngarbage\n\n" T "stdout F thr");
}

static void a_long_log_is_read_backwards_over_many_chunks(void **state)
{
    struct buf b = BUF_INIT(SIZE_MAX - 1);
    char filler[8001];
    size_t mark = 0;

    (void)state;
    memset(filler, 'x', 8000);
    filler[8000] = '\0';
    for (int i = 0; i < 100; i++) {
        if (i == 50)
            mark = b.n;
        buf_addf(&b, T "stdout F %d %s\n", i, filler);
    }
    assert_int_equal(tail_offset(b.p, 50), mark);
    assert_int_equal(tail_offset(b.p, 101), 0);
    buf_done(&b);
}

static char *tail(const char *content, unsigned lines, size_t max)
{
    struct err e = { 0 };
    char path[64], *text = NULL;

    close(make_log(content, path));
    assert_int_equal(cri_log_tail(path, lines, max, &text, &e), ERR_OK);
    unlink(path);
    return text;
}

static void the_text_of_the_tail_has_its_parts_joined_and_is_cut_in_front(void **state)
{
    char *text = tail(T "stdout F one\n" T "stderr P tw\n" T "stderr F o\n", 1, 100);

    (void)state;
    assert_string_equal(text, "two\n");
    free(text);
    text = tail(T "stdout F one\n" T "stderr F two\n", 80, 6);
    assert_string_equal(text, "e\ntwo\n");
    free(text);
    text = tail("", 80, 2048);
    assert_string_equal(text, "");
    free(text);
}

static void a_line_of_endless_parts_is_read_only_where_it_ends(void **state)
{
    struct buf b = BUF_INIT(SIZE_MAX - 1);
    char *text;

    (void)state;
    for (int i = 0; i < 20000; i++)
        buf_addf(&b, T "stdout P %c\n", 'a' + i % 26);
    text = tail(b.p, 80, 2048);
    assert_int_equal(strlen(text), 2048);
    assert_int_equal(text[2047], 'a' + 19999 % 26);
    free(text);
    buf_done(&b);
}

static void a_log_that_is_missing_or_no_file_is_an_error(void **state)
{
    struct err e = { 0 };
    char *text;

    (void)state;
    assert_int_equal(cri_log_tail("/nonexistent/0.log", 1, 10, &text, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "open log /nonexistent/0.log: No such file or directory");
    assert_int_equal(cri_log_tail("/dev/null", 1, 10, &text, &e), ERR_INVALID);
    assert_string_equal(e.text, "log /dev/null is not a regular file");
}

/* ---- reader --------------------------------------------------------------------------------- */

static void the_reader_joins_parts_whatever_the_pieces(void **state)
{
    const char *log = T "stdout P he\n" T "stdout F llo\nnot a line\n" T "stderr F x\n";

    (void)state;
    for (size_t piece = 1; piece < strlen(log); piece++) {
        struct buf out = BUF_INIT(1000);
        struct cri_log_reader r;

        cri_log_reader_init(&r);
        for (size_t at = 0; at < strlen(log); at += piece)
            assert_true(
                cri_log_reader_feed(&r, log + at, strlen(log) - at < piece ? strlen(log) - at : piece, &out));
        assert_string_equal(out.p, "hello\nx\n");
        cri_log_reader_done(&r);
        buf_done(&out);
    }
}

static void timestamps_stand_once_a_line_with_nine_digits(void **state)
{
    const char *log = "2026-01-02T03:04:05.12Z stdout P he\n" T "stdout F llo\n"
                      "2026-01-02T05:04:05.000000001+02:00 stderr F x\n";
    struct buf out = BUF_INIT(1000);
    struct cri_log_reader r;

    (void)state;
    cri_log_reader_init(&r);
    r.timestamps = true;
    cri_log_reader_feed(&r, log, strlen(log), &out);
    assert_string_equal(out.p, "2026-01-02T03:04:05.120000000Z hello\n2026-01-02T03:04:05.000000001Z x\n");
    cri_log_reader_done(&r);
    buf_done(&out);
}

static void one_stream_can_be_asked_for(void **state)
{
    const char *log = T "stdout P he\n" T "stderr F x\n" T "stdout F llo\n";

    (void)state;
    for (int i = CRI_LOG_STDOUT; i <= CRI_LOG_STDERR; i++) {
        struct buf out = BUF_INIT(1000);
        struct cri_log_reader r;

        cri_log_reader_init(&r);
        r.streams = (enum cri_log_streams)i;
        cri_log_reader_feed(&r, log, strlen(log), &out);
        assert_string_equal(out.p, i == CRI_LOG_STDOUT ? "hello\n" : "x\n");
        cri_log_reader_done(&r);
        buf_done(&out);
    }
}

static void since_leaves_out_what_is_older(void **state)
{
    const char *log = "2026-01-02T03:04:05Z stdout F old\n2026-01-02T03:04:06Z stdout F new\n";
    struct buf out = BUF_INIT(1000);
    struct cri_log_reader r;

    (void)state;
    cri_log_reader_init(&r);
    r.since_ns = 1767323046LL * 1000000000; /* 03:04:06 */
    cri_log_reader_feed(&r, log, strlen(log), &out);
    assert_string_equal(out.p, "new\n");
    cri_log_reader_done(&r);
    buf_done(&out);
}

static void the_limit_ends_the_text_to_the_byte(void **state)
{
    const char *log = T "stdout F hello\n" T "stdout F world\n";
    struct buf out = BUF_INIT(1000);
    struct cri_log_reader r;

    (void)state;
    cri_log_reader_init(&r);
    r.limit_bytes = 8;
    assert_false(cri_log_reader_feed(&r, log, strlen(log), &out));
    assert_string_equal(out.p, "hello\nwo");
    assert_false(cri_log_reader_feed(&r, log, strlen(log), &out));
    assert_string_equal(out.p, "hello\nwo");
    cri_log_reader_done(&r);
    buf_done(&out);
}

static void a_line_without_end_is_left_out_and_the_next_one_is_not(void **state)
{
    struct buf out = BUF_INIT(1000);
    struct cri_log_reader r;
    char filler[1000];

    (void)state;
    memset(filler, 'x', sizeof(filler));
    cri_log_reader_init(&r);
    cri_log_reader_feed(&r, T "stdout F ", strlen(T "stdout F "), &out);
    for (int i = 0; i < 100; i++)
        cri_log_reader_feed(&r, filler, sizeof(filler), &out);
    cri_log_reader_feed(&r, "\n" T "stdout F next\n", strlen("\n" T "stdout F next\n"), &out);
    assert_string_equal(out.p, "next\n");
    cri_log_reader_done(&r);
    buf_done(&out);
}

static void the_last_line_counts_without_its_newline_once_the_log_is_over(void **state)
{
    struct buf out = BUF_INIT(1000);
    struct cri_log_reader r;

    (void)state;
    cri_log_reader_init(&r);
    cri_log_reader_feed(&r, T "stdout F last", strlen(T "stdout F last"), &out);
    assert_string_equal(out.p, "");
    cri_log_reader_finish(&r, &out);
    assert_string_equal(out.p, "last\n");
    cri_log_reader_done(&r);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_line_is_taken_apart),
        cmocka_unit_test(parts_stderr_more_tags_offsets_and_empty_text_are_understood),
        cmocka_unit_test(anything_else_is_not_a_line),
        cmocka_unit_test(the_tail_begins_at_the_last_lines),
        cmocka_unit_test(parts_belong_to_their_line_in_the_tail),
        cmocka_unit_test(lines_that_are_none_and_a_line_being_written_do_not_count),
        cmocka_unit_test(a_long_log_is_read_backwards_over_many_chunks),
        cmocka_unit_test(the_text_of_the_tail_has_its_parts_joined_and_is_cut_in_front),
        cmocka_unit_test(a_line_of_endless_parts_is_read_only_where_it_ends),
        cmocka_unit_test(a_log_that_is_missing_or_no_file_is_an_error),
        cmocka_unit_test(the_reader_joins_parts_whatever_the_pieces),
        cmocka_unit_test(timestamps_stand_once_a_line_with_nine_digits),
        cmocka_unit_test(since_leaves_out_what_is_older),
        cmocka_unit_test(one_stream_can_be_asked_for),
        cmocka_unit_test(the_limit_ends_the_text_to_the_byte),
        cmocka_unit_test(a_line_without_end_is_left_out_and_the_next_one_is_not),
        cmocka_unit_test(the_last_line_counts_without_its_newline_once_the_log_is_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
