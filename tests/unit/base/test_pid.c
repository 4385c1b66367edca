#include "helper.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void a_start_time_identifies_a_process(void **state)
{
    uint64_t mine = proc_start_time(getpid());
    struct err e = { 0 };
    int fd;

    (void)state;
    assert_true(mine > 0);
    assert_true(proc_start_time(getpid()) == mine);
    fd = proc_open(getpid(), mine, &e);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    assert_int_equal(proc_open(getpid(), mine + 1, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(proc_open(getpid(), 0, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

static void a_process_that_is_gone_is_not_found(void **state)
{
    pid_t pid = fork();
    struct err e = { 0 };

    (void)state;
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(proc_start_time(pid) == 0);
    assert_int_equal(proc_open(pid, 5, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_true(proc_start_time(-1) == 0);
    assert_true(proc_start_time(0) == 0);
    assert_int_equal(proc_open(0, 5, &e), -1);
    assert_int_equal(proc_open(-7, 5, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

static void a_hostile_name_does_not_confuse_it(void **state)
{
    uint64_t before = proc_start_time(getpid());

    (void)state;
    prctl(PR_SET_NAME, ") R 1 1 (x\n", 0, 0, 0);
    assert_true(proc_start_time(getpid()) == before);
    prctl(PR_SET_NAME, "test_pid", 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_time_identifies_a_process),
        cmocka_unit_test(a_process_that_is_gone_is_not_found),
        cmocka_unit_test(a_hostile_name_does_not_confuse_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
