/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/clock.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void call(struct ended *d, struct proc_call *c, proc_call_fn fn, struct proc_call_spec spec)
{
    int before = d->calls;

    spec.name = "mount";
    spec.fn = fn;
    spec.cgroup_fd = -1;
    if (spec.out_max == 0)
        spec.out_max = 1000;
    proc_call_start(c, &spec, d->loop, take_call_output, d);
    assert_int_equal(d->calls, before); /* never from inside the start */
}

static enum err_code says(const void *arg, struct buf *out, struct err *e)
{
    (void)e;
    buf_addf(out, "%s from %d", (const char *)arg, (int)getpid());
    return ERR_OK;
}

static enum err_code fails(const void *arg, struct buf *out, struct err *e)
{
    (void)arg;
    (void)out;
    return err_sys(e, ENOSPC, "write /x");
}

static enum err_code crashes(const void *arg, struct buf *out, struct err *e)
{
    (void)arg;
    (void)out;
    (void)e;
    signal(SIGABRT, SIG_DFL);
    kill(getpid(), SIGABRT);
    return ERR_OK;
}

static enum err_code exits(const void *arg, struct buf *out, struct err *e)
{
    (void)arg;
    (void)out;
    (void)e;
    _exit(7);
}

static enum err_code lots(const void *arg, struct buf *out, struct err *e)
{
    size_t i;

    (void)e;
    for (i = 0; i < *(const size_t *)arg; i++)
        buf_addc(out, (char)('a' + i % 26));
    return ERR_OK;
}

static enum err_code hangs(const void *arg, struct buf *out, struct err *e)
{
    (void)arg;
    (void)out;
    (void)e;
    signal(SIGTERM, SIG_IGN);
    while (getpid() > 0)
        pause();
    return ERR_OK;
}

static enum err_code leaves_a_grandchild(const void *arg, struct buf *out, struct err *e)
{
    pid_t pid = fork();

    (void)arg;
    (void)e;
    if (pid == 0)
        for (;;)
            pause();
    buf_addf(out, "%d", (int)pid);
    return ERR_OK;
}

static enum err_code looks_around(const void *arg, struct buf *out, struct err *e)
{
    struct sigaction sa;
    char link[64];
    sigset_t mask;
    ssize_t n;
    int fd;

    (void)arg;
    (void)e;
    for (fd = 0; fd < 1000; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            buf_addf(out, "%d ", fd);
    n = readlink("/proc/self/fd/0", link, sizeof(link));
    buf_add(out, link, n < 0 ? 0 : (size_t)n);
    buf_addf(out, " group %d", getpgid(0) == getpid());
    sigaction(SIGUSR1, NULL, &sa);
    buf_addf(out, " usr1 %d", sa.sa_handler == SIG_DFL);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    buf_addf(out, " term %d", sigismember(&mask, SIGTERM));
    return ERR_OK;
}

static enum err_code no_word(const void *arg, struct buf *out, struct err *e)
{
    (void)arg;
    (void)out;
    (void)e;
    return ERR_UNKNOWN;
}

static void the_function_runs_in_a_child_and_returns_bytes(void **state)
{
    struct ended *d = *state;
    struct proc_call c;
    int pid = 0;

    call(d, &c, says, (struct proc_call_spec){ .arg = "hello", .subject = "a/web" });
    assert_string_equal(c.op.subject, "a/web");
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    assert_int_equal(sscanf(d->out, "hello from %d", &pid), 1);
    assert_int_not_equal(pid, getpid());
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1); /* reaped */
}

static void its_error_comes_back_whole(void **state)
{
    struct ended *d = *state;
    struct proc_call c;

    call(d, &c, fails, (struct proc_call_spec){ 0 });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_EXHAUSTED);
    assert_int_equal(d->result.sys, ENOSPC);
    assert_string_equal(d->result.text, "mount: write /x: No space left on device");
    call(d, &c, no_word, (struct proc_call_spec){ 0 });
    run_until_ended(d, 2);
    assert_int_equal(d->result.code, ERR_INTERNAL);
    assert_string_equal(d->result.text, "mount: failed without an error message");
}

static void a_crash_is_an_error(void **state)
{
    struct ended *d = *state;
    struct proc_call c;

    call(d, &c, crashes, (struct proc_call_spec){ 0 });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_INTERNAL);
    assert_string_equal(d->result.text, "mount: killed by SIGABRT");
    call(d, &c, exits, (struct proc_call_spec){ 0 });
    run_until_ended(d, 2);
    assert_int_equal(d->result.code, ERR_INTERNAL);
    assert_string_equal(d->result.text, "mount: ended without a result, status 7");
}

