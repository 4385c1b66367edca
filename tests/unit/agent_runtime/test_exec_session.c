/* SPDX-License-Identifier: Apache-2.0 */
/* A look that fails is no proof that a session has ended. */
#include "agent/runtime/exec_report.h"
#include "tests/unit/base/failing.h"
#include "tests/unit/base/helper.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static pid_t begin_session(void)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        setsid();
        (void)!write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void session_is_absent_only_when_all_was_seen(void **state)
{
    pid_t pid = begin_session(), session = 0;
    struct rlimit before, none;
    char path[32];
    uint64_t start;
    int status;

    (void)state;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    failing_arm("openat", path, EIO, 1);
    assert_int_equal(presence_of(exec_read_process(pid, &session, &start)), PRESENCE_UNKNOWN);
    assert_int_equal(errno, EIO);
    assert_int_equal(presence_of(exec_read_process(pid, &session, &start)), PRESENCE_PRESENT);
    assert_int_equal(session, pid);

    failing_arm("openat", path, EMFILE, 1);
    assert_int_equal(presence_of(exec_session_kill(pid, pid)), PRESENCE_UNKNOWN);
    assert_int_equal(errno, EMFILE);
    failing_arm("readdir", "", EIO, 1);
    assert_int_equal(presence_of(exec_session_kill(pid, pid)), PRESENCE_UNKNOWN);
    assert_int_equal(errno, EIO);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(presence_of(exec_session_kill(pid, pid)), PRESENCE_UNKNOWN);
    assert_int_equal(errno, EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(waitpid(pid, &status, WNOHANG), 0);

    assert_int_equal(presence_of(exec_session_kill(pid, pid)), PRESENCE_PRESENT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(presence_of(exec_session_kill(pid, pid)), PRESENCE_ABSENT);
}

static void children_end_though_a_listing_fails(void **state)
{
    pid_t pid = begin_session();

    (void)state;
    failing_arm("readdir", "", EIO, 1);
    assert_true(exec_children_end(5000));
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    assert_true(exec_children_end(0)); /* there are none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(session_is_absent_only_when_all_was_seen),
        cmocka_unit_test(children_end_though_a_listing_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
