/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real kernel: everything below a cgroup root of this test's own name, once with the hierarchies of this
 * host as they are, once with its v1 and once with its v2 side alone, as far as it has them.  Needs root;
 * skipped without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/files/fs.h"
#include "cgroups/internal.h"
#include "tests/unit/base/own_mounts.h"
#include "tests/unit/cgroups/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum side { AS_IT_IS, V1_ALONE, V2_ALONE, V2_WITHOUT_KILL };

struct host {
    enum side side;
    char root[64], scratch[64];
    char *mountinfo;
    struct cg_tree *tree;
    char ctr[CG_PATH_MAX]; /* a container's cgroup */
};

/* Lines of the other side are left out of the text that cg_open_env() sees. */
static char *filtered(const char *text, enum side side)
{
    char *out = calloc(1, strlen(text) + 2);

    assert_non_null(out);
    while (*text != '\0') {
        size_t n = strcspn(text, "\n") + 1;
        char *line = strndup(text, n);
        assert_non_null(line);
        bool v1 = strstr(line, " - cgroup ") != NULL, v2 = strstr(line, " - cgroup2 ") != NULL;
        if (!(v1 && side >= V2_ALONE) && !(v2 && side == V1_ALONE))
            strcat(out, line);
        free(line);
        text += text[n - 1] == '\0' ? n - 1 : n;
    }
    return out;
}

static bool no_kill(int dir)
{
    (void)dir;
    return false;
}

static struct cg_backend without_kill;

static enum err_code open_tree_of(struct host *h, struct err *e)
{
    str_auto proc_cgroup = NULL;
    fd_auto root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct cg_options o = { .root = h->root, .scratch_dir = h->scratch };

    if (fs_read_at(AT_FDCWD, "/proc/self/cgroup", 1 << 20, &proc_cgroup, NULL, e) != ERR_OK)
        return e->code;
    struct cg_env env = { .mountinfo = h->mountinfo, .proc_cgroup = proc_cgroup, .root_fd = root_fd };
    if (cg_open_env(&h->tree, &o, &env, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < h->tree->n_hiers; i++)
        if (h->tree->hiers[i].backend->v2)
            h->tree->hiers[i].backend = h->side == V2_WITHOUT_KILL ? &without_kill : &cg_backend_v2;
    return ERR_OK;
}

static int set_up(void **state)
{
    struct host *h = calloc(1, sizeof(*h));
    struct err e = { 0 };
    str_auto mountinfo = NULL;

    h->side = *(enum side *)*state;
    *state = h;
    without_kill = cg_backend_v2;
    without_kill.kill = no_kill;
    snprintf(h->root, sizeof(h->root), "/coracle-test-%d", getpid());
    snprintf(h->scratch, sizeof(h->scratch), "/tmp/coracle-test-%d", getpid());
    snprintf(h->ctr, sizeof(h->ctr), "%s/kubepods/burstable/podu1/c1", h->root);
    if (geteuid() != 0 ||
        fs_read_at(AT_FDCWD, "/proc/self/mountinfo", 4 << 20, &mountinfo, NULL, &e) != ERR_OK)
        return 0;
    h->mountinfo = filtered(mountinfo, h->side);
    if (open_tree_of(h, &e) != ERR_OK)
        print_message("cannot open: %s\n", e.text);
    return 0;
}

static bool anything_left(const char *root)
{
    char pattern[256];
    bool left = false;

    snprintf(pattern, sizeof(pattern), "/sys/fs/cgroup%s", root);
    left = access(pattern, F_OK) == 0;
    static const char *const hiers[] = {
        "cpu",     "cpuacct", "cpu,cpuacct", "cpuset",  "memory",  "devices",
        "freezer", "blkio",   "pids",        "systemd", "unified", "hugetlb"
    };
    for (size_t i = 0; i < ARRAY_LEN(hiers); i++) {
        snprintf(pattern, sizeof(pattern), "/sys/fs/cgroup/%s%s", hiers[i], root);
        left = left || access(pattern, F_OK) == 0;
    }
    return left;
}

static int tear_down(void **state)
{
    struct host *h = *state;
    bool left;

    cg_close(h->tree, true);
    rmdir(h->scratch);
    left = anything_left(h->root) || access(h->scratch, F_OK) == 0;
    free(h->mountinfo);
    free(h);
    return left ? -1 : 0;
}

static struct host *need(void **state)
{
    struct host *h = *state;

