/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real kernel: kills and pressure in cgroups below a root of this test's own name.  Needs root and a
 * cgroup file system; what this host has not (v2's memory controller, PSI) is skipped with a word.
 */
#include "tests/unit/base/failing.h"
#include "tests/unit/base/helper.h"
#include "tests/unit/base/own_mounts.h"

#include "base/clock.h"
#include "cgroups/internal.h"
#include "cgroups/oom_watch.h"
#include "cgroups/pressure.h"

#include <poll.h>
#include <signal.h>

#define DEADLINE_MS 20000

struct host {
    char root[64], scratch[64];
    struct cg_tree *tree;
    char ctr[CG_PATH_MAX];
};

static int set_up(void **state)
{
    struct host *h = calloc(1, sizeof(*h));
    struct cg_options o;
    struct err e = { 0 };

    *state = h;
    snprintf(h->root, sizeof(h->root), "/coracle-test-oom-%d", getpid());
    snprintf(h->scratch, sizeof(h->scratch), "/tmp/coracle-test-oom-%d", getpid());
    snprintf(h->ctr, sizeof(h->ctr), "%s/kubepods/burstable/podu1/c1", h->root);
    o = (struct cg_options){ .root = h->root, .scratch_dir = h->scratch };
    if (geteuid() == 0 && cg_open(&h->tree, &o, &e) != ERR_OK)
        print_message("cannot open: %s\n", e.text);
    return 0;
}

static int tear_down(void **state)
{
    struct host *h = *state;

    cg_close(h->tree, true);
    fs_remove_quietly(AT_FDCWD, h->scratch);
    free(h);
    return 0;
}

static struct host *need(void **state)
{
    struct host *h = *state;

    if (h->tree == NULL)
        SKIP("needs root and cgroups that it may write");
    return h;
}

/* The pod's cgroup with a limit, and a process of ours in a container's below it. */
static void make_pod(struct host *h, int64_t memory_max)
{
    struct cg_limits l = CG_LIMITS_NONE;
    struct err e = { 0 };

    l.memory_max = memory_max;
    if (cg_pod_apply(h->tree, CG_BURSTABLE, "u1", &l, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

/* A child that waits for a byte, in the container's cgroup; then takes `bytes` of memory and keeps them. */
static pid_t eater(struct host *h, size_t bytes, int *ret_go)
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

static int end_of(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static bool readable(int fd, short events, int timeout_ms)
{
    struct pollfd p = { .fd = fd, .events = events };

    return poll(&p, 1, timeout_ms) == 1;
}

/* The loop turns until the descriptor is readable. */
static bool told_by(uv_loop_t *loop, const struct cg_oom_watch *w, int timeout_ms)
{
    uint64_t until = clock_mono_ms() + (uint64_t)timeout_ms;

    do {
        uv_run(loop, UV_RUN_NOWAIT);
        if (readable(cg_oom_watch_fd(w), POLLIN, 5))
            return true;
    } while (clock_mono_ms() < until);
    return false;
}

static void end_loop(uv_loop_t *loop)
{
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

static void on_kill(const char *path, uint64_t kills, void *arg)
{
    uint64_t *sum = arg;

    assert_string_equal(strrchr(path, '/'), "/c1");
    *sum += kills;
}

static size_t read_all(struct cg_oom_watch *w, bool all, uint64_t *sum)
{
    size_t found = 0;

    assert_true(cg_oom_watch_read(w, all, on_kill, sum, &found));
    return found;
}

static uint64_t take(struct cg_oom_watch *w, const char *path)
{
    uint64_t kills = 0;
    struct err e = { 0 };

    assert_int_equal(cg_oom_watch_take(w, path, &kills, &e), ERR_OK);
    return kills;
}

static void a_mount_table_that_cannot_be_read_is_read_again(void **state)
{
    struct host *h = need(state);
    struct cg_tree *tree = NULL;
    char root[80];
    const struct cg_options o = { .root = root, .scratch_dir = h->scratch };
    struct err e = { 0 };

    snprintf(root, sizeof(root), "%s-again", h->root);
    failing_arm("openat", "mountinfo", EIO, 1);
    assert_int_equal(cg_open(&tree, &o, &e), ERR_OK);
    assert_int_equal(failing_times, 0);
    cg_close(tree, true);
    tree = NULL;
    failing_arm("openat", "mountinfo", EIO, 1000);
    assert_int_not_equal(cg_open(&tree, &o, &e), ERR_OK);
    assert_int_equal(e.sys, EIO);
    failing_arm("", "", 0, 0);
}

static void a_kill_makes_the_descriptor_readable_and_is_counted_once(void **state)
{
    struct host *h = need(state);
    struct cg_oom_watch *w = NULL;
    uv_loop_t loop;
    uint64_t kills = 0, until;
    struct err e = { 0 };
    int go;

    make_pod(h, 8 << 20);
    pid_t pid = eater(h, 64 << 20, &go);
    uv_loop_init(&loop);
    assert_int_equal(cg_oom_watch_open(&w, h->tree, &loop, &e), ERR_OK);
    if (cg_oom_watch_add(w, h->ctr, 0, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(cg_oom_watch_add(w, h->ctr, 0, &e), ERR_EXISTS);
    assert_int_equal(read_all(w, true, &kills), 0);
    assert_int_equal(write(go, "x", 1), 1);
    close(go);
    until = clock_mono_ms() + DEADLINE_MS;
    while (kills == 0 && clock_mono_ms() < until) {
        /* v1 tells before the process is chosen: then the second look finds it. */
        assert_true(told_by(&loop, w, DEADLINE_MS));
        if (read_all(w, false, &kills) == 0) {
            told_by(&loop, w, CG_OOM_LOOK_AGAIN_MS);
            read_all(w, true, &kills);
        }
    }
    assert_int_equal(kills, 1);
    assert_int_equal(WTERMSIG(end_of(pid)), SIGKILL);
    assert_int_equal(take(w, h->ctr), 0);
    kills = 0;
    read_all(w, true, &kills);
    assert_int_equal(kills, 0);
    cg_oom_watch_remove(w, h->ctr);
    cg_oom_watch_remove(w, h->ctr);
    assert_int_equal(take(w, h->ctr), 0);
    cg_oom_watch_close(w);
    end_loop(&loop);
}

static void a_cgroup_that_is_not_there_cannot_be_watched(void **state)
{
    struct host *h = need(state);
    struct cg_oom_watch *w = NULL;
    uv_loop_t loop;
    struct err e = { 0 };
    uint64_t count;

    uv_loop_init(&loop);
    assert_int_equal(cg_oom_watch_open(&w, h->tree, &loop, &e), ERR_OK);
    assert_int_equal(cg_oom_watch_add(w, "/coracle-no-such-cgroup", 0, &e), ERR_NOT_FOUND);
    assert_int_equal(cg_oom_watch_add(w, "/../etc", 0, &e), ERR_INVALID);
    assert_true(presence_is_absent(cg_look_oom_kills(h->tree, "/coracle-no-such-cgroup", true, &count, &e)));
    cg_oom_watch_close(w);
    end_loop(&loop);
}

static void a_meter_lets_a_removed_cgroup_go(void **state)
{
    struct host *h = need(state);
    struct cg_meters_options o = { .tree = h->tree, .keep_open = 100 };
    struct cg_meters *set = NULL;
    struct cg_meter *m = NULL;
    struct cg_sample s;
    struct err e = { 0 };
    char pod[CG_PATH_MAX];

    make_pod(h, 8 << 20);
    assert_int_equal(cg_pod_path(h->tree, CG_BURSTABLE, "u1", pod, sizeof(pod), &e), ERR_OK);
    assert_int_equal(cg_meters_open(&set, &o, &e), ERR_OK);
    assert_int_equal(cg_meter_new(&m, set, pod, &e), ERR_OK);
    assert_int_equal(cg_meter_read(m, CG_PARTS_ALL, &s, &e), ERR_OK);
    assert_int_equal(s.parts & CG_PARTS_BASIC, CG_PARTS_BASIC);
    assert_int_equal(s.memory.limit, 8 << 20);
    assert_int_equal(s.pids, 0);
    assert_int_equal(cg_meters_kept(set), 4);
    assert_int_equal(cg_remove(h->tree, pod, &e), ERR_OK);
    assert_int_equal(cg_meter_read(m, CG_PARTS_BASIC, &s, &e), ERR_NOT_FOUND);
    assert_int_equal(cg_meters_kept(set), 0);
    make_pod(h, 16 << 20); /* one of the same name */
    assert_int_equal(cg_meter_read(m, CG_PARTS_ALL, &s, &e), ERR_OK);
    assert_int_equal(s.memory.limit, 16 << 20);
    cg_meter_free(m);
    cg_meters_close(set);
}

static void memory_in_use_at_a_number_is_told(void **state)
{
    struct host *h = need(state);
    struct cg_pressure *p = NULL;
    struct err e = { 0 };
    bool gone = false, told = false;
    int go;

    make_pod(h, 256 << 20);
    char pod[CG_PATH_MAX];
    assert_int_equal(cg_pod_path(h->tree, CG_BURSTABLE, "u1", pod, sizeof(pod), &e), ERR_OK);
    pid_t pid = eater(h, 64 << 20, &go);
    if (cg_pressure_open_memory(&p, h->tree, pod, 24 << 20, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_false(readable(cg_pressure_fd(p), cg_pressure_poll_events(p), 0));
    assert_int_equal(write(go, "x", 1), 1);
    close(go);
    for (uint64_t until = clock_mono_ms() + DEADLINE_MS; !told && clock_mono_ms() < until;) {
        assert_true(readable(cg_pressure_fd(p), cg_pressure_poll_events(p), DEADLINE_MS));
        told = cg_pressure_take(p, cg_pressure_poll_events(p), &gone);
    }
    assert_true(told);
    assert_false(gone);
    kill(pid, SIGKILL);
    end_of(pid);
    cg_pressure_close(p);
}

static void waiting_for_a_processor_triggers(void **state)
{
    struct host *h = need(state);
    const struct cg_psi_trigger trigger = { CG_RES_CPU, false, 50000, 2000000 };
    struct cg_pressure *p = NULL;
    struct err e = { 0 };
    pid_t pids[12];
    bool gone;

    enum err_code code = cg_pressure_open_psi(&p, h->tree, "/", &trigger, &e);
    if (code == ERR_UNIMPLEMENTED)
        SKIP(e.text);
    if (code != ERR_OK)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) { /* more than there are processors */
        pids[i] = fork();
        if (pids[i] == 0)
            for (;;) {
            }
    }
    bool told = readable(cg_pressure_fd(p), cg_pressure_poll_events(p), DEADLINE_MS);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        kill(pids[i], SIGKILL);
        end_of(pids[i]);
    }
    assert_true(told);
    assert_true(cg_pressure_take(p, POLLPRI, &gone));
    assert_false(gone);
    assert_false(cg_pressure_take(p, POLLERR | POLLPRI, &gone));
    assert_true(gone);
    cg_pressure_close(p);
}

static void a_trigger_that_the_kernel_would_not_take_is_refused(void **state)
{
    struct host *h = need(state);
    static const struct cg_psi_trigger wrong[] = {
        { CG_RES_MEMORY, false, 0, 1000000 },
        { CG_RES_MEMORY, false, 100000, 499999 },
        { CG_RES_MEMORY, false, 100000, 10000001 },
        { CG_RES_MEMORY, false, 600000, 500000 },
    };
    static const struct cg_psi_trigger right = { CG_RES_MEMORY, true, 100000, 1000000 };
    struct cg_pressure *p = NULL;
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(cg_pressure_open_psi(&p, h->tree, "/", &wrong[i], &e), ERR_INVALID);
    assert_int_equal(cg_pressure_open_psi(&p, h->tree, "/coracle-no-such-cgroup", &right, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "memory pressure of cgroup /coracle-no-such-cgroup: no such cgroup");
    assert_int_equal(cg_pressure_open_memory(&p, h->tree, "/", 1 << 20, &e), ERR_INVALID);
    assert_int_equal(cg_pressure_open_memory(&p, h->tree, "/coracle-no-such-cgroup", 1 << 20, &e),
                     ERR_NOT_FOUND);
    assert_null(p);
}

static int group_set_up(void **state)
{
    (void)state;
    return geteuid() != 0 || own_mounts() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        HOST_TEST(a_mount_table_that_cannot_be_read_is_read_again),
        HOST_TEST(a_kill_makes_the_descriptor_readable_and_is_counted_once),
        HOST_TEST(a_cgroup_that_is_not_there_cannot_be_watched),
        HOST_TEST(a_meter_lets_a_removed_cgroup_go),
        HOST_TEST(memory_in_use_at_a_number_is_told),
        HOST_TEST(waiting_for_a_processor_triggers),
        HOST_TEST(a_trigger_that_the_kernel_would_not_take_is_refused),
    };

    return cmocka_run_group_tests(tests, group_set_up, NULL);
}
