/* SPDX-License-Identifier: Apache-2.0 */
/* rootns - for tests that need root: network and mount namespaces of the test's own, so that the host is
 * never touched and everything is gone when the test program ends, however it ends. */
#ifndef TESTS_UNIT_CNI_ROOTNS_H
#define TESTS_UNIT_CNI_ROOTNS_H
#include "helper.h"

#include "base/netlink.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

/* NULL when all is well, else why the tests are skipped. */
static inline const char *rootns_enter(void)
{
    struct err e = { 0 };

    if (geteuid() != 0)
        return "needs root";
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0)
        return "cannot create a network and a mount namespace";
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return "cannot make mounts private";
    if (nl_link_up("lo", &e) != ERR_OK)
        return "cannot bring lo up";
    return NULL;
}

/*
 * Each test in a process of its own, whose threads are all in the namespaces that its setup() made: those
 * that start children (base/process/spawn_queue.c) stay where they began.  How many failed.
 */
static inline int rootns_run(const struct CMUnitTest *tests, size_t n)
{
    int failed = 0;

    for (size_t i = 0; i < n; i++) {
        int status = -1;
        pid_t pid;

        fflush(NULL);
        pid = fork();
        if (pid == 0)
            exit(_cmocka_run_group_tests(tests[i].name, &tests[i], 1, NULL, NULL));
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            failed++;
    }
    return failed;
}

/* <place>/ns: a tmpfs with shared propagation, as the agent has one. */
static inline void mount_shared(const struct place *p)
{
    assert_int_equal(mkdirat(p->fd, "ns", 0700), 0);
    assert_int_equal(
        mount("coracle-cni-test", in_place(p, "ns"), "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0700"), 0);
    assert_int_equal(mount(NULL, in_place(p, "ns"), NULL, MS_SHARED, NULL), 0);
}

/* Output of a shell command, malloc'ed. */
static inline char *sh(const char *command)
{
    struct buf b = BUF_INIT(1 << 20);
    FILE *f = popen(command, "r");
    char chunk[4096];
    size_t n;

    assert_non_null(f);
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        buf_add(&b, chunk, n);
    pclose(f);
    return buf_detach(&b);
}
#endif