    if (h->tree == NULL) {
        print_message("skipped: %s\n", geteuid() != 0
                                           ? "not root"
                                           : "this host has no such cgroups, or they cannot be written");
        skip();
    }
    return h;
}

static void make_container(struct host *h, const char *sub)
{
    const struct cg_limits l = CG_LIMITS_NONE;
    struct err e = { 0 };
    char path[CG_PATH_MAX];
    bool fresh;

    assert_int_equal(cg_pod_apply(h->tree, CG_BURSTABLE, "u1", &l, &e), ERR_OK);
    snprintf(path, sizeof(path), "/kubepods/burstable/podu1/c1%s", sub);
    for (size_t i = 0; i < h->tree->n_hiers; i++)
        assert_int_equal(cg_make(h->tree, &h->tree->hiers[i], path, false, &fresh, NULL, &e), ERR_OK);
}

/* In the child: into `path` of all hierarchies, or of the named one. */
static void join(struct host *h, const char *path, const char *only)
{
    for (size_t i = 0; i < h->tree->n_hiers; i++) {
        struct err e = { 0 };
        if (only != NULL && strcmp(h->tree->hiers[i].name, only) != 0)
            continue;
        int dir = cg_open_dir(&h->tree->hiers[i], path);
        if (dir < 0 || fs_write_control(dir, "cgroup.procs", "0", &e) != ERR_OK)
            _exit(9);
        close(dir);
    }
}

enum life { SLEEPS, FORKS_ON };

/* A process that sits in a cgroup; it has told us that it is there before this returns. */
static pid_t start(struct host *h, const char *path, const char *only, enum life life)
{
    int ready[2];
    char byte;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        join(h, path, only);
        if (write(ready[1], "x", 1) != 1)
            _exit(9);
        close(ready[0]);
        close(ready[1]);
        signal(SIGTERM, SIG_IGN);
        for (;;) {
            if (life == SLEEPS) {
                pause();
            } else if (fork() != 0) {
                _exit(
                    0); /* the child goes on under another pid: a reader of cgroup.procs always comes late */
            }
        }
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static bool dies_by_kill(pid_t pid)
{
    int status = 0;

    for (unsigned i = 0; i < 2000; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        usleep(1000);
    }
    return false;
}

static bool populated(struct cg_tree *t, const char *path)
{
    struct err e = { 0 };
    struct presence found = cg_has_processes(t, path, &e);

    assert_false(presence_is_unknown(found));
    return !presence_is_absent(found);
}

static void the_tree_is_made_and_taken_away_whole(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    const struct cg_limits l = CG_LIMITS_NONE;

    assert_int_equal(cg_pod_apply(h->tree, CG_GUARANTEED, "leftover", &l, &e), ERR_OK);
    make_container(h, "/deep/er");
    assert_true(anything_left(h->root));
    for (size_t i = 0; i < h->tree->n_hiers; i++) {
        fd_auto dir = cg_open_dir(&h->tree->hiers[i], h->ctr);
        assert_true(dir >= 0);
    }
    pid_t pid = start(h, h->ctr, NULL, SLEEPS);
    cg_close(h->tree, true);
    h->tree = NULL;
    assert_true(dies_by_kill(pid));
    assert_false(anything_left(h->root));
}

static void closing_keeps_what_runs_and_opening_finds_it(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    struct strs list = { 0 };

    make_container(h, "");
    pid_t pid = start(h, h->ctr, NULL, SLEEPS);
    cg_close(h->tree, false);
    h->tree = NULL;
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(open_tree_of(h, &e), ERR_OK);
    assert_int_equal(cg_list_pods(h->tree, &list, &e), ERR_OK);
    assert_int_equal(list.n, 1);
    assert_non_null(strstr(list.v[0], "/kubepods/burstable/podu1"));
    strs_done(&list);
    assert_true(populated(h->tree, h->ctr));
    assert_int_equal(cg_kill(h->tree, h->ctr, &e), ERR_OK);
    assert_true(dies_by_kill(pid));
    /* This time <root> was there before, so it stays; the test that made it removes it. */
    h->tree->hiers[0].root_existing = 0;
    for (size_t i = 0; i < h->tree->n_hiers; i++)
        h->tree->hiers[i].root_existing = 0;
}

static void a_control_value(struct host *h, unsigned controller, const char *v1_file, const char *v1,
                            const char *v2_file, const char *v2)
{
    for (size_t i = 0; i < h->tree->n_hiers; i++) {
        const struct cg_hier *hier = &h->tree->hiers[i];
        struct err e = { 0 };
        str_auto text = NULL;
        char path[CG_PATH_MAX];
        if ((hier->controllers & controller) == 0)
            continue;
        snprintf(path, sizeof(path), "%s/kubepods/burstable/podu1", h->root);
        fd_auto dir = cg_open_dir(hier, path);
        assert_true(dir >= 0);
        assert_int_equal(fs_read_at(dir, hier->backend->v2 ? v2_file : v1_file, 4096, &text, NULL, &e),
                         ERR_OK);
        assert_string_equal(text, hier->backend->v2 ? v2 : v1);
    }
}

static void limits_arrive_in_the_kernel_and_can_be_taken_back(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    struct cg_limits l = { .cpu_shares = 512, .cpu_quota_us = 20000, .memory_max = 64 << 20, .pids_max = 50 };

    assert_int_equal(cg_pod_apply(h->tree, CG_BURSTABLE, "u1", &l, &e), ERR_OK);
    a_control_value(h, CG_CTL_CPU, "cpu.shares", "512\n", "cpu.weight", "59\n");
    a_control_value(h, CG_CTL_CPU, "cpu.cfs_quota_us", "20000\n", "cpu.max", "20000 100000\n");
    a_control_value(h, CG_CTL_MEMORY, "memory.limit_in_bytes", "67108864\n", "memory.max", "67108864\n");
    a_control_value(h, CG_CTL_PIDS, "pids.max", "50\n", "pids.max", "50\n");
    l = (struct cg_limits)CG_LIMITS_NONE;
    assert_int_equal(cg_pod_apply(h->tree, CG_BURSTABLE, "u1", &l, &e), ERR_OK);
    a_control_value(h, CG_CTL_CPU, "cpu.shares", "512\n", "cpu.weight", "59\n");
    a_control_value(h, CG_CTL_CPU, "cpu.cfs_quota_us", "-1\n", "cpu.max", "max 100000\n");
    a_control_value(h, CG_CTL_MEMORY, "memory.limit_in_bytes", "9223372036854771712\n", "memory.max",
                    "max\n");
    a_control_value(h, CG_CTL_PIDS, "pids.max", "max\n", "pids.max", "max\n");
    l.cpu_shares = 2048;
    assert_int_equal(cg_qos_apply(h->tree, CG_BURSTABLE, &l, &e), ERR_OK);
    assert_int_equal(cg_node_apply(h->tree, &l, &e), ERR_OK);
}

static void a_limit_that_the_kernel_refuses_is_named(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    struct cg_limits l = CG_LIMITS_NONE;

    for (size_t i = 0; i < h->tree->n_hiers; i++)
        if (h->tree->hiers[i].controllers & CG_CTL_CPU)
            l.cpu_quota_us = 1; /* less than a millisecond */
    if (l.cpu_quota_us < 0) {
        print_message("skipped: this side has no cpu controller\n");
        skip();
    }
    assert_int_equal(cg_pod_apply(h->tree, CG_BURSTABLE, "u1", &l, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "/kubepods/burstable/podu1: write cpu."));
    assert_int_equal(e.sys, EINVAL);
}

static void kill_ends_a_whole_subtree_at_once(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    char deep[CG_PATH_MAX + 8];
    pid_t pids[6];

    make_container(h, "/x/y");
    snprintf(deep, sizeof(deep), "%s/x/y", h->ctr);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        pids[i] = start(h, i % 2 == 0 ? h->ctr : deep, NULL, SLEEPS);
    uint64_t before = clock_mono_ms();
    assert_int_equal(cg_kill(h->tree, h->ctr, &e), ERR_OK);
    assert_true(clock_mono_ms() - before < 2000); /* a few ms; the bound leaves room for a busy machine */
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        assert_true(dies_by_kill(pids[i]));
    assert_true(cg_wait_empty(h->tree, h->ctr, 2000));
    assert_false(populated(h->tree, h->ctr));
}

static void kill_catches_processes_that_keep_forking(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    int status;

    make_container(h, "");
    for (int i = 0; i < 4; i++)
        start(h, h->ctr, NULL, FORKS_ON);
    assert_int_equal(cg_kill(h->tree, h->ctr, &e), ERR_OK);
    assert_true(cg_wait_empty(h->tree, h->ctr, 2000));
    while (waitpid(-1, &status, 0) > 0) {
    }
}

static void kill_finds_who_is_in_one_hierarchy_only(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };

    make_container(h, "");
    for (size_t i = 0; i < h->tree->n_hiers; i++) {
        pid_t pid = start(h, h->ctr, h->tree->hiers[i].name, SLEEPS);
        assert_true(populated(h->tree, h->ctr));
        assert_int_equal(cg_kill(h->tree, h->ctr, &e), ERR_OK);
        assert_true(dies_by_kill(pid));
        assert_true(cg_wait_empty(h->tree, h->ctr, 2000));
    }
}

static void kill_ends_a_paused_container(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };

