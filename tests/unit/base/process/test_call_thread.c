/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/utsname.h>

struct gate { /* what a call in a thread waits for */
    int wait_fd, go_fd;
};

static void call(struct ended *d, struct proc_call *c, proc_call_fn fn, const void *arg, uint64_t deadline_ms)
{
    const struct proc_call_spec spec = { .name = "make",
                                         .fn = fn,
                                         .arg = arg,
                                         .out_max = 100,
                                         .cgroup_fd = -1,
                                         .deadline_ms = deadline_ms,
                                         .in_thread = true };
    int before = d->calls;

    proc_call_start(c, &spec, d->loop, take_call_output, d);
    assert_int_equal(d->calls, before); /* never from inside the start */
}

static enum err_code says_where(const void *arg, struct buf *out, struct err *e)
{
    sigset_t mask;

    (void)e;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    buf_addf(out, "%s: %s of %d, signals %s", (const char *)arg, gettid() == getpid() ? "main" : "thread",
             (int)getpid(), sigismember(&mask, SIGTERM) ? "blocked" : "open");
    return ERR_OK;
}

static void the_function_runs_in_a_thread_of_ours(void **state)
{
    struct ended *d = *state;
    struct proc_call c;
    char expected[100];

    call(d, &c, says_where, "here", 0);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    snprintf(expected, sizeof(expected), "here: thread of %d, signals blocked", (int)getpid());
    assert_int_equal(d->out_n, strlen(expected));
    assert_memory_equal(d->out, expected, d->out_n);
}

static enum err_code moves_about(const void *arg, struct buf *out, struct err *e)
{
    (void)out;
    if (chdir("/proc") != 0)
        return err_sys(e, errno, "chdir");
    if (*(const bool *)arg && (unshare(CLONE_NEWUTS) != 0 || sethostname("other", 5) != 0))
        return err_sys(e, errno, "have another host name");
    return ERR_OK;
}

static void it_has_a_folder_and_namespaces_of_its_own(void **state)
{
    struct ended *d = *state;
    char before[4096], after[4096];
    bool root = geteuid() == 0;
    struct utsname was, is;
    struct proc_call c;

    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(uname(&was), 0);
    call(d, &c, moves_about, &root, 0);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    assert_non_null(getcwd(after, sizeof(after)));
    assert_int_equal(uname(&is), 0);
    assert_string_equal(after, before);
    assert_string_equal(is.nodename, was.nodename);
}

static enum err_code fails(const void *arg, struct buf *out, struct err *e)
{
    (void)out;
    return arg == NULL ? ERR_INTERNAL : err_sys(e, ENOSPC, "write /x");
}

static enum err_code says_too_much(const void *arg, struct buf *out, struct err *e)
{
    (void)arg;
    (void)e;
    for (int i = 0; i < 101; i++)
        buf_addc(out, 'a');
    return ERR_OK;
}

static void what_fails_says_so(void **state)
{
    struct ended *d = *state;
    struct proc_call c;

    call(d, &c, fails, "", 0);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_EXHAUSTED);
    assert_string_equal(d->result.text, "make: write /x: No space left on device");
    call(d, &c, fails, NULL, 0);
    run_until_ended(d, 2);
    assert_int_equal(d->result.code, ERR_INTERNAL);
    assert_string_equal(d->result.text, "make: failed without an error message");
    call(d, &c, says_too_much, NULL, 0);
    run_until_ended(d, 3);
    assert_int_equal(d->result.code, ERR_EXHAUSTED);
}

static enum err_code waits(const void *arg, struct buf *out, struct err *e)
{
    const struct gate *gate = arg;
    char byte;

    (void)out;
    return read(gate->wait_fd, &byte, 1) == 1 ? ERR_OK : err_sys(e, errno, "read");
}

static struct gate gate_make(void)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    return (struct gate){ fds[0], fds[1] };
}

static void gate_open(struct gate *g)
{
    assert_int_equal(write(g->go_fd, "x", 1), 1);
    close(g->go_fd);
}

static void a_cancel_waits_for_it(void **state)
{
    struct ended *d = *state;
    struct gate gate = gate_make();
    struct proc_call c;

    call(d, &c, waits, &gate, 0);
    op_cancel(&c.op);
    uv_run(d->loop, UV_RUN_NOWAIT);
    assert_int_equal(d->calls, 0); /* its argument is in use */
    gate_open(&gate);
    run_until_ended(d, 1);
    close(gate.wait_fd);
    assert_int_equal(d->result.code, ERR_CANCELLED);
}

static void so_does_the_deadline(void **state)
{
    struct ended *d = *state;
    struct gate gate = gate_make();
    struct proc_call c;

    call(d, &c, waits, &gate, 20);
    while (c.op.why.code == ERR_OK)
        uv_run(d->loop, UV_RUN_ONCE);
    assert_int_equal(d->calls, 0);
    gate_open(&gate);
    run_until_ended(d, 1);
    close(gate.wait_fd);
    assert_int_equal(d->result.code, ERR_DEADLINE);
}

static void many_run_side_by_side(void **state)
{
    struct ended *d = *state;
    struct gate gates[20];
    struct proc_call calls[20];

    for (size_t i = 0; i < ARRAY_LEN(gates); i++) {
        gates[i] = gate_make();
        call(d, &calls[i], waits, &gates[i], 0);
    }
    for (size_t i = ARRAY_LEN(gates); i > 0; i--) { /* the last one first: none waits for another */
        gate_open(&gates[i - 1]);
        run_until_ended(d, (int)(ARRAY_LEN(gates) - i + 1));
        assert_int_equal(d->result.code, ERR_OK);
        close(gates[i - 1].wait_fd);
    }
}

static void the_struct_may_be_freed_in_done(void **state)
{
    struct ended *d = *state;
    struct proc_call *c = malloc(sizeof(*c));
    const struct proc_call_spec spec = {
        .name = "m", .fn = says_where, .arg = "x", .out_max = 100, .cgroup_fd = -1, .in_thread = true
    };

    proc_call_start(c, &spec, d->loop, free_call_in_done, d);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
}

#define loop_test(f) cmocka_unit_test_setup_teardown(f, loop_make, loop_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(the_function_runs_in_a_thread_of_ours),
        loop_test(it_has_a_folder_and_namespaces_of_its_own),
        loop_test(what_fails_says_so),
        loop_test(a_cancel_waits_for_it),
        loop_test(so_does_the_deadline),
        loop_test(many_run_side_by_side),
        loop_test(the_struct_may_be_freed_in_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
