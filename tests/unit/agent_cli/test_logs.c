/* SPDX-License-Identifier: Apache-2.0 */
/* logs against a daemon's socket. */
#include "tests/unit/agent_cli/served.h"

static void logs_choose_a_container_and_pass_on_what_was_asked_for(void **state)
{
    struct fixture *f = *state;

    expect(f, "logs web", 0, "one\ntwo\n", "Defaulted container \"main\" out of: main, side, init (init)\n");
    expect(f, "logs web -c side --tail 1", 0, "two\n", "");
    expect(f, "logs pod/web side --timestamps --tail=1", 0, "2026-01-02T03:04:06.000000000Z two\n", "");
    expect(f, "logs db --limit-bytes 5", 0, "one\nt", "");
    expect(f, "logs db --since-time 2026-01-02T03:04:06Z", 0, "two\n", "");
    expect(f, "logs db -f", 0, "one\ntwo\n", "");
    expect(f, "logs db -p", 1, "",
           "Error from server (BadRequest): previous terminated container \"c\" in pod \"db\" not found\n");
    expect(f, "logs web -c nope", 5, "", "error: container nope is not valid for pod web\n");
    expect(f, "logs absent", 5, "", "Error from server (NotFound): pods \"absent\" not found\n");
    expect(f, "logs db --tail many", 2, "",
           "error: --tail: \"many\" is not a whole number between -1 and 9223372036854775807\n");
    assert_int_equal(run(f, "logs db --since-time 2026-13-01"), 2);
    assert_non_null(strstr(f->err, "error: --since-time: "));
    expect(f, "logs db --since 5", 2, "",
           "error: --since: \"5\" is not a duration such as 10s, 5m or 1h30m\n");
}

static void logs_of_several_containers_come_in_turn_or_side_by_side(void **state)
{
    struct fixture *f = *state;

    expect(f, "logs web --all-containers --prefix --tail 1", 0,
           "[pod/web/init] two\n[pod/web/main] two\n[pod/web/side] two\n", "");
    expect(f, "logs -l app=db --prefix", 0, "[pod/db/c] one\n[pod/db/c] two\n", "");
    expect(f, "logs -l app=none", 0, "", "No resources found in default namespace.\n");
    assert_int_equal(run(f, "logs -f web --all-containers --prefix"), 0);
    assert_int_equal(strlen(f->out), 3 * strlen("[pod/web/init] one\n[pod/web/init] two\n"));
    for (size_t i = 0; i < 3; i++) {
        static const char *const both[] = { "[pod/web/init] one\n", "[pod/web/main] two\n",
                                            "[pod/web/side] two\n" };

        assert_non_null(strstr(f->out, both[i]));
    }
    expect(f, "logs -f web --all-containers --max-log-requests 2", 2, "",
           "error: you are attempting to follow 3 log streams, but maximum allowed concurrency is 2, use "
           "--max-log-requests to increase the limit\n");
    expect(f, "logs -l app=db -p", 1, "",
           "Error from server (BadRequest): previous terminated container \"c\" in pod \"db\" not found\n");
    expect(f, "logs -l app=db -p --ignore-errors", 0, "",
           "Error from server (BadRequest): previous terminated container \"c\" in pod \"db\" not found\n");
    assert_int_equal(run(f, "logs -f -p web --all-containers --prefix"), 1);
    assert_string_equal(f->out, "[pod/web/main] one\n[pod/web/main] two\n");
    for (size_t i = 0; i < 2; i++) {
        static const char *const names[] = { "init", "side" };
        char want[200];

        snprintf(want, sizeof(want), "previous terminated container \"%s\" in pod \"web\" not found\n",
                 names[i]);
        assert_non_null(strstr(f->err, want));
    }
    if (strstr(f->err, "\nerror: not all logs were followed to their end: pod/web/init, pod/web/side\n") ==
            NULL &&
        strstr(f->err, "\nerror: not all logs were followed to their end: pod/web/side, pod/web/init\n") ==
            NULL)
        fail_msg("%s", f->err);
    assert_int_equal(run(f, "logs -f -p web --all-containers --ignore-errors"), 0);
    assert_string_equal(f->out, "one\ntwo\n");
    assert_null(strstr(f->err, "not all logs"));
    assert_int_equal(run(f, "logs web -l app=web"), 2);
    assert_non_null(strstr(f->err, "only a selector (-l) or a POD name is allowed"));
    assert_int_equal(run(f, "logs web -c main --all-containers"), 2);
    assert_non_null(strstr(f->err, "--all-containers should not be specified with container name"));
}

static void a_reader_that_goes_away_ends_a_command_quietly(void **state)
{
    struct fixture *f = *state;
    struct cli cli = { .socket = f->socket, .now_ns = now_ns };
    char words[][10] = { "coracle", "logs", "db" }, *argv[] = { words[0], words[1], words[2], NULL };
    size_t n;
    int ends[2];

    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    cli.out = fdopen(ends[1], "w");
    cli.err = open_memstream(&f->err, &n);
    assert_int_equal(cli_run(&cli, 3, argv), 0);
    fclose(cli.out);
    fclose(cli.err);
    assert_string_equal(f->err, "");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(logs_choose_a_container_and_pass_on_what_was_asked_for),
        T(logs_of_several_containers_come_in_turn_or_side_by_side),
        T(a_reader_that_goes_away_ends_a_command_quietly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