    make_container(h, "/x");
    pid_t pid = start(h, h->ctr, NULL, SLEEPS);
    for (size_t i = 0; i < h->tree->n_hiers; i++) {
        fd_auto dir = cg_open_dir(&h->tree->hiers[i], h->ctr);
        assert_true(dir >= 0);
        h->tree->hiers[i].backend->freeze(dir, true);
    }
    char pod[CG_PATH_MAX];
    snprintf(pod, sizeof(pod), "%s/kubepods/burstable/podu1", h->root);
    assert_int_equal(cg_kill(h->tree, pod, &e), ERR_OK);
    assert_true(dies_by_kill(pid));
}

static void remove_waits_for_processes_and_forgives_absence(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    char pod[CG_PATH_MAX];

    make_container(h, "/x");
    snprintf(pod, sizeof(pod), "%s/kubepods/burstable/podu1", h->root);
    pid_t pid = start(h, h->ctr, NULL, SLEEPS);
    assert_int_equal(cg_remove(h->tree, pod, &e), ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "processes are left"));
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(cg_kill(h->tree, pod, &e), ERR_OK);
    assert_true(dies_by_kill(pid));
    assert_true(cg_wait_empty(h->tree, pod, 2000));
    assert_int_equal(cg_remove(h->tree, pod, &e), ERR_OK);
    for (size_t i = 0; i < h->tree->n_hiers; i++)
        assert_int_equal(cg_open_dir(&h->tree->hiers[i], pod), -1);
    assert_int_equal(cg_remove(h->tree, pod, &e), ERR_OK);
    assert_int_equal(cg_kill(h->tree, pod, &e), ERR_OK);
}

