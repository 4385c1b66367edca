/* SPDX-License-Identifier: Apache-2.0 */
/* What a child comes to: results, output limits, deadlines, cancelling.  test_spawn.c has what it starts
 * with. */
#include "tests/unit/base/helper.h"

#include "base/clock.h"

#include <signal.h>
#include <sys/wait.h>

#define SH(script) ((const char *const[]){ "/bin/sh", "-c", (script), NULL })

static void take_output(struct op *op, const struct err *result)
{
    struct ended *d = op->owner;
    struct proc *p = container_of(op, struct proc, op);

    d->calls++;
    d->result = *result;
    free(d->out);
    d->out_n = p->out.n;
    d->out = buf_detach(&p->out);
}

static void start_sh(struct proc *p, struct ended *d, const char *script, struct proc_spec spec)
{
    int before = d->calls;

    spec.name = "test tool";
    spec.argv = SH(script);
    spec.cgroup_fd = -1;
    if (spec.stdout_max == 0)
        spec.stdout_max = 100000;
    proc_start(p, &spec, d->loop, take_output, d);
    assert_int_equal(d->calls, before); /* never from inside the start */
}

/* Runs the loop until the child has written `text`. */
static void wait_for_output(struct proc *p, struct ended *d, const char *text)
{
    while (strstr(p->out.p, text) == NULL)
        assert_int_not_equal(uv_run(d->loop, UV_RUN_ONCE), 0);
}

static void kill_printed_pid(const char *text)
{
    int pid = atoi(text);

    assert_true(pid > 1);
    kill(pid, SIGKILL);
}

/* No process of the group is alive; they may need a moment to go. */
static void assert_group_gone(pid_t pgid)
{
    uint64_t until = clock_mono_ms() + 5000;

    while (kill(-pgid, 0) == 0 && clock_mono_ms() < until)
        usleep(1000);
    assert_int_equal(kill(-pgid, 0), -1);
}

static void output_of_a_successful_child_is_the_callers(void **state)
{
    struct ended *d = *state;
    struct proc p;

    start_sh(&p, d, "echo hello; echo noise >&2", (struct proc_spec){ .subject = "default/web" });
    assert_string_equal(p.op.name, "test tool");
    assert_string_equal(p.op.subject, "default/web");
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    assert_string_equal(d->out, "hello\n");
    assert_true(p.exited);
    assert_int_equal(WEXITSTATUS(p.status), 0);
}

static void a_failing_child_is_quoted(void **state)
{
    struct ended *d = *state;
    struct proc p;

    start_sh(&p, d, "echo 'first line' >&2; printf 'second \\033[1mline\\n\\n' >&2; exit 3",
             (struct proc_spec){ 0 });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_UNKNOWN);
    assert_string_equal(d->result.text, "test tool: exit status 3: first line; second ?[1mline");
    assert_true(p.exited);
    assert_int_equal(WEXITSTATUS(p.status), 3);

    start_sh(&p, d, "exit 4", (struct proc_spec){ 0 });
    run_until_ended(d, 2);
    assert_string_equal(d->result.text, "test tool: exit status 4");
}

static void only_the_end_of_a_long_standard_error_is_kept(void **state)
{
    struct ended *d = *state;
    struct proc p;

    start_sh(&p, d, "seq 1 20000 >&2; exit 1", (struct proc_spec){ 0 });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_UNKNOWN);
    assert_true(str_ends(d->result.text, "; 19998; 19999; 20000"));
    assert_true(str_starts(d->result.text, "test tool: exit status 1: 199"));
    assert_true(strlen(d->result.text) < 500);
}

static void check_tail(struct op *op, const struct err *result)
{
    struct proc *p = container_of(op, struct proc, op);

    on_ended(op, result);
    assert_int_equal(p->err_out.n, 16384);
    assert_true(str_ends(p->err_out.p, "20000\n"));
}

static void the_last_16_kib_of_standard_error_are_there_in_done(void **state)
{
    struct ended *d = *state;
    struct proc_spec spec = { .name = "t", .argv = SH("seq 1 20000 >&2"), .cgroup_fd = -1 };
    struct proc p;

    proc_start(&p, &spec, d->loop, check_tail, d);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
}

