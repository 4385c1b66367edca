/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <linux/magic.h>

static void a_folder_is_open_to_all_inside_a_closed_pod_folder(void **state)
{
    struct fixture *f = need(state);
    const struct vol_empty_dir d = { .uid = "u1", .name = "data", .fs_group = -1 };
    char path[VOL_PATH_MAX], expected[200];
    struct err e = { 0 };
    mode_t before = umask(077);

    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    umask(before);
    snprintf(expected, sizeof(expected), "%s/u1/volumes/kubernetes.io~empty-dir/data", f->pods);
    assert_string_equal(path, expected);
    assert_int_equal(mode_of(path), S_IFDIR | 0777);
    snprintf(expected, sizeof(expected), "%s/u1", f->pods);
    assert_int_equal(mode_of(expected), S_IFDIR | 0750);
    assert_false(fs_is_mountpoint(path));
}

static void content_and_what_the_pod_did_to_the_folder_are_kept(void **state)
{
    struct fixture *f = need(state);
    const struct vol_empty_dir d = { .uid = "u1", .name = "data", .fs_group = -1 };
    char path[VOL_PATH_MAX], file[VOL_PATH_MAX + 8];
    struct err e = { 0 };

    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    snprintf(file, sizeof(file), "%s/x", path);
    write_file(file, "kept");
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    assert_file(file, "kept");
    assert_int_equal(mode_of(path), S_IFDIR | 0700);
}

static void a_half_made_folder_of_a_killed_run_is_finished(void **state)
{
    struct fixture *f = need(state);
    const struct vol_empty_dir d = { .uid = "u1", .name = "data", .fs_group = 4711 };
    char path[VOL_PATH_MAX], half[200];
    struct err e = { 0 };

    snprintf(half, sizeof(half), "%s/u1/volumes/kubernetes.io~empty-dir/.data.new", f->pods);
    assert_int_equal(fs_mkdirs(half, 0700, &e), ERR_OK);
    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    assert_int_not_equal(access(half, F_OK), 0);
    assert_int_equal(mode_of(path), S_IFDIR | 02777);
}

static void fs_group_owns_the_folder_and_what_is_made_in_it(void **state)
{
    struct fixture *f = need(state);
    const struct vol_empty_dir d = { .uid = "u1", .name = "data", .fs_group = 4711 };
    char path[VOL_PATH_MAX], sub[VOL_PATH_MAX + 8];
    struct err e = { 0 };
    struct stat st;

    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(mode_of(path), S_IFDIR | 02777);
    snprintf(sub, sizeof(sub), "%s/sub", path);
    assert_int_equal(mkdir(sub, 0755), 0);
    assert_int_equal(stat(sub, &st), 0);
    assert_int_equal(st.st_gid, 4711);
}

static void medium_memory_is_a_tmpfs_of_the_given_size(void **state)
{
    struct fixture *f = need(state);
    struct vol_empty_dir d = {
        .uid = "u1", .name = "mem", .memory = true, .size_bytes = 1 << 20, .fs_group = 4711
    };
    char path[VOL_PATH_MAX], file[VOL_PATH_MAX + 8];
    struct err e = { 0 };
    struct statfs fs;
    struct stat st;

    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(statfs(path, &fs), 0);
    assert_int_equal(fs.f_type, TMPFS_MAGIC);
    assert_int_equal((uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize, 1 << 20);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 03777);
    assert_int_equal(st.st_gid, 4711);
    snprintf(file, sizeof(file), "%s/x", path);
    write_file(file, "kept");
    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    assert_file(file, "kept");
    assert_int_equal(umount2(path, MNT_DETACH), 0);
    assert_int_not_equal(access(file, F_OK), 0); /* it was mounted once only */

    d.fs_group = -1;
    d.size_bytes = 0;
    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(mode_of(path), S_IFDIR | 01777);
}

static void medium_huge_pages_is_a_hugetlbfs_of_the_given_page_size(void **state)
{
    struct fixture *f = need(state);
    struct vol_empty_dir d = {
        .uid = "u1", .name = "huge", .huge_page_bytes = 2 << 20, .size_bytes = (3 << 20) + 1, .fs_group = -1
    };
    char path[VOL_PATH_MAX];
    struct statfs fs;
    struct stat st;
    struct err e = { 0 };

    if (access("/sys/kernel/mm/hugepages/hugepages-2048kB", F_OK) != 0)
        SKIP("this host has no huge pages of 2 MiB");
    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(statfs(path, &fs), 0);
    assert_int_equal(fs.f_type, HUGETLBFS_MAGIC);
    assert_int_equal(fs.f_bsize, 2 << 20);
    assert_int_equal(fs.f_blocks, 2); /* a part of a page counts as a whole one */
    assert_int_equal(mode_of(path), S_IFDIR | 0755);
    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(umount2(path, MNT_DETACH), 0);
    assert_false(fs_is_mountpoint(path)); /* it was mounted once only */

    d.fs_group = 4711;
    d.size_bytes = 0;
    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 02775);
    assert_int_equal(st.st_gid, 4711);
    assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_OK);
    assert_int_not_equal(access(path, F_OK), 0);

    d.huge_page_bytes = 3 << 20;
    assert_int_not_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    assert_non_null(strstr(e.text, "volume huge: mount hugetlbfs on "));
}

static void a_group_that_cannot_be_is_refused(void **state)
{
    struct fixture *f = need(state);
    const struct vol_empty_dir d = { .uid = "u1", .name = "data", .fs_group = 1ll << 32 };
    char path[VOL_PATH_MAX];
    struct err e = { 0 };

    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_INVALID);
    assert_string_equal(e.text, "volume data: fsGroup 4294967296 is not a group id");
}

static void something_else_of_that_name_is_an_error(void **state)
{
    struct fixture *f = need(state);
    const struct vol_empty_dir d = { .uid = "u1", .name = "data", .fs_group = -1 };
    char path[VOL_PATH_MAX];
    struct err e = { 0 };

    snprintf(path, sizeof(path), "%s/u1/volumes/kubernetes.io~empty-dir", f->pods);
    assert_int_equal(fs_mkdirs(path, 0750, &e), ERR_OK);
    strcat(path, "/data");
    assert_int_equal(symlink("/etc", path), 0);
    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "volume data: data exists and is not a folder");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_folder_is_open_to_all_inside_a_closed_pod_folder),
        TEST(content_and_what_the_pod_did_to_the_folder_are_kept),
        TEST(a_half_made_folder_of_a_killed_run_is_finished),
        TEST(fs_group_owns_the_folder_and_what_is_made_in_it),
        TEST(medium_memory_is_a_tmpfs_of_the_given_size),
        TEST(medium_huge_pages_is_a_hugetlbfs_of_the_given_page_size),
        TEST(a_group_that_cannot_be_is_refused),
        TEST(something_else_of_that_name_is_an_error),
    };

    return cmocka_run_group_tests(tests, private_mounts, NULL);
}
