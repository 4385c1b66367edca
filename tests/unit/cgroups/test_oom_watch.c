/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real kernel: kills in cgroups below a root of this test's own name.  Needs root and a cgroup
 * file system; what this host has not (v2's memory controller) is skipped with a word.
 */
#include "tests/unit/base/failing.h"
#include "tests/unit/base/helper.h"
#include "tests/unit/cgroups/host_tree.h"

#include "base/clock.h"
#include "cgroups/internal.h"
#include "cgroups/oom_watch.h"

#include <poll.h>

#define DEADLINE_MS 20000

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

static size_t read_all(struct cg_oom_watch *w, bool again, uint64_t *sum)
{
    size_t found = 0;

    assert_true(cg_oom_watch_read(w, again, on_kill, sum, &found));
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
    assert_int_equal(cg_remove(h->tree, h->ctr, &e), ERR_OK);
    assert_false(told_by(&loop, w, 200)); /* v1 tells watchers that a cgroup goes */
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
    assert_true(presence_is_absent(cg_read_oom_kills(h->tree, "/coracle-no-such-cgroup", true, &count, &e)));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        HOST_TEST(a_mount_table_that_cannot_be_read_is_read_again),
        HOST_TEST(a_kill_makes_the_descriptor_readable_and_is_counted_once),
        HOST_TEST(a_cgroup_that_is_not_there_cannot_be_watched),
        HOST_TEST(a_meter_lets_a_removed_cgroup_go),
    };

    return cmocka_run_group_tests(tests, group_set_up, NULL);
}