static void a_signal_is_named(void **state)
{
    struct ended *d = *state;
    struct proc p;

    start_sh(&p, d, "echo dying >&2; kill -SEGV $$", (struct proc_spec){ 0 });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_UNKNOWN);
    assert_string_equal(d->result.text, "test tool: killed by SIGSEGV: dying");
    assert_true(WIFSIGNALED(p.status));
    assert_int_equal(WTERMSIG(p.status), SIGSEGV);
}

static void a_missing_program_is_not_found(void **state)
{
    struct ended *d = *state;
    const char *const argv[] = { "/nonexistent/tool", NULL };
    struct proc_spec spec = { .name = "crun create", .argv = argv, .cgroup_fd = -1 };
    struct proc p;

    proc_start(&p, &spec, d->loop, on_ended, d);
    assert_int_equal(d->calls, 0);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_NOT_FOUND);
    assert_string_equal(d->result.text, "crun create: /nonexistent/tool: No such file or directory");
}

static void a_file_that_cannot_be_executed_is_refused(void **state)
{
    struct ended *d = *state;
    const char *const argv[] = { "/etc/passwd", NULL };
    struct proc_spec spec = { .name = "tool", .argv = argv, .cgroup_fd = -1 };
    struct proc p;

    proc_start(&p, &spec, d->loop, on_ended, d);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_PERMISSION);
    assert_string_equal(d->result.text, "tool: /etc/passwd: Permission denied");
}

static void a_relative_program_fails_later_not_at_once(void **state)
{
    struct ended *d = *state;
    const char *const argv[] = { "sh", NULL };
    struct proc_spec spec = { .name = "tool", .argv = argv, .cgroup_fd = -1 };
    struct proc p;

    proc_start(&p, &spec, d->loop, on_ended, d);
    assert_int_equal(d->calls, 0);
    assert_true(op_live(&p.op));
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_INVALID);
    assert_string_equal(d->result.text, "tool: program is not an absolute path");
}

static void a_missing_working_folder_is_not_a_missing_program(void **state)
{
    struct ended *d = *state;
    struct proc p;

    start_sh(&p, d, "true", (struct proc_spec){ .cwd = "/nonexistent" });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_PRECONDITION);
    assert_string_equal(d->result.text, "test tool: enter the working directory: No such file or directory");
}

static void standard_input_is_given_whole(void **state)
{
    struct ended *d = *state;
    size_t n = 3 * 1024 * 1024 + 7, i;
    char *data = malloc(n);
    struct proc p;

    for (i = 0; i < n; i++)
        data[i] = (char)('a' + i % 26);
    start_sh(&p, d, "cat", (struct proc_spec){ .stdin_data = data, .stdin_size = n, .stdout_max = n });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    assert_int_equal(d->out_n, n);
    assert_memory_equal(d->out, data, n);

    /* One who does not read it is no trouble. */
    start_sh(&p, d, "exec <&-; echo ok", (struct proc_spec){ .stdin_data = data, .stdin_size = n });
    run_until_ended(d, 2);
    assert_int_equal(d->result.code, ERR_OK);
    assert_string_equal(d->out, "ok\n");

    start_sh(&p, d, "cat; echo end", (struct proc_spec){ .stdin_data = "", .stdin_size = 0 });
    run_until_ended(d, 3);
    assert_string_equal(d->out, "end\n");

    start_sh(&p, d, "cat; readlink /proc/self/fd/0", (struct proc_spec){ 0 });
    run_until_ended(d, 4);
    assert_string_equal(d->out, "/dev/null\n");
    free(data);
}

static void output_up_to_the_limit_is_fine_and_over_it_an_error(void **state)
{
    struct ended *d = *state;
    struct proc p;

    start_sh(&p, d, "printf 1234567890", (struct proc_spec){ .stdout_max = 10 });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    assert_string_equal(d->out, "1234567890");

    start_sh(&p, d, "printf 12345678901", (struct proc_spec){ .stdout_max = 10 });
    run_until_ended(d, 2);
    assert_int_equal(d->result.code, ERR_EXHAUSTED);
    assert_string_equal(d->result.text, "test tool: more than 10 bytes of output");
}

static void one_who_never_stops_writing_is_stopped(void **state)
{
    struct ended *d = *state;
    struct proc p;

    start_sh(&p, d, "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done",
             (struct proc_spec){ .stdout_max = 50000 });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_EXHAUSTED);
    assert_string_equal(d->result.text, "test tool: more than 50000 bytes of output");
    assert_group_gone(p.pid);
}