/* /proc/<pid>/cgroup names the leaf once for each hierarchy of the tree. */
static void stands_in_all(struct host *h, pid_t pid, const char *leaf)
{
    char path[64];
    mem_auto char *text = NULL;
    struct err e = { 0 };
    size_t seen = 0;

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    assert_int_equal(fs_read_at(AT_FDCWD, path, 1 << 16, &text, NULL, &e), ERR_OK);
    for (const char *at = text; (at = strstr(at, leaf)) != NULL; at += strlen(leaf))
        seen++;
    assert_int_equal(seen, h->tree->n_hiers);
}

/* By the files that a child would join; where it would be born there, as anything else. */
static void move(struct host *h, enum cg_leaf leaf, pid_t pid, const char *path)
{
    const char *const *joins = cg_leaf_joins(h->tree, leaf);
    struct err e = { 0 };
    char text[16];

    snprintf(text, sizeof(text), "%d", (int)pid);
    if (joins == NULL)
        assert_int_equal(cg_place(h->tree, path, pid, &e), ERR_OK);
    for (size_t i = 0; joins != NULL && joins[i] != NULL; i++)
        assert_int_equal(fs_write_control(AT_FDCWD, joins[i], text, &e), ERR_OK);
    if (joins != NULL && cg_leaf_fd(h->tree, leaf) >= 0)
        assert_int_equal(fs_write_control(cg_leaf_fd(h->tree, leaf), "cgroup.procs", text, &e), ERR_OK);
}

