/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "tests/unit/base/failing.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static uint64_t my_start_time(void)
{
    struct err e = { 0 };
    uint64_t start = 0;

    assert_int_equal(presence_of(proc_start_time(getpid(), &start, &e)), PRESENCE_PRESENT);
    return start;
}

static enum presence_answer open_process(pid_t pid, uint64_t start, struct err *e)
{
    int fd = -1;
    enum presence_answer answer = presence_of(proc_open(pid, start, &fd, e));

    assert_int_equal(fd >= 0, answer == PRESENCE_PRESENT);
    assert_int_equal(e->code != ERR_OK, answer == PRESENCE_UNKNOWN);
    if (fd >= 0) {
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
    }
    return answer;
}

static void a_start_time_identifies_a_process(void **state)
{
    uint64_t mine = my_start_time();
    struct err e = { 0 };

    (void)state;
    assert_true(mine > 0);
    assert_true(my_start_time() == mine);
    assert_int_equal(open_process(getpid(), mine, &e), PRESENCE_PRESENT);
    assert_int_equal(open_process(getpid(), mine + 1, &e), PRESENCE_ABSENT);
    assert_int_equal(open_process(getpid(), 0, &e), PRESENCE_ABSENT);
}

static void a_process_that_is_gone_is_absent(void **state)
{
    const pid_t none[] = { -1, 0, -7 };
    pid_t pid = fork();
    struct err e = { 0 };
    uint64_t start = 1;

    (void)state;
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(presence_of(proc_start_time(pid, &start, &e)), PRESENCE_ABSENT);
    assert_int_equal(open_process(pid, 5, &e), PRESENCE_ABSENT);
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        assert_int_equal(presence_of(proc_start_time(none[i], &start, &e)), PRESENCE_ABSENT);
        assert_int_equal(open_process(none[i], 5, &e), PRESENCE_ABSENT);
    }
    assert_int_equal(e.code, ERR_OK);
    assert_true(start == 1);
}

static void a_process_that_cannot_be_looked_at_is_unknown(void **state)
{
    static const int codes[] = { EIO, ENOMEM, EMFILE, EACCES };
    uint64_t mine = my_start_time(), start = 1;
    struct rlimit before, none;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct err e = { 0 };
        failing_arm("openat", "/stat", codes[i], 2);
        assert_int_equal(presence_of(proc_start_time(getpid(), &start, &e)), PRESENCE_UNKNOWN);
        assert_int_equal(e.sys, codes[i]);
        e = (struct err){ 0 };
        assert_int_equal(open_process(getpid(), mine, &e), PRESENCE_UNKNOWN);
        assert_int_equal(e.sys, codes[i]);
        e = (struct err){ 0 };
        assert_int_equal(open_process(getpid(), mine, &e), PRESENCE_PRESENT);
    }
    assert_true(start == 1);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct err e = { 0 };
    assert_int_equal(open_process(getpid(), mine, &e), PRESENCE_UNKNOWN);
    assert_int_equal(e.sys, EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void a_hostile_name_does_not_confuse_it(void **state)
{
    uint64_t before = my_start_time();

    (void)state;
    prctl(PR_SET_NAME, ") R 1 1 (x\n", 0, 0, 0);
    assert_true(my_start_time() == before);
    prctl(PR_SET_NAME, "test_pid", 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_time_identifies_a_process),
        cmocka_unit_test(a_process_that_is_gone_is_absent),
        cmocka_unit_test(a_process_that_cannot_be_looked_at_is_unknown),
        cmocka_unit_test(a_hostile_name_does_not_confuse_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
