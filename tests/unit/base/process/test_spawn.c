/* SPDX-License-Identifier: Apache-2.0 */
/* What a child starts with: descriptors, signals, limits, groups, cgroups.  Everything is looked at from
 * inside. */
#include "tests/unit/base/helper.h"

#include "base/process/internal.h"
#include "base/sanitized.h"
#include "base/scope.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/statfs.h>

/* Runs the script and leaves its output in d->out; the result in d->result. */
static void take_output(struct op *op, const struct err *result)
{
    struct ended *d = op->owner;
    struct proc *p = container_of(op, struct proc, op);

    d->calls++;
    d->result = *result;
    free(d->out);
    d->out = buf_detach(&p->out);
}

static const char *run_spec(struct ended *d, const char *script, struct proc_spec spec)
{
    const char *const argv[] = { "/bin/sh", "-c", script, NULL };
    struct proc p;

    spec.name = "t";
    spec.argv = argv;
    spec.stdout_max = 100000;
    if (spec.cgroup_fd == 0)
        spec.cgroup_fd = -1;
    proc_start(&p, &spec, d->loop, take_output, d);
    run_until_ended(d, d->calls + 1);
    if (d->result.code != ERR_OK)
        print_message("%s\n", d->result.text);
    return d->out;
}

static const char *run_sh(struct ended *d, const char *script)
{
    return run_spec(d, script, (struct proc_spec){ 0 });
}

