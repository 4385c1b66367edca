/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroups/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cg_found found;

static enum err_code discover(const char *mountinfo, const char *proc_cgroup, struct err *e)
{
    memset(&found, 0, sizeof(found));
    return cg_discover(&found, mountinfo, proc_cgroup, e);
}

static const struct cg_found_hier *by_name(const char *name)
{
    for (size_t i = 0; i < found.n; i++)
        if (strcmp(found.hiers[i].name, name) == 0)
            return &found.hiers[i];
    return NULL;
}

static void unified_host_has_one_hierarchy(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(discover("22 1 0:22 / /sys rw - sysfs sysfs rw\n"
                              "31 22 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 "
                              "rw,nsdelegate,memory_recursiveprot\n",
                              "0::/system.slice/coracle.service\n", &e),
                     ERR_OK);
    assert_int_equal(found.layout, CG_V2);
    assert_int_equal(found.n, 1);
    assert_true(found.hiers[0].v2);
    assert_string_equal(found.hiers[0].point, "/sys/fs/cgroup");
    assert_string_equal(found.hiers[0].own, "/system.slice/coracle.service");
    assert_int_equal(found.n_unmounted, 0);
}

static void hybrid_host_keeps_controllers_apart_and_knows_the_unmounted_one(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(
        discover(
            "31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
            "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
            "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
            "38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
            "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/x,name=systemd\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
            "99 1 0:40 / /run/coracle/scratch/hugetlb rw - cgroup none rw,hugetlb\n",
            "11:hugetlb:/\n9:name=systemd:/x\n7:blkio:/\n6:freezer:/\n4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n",
            &e),
        ERR_OK);
    assert_int_equal(found.layout, CG_HYBRID);
    assert_int_equal(found.n, 6);
    assert_int_equal(by_name("cpu,cpuacct")->controllers, CG_CTL_CPU | CG_CTL_CPUACCT);
    assert_int_equal(by_name("memory")->controllers, CG_CTL_MEMORY);
    assert_string_equal(by_name("memory")->own, "/a/b");
    assert_int_equal(by_name("blkio")->controllers, CG_CTL_IO);
    assert_int_equal(by_name("name=systemd")->controllers, 0);
    assert_true(by_name("unified")->v2);
    assert_null(by_name("hugetlb"));
    assert_int_equal(found.n_unmounted, 1);
    assert_string_equal(found.unmounted[0], "hugetlb");
}

static void v1_host_is_told_from_a_hybrid(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(
        discover("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/\n", &e),
        ERR_OK);
    assert_int_equal(found.layout, CG_V1);
}

static void a_mount_hides_what_lay_below_it(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(discover("31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                              "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                              "50 31 0:50 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                              "4:memory:/\n0::/\n", &e),
                     ERR_OK);
    assert_int_equal(found.layout, CG_V2);
    assert_int_equal(found.n, 1);
}

static void the_second_mount_of_a_hierarchy_is_ignored(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(discover("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                              "36 31 0:32 / /sys/fs/cgroup/again rw - cgroup cgroup rw,memory\n",
                              "4:memory:/\n", &e),
                     ERR_OK);
    assert_int_equal(found.n, 1);
    assert_string_equal(found.hiers[0].point, "/sys/fs/cgroup/memory");
}

static void a_host_without_cgroups_is_told_what_to_mount(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(discover("22 1 0:22 / /sys rw - sysfs sysfs rw\n", "0::/\n", &e), ERR_PRECONDITION);
    assert_non_null(strstr(e.text, "mount -t cgroup2 none /sys/fs/cgroup"));
}

static void text_that_no_kernel_writes_is_refused(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(discover("", "memory\n", &e), ERR_INVALID);
    assert_string_equal(e.text, "/proc/self/cgroup: line \"memory\" is not id:controllers:path");
    e = (struct err){ 0 };
    assert_int_equal(discover("", "4:memory:relative\n", &e), ERR_INVALID);

    char many[70 * 16] = "";
    for (int i = 0; i < 70; i++)
        strcat(many, "1:a:/\n");
    e = (struct err){ 0 };
    assert_int_equal(discover("", many, &e), ERR_INVALID);
    assert_string_equal(e.text, "/proc/self/cgroup: more than 64 hierarchies");
}

static void over_long_names_and_more_hierarchies_than_expected_are_left_out(void **state)
{
    struct err e = { 0 };
    char mounts[8192] = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    char groups[4096] = "4:memory:/\n";

    (void)state;
    for (int i = 0; i < 40; i++) {
        char line[128];
        snprintf(line, sizeof(line), "1 1 0:1 / /sys/fs/cgroup/n%d rw - cgroup cgroup rw,name=n%d\n", i, i);
        strcat(mounts, line);
        snprintf(line, sizeof(line), "%d:name=n%d:/\n", 10 + i, i);
        strcat(groups, line);
    }
    assert_int_equal(discover(mounts, groups, &e), ERR_OK);
    assert_int_equal(found.n, CG_HIERS_MAX);
    assert_string_equal(found.hiers[0].name, "memory");

    char long_point[512] = "1 1 0:1 / /sys/fs/cgroup/";
    memset(long_point + strlen(long_point), 'x', 300);
    strcat(long_point, " rw - cgroup2 cgroup2 rw\n");
    assert_int_equal(discover(long_point, "0::/\n", &e), ERR_PRECONDITION);
}

static void controller_lists_are_read_and_written(void **state)
{
    char text[128];

    (void)state;
    assert_int_equal(cg_controllers_parse("cpuset cpu io memory hugetlb pids rdma misc\n"),
                     CG_CTL_CPUSET | CG_CTL_CPU | CG_CTL_IO | CG_CTL_MEMORY | CG_CTL_HUGETLB | CG_CTL_PIDS);
    assert_int_equal(cg_controllers_parse("cpuacctx,cp,memory_x"), 0);
    assert_int_equal(cg_controllers_parse(""), 0);
    cg_controllers_format(CG_CTL_CPU | CG_CTL_IO | CG_CTL_MEMORY, '+', text, sizeof(text));
    assert_string_equal(text, "+cpu +io +memory");
    cg_controllers_format(CG_CTL_PIDS | CG_CTL_CPUSET, '\0', text, sizeof(text));
    assert_string_equal(text, "cpuset pids");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unified_host_has_one_hierarchy),
        cmocka_unit_test(hybrid_host_keeps_controllers_apart_and_knows_the_unmounted_one),
        cmocka_unit_test(v1_host_is_told_from_a_hybrid),
        cmocka_unit_test(a_mount_hides_what_lay_below_it),
        cmocka_unit_test(the_second_mount_of_a_hierarchy_is_ignored),
        cmocka_unit_test(a_host_without_cgroups_is_told_what_to_mount),
        cmocka_unit_test(text_that_no_kernel_writes_is_refused),
        cmocka_unit_test(over_long_names_and_more_hierarchies_than_expected_are_left_out),
        cmocka_unit_test(controller_lists_are_read_and_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
