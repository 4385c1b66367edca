/* SPDX-License-Identifier: Apache-2.0 */
/* The v2 backend on a folder that imitates cgroupfs: which limits are written where. */
#include "tests/unit/cgroups/fake_v2.h"

#include "tests/unit/base/failing.h"

static void limits_are_written_in_the_kernels_words(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    const char *pod = "/kubepods/podu1";
    struct cg_limits l = {
        .cpu_shares = 1024, .cpu_quota_us = 50000, .memory_max = 64 << 20, .pids_max = 100
    };

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, pod, "cpu memory pids\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_int_equal(cg_pod_apply(f->tree, CG_GUARANTEED, "u1", &l, &e), ERR_OK);
    assert_string_equal(get(f, pod, "cpu.weight"), "100");
    assert_string_equal(get(f, pod, "cpu.max"), "50000 100000");
    assert_string_equal(get(f, pod, "memory.max"), "67108864");
    assert_string_equal(get(f, pod, "pids.max"), "100");

    fake_cgroup(f, pod, "cpu memory pids\n"); /* empty files again */
    l = (struct cg_limits)CG_LIMITS_NONE;
    assert_int_equal(cg_pod_apply(f->tree, CG_GUARANTEED, "u1", &l, &e), ERR_OK);
    assert_string_equal(get(f, pod, "cpu.weight"), "");
    assert_string_equal(get(f, pod, "cpu.max"), "max 100000");
    assert_string_equal(get(f, pod, "memory.max"), "max");
    assert_string_equal(get(f, pod, "pids.max"), "max");
}

static void huge_pages_are_limited_in_use_and_reserved(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    const char *pod = "/kubepods/podu1";
    const struct cg_hugetlb huge[] = { { "2MB", 4 << 20 }, { "1GB", 0 } };
    struct cg_limits l = CG_LIMITS_NONE;

    fake_tree(f, "", "cpu memory hugetlb pids\n");
    fake_cgroup(f, pod, "cpu memory hugetlb pids\n");
    put(f, pod, "hugetlb.2MB.max", "");
    put(f, pod, "hugetlb.2MB.rsvd.max", "");
    put(f, pod, "hugetlb.1GB.max", ""); /* as before 5.7, without reservations */
    l.hugetlb = huge;
    l.n_hugetlb = ARRAY_LEN(huge);
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_true(cg_has_hugetlb(f->tree));
    assert_false(cg_has_hugetlb_reserved(f->tree, "2MB"));
    put(f, "/kubepods", "hugetlb.2MB.rsvd.max", "");
    assert_true(cg_has_hugetlb_reserved(f->tree, "2MB"));
    assert_false(cg_has_hugetlb_reserved(f->tree, "1GB"));
    assert_int_equal(cg_pod_apply(f->tree, CG_GUARANTEED, "u1", &l, &e), ERR_OK);
    assert_string_equal(get(f, pod, "hugetlb.2MB.max"), "4194304");
    assert_string_equal(get(f, pod, "hugetlb.2MB.rsvd.max"), "4194304");
    assert_string_equal(get(f, pod, "hugetlb.1GB.max"), "0");
    cg_close(take_ptr(&f->tree), false);

    fake_tree(f, "", "cpu memory pids\n"); /* no such controller: no such limits */
    fake_cgroup(f, pod, "cpu memory pids\n");
    put(f, pod, "hugetlb.2MB.max", "");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_false(cg_has_hugetlb(f->tree));
    assert_int_equal(cg_pod_apply(f->tree, CG_GUARANTEED, "u1", &l, &e), ERR_OK);
    assert_string_equal(get(f, pod, "hugetlb.2MB.max"), "");
}

