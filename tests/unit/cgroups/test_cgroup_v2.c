/* SPDX-License-Identifier: Apache-2.0 */
/* The v2 backend on a folder that imitates cgroupfs: its tree, what is counted in it, and how it ends. */
#include "tests/unit/cgroups/fake_v2.h"

#include "cgroups/oom_watch.h"
#include "tests/unit/base/failing.h"
#include "tests/unit/cgroups/usage.h"

#include <sys/resource.h>

static void controllers_are_handed_down_as_far_as_pods(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    const struct cg_limits l = CG_LIMITS_NONE;

    fake_tree(f, "", ALL);
    fake_cgroup(f, "/kubepods/burstable/podu1", "cpu memory pids\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_int_equal(cg_layout(f->tree), CG_V2);
    assert_string_equal(get(f, "", "cgroup.subtree_control"), "+cpuset +cpu +io +memory +hugetlb +pids");
    assert_string_equal(get(f, "/kubepods/besteffort", "cgroup.subtree_control"),
                        "+cpuset +cpu +io +memory +hugetlb +pids");
    assert_string_equal(get(f, "/coracle/ops", "cgroup.subtree_control"), ""); /* processes sit there */
    assert_int_equal(cg_pod_apply(f->tree, CG_BURSTABLE, "u1", &l, &e), ERR_OK);
    assert_string_equal(get(f, "/kubepods/burstable/podu1", "cgroup.subtree_control"), "+cpu +memory +pids");
}

static void what_is_enabled_already_is_not_written_again(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    fake_tree(f, "", "cpu memory pids\n");
    put(f, "", "cgroup.subtree_control", "cpu memory pids\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_string_equal(get(f, "", "cgroup.subtree_control"), "cpu memory pids\n");
}

static void above_a_delegated_root_nothing_is_written(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    const char *unit = "/system.slice/coracle-pods.service";

    fake_cgroup(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/system.slice", "cpu memory pids\n");
    fake_tree(f, unit, "cpu memory pids\n");
    assert_int_equal(fake_open(f, unit, "/system.slice/coracle.service", &e), ERR_OK);
    assert_string_equal(get(f, "", "cgroup.subtree_control"), "");
    assert_string_equal(get(f, "/system.slice", "cgroup.subtree_control"), "");
    assert_string_equal(get(f, unit, "cgroup.subtree_control"), "+cpu +memory +pids");

    char path[256];
    assert_int_equal(cg_pod_path(f->tree, CG_BEST_EFFORT, "1-2", path, sizeof(path), &e), ERR_OK);
    assert_string_equal(path, "/system.slice/coracle-pods.service/kubepods/besteffort/pod1-2");
}

static void a_controller_that_the_root_lacks_is_asked_for_above_it(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    fake_cgroup(f, "", "cpu memory hugetlb pids\n");
    fake_cgroup(f, "/a", "cpu memory hugetlb pids\n");
    fake_tree(f, "/a/b", "cpu memory pids\n");
    assert_int_equal(fake_open(f, "/a/b", "/", &e), ERR_OK);
    assert_string_equal(get(f, "", "cgroup.subtree_control"), "+hugetlb");
    assert_string_equal(get(f, "/a", "cgroup.subtree_control"), "+hugetlb");
}

static void a_missing_controller_is_an_error_that_names_it(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    fake_tree(f, "/x", "cpu pids\n");
    fake_cgroup(f, "", "cpu pids\n");
    assert_int_equal(fake_open(f, "/x", "/", &e), ERR_PRECONDITION);
    assert_string_equal(
        e.text, "cgroup controllers missing in /x: memory (see cgroup.controllers there and the kernel "
                "command line: cgroup_enable=memory, no cgroup_disable=)");
}

static void usage_is_gathered_from_the_files(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    struct cg_usage u = { 0 };
    const char *ctr = "/kubepods/podu1/c1";

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, ctr, "cpu memory pids\n");
    put(f, ctr, "cpu.stat", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n");
    put(f, ctr, "memory.current", "1000000\n");
    put(f, ctr, "memory.stat", "anon 1\nfile 600000\ninactive_file 400000\nactive_file 200000\n");
    put(f, ctr, "pids.current", "7\n");
    put(f, ctr, "memory.events", "low 0\noom 9\noom_kill 9\n");
    put(f, ctr, "memory.events.local", "low 0\noom 2\noom_kill 1\noom_group_kill 0\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_int_equal(cg_usage(f->tree, ctr, &u, &e), ERR_OK);
    assert_int_equal(u.cpu_ns, 1500000);
    assert_int_equal(u.memory_bytes, 1000000);
    assert_int_equal(u.working_set_bytes, 600000);
    assert_int_equal(u.pids, 7);
    assert_int_equal(u.oom_kills, 1);
    assert_int_equal(cg_usage(f->tree, "/kubepods/podnone", &u, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "usage of cgroup /kubepods/podnone: no such cgroup");
    assert_int_equal(cg_usage(f->tree, "/kubepods/../etc", &u, &e), ERR_INVALID);
}

static void the_root_of_all_counts_anonymous_and_file_memory(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    struct cg_usage u = { 0 };

    fake_tree(f, "", "cpu memory pids\n");
    put(f, "", "memory.stat", "anon 500\nfile 300\ninactive_file 900\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_int_equal(cg_usage(f->tree, "/", &u, &e), ERR_OK);
    assert_int_equal(u.memory_bytes, 800);
    assert_int_equal(u.working_set_bytes, 0); /* never below zero */
}

static bool populated(struct cg_tree *t, const char *path)
{
    struct err e = { 0 };
    struct presence found = cg_has_processes(t, path, &e);

    assert_false(presence_is_unknown(found));
    return !presence_is_absent(found);
}

static void populated_and_kill_use_the_kernels_files(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/kubepods/podu1", "cpu memory pids\n");
    put(f, "/kubepods/podu1", "cgroup.events", "populated 1\nfrozen 0\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_true(populated(f->tree, "/kubepods/podu1"));
    put(f, "/kubepods/podu1", "cgroup.events", "populated 0\nfrozen 0\n");
    assert_false(populated(f->tree, "/kubepods/podu1"));
    assert_false(populated(f->tree, "/kubepods/podnone"));
    assert_int_equal(cg_kill(f->tree, "/kubepods/podu1", &e), ERR_OK);
    assert_string_equal(get(f, "/kubepods/podu1", "cgroup.kill"), "1");
    assert_int_equal(cg_kill(f->tree, "/kubepods/podnone", &e), ERR_OK);
}

static void without_descriptors_nothing_is_taken_for_empty_or_killed(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    struct rlimit before, none;
    struct presence processes, kills;
    uint64_t n = 0;
    enum err_code code;

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/kubepods/podu1", "cpu memory pids\n");
    put(f, "/kubepods/podu1", "cgroup.events", "populated 1\nfrozen 0\n");
    put(f, "/kubepods/podu1", "memory.events", "oom_kill 1\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ .rlim_cur = 3, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    processes = cg_has_processes(f->tree, "/kubepods/podu1", &e);
    kills = cg_read_oom_kills(f->tree, "/kubepods/podu1", false, &n, &e);
    code = cg_kill(f->tree, "/kubepods/podu1", &e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(presence_is_unknown(processes));
    assert_true(presence_is_unknown(kills));
    assert_int_not_equal(code, ERR_OK);
    assert_non_null(strstr(e.text, "Too many open files"));
    assert_true(populated(f->tree, "/kubepods/podu1"));
    assert_false(presence_is_unknown(cg_read_oom_kills(f->tree, "/kubepods/podu1", false, &n, &e)));
    assert_int_equal(n, 1);
}

static void on_kill(const char *path, uint64_t kills, void *arg)
{
    (void)path;
    *(uint64_t *)arg += kills;
}

static void kills_that_could_not_be_counted_are_counted_later(void **state)
{
    struct fake *f = *state;
    struct cg_oom_watch *w = NULL;
    const char *ctr = "/kubepods/podu1";
    struct err e = { 0 };
    uint64_t kills = 0;
    size_t found = 0;
    uv_loop_t loop;

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, ctr, "cpu memory pids\n");
    put(f, ctr, "memory.events", "oom_kill 0\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    uv_loop_init(&loop);
    assert_int_equal(cg_oom_watch_open(&w, f->tree, &loop, &e), ERR_OK);
    assert_int_equal(cg_oom_watch_add(w, ctr, 0, &e), ERR_OK);
    assert_true(cg_oom_watch_read(w, true, on_kill, &kills, &found));
    put(f, ctr, "memory.events", "oom_kill 2\n");
    failing_arm("openat", "memory.events", EIO, 2);
    assert_true(cg_oom_watch_read(w, true, on_kill, &kills, &found)); /* no event yet: not opened */
    uv_run(&loop, UV_RUN_ONCE);
    assert_false(cg_oom_watch_read(w, false, on_kill, &kills, &found));
    assert_int_equal(found, 0);
    assert_int_not_equal(cg_oom_watch_take(w, ctr, &kills, &e), ERR_OK);
    assert_true(cg_oom_watch_read(w, false, on_kill, &kills, &found)); /* without another event */
    assert_int_equal(found, 1);
    assert_int_equal(kills, 2);
    cg_oom_watch_close(w);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void kernels_without_cgroup_kill_are_frozen_and_thawed(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    char path[512], pid[16];

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/kubepods/podu1", "cpu memory pids\n");
    fake_cgroup(f, "/kubepods/podu1/c1", "cpu memory pids\n");
    snprintf(path, sizeof(path), "%s/sys/fs/cgroup/kubepods/podu1/cgroup.kill", f->dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    /* Our own pid, init and "outside the namespace" must be survived. */
    snprintf(pid, sizeof(pid), "%d\n1\n0\n", getpid());
    put(f, "/kubepods/podu1", "cgroup.procs", pid);
    put(f, "/kubepods/podu1/c1", "cgroup.procs", "2147483647\n");
    put(f, "/kubepods/podu1/c1", "cgroup.freeze", "1");
    put(f, "/kubepods/podu1", "cgroup.events", "populated 1\nfrozen 1\n");
    assert_int_equal(cg_kill(f->tree, "/kubepods/podu1", &e), ERR_OK);
}

static void only_our_two_subtrees_are_ever_touched(void **state)
{
    static const char *const foreign[] = {
        "/", "/kubepods2",  "/process_api", "/kubepods/../process_api", "/root/other", "kubepods/podu1",
        "",  "/coracle//x", "/kubepods",    "/root/kubepodsx"
    };
    struct fake *f = *state;
    struct err e = { 0 };

    fake_tree(f, "/root", "cpu memory pids\n");
    fake_cgroup(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/process_api", "cpu memory pids\n");
    assert_int_equal(fake_open(f, "/root", "/", &e), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
        assert_int_equal(cg_kill(f->tree, foreign[i], &e), ERR_INVALID);
        assert_int_equal(cg_remove(f->tree, foreign[i], &e), ERR_INVALID);
        assert_false(populated(f->tree, foreign[i]));
    }
    assert_int_equal(cg_kill(f->tree, "/process_api", &e), ERR_INVALID);
    assert_string_equal(e.text, "kill cgroup \"/process_api\": not below /root/kubepods or /root/coracle");
    assert_string_equal(get(f, "/process_api", "cgroup.kill"), "");
    assert_true(present(f, "/process_api"));
}

static void unsafe_uids_and_roots_are_refused(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    char path[128], many[140];

    fake_tree(f, "", "cpu memory pids\n");
    assert_int_equal(fake_open(f, "relative", "/", &e), ERR_INVALID);
    assert_int_equal(fake_open(f, "/a/../b", "/", &e), ERR_INVALID);
    assert_int_equal(fake_open(f, "/a/", "/", &e), ERR_INVALID);
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_int_equal(cg_pod_path(f->tree, CG_GUARANTEED, "", path, sizeof(path), &e), ERR_INVALID);
    assert_int_equal(cg_pod_path(f->tree, CG_GUARANTEED, "../x", path, sizeof(path), &e), ERR_INVALID);
    assert_string_equal(e.text, "pod uid \"../x\": only letters, digits, -, _ and . are allowed");
    memset(many, 'a', sizeof(many));
    many[sizeof(many) - 1] = '\0';
    assert_int_equal(cg_pod_path(f->tree, CG_GUARANTEED, many, path, sizeof(path), &e), ERR_INVALID);
    assert_int_equal(cg_pod_path(f->tree, CG_GUARANTEED, "abc", path, 10, &e), ERR_RANGE);
}

static void an_agent_that_lives_where_pods_go_is_refused(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    fake_tree(f, "", "cpu memory pids\n");
    assert_int_equal(fake_open(f, "/", "/kubepods/besteffort/podx/c", &e), ERR_PRECONDITION);
    assert_non_null(strstr(e.text, "the agent itself runs in cgroup /kubepods/besteffort/podx/c"));
}

static void pods_of_all_classes_are_listed(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    struct strs list = { 0 };

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/kubepods/poda", "cpu\n");
    fake_cgroup(f, "/kubepods/burstable/podb", "cpu\n");
    fake_cgroup(f, "/kubepods/besteffort/podc", "cpu\n");
    fake_cgroup(f, "/kubepods/besteffort/other", "cpu\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_int_equal(cg_list_pods(f->tree, &list, &e), ERR_OK);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.v[0], "/kubepods/besteffort/podc");
    assert_string_equal(list.v[1], "/kubepods/burstable/podb");
    assert_string_equal(list.v[2], "/kubepods/poda");
    strs_done(&list);
}

static void a_listing_of_pods_that_was_cut_off_is_an_error(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    struct strs list = { 0 };

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/kubepods/poda", "cpu\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    failing_arm("readdir", "", EIO, 1);
    assert_int_not_equal(cg_list_pods(f->tree, &list, &e), ERR_OK);
    assert_int_equal(e.sys, EIO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(controllers_are_handed_down_as_far_as_pods),
        TEST(what_is_enabled_already_is_not_written_again),
        TEST(above_a_delegated_root_nothing_is_written),
        TEST(a_controller_that_the_root_lacks_is_asked_for_above_it),
        TEST(a_missing_controller_is_an_error_that_names_it),
        TEST(usage_is_gathered_from_the_files),
        TEST(the_root_of_all_counts_anonymous_and_file_memory),
        TEST(populated_and_kill_use_the_kernels_files),
        TEST(without_descriptors_nothing_is_taken_for_empty_or_killed),
        TEST(kills_that_could_not_be_counted_are_counted_later),
        TEST(kernels_without_cgroup_kill_are_frozen_and_thawed),
        TEST(only_our_two_subtrees_are_ever_touched),
        TEST(unsafe_uids_and_roots_are_refused),
        TEST(an_agent_that_lives_where_pods_go_is_refused),
        TEST(pods_of_all_classes_are_listed),
        TEST(a_listing_of_pods_that_was_cut_off_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
