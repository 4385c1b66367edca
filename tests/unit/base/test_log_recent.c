/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "tests/unit/base/helper.h"

#include <string.h>

static void silent(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (getenv("TEST_SHOW_LOG") == NULL)
        dup2(null, STDERR_FILENO);
    close(null);
}

struct seen {
    unsigned n;
    unsigned times;
    char first[512], last[512];
};

static void look(const struct log_recent *line, void *arg)
{
    struct seen *s = arg;

    if (s->n++ == 0)
        snprintf(s->first, sizeof(s->first), "%s", line->text);
    snprintf(s->last, sizeof(s->last), "%s", line->text);
    s->times = line->times;
    assert_true(line->at_ns > 0);
}

static void warnings_and_errors_are_remembered_with_their_fields_and_the_rest_is_not(void **state)
{
    struct seen s = { 0 };

    (void)state;
    log_info("all is well");
    log_debug("very well");
    log_warn("disk is full", F_STR("path", "/a b"), F_I64("left", 0));
    log_recent_each(look, &s);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.first, "disk is full path=\"/a b\" left=0");
}

static void equal_lines_are_counted_together(void **state)
{
    struct seen s = { 0 };

    (void)state;
    for (int i = 0; i < 5; i++)
        log_error("it happened");
    log_recent_each(look, &s);
    assert_string_equal(s.last, "it happened");
    assert_int_equal(s.times, 5);
}

static void only_the_newest_are_kept_and_the_oldest_comes_first(void **state)
{
    struct seen s = { 0 };

    (void)state;
    for (int i = 0; i < 1000; i++)
        log_warn("line", F_I64("n", i));
    log_recent_each(look, &s);
    assert_in_range(s.n, 20, 100);
    assert_string_equal(s.last, "line n=999");
    char first[32];
    snprintf(first, sizeof(first), "line n=%u", 1000 - s.n);
    assert_string_equal(s.first, first);
}

static void long_lines_are_cut(void **state)
{
    struct seen s = { 0 };
    char text[2000];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_warn("long", F_STR("text", text));
    log_warn("long", F_STR("text", text));
    log_recent_each(look, &s);
    assert_in_range(strlen(s.last), 400, 500);
    assert_memory_equal(s.last, "long text=", 10);
    assert_int_equal(s.times, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings_and_errors_are_remembered_with_their_fields_and_the_rest_is_not),
        cmocka_unit_test(equal_lines_are_counted_together),
        cmocka_unit_test(only_the_newest_are_kept_and_the_oldest_comes_first),
        cmocka_unit_test(long_lines_are_cut),
    };

    silent();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
