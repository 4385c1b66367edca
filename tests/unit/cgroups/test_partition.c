/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions: the kernel's words, and which files are read and written, on a folder that imitates cgroupfs.
 * The kernel itself is in tests/node/inside/numa.py. */
#include "tests/unit/cgroups/fake_v2.h"

#include "cgroups/partition.h"

#define SLICE "/system.slice"
#define UNIT SLICE "/pods.service"
#define POD UNIT "/kubepods/podu1"

static void the_kernels_words_are_understood(void **state)
{
    char why[CG_PARTITION_WHY];

    (void)state;
    assert_int_equal(cg_partition_parse("member\n", why), CG_PARTITION_MEMBER);
    assert_int_equal(cg_partition_parse("root\n", why), CG_PARTITION_ROOT);
    assert_int_equal(cg_partition_parse("isolated\n", why), CG_PARTITION_ISOLATED);
    assert_string_equal(why, "");
    assert_int_equal(cg_partition_parse("isolated invalid (Cpu list in cpuset.cpus not exclusive)\n", why),
                     CG_PARTITION_INVALID);
    assert_string_equal(why, "Cpu list in cpuset.cpus not exclusive");
    assert_int_equal(cg_partition_parse("root invalid\n", why), CG_PARTITION_INVALID);
    assert_string_equal(why, "the kernel names no reason");
    assert_int_equal(cg_partition_parse("", why), CG_PARTITION_MEMBER);
}

static void level(const struct fake *f, const char *path, const char *partition)
{
    fake_cgroup(f, path, "cpu cpuset memory pids\n");
    put(f, path, "cpuset.cpus.exclusive", "\n");
    put(f, path, "cpuset.cpus.partition", partition);
}

static void begin(struct fake *f, const char *slice)
{
    struct err e = { 0 };

    fake_cgroup(f, "", "cpu cpuset memory pids\n");
    fake_tree(f, UNIT, "cpu cpuset memory pids\n");
    level(f, SLICE, slice);
    level(f, UNIT, "member\n");
    level(f, UNIT "/kubepods", "member\n");
    level(f, POD, "member\n");
    level(f, POD "/c1", "isolated\n");
    assert_int_equal(fake_open(f, UNIT, UNIT, &e), ERR_OK);
}

static void the_cgroups_above_are_those_without_a_partition_of_others(void **state)
{
    struct fake *f = *state;
    struct strs above = { 0 }, inside = { 0 };
    struct err e = { 0 };
    const char *why;

    begin(f, "member\n");
    assert_true(cg_partition_possible(f->tree, &why));
    assert_int_equal(cg_above_pods(f->tree, &above, &e), ERR_OK);
    assert_int_equal(above.n, 2);
    assert_string_equal(above.v[0], SLICE);
    assert_string_equal(above.v[1], UNIT);
    strs_done(&above);
    put(f, SLICE, "cpuset.cpus.partition", "root\n");
    above = (struct strs){ 0 };
    assert_int_equal(cg_above_pods(f->tree, &above, &e), ERR_OK);
    assert_int_equal(above.n, 1);
    assert_string_equal(above.v[0], UNIT);
    strs_done(&above);
    assert_int_equal(cg_list_in(f->tree, POD, &inside, &e), ERR_OK);
    assert_int_equal(inside.n, 1);
    assert_string_equal(inside.v[0], POD "/c1");
    strs_done(&inside);
    inside = (struct strs){ 0 };
    assert_int_equal(cg_list_in(f->tree, UNIT "/kubepods/podu2", &inside, &e), ERR_OK);
    assert_int_equal(inside.n, 0);
}

static void only_pods_and_what_is_above_them_is_written(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    str_auto text = NULL;

    begin(f, "member\n");
    assert_int_equal(cg_exclusive_write(f->tree, SLICE, "2-3", &e), ERR_OK);
    assert_string_equal(get(f, SLICE, "cpuset.cpus.exclusive"), "2-3");
    assert_int_equal(cg_exclusive_read(f->tree, SLICE, &text, &e), ERR_OK);
    assert_string_equal(text, "2-3");
    assert_int_equal(cg_partition_write(f->tree, POD "/c1", false, &e), ERR_OK);
    assert_int_equal(strncmp(get(f, POD "/c1", "cpuset.cpus.partition"), "member", 6), 0);
    level(f, "/user.slice", "member\n");
    assert_int_equal(cg_exclusive_write(f->tree, "/user.slice", "2-3", &e), ERR_INVALID);
    e = (struct err){ 0 };
    assert_int_equal(cg_exclusive_write(f->tree, "/system", "2-3", &e), ERR_INVALID);
    e = (struct err){ 0 };
    assert_int_equal(cg_exclusive_write(f->tree, "/", "2-3", &e), ERR_INVALID);
    e = (struct err){ 0 };
    assert_int_equal(cg_exclusive_write(f->tree, POD "/c2", "2-3", &e), ERR_NOT_FOUND);
}

static void an_older_kernel_is_named(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    const char *why;

    fake_tree(f, "", "cpu cpuset memory pids\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_false(cg_partition_possible(f->tree, &why));
    assert_non_null(strstr(why, "Linux 6.7"));
    cg_close(take_ptr(&f->tree), false);
    fake_tree(f, "", "cpu memory pids\n");
    assert_int_equal(fake_open(f, "/", "/", &e), ERR_OK);
    assert_false(cg_partition_possible(f->tree, &why));
    assert_non_null(strstr(why, "cpuset controller"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernels_words_are_understood),
        TEST(the_cgroups_above_are_those_without_a_partition_of_others),
        TEST(only_pods_and_what_is_above_them_is_written),
        TEST(an_older_kernel_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
