/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "base/log.h"

#include <jansson.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* What the statement wrote to standard error. */
static char captured[20000];
static int saved_stderr, capture_fd;

static void capture_begin(void)
{
    fflush(stderr);
    capture_fd = memfd_create("log", 0);
    saved_stderr = dup(2);
    dup2(capture_fd, 2);
}

static void capture_end(void)
{
    ssize_t n;

    dup2(saved_stderr, 2);
    close(saved_stderr);
    n = pread(capture_fd, captured, sizeof(captured) - 1, 0);
    close(capture_fd);
    assert_true(n >= 0);
    captured[n] = '\0';
}

#define CAPTURE(statement)                                                                                   \
    do {                                                                                                     \
        capture_begin();                                                                                     \
        statement;                                                                                           \
        capture_end();                                                                                       \
    } while (0)

static void a_text_line_has_time_level_message_and_fields(void **state)
{
    struct err e = { .text = "open /x: No such file or directory" };

    (void)state;
    log_init(LOG_LVL_INFO, LOG_FMT_TEXT);
    CAPTURE(log_warn("volume published", F_STR("pod", "a/web"), F_U64("bytes", 12), F_I64("delta", -3),
                     F_ERR(&e), F_STR("none", NULL)));
    assert_int_equal(strspn(captured, "0123456789-T:.Z"), 27);
    assert_string_equal(captured + 27, " WARN  volume published pod=a/web bytes=12 delta=-3 "
                                       "err=\"open /x: No such file or directory\" none=\"\"\n");
}

static void a_message_needs_no_fields(void **state)
{
    (void)state;
    log_init(LOG_LVL_INFO, LOG_FMT_JOURNAL);
    CAPTURE(log_error("stopping"));
    assert_string_equal(captured, "<3>stopping\n");
    CAPTURE(log_info("stopping", F_STR("why", "a b")));
    assert_string_equal(captured, "<6>stopping why=\"a b\"\n");
}

static void lines_below_the_level_are_not_written(void **state)
{
    (void)state;
    log_init(LOG_LVL_WARN, LOG_FMT_TEXT);
    CAPTURE(log_info("quiet"));
    assert_string_equal(captured, "");
    assert_true(log_enabled(LOG_LVL_ERROR));
    assert_true(log_enabled(LOG_LVL_WARN));
    assert_false(log_enabled(LOG_LVL_DEBUG));
    log_init(LOG_LVL_DEBUG, LOG_FMT_JOURNAL);
    CAPTURE(log_debug("loud"));
    assert_string_equal(captured, "<7>loud\n");
}

static void hostile_values_stay_on_one_line_and_harmless(void **state)
{
    (void)state;
    log_init(LOG_LVL_INFO, LOG_FMT_JOURNAL);
    CAPTURE(log_info("m", F_STR("v", "a\n<3>forged x=\"1\"\t\033[2J\x80\xc2\x9b\xc3\xa4\\")));
    assert_string_equal(captured,
                        "<6>m v=\"a\\n<3>forged x=\\\"1\\\"\\t\\x1b[2J\\x80\\u009b\xc3\xa4\\\\\"\n");
}

static void json_lines_are_json(void **state)
{
    json_t *v;

    (void)state;
    log_init(LOG_LVL_INFO, LOG_FMT_JSON);
    CAPTURE(log_error("pod \"x\" failed", F_STR("pod", "a\n\x01\"\\\xff\xc3\xa4"),
                      F_U64("n", UINT64_C(1) << 53), F_I64("i", -1)));
    assert_int_equal(strchr(captured, '\n') - captured, strlen(captured) - 1);
    v = json_loads(captured, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(v);
    assert_string_equal(json_string_value(json_object_get(v, "level")), "error");
    assert_string_equal(json_string_value(json_object_get(v, "msg")), "pod \"x\" failed");
    assert_string_equal(json_string_value(json_object_get(v, "pod")), "a\n\x01\"\\\xef\xbf\xbd\xc3\xa4");
    assert_int_equal(json_integer_value(json_object_get(v, "i")), -1);
    assert_true(json_is_string(json_object_get(v, "ts")));
    json_decref(v);
}

static void a_line_that_is_too_long_is_cut_but_well_formed(void **state)
{
    static const char *const pieces[] = { "x", "\n", "\xff", "\xe2\x82\xac", "\"" };
    char value[12000];
    size_t i, k, pad;

    (void)state;
    log_init(LOG_LVL_INFO, LOG_FMT_JSON);
    for (i = 0; i < ARRAY_LEN(pieces); i++) {
        for (pad = 0; pad < 12; pad++) {
            json_t *v;

            memset(value, 'p', pad);
            value[pad] = '\0';
            for (k = pad; k + 4 < sizeof(value); k += strlen(pieces[i]))
                strcpy(value + k, pieces[i]);
            CAPTURE(log_info("m", F_STR("first", value), F_STR("second", "s"), F_U64("n", 5)));
            assert_true(strlen(captured) <= 8192);
            assert_true(strlen(captured) > 8000);
            v = json_loads(captured, JSON_REJECT_DUPLICATES, NULL);
            assert_non_null(v);
            assert_true(str_ends(json_string_value(json_object_get(v, "first")), "..."));
            json_decref(v);
        }
    }
    for (k = 7900; k < 8200; k++) { /* the limit falls on every place of the second and third field */
        json_t *v;

        memset(value, 'p', k);
        value[k] = '\0';
        CAPTURE(log_info("m", F_STR("first", value), F_STR("second", "some text"), F_U64("third", 123456)));
        v = json_loads(captured, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(v);
        json_decref(v);
    }
    log_init(LOG_LVL_INFO, LOG_FMT_TEXT);
    memset(value, 'p', 9000);
    value[9000] = '\0';
    CAPTURE(log_info("m", F_STR("first", value)));
    assert_true(str_ends(captured, "ppp...\"\n"));
    CAPTURE(log_info(value));
    assert_true(str_ends(captured, "ppp\n"));
}

static void the_journal_is_recognised_by_its_socket(void **state)
{
    char stream[64];
    struct stat st;

    (void)state;
    unsetenv("JOURNAL_STREAM");
    assert_int_equal(log_format_default(), LOG_FMT_TEXT);
    assert_int_equal(fstat(2, &st), 0);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    assert_int_equal(log_format_default(), LOG_FMT_JOURNAL);
    setenv("JOURNAL_STREAM", "1:2", 1);
    assert_int_equal(log_format_default(), LOG_FMT_TEXT);
    setenv("JOURNAL_STREAM", "nonsense", 1);
    assert_int_equal(log_format_default(), LOG_FMT_TEXT);
}

static void errno_survives_logging(void **state)
{
    (void)state;
    log_init(LOG_LVL_INFO, LOG_FMT_TEXT);
    errno = 42;
    capture_begin();
    errno = 42;
    log_info("x");
    assert_int_equal(errno, 42);
    capture_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_line_has_time_level_message_and_fields),
        cmocka_unit_test(a_message_needs_no_fields),
        cmocka_unit_test(lines_below_the_level_are_not_written),
        cmocka_unit_test(hostile_values_stay_on_one_line_and_harmless),
        cmocka_unit_test(json_lines_are_json),
        cmocka_unit_test(a_line_that_is_too_long_is_cut_but_well_formed),
        cmocka_unit_test(the_journal_is_recognised_by_its_socket),
        cmocka_unit_test(errno_survives_logging),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