static void only_the_given_environment_is_there(void **state)
{
    const char *const env[] = { "A=1", "PATH=/bin:/usr/bin", NULL };
    struct ended *d = *state;

    setenv("NOTIFY_SOCKET", "/run/x", 1);
    assert_string_equal(run_sh(d, "tr '\\0' '\\n' < /proc/$$/environ"),
                        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
    assert_string_equal(run_spec(d, "tr '\\0' '\\n' < /proc/$$/environ", (struct proc_spec){ .env = env }),
                        "A=1\nPATH=/bin:/usr/bin\n");
    unsetenv("NOTIFY_SOCKET");
}

static void no_descriptor_leaks_into_it(void **state)
{
    struct ended *d = *state;
    int leaky = open("/dev/null", O_RDONLY), high = fcntl(leaky, F_DUPFD, 200); /* without O_CLOEXEC */

    /* 10: dash reads the folder through one more. */
    assert_string_equal(run_sh(d, "exec ls /proc/self/fd"), "0\n1\n2\n3\n"); /* 3: ls itself */
    close(leaky);
    close(high);
}

static void descriptors_stand_on_their_numbers_even_when_crossed(void **state)
{
    struct ended *d = *state;
    int a = memfd_create("a", MFD_CLOEXEC), b = memfd_create("b", MFD_CLOEXEC), pipe_fds[2];
    struct proc_fd fds[3];

    assert_int_equal(write(a, "A", 1), 1);
    assert_int_equal(write(b, "B", 1), 1);
    assert_int_equal(pipe(pipe_fds), 0);
    /* Each gets the other's number, and a third one a number that is in use here. */
    fds[0] = (struct proc_fd){ .parent_fd = a, .child_fd = b };
    fds[1] = (struct proc_fd){ .parent_fd = b, .child_fd = a };
    fds[2] = (struct proc_fd){ .parent_fd = a, .child_fd = pipe_fds[0] };
    {
        char script[200], want[64];

        snprintf(script, sizeof(script),
                 "for i in %d %d %d; do cat /proc/self/fd/$i; done; ls /proc/self/fd | wc -l", a, b,
                 pipe_fds[0]);
        snprintf(want, sizeof(want), "BAA%d\n", 3 + 3 + 1);
        assert_string_equal(run_spec(d, script, (struct proc_spec){ .fds = fds, .n_fds = 3 }), want);
    }
    /* Ours are untouched. */
    assert_int_equal(fcntl(a, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(b, F_GETFD), FD_CLOEXEC);
    close(a);
    close(b);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void the_same_descriptor_may_go_to_several_numbers(void **state)
{
    struct ended *d = *state;
    int a = memfd_create("a", MFD_CLOEXEC);
    struct proc_fd fds[] = { { a, 3 }, { a, 4 }, { a, 5 } };

    assert_int_equal(write(a, "A", 1), 1);
    assert_string_equal(run_spec(d, "cat /proc/self/fd/3 /proc/self/fd/4 /proc/self/fd/5",
                                 (struct proc_spec){ .fds = fds, .n_fds = 3 }),
                        "AAA");
    close(a);
}

static void bad_descriptor_numbers_are_refused(void **state)
{
    struct ended *d = *state;
    struct proc_fd low = { 0, 2 }, high = { 0, 256 }, twice[] = { { 0, 3 }, { 1, 3 } }, closed = { 9999, 3 };

    run_spec(d, "true", (struct proc_spec){ .fds = &low, .n_fds = 1 });
    assert_int_equal(d->result.code, ERR_INVALID);
    assert_string_equal(d->result.text, "t: descriptor number 2 is not between 3 and 255");
    run_spec(d, "true", (struct proc_spec){ .fds = &high, .n_fds = 1 });
    assert_int_equal(d->result.code, ERR_INVALID);
    run_spec(d, "true", (struct proc_spec){ .fds = twice, .n_fds = 2 });
    assert_string_equal(d->result.text, "t: descriptor number 3 is given twice");
    run_spec(d, "true", (struct proc_spec){ .fds = twice, .n_fds = 33 });
    assert_string_equal(d->result.text, "t: more than 32 descriptors");
    run_spec(d, "true", (struct proc_spec){ .fds = &closed, .n_fds = 1 });
    assert_string_equal(d->result.text, "t: arrange descriptors: Bad file descriptor");
}

static void signals_are_as_at_boot(void **state)
{
    struct ended *d = *state;
    sigset_t block, before;

    signal(SIGUSR1, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    sigaddset(&block, SIGRTMIN + 3);
    sigprocmask(SIG_BLOCK, &block, &before);
    assert_string_equal(run_sh(d, "exec grep -E '^Sig(Blk|Ign)' /proc/self/status"),
                        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    sigprocmask(SIG_SETMASK, NULL, &block);
    assert_true(sigismember(&block, SIGTERM)); /* ours are back as they were */
    assert_false(sigismember(&block, SIGINT));
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGUSR1, SIG_DFL);
}

static void umask_and_folder_are_defaults(void **state)
{
    struct ended *d = *state;
    mode_t before = umask(077);

    assert_string_equal(run_sh(d, "umask; pwd"), "0022\n/\n");
    assert_string_equal(run_spec(d, "pwd", (struct proc_spec){ .cwd = "/usr" }), "/usr\n");
    umask(before);
}

static void it_has_a_process_group_of_its_own(void **state)
{
    struct ended *d = *state;
    char want[64];

    run_sh(d, "set -- $(cat /proc/$$/stat); echo $(($5 - $$)) $6"); /* pgrp, session */
    snprintf(want, sizeof(want), "0 %d\n", (int)getsid(0));
    assert_string_equal(d->out, want);
}

static void it_may_have_a_session_of_its_own(void **state)
{
    assert_string_equal(run_spec(*state, "set -- $(cat /proc/$$/stat); echo $(($5 - $$)) $(($6 - $$)) $7",
                                 (struct proc_spec){ .new_session = true }),
                        "0 0 0\n");
}

static void the_daemons_raised_limit_is_not_inherited(void **state)
{
    struct ended *d = *state;
    struct rlimit before, changed;
    char want[64];

    proc_defaults_capture();
    getrlimit(RLIMIT_NOFILE, &before);
    changed = before;
    changed.rlim_cur = before.rlim_cur / 2;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &changed), 0);
    snprintf(want, sizeof(want), "%llu\n", (unsigned long long)before.rlim_cur);
    assert_string_equal(run_sh(d, "ulimit -Sn"), want);
    setrlimit(RLIMIT_NOFILE, &before);
}

static void oom_score(int v)
{
    char text[16];
    struct err e = { 0 };

    snprintf(text, sizeof(text), "%d", v);
    assert_int_equal(fs_write_control(AT_FDCWD, "/proc/self/oom_score_adj", text, &e), ERR_OK);
}

static void the_daemons_oom_score_is_not_inherited(void **state)
{
    struct ended *d = *state;
    str_auto before = NULL;
    struct err e = { 0 };

    proc_defaults_capture();
    assert_int_equal(fs_read_at(AT_FDCWD, "/proc/self/oom_score_adj", 100, &before, NULL, &e), ERR_OK);
    if (strcmp(before, "0\n") != 0)
        SKIP("the test itself was started with an oom_score_adj");
    /* Raising is free for all; back below what one had takes a capability, which the child needs here. */
    if (geteuid() != 0)
        SKIP("needs root");
    oom_score(100);
    run_sh(d, "cat /proc/self/oom_score_adj");
    if (strcmp(d->out, "0\n") != 0)
        assert_string_equal(d->out, "100\n"); /* without CAP_SYS_RESOURCE: goes on all the same */
    assert_int_equal(d->result.code, ERR_OK);
    if (fs_write_control(AT_FDCWD, "/proc/self/oom_score_adj", "0", &e) != ERR_OK)
        print_message("%s\n", e.text);
}

/* ---- cgroups ----------------------------------------------------------------------------------- */

struct find {
    const char *fstype, *option;
    char point[256];
};

static bool match(const struct fs_mount *m, void *arg)
{
    struct find *f = arg;

    if (strcmp(m->fstype, f->fstype) != 0 || strcmp(m->root, "/") != 0 ||
        (f->option != NULL && strstr(m->super_options, f->option) == NULL))
        return true;
    snprintf(f->point, sizeof(f->point), "%s", m->point);
    return false;
}

/* A fresh cgroup of ours in that hierarchy; false when there is none or no right. */
static bool make_cgroup(const char *fstype, const char *option, char ret[300])
{
    struct find f = { .fstype = fstype, .option = option };
    char random[9];
    struct err e = { 0 };

    if (geteuid() != 0 || fs_each_mount(NULL, match, &f, &e) != ERR_OK || f.point[0] == '\0')
        return false;
    id_random_hex(random, 8);
    snprintf(ret, 300, "%s/coracle-unit-%s", f.point, random);
    return mkdir(ret, 0755) == 0;
}

static void remove_cgroup(const char *path)
{
    int i;

    for (i = 0; i < 5000 && rmdir(path) != 0 && errno == EBUSY; i++)
        usleep(1000); /* the last zombie needs a moment */
}

static void without_rights_it_has_none_and_gains_none(void **state)
{
    const char *script = "grep -E '^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs)' /proc/$$/status; ulimit -Hc";
    const char *none = "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
                       "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\n0\n";
    struct ended *d = *state;

    assert_string_equal(run_spec(d, script, (struct proc_spec){ .no_rights = true }), none);
    if (geteuid() == 0)
        assert_string_equal(
            run_spec(d, "grep CapBnd /proc/$$/status", (struct proc_spec){ .no_rights = true }),
            "CapBnd:\t0000000000000000\n");
    assert_string_equal(run_sh(d, "grep NoNewPrivs /proc/$$/status"), "NoNewPrivs:\t0\n"); /* nobody else's */
}

static void with_folders_given_it_sees_and_changes_no_others(void **state)
{
    struct ended *d = *state;
    char dir[] = "/tmp/test-spawn-XXXXXX";
    struct err e = { 0 };

    if (proc_landlock_version() < PROC_LANDLOCK_MIN)
        SKIP("this kernel has no Landlock, or an old one");
    assert_non_null(mkdtemp(dir));
    str_auto mine = str_printf("%s/mine", dir);
    str_auto other = str_printf("%s/other", dir);
    str_auto secret = str_printf("%s/other/secret", dir);
    str_auto missing = str_printf("%s/missing", dir);

    assert_int_equal(mkdir(mine, 0700) + mkdir(other, 0700), 0);
    assert_int_equal(fs_replace_at(AT_FDCWD, secret, "s3cret", 6, 0644, false, &e), ERR_OK);
    str_auto script =
        str_printf("exec 2>&1; cd %s; echo a > a && mkdir d && mv a d/b && cat d/b; : > d/b;"
                   "cat ../other/secret; echo x > ../other/x; ls ../other; cp /bin/true . && ./true; "
                   "cat /proc/1/environ > /dev/null && echo environ; echo end > /dev/null",
                   mine);
    const char *const reads[] = { "/bin", "/usr", "/lib", "/lib64", "/etc", missing, NULL },
                      *const writes[] = { mine, "/dev/null", NULL };
    const char *said = run_spec(
        d, script, (struct proc_spec){ .no_rights = true, .read_paths = reads, .write_paths = writes });

    assert_int_equal(strncmp(said, "a\n", 2), 0);
    assert_null(strstr(said, "s3cret"));
    assert_null(strstr(said, "environ\n"));
    assert_non_null(strstr(said, "cat: ../other/secret: Permission denied"));
    assert_non_null(strstr(said, "cannot create ../other/x: Permission denied"));
    assert_non_null(strstr(said, "ls: cannot open directory '../other': Permission denied"));
    assert_non_null(strstr(said, "./true: Permission denied"));
    str_auto shown = str_printf("cat %s", secret);
    assert_string_equal(run_sh(d, shown), "s3cret"); /* nobody else's */
    assert_int_equal(fs_remove_tree(AT_FDCWD, dir, &e), ERR_OK);
}

static void it_starts_inside_its_cgroup(void **state)
{
    struct ended *d = *state;
    char path[300], want[320];
    int fd;

    if (!make_cgroup("cgroup2", NULL, path))
        SKIP("needs root and a cgroup v2 hierarchy");
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    run_spec(d, "grep ^0:: /proc/self/cgroup", (struct proc_spec){ .cgroup_fd = fd });
    close(fd);
    remove_cgroup(path);
    snprintf(want, sizeof(want), "0::%s\n", strrchr(path, '/'));
    assert_string_equal(d->out, want);
}

static void a_removed_cgroup_is_a_clear_error(void **state)
{
    struct ended *d = *state;
    char path[300];
    int fd;

    if (!make_cgroup("cgroup2", NULL, path))
        SKIP("needs root and a cgroup v2 hierarchy");
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    remove_cgroup(path);
    run_spec(d, "true", (struct proc_spec){ .cgroup_fd = fd });
    close(fd);
    assert_string_equal(d->result.text, "t: start in its cgroup: it was removed: No such file or directory");
    assert_int_equal(d->result.code, ERR_PRECONDITION);
}

static void a_folder_that_is_no_cgroup_is_a_clear_error(void **state)
{
    struct ended *d = *state;
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    run_spec(d, "true", (struct proc_spec){ .cgroup_fd = fd });
    close(fd);
    assert_string_equal(d->result.text,
                        "t: start in its cgroup: not a cgroup v2 folder: Bad file descriptor");
}

static void a_v1_cgroup_is_joined_before_exec(void **state)
{
    struct ended *d = *state;
    char path[300], procs[320], want[320];

    if (!make_cgroup("cgroup", "pids", path))
        SKIP("needs root and a cgroup v1 pids hierarchy");
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    run_spec(d, "grep :pids: /proc/self/cgroup | cut -d: -f3", (struct proc_spec){ .cgroup_procs = procs });
    remove_cgroup(path);
    snprintf(want, sizeof(want), "%s\n", strrchr(path, '/'));
    assert_string_equal(d->out, want);
}

static void a_missing_procs_file_is_a_clear_error(void **state)
{
    struct ended *d = *state;

    run_spec(d, "true", (struct proc_spec){ .cgroup_procs = "/nonexistent/cgroup.procs" });
    assert_int_equal(d->result.code, ERR_PRECONDITION);
    assert_string_equal(d->result.text, "t: join the cgroup: No such file or directory");
}

/* SIGKILL does not end a frozen process of cgroup v1: the stand-in for one that is stuck in the kernel. */
static void a_child_that_cannot_die_is_left_behind_and_reaped_later(void **state)
{
    struct ended *d = *state;
    const char *const argv[] = { "/bin/sh", "-c", "echo ready; exec sleep 300", NULL };
    char path[300], procs[320], freezer[320];
    struct proc_spec spec = {
        .name = "t", .argv = argv, .stdout_max = 100, .cgroup_fd = -1, .cgroup_procs = procs
    };
    struct err e = { 0 };
    struct proc p;

    if (!make_cgroup("cgroup", "freezer", path))
        SKIP("needs root and a cgroup v1 freezer hierarchy");
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    snprintf(freezer, sizeof(freezer), "%s/freezer.state", path);
    proc_start(&p, &spec, d->loop, on_ended, d);
    while (p.out.n == 0)
        uv_run(d->loop, UV_RUN_ONCE);
    assert_int_equal(fs_write_control(AT_FDCWD, freezer, "FROZEN", &e), ERR_OK);
    proc_cancel(&p);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_CANCELLED);
    assert_false(p.exited);
    assert_int_equal(op_count(), 0);
    assert_int_equal(proc_left_behind(), 1);
    assert_int_equal(uv_run(d->loop, UV_RUN_NOWAIT), 0); /* does not keep the loop alive */

    assert_int_equal(fs_write_control(AT_FDCWD, freezer, "THAWED", &e), ERR_OK);
    run_until_reaped(d);
    assert_true(presence_is_absent(proc_start_time(p.pid, &(uint64_t){ 0 }, &e))); /* no zombie */
    remove_cgroup(path);
}

/* A sanitized program does not: there what hangs is a child that does not die. */
#if SANITIZED
#define WAITS_FOR_EXEC false
#else
#define WAITS_FOR_EXEC true
#endif

/* As one whose program lies on a file system that hangs: it freezes on its way to exec. */
static void a_child_that_does_not_start_holds_up_nobody(void **state)
{
    struct ended *d = *state;
    const char *const argv[] = { "/bin/true", NULL };
    char path[300], procs[320], freezer[320];
    struct proc_spec spec = { .name = "t", .argv = argv, .cgroup_fd = -1, .cgroup_procs = procs };
    struct err e = { 0 };
    struct proc p, before[3];

    if (!make_cgroup("cgroup", "freezer", path))
        SKIP("needs root and a cgroup v1 freezer hierarchy");
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    snprintf(freezer, sizeof(freezer), "%s/freezer.state", path);
    assert_int_equal(fs_write_control(AT_FDCWD, freezer, "FROZEN", &e), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(before); i++) { /* whose descriptors it has copies of */
        spec.cgroup_procs = NULL;
        proc_start(&before[i], &spec, d->loop, on_ended, d);
    }
    spec.cgroup_procs = procs;
    proc_start(&p, &spec, d->loop, on_ended, d);
    run_until_ended(d, (int)ARRAY_LEN(before));
    assert_string_equal(run_sh(d, "echo others go on"), "others go on\n");
    proc_cancel(&p);
    run_until_ended(d, d->calls + 1);
    assert_int_equal(d->result.code, ERR_CANCELLED);
    assert_false(p.exited);
    assert_int_equal(op_count(), 0);
    assert_true(p.pid == -1 || !WAITS_FOR_EXEC);
    assert_int_equal(proc_left_behind(), 1);

    assert_int_equal(fs_write_control(AT_FDCWD, freezer, "THAWED", &e), ERR_OK);
    run_until_reaped(d);
    remove_cgroup(path);
}

static void a_lone_start_does_not_wait_for_all_those_that_hang(void **state)
{
    struct ended *d = *state;
    const char *const argv[] = { "/bin/true", NULL };
    char path[300], procs[320], freezer[320];
    struct proc_spec spec = { .name = "t", .argv = argv, .cgroup_fd = -1, .cgroup_procs = procs };
    struct err e = { 0 };
    struct proc hung[6];

    if (!make_cgroup("cgroup", "freezer", path))
        SKIP("needs root and a cgroup v1 freezer hierarchy");
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    snprintf(freezer, sizeof(freezer), "%s/freezer.state", path);
    assert_int_equal(fs_write_control(AT_FDCWD, freezer, "FROZEN", &e), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(hung); i++) { /* each alone: no later one has its turn looked after */
        proc_start(&hung[i], &spec, d->loop, on_ended, d);
        assert_string_equal(run_sh(d, "echo goes on"), "goes on\n");
    }
    for (size_t i = 0; i < ARRAY_LEN(hung); i++)
        proc_cancel(&hung[i]);
    run_until_ended(d, d->calls + (int)ARRAY_LEN(hung));
    assert_int_equal(fs_write_control(AT_FDCWD, freezer, "THAWED", &e), ERR_OK);
    run_until_reaped(d);
    remove_cgroup(path);
}

static void the_left_behind_can_be_forgotten_to_close_the_loop(void **state)
{
    struct ended *d = *state;
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    reaper_adopt(d->loop, pid, pidfd_open(pid, 0), "t", "");
    assert_int_equal(proc_left_behind(), 1);
    proc_forget(d->loop);
    assert_int_equal(proc_left_behind(), 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#define loop_test(f) cmocka_unit_test_setup_teardown(f, loop_make, loop_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(only_the_given_environment_is_there),
        loop_test(no_descriptor_leaks_into_it),
        loop_test(descriptors_stand_on_their_numbers_even_when_crossed),
        loop_test(the_same_descriptor_may_go_to_several_numbers),
        loop_test(bad_descriptor_numbers_are_refused),
        loop_test(signals_are_as_at_boot),
        loop_test(umask_and_folder_are_defaults),
        loop_test(it_has_a_process_group_of_its_own),
        loop_test(it_may_have_a_session_of_its_own),
        loop_test(the_daemons_raised_limit_is_not_inherited),
        loop_test(without_rights_it_has_none_and_gains_none),
        loop_test(with_folders_given_it_sees_and_changes_no_others),
        loop_test(it_starts_inside_its_cgroup),
        loop_test(a_removed_cgroup_is_a_clear_error),
        loop_test(a_folder_that_is_no_cgroup_is_a_clear_error),
        loop_test(a_v1_cgroup_is_joined_before_exec),
        loop_test(a_missing_procs_file_is_a_clear_error),
        loop_test(a_child_that_cannot_die_is_left_behind_and_reaped_later),
        loop_test(a_child_that_does_not_start_holds_up_nobody),
        loop_test(a_lone_start_does_not_wait_for_all_those_that_hang),
        loop_test(the_left_behind_can_be_forgotten_to_close_the_loop),
        loop_test(the_daemons_oom_score_is_not_inherited), /* last: cannot always be undone */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