static void output_is_bounded(void **state)
{
    struct ended *d = *state;
    size_t n = 1000000;
    struct proc_call c;

    call(d, &c, lots, (struct proc_call_spec){ .arg = &n, .out_max = n }); /* more than a pipe holds */
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    assert_int_equal(d->out_n, n);
    assert_int_equal(d->out[n - 1], 'a' + (n - 1) % 26);

    call(d, &c, lots, (struct proc_call_spec){ .arg = &n, .out_max = n - 1 });
    run_until_ended(d, 2);
    assert_int_equal(d->result.code, ERR_EXHAUSTED);
    assert_string_equal(d->result.text, "mount: its output: out of memory or over the limit of 999999 bytes");
}

static void the_child_has_no_descriptors_and_default_signals(void **state)
{
    struct ended *d = *state;
    int leaky = open("/dev/null", O_RDONLY);
    sigset_t block, before;
    struct proc_call c;

    signal(SIGUSR1, SIG_IGN);
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    sigprocmask(SIG_BLOCK, &block, &before);
    call(d, &c, looks_around, (struct proc_call_spec){ 0 });
    run_until_ended(d, 1);
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGUSR1, SIG_DFL);
    close(leaky);
    assert_string_equal(d->out, "0 1 2 3 /dev/null group 1 usr1 1 term 0");
}

static void a_deadline_kills_at_once(void **state)
{
    struct ended *d = *state;
    uint64_t began = clock_mono_ms(), took;
    struct proc_call c;

    call(d, &c, hangs, (struct proc_call_spec){ .deadline_ms = 100 });
    run_until_ended(d, 1);
    took = clock_mono_ms() - began;
    assert_int_equal(d->result.code, ERR_DEADLINE);
    assert_string_equal(d->result.text, "mount: not finished after 0.1 s");
    assert_in_range(took, 90, 1900);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* reaped */
}

static void a_cancel_kills(void **state)
{
    struct ended *d = *state;
    struct proc_call c;

    call(d, &c, hangs, (struct proc_call_spec){ 0 });
    op_cancel(&c.op);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_CANCELLED);
    op_cancel(&c.op);
    uv_run(d->loop, UV_RUN_DEFAULT);
    assert_int_equal(d->calls, 1);
}

static void a_grandchild_with_the_pipe_is_not_waited_for(void **state)
{
    struct ended *d = *state;
    struct proc_call c;

    call(d, &c, leaves_a_grandchild, (struct proc_call_spec){ 0 });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    assert_true(atoi(d->out) > 1);
    assert_int_equal(kill(atoi(d->out), SIGKILL), 0);
}

static void the_struct_may_be_freed_in_done(void **state)
{
    struct ended *d = *state;
    struct proc_call *c = malloc(sizeof(*c));
    struct proc_call_spec spec = { .name = "m", .fn = says, .arg = "x", .out_max = 100, .cgroup_fd = -1 };

    proc_call_start(c, &spec, d->loop, free_call_in_done, d);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
}

static void a_cgroup_that_cannot_be_joined_is_an_error(void **state)
{
    struct ended *d = *state;
    struct proc_call c;

    call(d, &c, says, (struct proc_call_spec){ .arg = "x", .cgroup_procs = "/nonexistent/cgroup.procs" });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_PRECONDITION);
    assert_string_equal(d->result.text, "mount: join the cgroup: No such file or directory");
}

static enum err_code says_who_and_hangs(const void *arg, struct buf *out, struct err *e)
{
    char text[16];

    (void)out;
    snprintf(text, sizeof(text), "%d", (int)getpid());
    if (fs_replace_at(AT_FDCWD, arg, text, strlen(text), 0600, false, e) != ERR_OK)
        return e->code;
    for (;;)
        pause();
}

/* As an agent does that is killed amid a call: the child must be gone, too. */
static void a_late_mover_ends_with_us(void **state)
{
    struct ended *d = *state;
    char path[64], *text = NULL;
    struct err e = { 0 };
    struct proc_call c;
    struct pollfd gone = { .events = POLLIN };
    uint64_t end = clock_mono_ms() + 20000;

    snprintf(path, sizeof(path), "/tmp/coracle-unit-call-%d", (int)getpid());
    pid_t us = fork();
    assert_true(us >= 0);
    if (us == 0) {
        struct proc_call_spec spec = {
            .name = "m", .fn = says_who_and_hangs, .arg = path, .cgroup_fd = -1, .moves_late = true
        };

        uv_loop_fork(d->loop);
        proc_call_start(&c, &spec, d->loop, free_call_in_done, d);
        for (;;)
            pause();
    }
    while (access(path, R_OK) != 0 && clock_mono_ms() < end)
        usleep(1000);
    assert_int_equal(fs_read_at(AT_FDCWD, path, 16, &text, NULL, &e), ERR_OK);
    gone.fd = (int)syscall(SYS_pidfd_open, atoi(text), 0);
    assert_true(gone.fd >= 0);
    kill(us, SIGKILL);
    waitpid(us, NULL, 0);
    assert_int_equal(poll(&gone, 1, 20000), 1);
    close(gone.fd);
    unlink(path);
    free(text);
}