static void output_is_discarded_without_a_limit(void **state)
{
    struct ended *d = *state;
    struct proc_spec spec = { .name = "t",
                              .argv =
                                  SH("seq 1 100000; x=$(readlink /proc/$$/fd/1); echo \"$x\" >&2; exit 1"),
                              .cgroup_fd = -1 };
    struct proc p;

    proc_start(&p, &spec, d->loop, on_ended, d);
    run_until_ended(d, 1);
    assert_string_equal(d->result.text, "t: exit status 1: /dev/null");
}

static void a_grandchild_that_holds_the_pipes_is_not_waited_for(void **state)
{
    struct ended *d = *state;
    uint64_t began = clock_mono_ms(), took;
    struct proc p;

    start_sh(&p, d, "sleep 300 & echo $!", (struct proc_spec){ 0 });
    run_until_ended(d, 1);
    took = clock_mono_ms() - began;
    assert_int_equal(d->result.code, ERR_OK);
    assert_in_range(took, 190, 20000);          /* far from 300 s, and it did wait */
    assert_int_equal(kill(atoi(d->out), 0), 0); /* and is left alone */
    kill_printed_pid(d->out);
}

static void a_child_that_ended_is_not_failed_by_a_deadline_meanwhile(void **state)
{
    struct ended *d = *state;
    struct proc p;

    start_sh(&p, d, "sleep 300 & echo $!", (struct proc_spec){ 0 });
    while (!p.exited)
        uv_run(d->loop, UV_RUN_ONCE);
    proc_cancel(&p);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    kill_printed_pid(d->out);
}

static void a_deadline_asks_first(void **state)
{
    struct ended *d = *state;
    uint64_t began = clock_mono_ms();
    struct proc p;

    start_sh(&p, d, "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
             (struct proc_spec){ .deadline_ms = 300 });
    wait_for_output(&p, d, "ready");
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_DEADLINE);
    assert_true(str_starts(d->result.text, "test tool: not finished after 0."));
    assert_string_equal(d->out, "ready\nbye\n");
    assert_true(clock_mono_ms() - began < 2200); /* no need to wait for the kill */
    assert_group_gone(p.pid);
}

static void one_who_ignores_the_request_is_killed_2_s_later(void **state)
{
    struct ended *d = *state;
    uint64_t began = clock_mono_ms(), took;
    struct proc p;

    start_sh(&p, d, "trap '' TERM; echo ready; while :; do sleep 0.05; done",
             (struct proc_spec){ .deadline_ms = 200 });
    wait_for_output(&p, d, "ready");
    run_until_ended(d, 1);
    took = clock_mono_ms() - began;
    assert_int_equal(d->result.code, ERR_DEADLINE);
    assert_true(p.exited);
    assert_true(WIFSIGNALED(p.status));
    assert_int_equal(WTERMSIG(p.status), SIGKILL);
    assert_in_range(took, 2190, 20000);
    assert_group_gone(p.pid);
}

static void a_cancel_right_after_the_start_ends_it(void **state)
{
    struct ended *d = *state;
    struct proc p;

    start_sh(&p, d, "sleep 300", (struct proc_spec){ 0 });
    proc_cancel(&p);
    assert_int_equal(d->calls, 0);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_CANCELLED);
    assert_string_equal(d->result.text, "test tool: cancelled");
    if (p.pid > 0) /* else it was not even started */
        assert_group_gone(p.pid);
    proc_cancel(&p); /* over: no effect */
    uv_run(d->loop, UV_RUN_DEFAULT);
    assert_int_equal(d->calls, 1);
}

static void a_cancel_takes_the_whole_group(void **state)
{
    struct ended *d = *state;
    struct proc p;

    /* The leader ends at once; its child does not listen. */
    start_sh(&p, d, "(trap '' TERM; echo ready; while :; do sleep 0.05; done) & wait",
             (struct proc_spec){ 0 });
    wait_for_output(&p, d, "ready");
    proc_cancel(&p);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_CANCELLED);
    assert_group_gone(p.pid);
}

static void free_in_done(struct op *op, const struct err *result)
{
    struct ended *d = op->owner;
    struct proc *p = container_of(op, struct proc, op);

    assert_string_equal(p->out.p, "hello\n");
    d->calls++;
    d->result = *result;
    free(p);
}

static void the_struct_may_be_freed_in_done(void **state)
{
    struct ended *d = *state;
    struct proc *p = malloc(sizeof(*p));
    struct proc_spec spec = {
        .name = "t", .argv = SH("echo hello; echo x >&2"), .stdout_max = 100, .cgroup_fd = -1
    };

    proc_start(p, &spec, d->loop, free_in_done, d);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
}