static void leaves_take_processes_and_the_sweep_empties_one(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    char path[CG_PATH_MAX];

    assert_int_equal(cg_leaf_fd(h->tree, CG_LEAF_OPS) >= 0, cg_layout(h->tree) != CG_V1);
    assert_int_equal(cg_leaf_procs(h->tree, CG_LEAF_OPS) == NULL, cg_layout(h->tree) != CG_V1);
    assert_int_equal(cg_leaf_fd(h->tree, CG_LEAF_CONMON) >= 0, cg_layout(h->tree) != CG_V1);
    assert_int_equal(cg_leaf_joins(h->tree, CG_LEAF_CONMON) == NULL, cg_layout(h->tree) == CG_V2);
    assert_null(cg_leaf_joins(h->tree, CG_LEAF_OPS));
    make_container(h, "");
    pid_t conmon = start(h, h->ctr, NULL, SLEEPS);
    pid_t op = start(h, h->ctr, NULL, SLEEPS);
    snprintf(path, sizeof(path), "%s/coracle/ops", h->root);
    assert_int_equal(cg_place(h->tree, path, op, &e), ERR_OK);
    snprintf(path, sizeof(path), "%s/coracle/conmon", h->root);
    move(h, CG_LEAF_CONMON, conmon, path);
    assert_false(populated(h->tree, h->ctr));
    stands_in_all(h, conmon, "/coracle/conmon");
    snprintf(path, sizeof(path), "%s/coracle/conmon", h->root);
    assert_true(populated(h->tree, path));
    assert_int_equal(cg_ops_sweep(h->tree, &e), ERR_OK);
    assert_true(dies_by_kill(op));
    assert_int_equal(kill(conmon, 0), 0);
    assert_true(populated(h->tree, path));
    assert_int_equal(cg_ops_sweep(h->tree, &e), ERR_OK);
    assert_int_equal(cg_kill(h->tree, path, &e), ERR_OK);
    assert_true(dies_by_kill(conmon));
    assert_int_equal(cg_place(h->tree, path, conmon, &e), ERR_NOT_FOUND);
    assert_int_equal(cg_place(h->tree, path, 0, &e), ERR_INVALID);
}

/* The child in the sweep's way: joined through the one path that children are given, not through all
 * hierarchies. */
static void the_sweep_finds_a_child_that_joined_by_leaf_procs(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    char path[CG_PATH_MAX];

    snprintf(path, sizeof(path), "%s/coracle/ops", h->root);
    pid_t pid = start(h, path, h->tree->hiers[0].name, FORKS_ON);
    assert_int_equal(cg_ops_sweep(h->tree, &e), ERR_OK);
    assert_false(populated(h->tree, path));
    waitpid(pid, NULL, 0);
}

static void a_child_is_born_into_a_leaf_that_was_swept(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    char path[CG_PATH_MAX];
    int fd = cg_leaf_fd(h->tree, CG_LEAF_OPS), status = 0;

    if (fd < 0) {
        print_message("skipped: nothing can be born into a cgroup of v1\n");
        skip();
    }
    snprintf(path, sizeof(path), "%s/coracle/ops", h->root);
    pid_t old = start(h, path, h->tree->hiers[0].name, FORKS_ON);
    assert_int_equal(cg_ops_sweep(h->tree, &e), ERR_OK);
    waitpid(old, NULL, 0);
    struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)fd };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        _exit(7);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void usage_counts_what_runs(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    struct cg_usage u = { 0 };

    make_container(h, "");
    pid_t pid = start(h, h->ctr, NULL, SLEEPS);
    assert_int_equal(cg_usage(h->tree, h->ctr, &u, &e), ERR_OK);
    for (size_t i = 0; i < h->tree->n_hiers; i++) {
        if (h->tree->hiers[i].controllers & CG_CTL_PIDS)
            assert_int_equal(u.pids, 1);
        if (h->tree->hiers[i].controllers & CG_CTL_MEMORY)
            assert_true(u.working_set_bytes <= u.memory_bytes);
    }
    assert_true(u.cpu_ns > 0);
    assert_int_equal(u.oom_kills, 0);
    assert_int_equal(cg_kill(h->tree, h->ctr, &e), ERR_OK);
    assert_true(dies_by_kill(pid));
}

