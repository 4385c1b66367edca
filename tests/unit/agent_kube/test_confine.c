/* SPDX-License-Identifier: Apache-2.0 */
/* What coracle-kube can still do once it is confined; each test in a process of its own. */
#include "tests/unit/base/helper.h"

#include "agent/kube/internal.h"
#include "base/sanitized.h"

#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static int landlock;

/* 0: the child's checks held; else the line of the first that did not. */
static int in_child(int (*checks)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct err e = { 0 };

        if (kube_confine(&landlock, &e) != ERR_OK) {
            fprintf(stderr, "%s\n", e.text);
            _exit(1);
        }
        _exit(checks());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

#define HOLDS(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);                                  \
            return __LINE__ & 0x7f;                                                                          \
        }                                                                                                    \
    } while (0)

static bool fails(long result, int with)
{
    return result == -1 && errno == with;
}

static int rights(void)
{
    HOLDS(geteuid() != 0 && getegid() != 0);
    HOLDS(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    HOLDS(fails(open("/etc/shadow", O_RDONLY), EACCES));
    return 0;
}

static int files(void)
{
    HOLDS(open("/etc/hosts", O_RDONLY) >= 0);
    if (landlock == 0)
        return 0;
    HOLDS(fails(open("/etc/coracle-new", O_WRONLY | O_CREAT, 0600), EACCES));
    HOLDS(fails(open("/tmp/coracle-new", O_WRONLY | O_CREAT, 0600), EACCES));
    HOLDS(fails(open("/tmp", O_RDONLY | O_DIRECTORY), EACCES));
    HOLDS(fails(open("/var/lib", O_RDONLY | O_DIRECTORY), EACCES));
    HOLDS(SANITIZED || fails(open("/proc/self/maps", O_RDONLY), EACCES));
    return 0;
}

static int programs(void)
{
    char program[] = "/bin/true";
    char *const argv[] = { program, NULL };

    if (SANITIZED)
        return 0;
    HOLDS(fails(execv("/bin/true", argv), EPERM));
    HOLDS(fails(fork(), EPERM));
    HOLDS(fails(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), EPERM));
    HOLDS(fails(kill(getpid(), 0), EPERM));
    HOLDS(fails(syscall(SYS_ptrace, 0, 0, 0, 0), EPERM));
    HOLDS(fails(unshare(CLONE_NEWUSER), EPERM));
    return 0;
}

static int network(void)
{
    HOLDS(socket(AF_INET, SOCK_STREAM, 0) >= 0);
    HOLDS(socket(AF_INET6, SOCK_STREAM, 0) >= 0 || errno == EAFNOSUPPORT);
    if (SANITIZED)
        return 0;
    HOLDS(fails(socket(AF_ALG, SOCK_SEQPACKET, 0), EAFNOSUPPORT));
    HOLDS(fails(socket(AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT));
    return 0;
}

static void *resolve(void *arg)
{
    struct addrinfo *list = NULL;

    *(int *)arg = getaddrinfo("localhost", "6443", NULL, &list);
    if (list != NULL)
        freeaddrinfo(list);
    return NULL;
}

/* As libcurl does it. */
static int names_in_a_thread(void)
{
    pthread_t thread;
    int result = -1;

    HOLDS(pthread_create(&thread, NULL, resolve, &result) == 0);
    pthread_join(thread, NULL);
    HOLDS(result == 0);
    return 0;
}

static int memory(void)
{
    if (SANITIZED)
        return 0;
    HOLDS(malloc((size_t)1 << 30) == NULL);
    return 0;
}

static void it_is_nobody_without_rights(void **state)
{
    (void)state;
    assert_int_equal(in_child(rights), 0);
}

static void it_writes_no_file_and_reads_few(void **state)
{
    (void)state;
    assert_int_equal(in_child(files), 0);
}

static void it_starts_no_program_and_no_process(void **state)
{
    (void)state;
    assert_int_equal(in_child(programs), 0);
}

static void it_has_the_network_and_no_other_sockets(void **state)
{
    (void)state;
    assert_int_equal(in_child(network), 0);
}

static void names_are_resolved_in_a_thread(void **state)
{
    (void)state;
    assert_int_equal(in_child(names_in_a_thread), 0);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(in_child(memory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_nobody_without_rights),
        cmocka_unit_test(it_writes_no_file_and_reads_few),
        cmocka_unit_test(it_starts_no_program_and_no_process),
        cmocka_unit_test(it_has_the_network_and_no_other_sockets),
        cmocka_unit_test(names_are_resolved_in_a_thread),
        cmocka_unit_test(memory_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
