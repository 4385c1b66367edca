/* SPDX-License-Identifier: Apache-2.0 */
/* The program coracle-pause, built beside the tests. */
#include "tests/unit/base/helper.h"

#include "base/scope.h"

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

static char program[PATH_MAX + 64];

/* <B>/tests/unit/agent_runtime/test_pause -> <B>/coracle-pause */
static bool find_program(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int up;

    if (n <= 0)
        return false;
    self[n] = '\0';
    for (up = 0; up < 4; up++) {
        char *slash = strrchr(self, '/');

        if (slash == NULL)
            return false;
        *slash = '\0';
    }
    snprintf(program, sizeof(program), "%s/coracle-pause", self);
    return access(program, X_OK) == 0;
}

/* Starts it with an abstract notify socket and waits until it is ready. */
static pid_t start(int clone_flags)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char name[64], message[64];
    fd_auto fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int n = snprintf(name, sizeof(name), "NOTIFY_SOCKET=@coracle-pause-test-%d", (int)getpid());
    struct pollfd p = { .fd = fd, .events = POLLIN };
    size_t length = (size_t)n - strlen("NOTIFY_SOCKET=");
    pid_t pid;

    memcpy(at.sun_path, name + strlen("NOTIFY_SOCKET="), length);
    at.sun_path[0] = '\0';
    assert_int_equal(
        bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)), 0);
    pid = (pid_t)syscall(SYS_clone, clone_flags | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        char *const argv[] = { program, NULL }, *const env[] = { name, NULL };

        execve(program, argv, env);
        _exit(127);
    }
    assert_true(pid > 0);
    assert_int_equal(poll(&p, 1, 10000), 1);
    assert_int_equal(read(fd, message, sizeof(message)), 7);
    assert_memory_equal(message, "READY=1", 7);
    return pid;
}

static void expect_exit(pid_t pid, int code)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

static void says_ready_and_goes_on_sigterm(void **state)
{
    pid_t pid;

    (void)state;
    pid = start(0);
    assert_int_equal(kill(pid, SIGTERM), 0);
    expect_exit(pid, 0);
    pid = start(0);
    assert_int_equal(kill(pid, SIGINT), 0);
    expect_exit(pid, 0);
}

static void as_first_process_of_a_namespace_it_still_hears_sigterm(void **state)
{
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        SKIP("needs root");
    pid = start(CLONE_NEWPID);
    assert_int_equal(kill(pid, SIGTERM), 0);
    expect_exit(pid, 0);
}

static void unknown_options_are_refused(void **state)
{
    pid_t pid;

    (void)state;
    pid = fork();
    if (pid == 0) {
        char *const argv[] = { program, (char *)"--frob", NULL };

        if (freopen("/dev/null", "w", stderr) != NULL)
            execv(program, argv);
        _exit(127);
    }
    expect_exit(pid, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_ready_and_goes_on_sigterm),
        cmocka_unit_test(as_first_process_of_a_namespace_it_still_hears_sigterm),
        cmocka_unit_test(unknown_options_are_refused),
    };

    if (!find_program()) {
        print_error("%s is not built\n", program);
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
