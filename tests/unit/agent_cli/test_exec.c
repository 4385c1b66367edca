/* SPDX-License-Identifier: Apache-2.0 */
/* coracle exec: its words, and what the Status at the end means.  The streams: tests/host/test_exec.py. */
#include "agent/cli/internal.h"
#include "agent/cli/stream/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct output {
    char *text;
    size_t n;
    struct cli cli;
};

static void open_output(struct output *o)
{
    *o = (struct output){ 0 };
    o->cli.out = o->cli.err = open_memstream(&o->text, &o->n);
    assert_non_null(o->cli.out);
    o->cli.socket = "/nowhere/coracle.sock";
}

static void close_output(struct output *o)
{
    fclose(o->cli.out);
    free(o->text);
}

static void expect_outcome(const char *status, int code, const char *words)
{
    struct output o;

    open_output(&o);
    assert_int_equal(exec_outcome(&o.cli, status, strlen(status)), code);
    fflush(o.cli.out);
    assert_string_equal(o.text, words);
    close_output(&o);
}

static void status_becomes_the_exit_code(void **state)
{
    (void)state;
    expect_outcome("{\"metadata\":{},\"status\":\"Success\"}", 0, "");
    expect_outcome(
        "{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"message\":\"x\",\"details\":{\"causes\":["
        "{\"reason\":\"other\"},{\"reason\":\"ExitCode\",\"message\":\"42\"}]}}",
        42, "command terminated with exit code 42\n");
    expect_outcome("{\"status\":\"Failure\",\"reason\":\"InternalError\",\"message\":\"no more pipes\"}", 1,
                   "error: no more pipes\n");
    expect_outcome(
        "{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"message\":\"odd\",\"details\":{\"causes\":["
        "{\"reason\":\"ExitCode\",\"message\":\"0\"}]}}",
        1, "error: odd\n");
    expect_outcome("{", 1, "error: cannot parse coracle's answer\n");
}

static int run(struct output *o, int argc, char **argv)
{
    int code = cli_run(&o->cli, argc, argv);

    fflush(o->cli.out);
    return code;
}

#define RUN(o, ...)                                                                                          \
    run(o, (int)(sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *)), (char *[]){ __VA_ARGS__, NULL })

static void pod_and_command_are_needed(void **state)
{
    struct output o;

    (void)state;
    open_output(&o);
    assert_int_equal(RUN(&o, (char *)"coracle", (char *)"exec", (char *)"web"), EXIT_USAGE);
    assert_non_null(strstr(o.text, "error: expected 'exec POD [--] COMMAND [ARG...]'\n"));
    assert_non_null(strstr(o.text, "coracle exec [-i] [-t] [-c CONTAINER] POD [--] COMMAND [ARG...]"));
    close_output(&o);
}

static void flags_after_the_command_are_the_commands(void **state)
{
    struct output o;

    (void)state;
    open_output(&o); /* it gets as far as asking for the pod: --nonsense is not looked at */
    assert_int_equal(RUN(&o, (char *)"coracle", (char *)"exec", (char *)"web", (char *)"-i", (char *)"ls",
                         (char *)"--nonsense", (char *)"-Z"),
                     EXIT_NO_DAEMON);
    assert_non_null(strstr(o.text, "cannot reach coracle at /nowhere/coracle.sock"));
    close_output(&o);
    open_output(&o);
    assert_int_equal(
        RUN(&o, (char *)"coracle", (char *)"exec", (char *)"--nonsense", (char *)"web", (char *)"ls"),
        EXIT_USAGE);
    assert_non_null(strstr(o.text, "error: unknown flag: --nonsense"));
    close_output(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_becomes_the_exit_code),
        cmocka_unit_test(pod_and_command_are_needed),
        cmocka_unit_test(flags_after_the_command_are_the_commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