/* Until its cgroups have that name in them. */
static enum err_code waits_for_its_move(const void *arg, struct buf *out, struct err *e)
{
    uint64_t end = clock_mono_ms() + 20000;

    (void)out;
    while (clock_mono_ms() < end) {
        mem_auto char *text = NULL;

        if (fs_read_at(AT_FDCWD, "/proc/self/cgroup", 1 << 16, &text, NULL, e) != ERR_OK)
            return e->code;
        if (strstr(text, arg) != NULL)
            return ERR_OK;
        usleep(1000);
    }
    return err_set(e, ERR_DEADLINE, "not moved");
}

static bool find_cgroups(const struct fs_mount *m, void *arg)
{
    if (!str_starts(m->fstype, "cgroup") || strcmp(m->root, "/") != 0)
        return true;
    snprintf(arg, 256, "%s", m->point);
    return false;
}

static void who_takes_long_is_moved(void **state)
{
    struct ended *d = *state;
    char point[256] = "", name[40], path[300], procs[320], random[9];
    struct err e = { 0 };
    struct proc_call c;

    if (geteuid() != 0 || fs_each_mount(NULL, find_cgroups, point, &e) != ERR_OK || point[0] == '\0')
        SKIP("needs root and a cgroup hierarchy");
    id_random_hex(random, 8);
    snprintf(name, sizeof(name), "coracle-unit-%s", random);
    snprintf(path, sizeof(path), "%s/%s", point, name);
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    assert_int_equal(mkdir(path, 0755), 0);
    call(d, &c, waits_for_its_move,
         (struct proc_call_spec){ .arg = name, .cgroup_procs = procs, .moves_late = true });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    assert_int_equal(rmdir(path), 0);
}

static enum err_code freezes_itself(const void *arg, struct buf *out, struct err *e)
{
    (void)out;
    return fs_write_control(AT_FDCWD, arg, "FROZEN", e);
}

static bool find_freezer(const struct fs_mount *m, void *arg)
{
    if (strcmp(m->fstype, "cgroup") != 0 || strcmp(m->root, "/") != 0 ||
        strstr(m->super_options, "freezer") == NULL)
        return true;
    snprintf(arg, 256, "%s", m->point);
    return false;
}

/* A frozen process of cgroup v1 does not die from SIGKILL, like one that is stuck in the kernel. */
static void a_child_that_cannot_die_does_not_hold_the_operation(void **state)
{
    struct ended *d = *state;
    char point[256] = "", path[300], procs[320], freezer[320], random[9];
    struct err e = { 0 };
    struct proc_call c;
    uint64_t began = clock_mono_ms();

    if (geteuid() != 0 || fs_each_mount(NULL, find_freezer, point, &e) != ERR_OK || point[0] == '\0')
        SKIP("needs root and a cgroup v1 freezer hierarchy");
    id_random_hex(random, 8);
    snprintf(path, sizeof(path), "%s/coracle-unit-%s", point, random);
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    snprintf(freezer, sizeof(freezer), "%s/freezer.state", path);
    assert_int_equal(mkdir(path, 0755), 0);
    call(d, &c, freezes_itself,
         (struct proc_call_spec){ .arg = freezer, .cgroup_procs = procs, .deadline_ms = 300 });
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_DEADLINE);
    assert_in_range(clock_mono_ms() - began, 2200, 20000);
    assert_int_equal(proc_left_behind(), 1);
    assert_int_equal(fs_write_control(AT_FDCWD, freezer, "THAWED", &e), ERR_OK);
    run_until_reaped(d);
    assert_int_equal(rmdir(path), 0);
}

#define loop_test(f) cmocka_unit_test_setup_teardown(f, loop_make, loop_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(the_function_runs_in_a_child_and_returns_bytes),
        loop_test(its_error_comes_back_whole),
        loop_test(a_crash_is_an_error),
        loop_test(output_is_bounded),
        loop_test(the_child_has_no_descriptors_and_default_signals),
        loop_test(a_deadline_kills_at_once),
        loop_test(a_cancel_kills),
        loop_test(a_grandchild_with_the_pipe_is_not_waited_for),
        loop_test(the_struct_may_be_freed_in_done),
        loop_test(a_cgroup_that_cannot_be_joined_is_an_error),
        loop_test(a_late_mover_ends_with_us),
        loop_test(who_takes_long_is_moved),
        loop_test(a_child_that_cannot_die_does_not_hold_the_operation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