static void protection_and_group_kills_are_written_where_asked_for_and_taken_away(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    const char *pod = "/kubepods/podu1";
    struct cg_limits l = CG_LIMITS_NONE;

    fake_tree(f, "", "cpu cpuset memory pids\n");
    fake_cgroup(f, pod, "cpu cpuset memory pids\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_int_equal(cg_pod_apply(f->tree, CG_GUARANTEED, "u1", &l, &e),
                     ERR_OK); /* no such files: old kernel */
    static const char *const files[] = { "memory.min", "memory.low", "memory.oom.group", "cpuset.cpus",
                                         "cpuset.mems" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        put(f, pod, files[i], "");
    l.memory_min = 1 << 20;
    l.memory_low = 2 << 20;
    l.oom_group = true;
    l.cpus = "0-1";
    l.mems = "0";
    assert_int_equal(cg_pod_apply(f->tree, CG_GUARANTEED, "u1", &l, &e), ERR_OK);
    assert_string_equal(get(f, pod, "memory.min"), "1048576");
    assert_string_equal(get(f, pod, "memory.low"), "2097152");
    assert_string_equal(get(f, pod, "memory.oom.group"), "1");
    assert_string_equal(get(f, pod, "cpuset.cpus"), "0-1");
    assert_string_equal(get(f, pod, "cpuset.mems"), "0");
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        put(f, pod, files[i], "");
    l = (struct cg_limits)CG_LIMITS_NONE;
    assert_int_equal(cg_pod_apply(f->tree, CG_GUARANTEED, "u1", &l, &e), ERR_OK);
    assert_string_equal(get(f, pod, "memory.min"), "0");
    assert_string_equal(get(f, pod, "memory.low"), "0");
    assert_string_equal(get(f, pod, "memory.oom.group"), "0");
    assert_string_equal(get(f, pod, "cpuset.cpus"), "");
}

static void protection_counts_as_far_as_the_cgroups_above_have_it(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    char where[64] = "";

    fake_cgroup(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/a", "cpu memory pids\n");
    fake_tree(f, "/a/b", "cpu memory pids\n");
    put(f, "/a", "memory.min", "4096\n");
    put(f, "/a/b", "memory.min", "max\n");
    assert_int_equal(fake_open(f, "/a/b", "/", &e), ERR_OK);
    assert_int_equal(cg_protected_above(f->tree, where, sizeof(where)), 4096);
    assert_string_equal(where, "/a");
    put(f, "/a/b", "memory.min", "0\n");
    assert_int_equal(cg_protected_above(f->tree, where, sizeof(where)), 0);
    assert_string_equal(where, "/a/b");
}

static void somebody_elses_cgroup_gets_only_what_is_limited(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    struct cg_limits l = CG_LIMITS_NONE;

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/system.slice", "cpu memory pids\n");
    fake_cgroup(f, "/poor.slice", "pids\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    l.cpu_shares = 1024;
    l.memory_max = 1 << 30;
    assert_int_equal(cg_foreign_apply(f->tree, "/system.slice", &l, &e), ERR_OK);
    assert_string_equal(get(f, "/system.slice", "cpu.weight"), "100");
    assert_string_equal(get(f, "/system.slice", "memory.max"), "1073741824");
    assert_string_equal(get(f, "/system.slice", "cpu.max"), "");
    assert_string_equal(get(f, "/system.slice", "pids.max"), "");
    assert_int_equal(cg_foreign_apply(f->tree, "none.slice", &l, &e), ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "none.slice: No such file or directory"));
    assert_int_equal(cg_foreign_apply(f->tree, "poor.slice", &l, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "cgroup /poor.slice: it has no controller cpu memory");
    assert_int_equal(cg_foreign_apply(f->tree, "/a/../b", &l, &e), ERR_INVALID);
}

static void a_cgroup_in_which_the_pods_are_gets_no_limits_of_the_systems(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    struct cg_limits l = CG_LIMITS_NONE;
    const char *unit = "/system.slice/coracle-pods.service";

    fake_cgroup(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/system.slice", "cpu memory pids\n");
    fake_tree(f, unit, "cpu memory pids\n");
    assert_int_equal(fake_open(f, unit, unit, &e), ERR_OK);
    l.memory_max = 1 << 30;
    assert_int_equal(cg_foreign_apply(f->tree, "/system.slice", &l, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "cgroup /system.slice: the pods' own cgroup "
                                "/system.slice/coracle-pods.service is in it and would be limited, too");
    assert_int_equal(cg_foreign_apply(f->tree, unit, &l, &e), ERR_PRECONDITION);
    assert_string_equal(get(f, "/system.slice", "memory.max"), "");
    assert_int_equal(cg_foreign_apply(f->tree, "/system", &l, &e), ERR_NOT_FOUND); /* no folder of its path */
}

static void node_and_class_levels_are_written_too(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    const struct cg_limits l = {
        .cpu_shares = 2048, .cpu_quota_us = -1, .memory_max = 1 << 30, .pids_max = -1
    };
    struct cg_limits class_limits = CG_LIMITS_NONE;

    class_limits.cpu_shares = 512;

    fake_tree(f, "", "cpu memory pids\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_int_equal(cg_node_apply(f->tree, &l, &e), ERR_OK);
    assert_string_equal(get(f, "/kubepods", "cpu.weight"), "174");
    assert_string_equal(get(f, "/kubepods", "memory.max"), "1073741824");
    assert_int_equal(cg_qos_apply(f->tree, CG_BURSTABLE, &class_limits, &e), ERR_OK);
    assert_string_equal(get(f, "/kubepods/burstable", "cpu.weight"), "59");
    assert_int_equal(cg_qos_apply(f->tree, CG_GUARANTEED, &class_limits, &e), ERR_INVALID);
}

static void a_control_file_that_is_missing_is_named_with_its_cgroup(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    const struct cg_limits l = { .cpu_shares = -1, .cpu_quota_us = -1, .memory_max = 1, .pids_max = -1 };
    char path[512];

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/kubepods/podu1", "cpu memory pids\n");
    snprintf(path, sizeof(path), "%s/sys/fs/cgroup/kubepods/podu1/memory.max", f->dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_int_equal(cg_pod_apply(f->tree, CG_GUARANTEED, "u1", &l, &e), ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "cgroup /sys/fs/cgroup/kubepods/podu1: "));
    assert_non_null(strstr(e.text, "memory.max"));
}

static void a_limit_that_could_not_be_read_is_not_lifted(void **state)
{
    struct fake *f = *state;
    struct cg_limits l = CG_LIMITS_NONE;
    struct err e = { 0 };

    fake_tree(f, "", "cpu memory pids\n");
    fake_cgroup(f, "/kubepods/podu1", "cpu memory pids\n");
    put(f, "/kubepods/podu1", "pids.max", "100\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    failing_arm("openat", "pids.max", EMFILE, 1);
    assert_int_not_equal(cg_resize(f->tree, "/kubepods/podu1", &l, -1, &e), ERR_OK);
    assert_string_equal(get(f, "/kubepods/podu1", "pids.max"), "100\n");
    e = (struct err){ 0 };
    assert_int_equal(cg_resize(f->tree, "/kubepods/podu1", &l, -1, &e), ERR_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(limits_are_written_in_the_kernels_words),
        TEST(huge_pages_are_limited_in_use_and_reserved),
        TEST(protection_and_group_kills_are_written_where_asked_for_and_taken_away),
        TEST(protection_counts_as_far_as_the_cgroups_above_have_it),
        TEST(somebody_elses_cgroup_gets_only_what_is_limited),
        TEST(a_cgroup_in_which_the_pods_are_gets_no_limits_of_the_systems),
        TEST(node_and_class_levels_are_written_too),
        TEST(a_control_file_that_is_missing_is_named_with_its_cgroup),
        TEST(a_limit_that_could_not_be_read_is_not_lifted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