static void an_oom_kill_is_counted(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };
    struct cg_usage u = { 0 };
    bool memory = false;
    const struct cg_limits l = {
        .cpu_shares = -1, .cpu_quota_us = -1, .memory_max = 8 << 20, .pids_max = -1
    };

    for (size_t i = 0; i < h->tree->n_hiers; i++)
        memory = memory || (h->tree->hiers[i].controllers & CG_CTL_MEMORY) != 0;
    if (!memory) {
        print_message("skipped: this side has no memory controller\n");
        skip();
    }
    make_container(h, "");
    assert_int_equal(cg_pod_apply(h->tree, CG_BURSTABLE, "u1", &l, &e), ERR_OK);
    pid_t pid = fork();
    if (pid == 0) {
        join(h, h->ctr, NULL);
        for (;;) {
            char *p = malloc(1 << 20);
            if (p == NULL)
                _exit(1);
            for (size_t i = 0; i < 1 << 20; i += 512)
                ((volatile char *)p)[i] = 1;
        }
    }
    assert_true(dies_by_kill(pid));
    assert_int_equal(cg_usage(h->tree, h->ctr, &u, &e), ERR_OK);
    assert_int_equal(u.oom_kills, 1);
}

/* Only where something is left on v2; elsewhere there is nothing to see. */
static void a_hybrids_v2_side_has_no_controllers_while_open(void **state)
{
    struct host *h = need(state);
    struct err e = { 0 };

    if (cg_layout(h->tree) != CG_HYBRID) {
        print_message("skipped: only a hybrid has two sides\n");
        skip();
    }
    for (size_t i = 0; i < h->tree->n_hiers; i++) {
        str_auto text = NULL;
        if (!h->tree->hiers[i].backend->v2)
            continue;
        assert_int_equal(fs_read_at(h->tree->hiers[i].fd, "cgroup.controllers", 4096, &text, NULL, &e),
                         ERR_OK);
        assert_int_equal(cg_controllers_parse(text), 0);
    }
}

#define TEST(name, on)                                                                                       \
    {                                                                                                        \
#name " (" #on ")", name, set_up, tear_down, &(enum side)                                            \
        {                                                                                                    \
            on                                                                                               \
        }                                                                                                    \
    }
#define TEST_ALL(name)                                                                                       \
    TEST(name, AS_IT_IS), TEST(name, V1_ALONE), TEST(name, V2_ALONE), TEST(name, V2_WITHOUT_KILL)

/*
 * On a hybrid the v2 side may hold a controller (hugetlb) or not, depending on who else mounts it as v1 at
 * this moment.  Held as v1 for as long as this program runs, what the tests see does not change under them.
 */
#define UNIFIED "/sys/fs/cgroup/unified"
static char held[] = "/tmp/coracle-cgroup-test-XXXXXX";

static int hold_hugetlb(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_true(geteuid() != 0 || own_mounts());
    assert_non_null(mkdtemp(held));
    if (geteuid() == 0 && access(UNIFIED "/cgroup.controllers", F_OK) == 0) {
        if (fs_write_control(AT_FDCWD, UNIFIED "/cgroup.subtree_control", "-hugetlb", &e) != ERR_OK)
            print_message("%s\n", e.text); /* not there: fine */
        if (mount("none", held, "cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hugetlb") != 0)
            print_message("hugetlb is not mounted as v1: %s\n", strerror(errno));
    }
    return 0;
}

static int release_hugetlb(void **state)
{
    (void)state;
    umount2(held, MNT_DETACH);
    rmdir(held);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_ALL(the_tree_is_made_and_taken_away_whole),
        TEST_ALL(closing_keeps_what_runs_and_opening_finds_it),
        TEST_ALL(limits_arrive_in_the_kernel_and_can_be_taken_back),
        TEST_ALL(a_limit_that_the_kernel_refuses_is_named),
        TEST_ALL(kill_ends_a_whole_subtree_at_once),
        TEST_ALL(kill_catches_processes_that_keep_forking),
        TEST_ALL(kill_finds_who_is_in_one_hierarchy_only),
        TEST_ALL(kill_ends_a_paused_container),
        TEST_ALL(remove_waits_for_processes_and_forgives_absence),
        TEST_ALL(leaves_take_processes_and_the_sweep_empties_one),
        TEST_ALL(the_sweep_finds_a_child_that_joined_by_leaf_procs),
        TEST(a_child_is_born_into_a_leaf_that_was_swept, AS_IT_IS),
        TEST(a_child_is_born_into_a_leaf_that_was_swept, V2_ALONE),
        TEST(a_child_is_born_into_a_leaf_that_was_swept, V2_WITHOUT_KILL),
        TEST_ALL(usage_counts_what_runs),
        TEST_ALL(an_oom_kill_is_counted),
        TEST(a_hybrids_v2_side_has_no_controllers_while_open, AS_IT_IS),
    };

    return cmocka_run_group_tests(tests, hold_hugetlb, release_hugetlb);
}
