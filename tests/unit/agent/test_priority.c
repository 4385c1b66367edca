/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that asks goes first; what it makes does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/priority.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs it in a child, whose priority is its own affair. */
static int in_child(int (*fn)(void))
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        _exit(fn());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int own_nice(void)
{
    return getpriority(PRIO_PROCESS, 0);
}

/* 0: the usual one. Exit codes are not negative. */
static int raised_by(void)
{
    return -own_nice();
}

static int raise_and_look(void)
{
    priority_raise();
    return raised_by();
}

static int child_of_raised(void)
{
    priority_raise();
    return in_child(raised_by);
}

static void *look_in_thread(void *arg)
{
    *(int *)arg = raised_by();
    return NULL;
}

static int thread_of_raised(void)
{
    pthread_t thread;
    int raised = 99;

    priority_raise();
    if (pthread_create(&thread, NULL, look_in_thread, &raised) != 0)
        return 98;
    pthread_join(thread, NULL);
    return raised;
}

static int chosen_by_others(void)
{
    if (setpriority(PRIO_PROCESS, 0, 5) != 0)
        return 97;
    priority_raise();
    return own_nice();
}

static bool may_raise(void)
{
    int usual = own_nice();
    bool can = usual == 0 && setpriority(PRIO_PROCESS, 0, -1) == 0;

    return setpriority(PRIO_PROCESS, 0, usual) == 0 && can;
}

static void it_alone_goes_first(void **state)
{
    (void)state;
    if (!may_raise())
        skip();
    assert_int_equal(in_child(raise_and_look), -PRIORITY_NICE);
    assert_int_equal(in_child(child_of_raised), 0);
    assert_int_equal(in_child(thread_of_raised), 0);
}

static void a_priority_that_somebody_chose_stays(void **state)
{
    (void)state;
    if (own_nice() > 5)
        skip();
    assert_int_equal(in_child(chosen_by_others), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_alone_goes_first),
        cmocka_unit_test(a_priority_that_somebody_chose_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
