/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_cli/served.h"

#include "base/scope.h"

#include <unistd.h>

/* ---- whether ----------------------------------------------------------------------------------- */

static void only_a_terminal_has_colours_and_the_environment_may_say_no(void **state)
{
    fd_auto terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    int ends[2];

    (void)state;
    assert_true(terminal >= 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(cli_colours_wanted(terminal, "xterm", NULL));
    assert_true(cli_colours_wanted(terminal, NULL, ""));
    assert_false(cli_colours_wanted(terminal, "xterm", "1"));
    assert_false(cli_colours_wanted(terminal, "xterm", "0")); /* anything at all */
    assert_false(cli_colours_wanted(terminal, "dumb", NULL));
    assert_false(cli_colours_wanted(ends[1], "xterm", NULL));
    assert_false(cli_colours_wanted(-1, "xterm", NULL));
    close(ends[0]);
    close(ends[1]);
}

static void a_status_is_good_on_its_way_or_bad(void **state)
{
    static const struct {
        const char *status;
        enum cli_colour colour;
    } cases[] = {
        { "Running", COLOUR_GOOD },        { "Pending", COLOUR_WAITING },
        { "Terminating", COLOUR_WAITING }, { "Completed", COLOUR_NONE },
        { "Init:0/2", COLOUR_WAITING },    { "Init:Error", COLOUR_BAD },
        { "ErrImagePull", COLOUR_BAD },    { "CrashLoopBackOff", COLOUR_BAD },
        { "Evicted", COLOUR_BAD },         { "ExitCode:3", COLOUR_BAD },
        { "Stale", COLOUR_WAITING },       { "Invalid", COLOUR_BAD },
        { "NotReady", COLOUR_WAITING },    { "", COLOUR_NONE },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (cli_colour_of_status(cases[i].status) != cases[i].colour)
            fail_msg("%s", cases[i].status);
}

/* ---- where ------------------------------------------------------------------------------------- */

/* The output without colours; there are `*ret_n` of them. */
static char *without_colours(const char *text, size_t *ret_n)
{
    char *plain = malloc(strlen(text) + 1), *to = plain;

    *ret_n = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\033') {
            text += strcspn(text, "m");
            ++*ret_n;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
    return plain;
}

/* The same text, column for column. */
static void expect_coloured(struct fixture *f, const char *line, const char *const *parts)
{
    str_auto plain = NULL;
    str_auto got = NULL;
    size_t n;

    f->colours = false;
    assert_int_equal(run(f, line), 0);
    assert_null(strchr(f->out, '\033'));
    plain = strdup(f->out);
    f->colours = true;
    assert_int_equal(run(f, line), 0);
    got = without_colours(f->out, &n);
    assert_string_equal(got, plain);
    for (; *parts != NULL; parts++)
        if (strstr(f->out, *parts) == NULL)
            fail_msg("coracle %s: no %s in\n%s", line, *parts + 1, f->out);
}

static void tables_and_descriptions_have_them_around_words(void **state)
{
    struct fixture *f = *state;

    expect_coloured(
        f, "get pods",
        (const char *const[]){ "\033[33mPending\033[0m  ", "\033[31mCrashLoopBackOff\033[0m   8", NULL });
    expect_coloured(f, "get events",
                    (const char *const[]){ "\033[33mWarning\033[0m   BackOff", "s  ", NULL });
    expect_coloured(f, "events", (const char *const[]){ "\033[33mWarning\033[0m   BackOff", NULL });
    expect_coloured(
        f, "get manifests",
        (const char *const[]){ "\033[31mInvalid\033[0m", "\033[32mOK\033[0m", "\033[33mStale\033[0m", NULL });
    expect_coloured(f, "describe pod web",
                    (const char *const[]){ "\033[1mName:\033[0m                 web\n",
                                           "\033[1mStatus:\033[0m               \033[32mRunning\033[0m\n",
                                           "      Reason:       \033[31mError\033[0m\n",
                                           "  \033[33mWarning\033[0m  BackOff", NULL });
    expect_coloured(
        f, "explain pod web",
        (const char *const[]){ "  image nginx:1  \033[31mfailed\033[0m", "\033[1mPod:\033[0m", NULL });
}

static void what_programs_read_never_has_any(void **state)
{
    static const char *const lines[] = {
        "get pods -o json",   "get pods -o yaml", "get pods -o name",         "get manifests -o json",
        "get events -o yaml", "events -o json",   "describe pod web -o json", "explain pod web -o json",
        "image ls -o json",   "image ls -o name", "version -o json",          "logs db",
    };
    struct fixture *f = *state;

    f->colours = true;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_int_equal(run(f, lines[i]), 0);
        if (strchr(f->out, '\033') != NULL || f->out[0] == '\0')
            fail_msg("coracle %s: %s", lines[i], f->out);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_terminal_has_colours_and_the_environment_may_say_no),
        cmocka_unit_test(a_status_is_good_on_its_way_or_bad),
        T(tables_and_descriptions_have_them_around_words),
        T(what_programs_read_never_has_any),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
