/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_tree - the kernel's cgroups, below a root of this test's own name: a pod and a process in it.  Needs
 * root and a cgroup file system; without them need() skips the test.
 */
#ifndef TESTS_UNIT_CGROUPS_HOST_TREE_H
#define TESTS_UNIT_CGROUPS_HOST_TREE_H
#include "tests/unit/base/helper.h"
#include "tests/unit/base/own_mounts.h"

#include "cgroups/internal.h"

#include <errno.h>
#include <signal.h>

struct host {
    char root[64], scratch[64];
    struct cg_tree *tree;
    char ctr[CG_PATH_MAX];
};

static inline int set_up(void **state)
{
    struct host *h = calloc(1, sizeof(*h));
    struct cg_options o;
    struct err e = { 0 };

    *state = h;
    snprintf(h->root, sizeof(h->root), "/coracle-test-%s-%d", program_invocation_short_name, getpid());
    snprintf(h->scratch, sizeof(h->scratch), "/tmp/coracle-test-%s-%d", program_invocation_short_name,
             getpid());
    snprintf(h->ctr, sizeof(h->ctr), "%s/kubepods/burstable/podu1/c1", h->root);
    o = (struct cg_options){ .root = h->root, .scratch_dir = h->scratch };
    if (geteuid() == 0 && cg_open(&h->tree, &o, &e) != ERR_OK)
        print_message("cannot open: %s\n", e.text);
    return 0;
}

static inline int tear_down(void **state)
{
    struct host *h = *state;

    cg_close(h->tree, true);
    fs_remove_quietly(AT_FDCWD, h->scratch);
    free(h);
    return 0;
}

static inline struct host *need(void **state)
{
    struct host *h = *state;

    if (h->tree == NULL)
        SKIP("needs root and cgroups that it may write");
    return h;
}

/* The pod's cgroup with a limit, and a process of ours in a container's below it. */
static inline void make_pod(struct host *h, int64_t memory_max)
{
    struct cg_limits l = CG_LIMITS_NONE;
    struct err e = { 0 };

    l.memory_max = memory_max;
    if (cg_pod_apply(h->tree, CG_BURSTABLE, "u1", &l, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

/* A child that waits for a byte, in the container's cgroup; then takes `bytes` of memory and keeps them. */
static inline pid_t eater(struct host *h, size_t bytes, int *ret_go)
{
    struct err e = { 0 };
    int go[2];
    pid_t pid;

    assert_int_equal(pipe(go), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char byte;
        char *memory;
        close(go[1]);
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory != MAP_FAILED)
            memset(memory, 1, bytes);
        pause();
        _exit(0);
    }
    close(go[0]);
    if (cg_place(h->tree, h->ctr, pid, &e) != ERR_OK)
        fail_msg("%s", e.text);
    *ret_go = go[1];
    return pid;
}

static inline int end_of(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static inline int group_set_up(void **state)
{
    (void)state;
    return geteuid() != 0 || own_mounts() ? 0 : -1;
}
#endif