static void restart_in_done(struct op *op, const struct err *result)
{
    struct ended *d = op->owner;
    struct proc *p = container_of(op, struct proc, op);
    struct proc_spec spec = { .name = "t", .argv = SH("echo again"), .stdout_max = 100, .cgroup_fd = -1 };

    d->result = *result;
    if (++d->calls < 3)
        proc_start(p, &spec, d->loop, restart_in_done, d);
    else
        assert_string_equal(p->out.p, "again\n");
}

static void the_struct_may_be_used_again_in_done(void **state)
{
    struct ended *d = *state;
    struct proc_spec spec = {
        .name = "t", .argv = SH("echo hello; echo x >&2"), .stdout_max = 100, .cgroup_fd = -1
    };
    struct proc p;

    proc_start(&p, &spec, d->loop, restart_in_done, d);
    run_until_ended(d, 3);
    assert_int_equal(d->result.code, ERR_OK);
}

static void untaken_output_is_freed(void **state)
{
    struct ended *d = *state;
    struct proc_spec spec = {
        .name = "t", .argv = SH("seq 1 1000; seq 1 1000 >&2"), .stdout_max = 100000, .cgroup_fd = -1
    };
    struct proc p;

    proc_start(&p, &spec, d->loop, on_ended, d);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK); /* the leak checker says the rest */
}

static void names_are_only_borrowed_during_the_start(void **state)
{
    struct ended *d = *state;
    char name[] = "cni bridge", path[] = "/nonexistent/bridge";
    const char *argv[] = { path, NULL };
    struct proc_spec spec = { .name = name, .argv = argv, .cgroup_fd = -1 };
    struct proc p;

    proc_start(&p, &spec, d->loop, on_ended, d);
    memset(name, 'X', sizeof(name) - 1);
    memset(path, 'X', sizeof(path) - 1);
    argv[0] = NULL;
    run_until_ended(d, 1);
    assert_string_equal(d->result.text, "cni bridge: /nonexistent/bridge: No such file or directory");
}

static void many_run_side_by_side(void **state)
{
    enum { N = 60 };
    struct ended *d = *state;
    struct proc *p = calloc(N, sizeof(*p));
    int i;

    for (i = 0; i < N; i++) {
        start_sh(&p[i], d, "seq 1 3000", (struct proc_spec){ .deadline_ms = 60000 });
        assert_int_equal(op_count(), (size_t)i + 1);
    }
    while (d->calls < N) {
        int before = d->calls;

        uv_run(d->loop, UV_RUN_ONCE);
        if (d->calls > before) {
            assert_int_equal(d->result.code, ERR_OK);
            assert_int_equal(d->out_n, 13893);
        }
    }
    free(p);
}

#define loop_test(f) cmocka_unit_test_setup_teardown(f, loop_make, loop_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(output_of_a_successful_child_is_the_callers),
        loop_test(a_failing_child_is_quoted),
        loop_test(only_the_end_of_a_long_standard_error_is_kept),
        loop_test(the_last_16_kib_of_standard_error_are_there_in_done),
        loop_test(a_signal_is_named),
        loop_test(a_missing_program_is_not_found),
        loop_test(a_file_that_cannot_be_executed_is_refused),
        loop_test(a_relative_program_fails_later_not_at_once),
        loop_test(a_missing_working_folder_is_not_a_missing_program),
        loop_test(standard_input_is_given_whole),
        loop_test(output_up_to_the_limit_is_fine_and_over_it_an_error),
        loop_test(one_who_never_stops_writing_is_stopped),
        loop_test(output_is_discarded_without_a_limit),
        loop_test(a_grandchild_that_holds_the_pipes_is_not_waited_for),
        loop_test(a_child_that_ended_is_not_failed_by_a_deadline_meanwhile),
        loop_test(a_deadline_asks_first),
        loop_test(one_who_ignores_the_request_is_killed_2_s_later),
        loop_test(a_cancel_right_after_the_start_ends_it),
        loop_test(a_cancel_takes_the_whole_group),
        loop_test(the_struct_may_be_freed_in_done),
        loop_test(the_struct_may_be_used_again_in_done),
        loop_test(untaken_output_is_freed),
        loop_test(names_are_only_borrowed_during_the_start),
        loop_test(many_run_side_by_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
