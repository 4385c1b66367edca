/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

static const struct vol_file files[] = { FILE_OF("key", "value", 0400) };

static void the_tmpfs_is_mounted_closed_to_others_and_sized(void **state)
{
    struct fixture *f = need(state);
    struct statfs st;

    assert_true(fs_is_mountpoint(f->tmpfs));
    assert_int_equal(mode_of(f->tmpfs) & 07777, 0700);
    assert_int_equal(mode_of(f->pods) & 07777, 0750);
    assert_int_equal(statfs(f->tmpfs, &st), 0);
    assert_int_equal((uint64_t)st.f_blocks * (uint64_t)st.f_bsize, 8 << 20);
    assert_true((st.f_flags & (ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
    if (!vol_swap_is_on())
        assert_false(f->warning);
}

static void opening_again_keeps_content_and_takes_the_new_size(void **state)
{
    struct fixture *f = need(state);
    const struct vol_payload p = { .uid = "u1", .name = "cfg", .files = files, .n_files = 1, .fs_group = -1 };
    char path[VOL_PATH_MAX], file[VOL_PATH_MAX + 8];
    struct err e = { 0 };
    struct statfs st;
    bool changed;

    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    vol_node_close(f->node, false);
    f->node = NULL;
    assert_int_equal(open_node(f, 16 << 20, &e), ERR_OK);
    assert_int_equal(statfs(f->tmpfs, &st), 0);
    assert_int_equal((uint64_t)st.f_blocks * (uint64_t)st.f_bsize, 16 << 20);
    assert_true((st.f_flags & (ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
    assert_int_equal(vol_payload_path(f->node, "u1", "cfg", path, sizeof(path), &e), ERR_OK);
    snprintf(file, sizeof(file), "%s/key", path);
    assert_file(file, "value");
    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    assert_false(changed);
}

static void closing_with_remove_unmounts(void **state)
{
    struct fixture *f = need(state);

    vol_node_close(f->node, true);
    f->node = NULL;
    assert_false(fs_is_mountpoint(f->tmpfs));
    assert_int_not_equal(access(f->tmpfs, F_OK), 0);
}

static void a_symlinked_folder_is_found_in_mountinfo_all_the_same(void **state)
{
    struct fixture *f = need(state);
    struct err e = { 0 };
    char link[80];

    vol_node_close(f->node, true);
    f->node = NULL;
    snprintf(link, sizeof(link), "%s/run", f->dir);
    assert_int_equal(symlink(".", link), 0);
    snprintf(f->tmpfs, sizeof(f->tmpfs), "%s/run/tmpfs", f->dir);
    assert_int_equal(open_node(f, 1 << 20, &e), ERR_OK);
    vol_node_close(f->node, false);
    f->node = NULL;
    assert_int_equal(open_node(f, 1 << 20, &e), ERR_OK);
    vol_node_close(f->node, true);
    f->node = NULL;
    assert_false(fs_is_mountpoint(f->tmpfs)); /* once mounted, once unmounted */
}

static void a_payload_can_be_read_by_others_below_a_root_that_they_cannot_enter(void **state)
{
    struct fixture *f = need(state);
    const struct vol_payload p = { .uid = "u1", .name = "cfg", .files = files, .n_files = 1, .fs_group = -1 };
    char path[VOL_PATH_MAX];
    struct err e = { 0 };
    bool changed = false;

    mode_t before = umask(077);
    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    umask(before);
    assert_true(changed);
    assert_int_equal(vol_payload_path(f->node, "u1", "cfg", path, sizeof(path), &e), ERR_OK);
    assert_int_equal(mode_of(path), S_IFDIR | 0755);
    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    assert_false(changed);
}

static void too_much_content_is_refused_before_anything_is_written(void **state)
{
    struct fixture *f = need(state);
    const struct vol_file big[] = { { .path = "a", .data = "", .size = VOL_PAYLOAD_MAX },
                                    { .path = "b", .data = "", .size = 1 } };
    const struct vol_payload p = { .uid = "u1", .name = "cfg", .files = big, .n_files = 2, .fs_group = -1 };
    struct err e = { 0 };
    bool changed = false;

    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "volume cfg: its files have more than 16777216 bytes together");
}

#define MANY 400

static bool is_large(struct fixture *f, const struct vol_payload *p)
{
    return vol_payload_is_large(p) || vol_payload_entries(f->node, p->uid, p->name) == VOL_LARGE_ENTRIES;
}

static void what_is_written_or_removed_decides_whether_a_payload_is_large(void **state)
{
    struct fixture *f = need(state);
    static char names[MANY][8], megabytes[2 << 20];
    struct vol_file many[MANY];
    const struct vol_file big[] = {
        { .path = "a", .data = megabytes, .size = sizeof(megabytes), .mode = 0644 }
    };
    struct vol_payload p = { .uid = "u1", .name = "cfg", .files = files, .n_files = 1, .fs_group = -1 };
    struct err e = { 0 };
    bool changed;

    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "k%zu", i);
        many[i] = (struct vol_file){ .path = names[i], .data = "v", .size = 1, .mode = 0644 };
    }
    assert_false(is_large(f, &p));
    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    assert_false(is_large(f, &p));
    p.files = big;
    assert_true(is_large(f, &p));
    p.files = many;
    p.n_files = MANY;
    assert_true(is_large(f, &p));
    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    p.files = files;
    p.n_files = 1;
    assert_true(is_large(f, &p)); /* its files and links are to be removed */
    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    assert_false(is_large(f, &p));
}

static void a_publish_adds_no_more_entries_than_announced(void **state)
{
    struct fixture *f = need(state);
    const struct vol_file deep[] = {
        { .path = "a", .data = "1", .size = 1, .mode = 0644 },
        { .path = "b/c/d", .data = "2", .size = 1, .mode = 0644 },
        { .path = "b/c/e", .data = "3", .size = 1, .mode = 0644 },
    };
    struct vol_payload p = { .uid = "u1", .name = "cfg", .files = files, .n_files = 1, .fs_group = -1 };
    struct err e = { 0 };
    bool changed;

    for (int edit = 0; edit < 2; edit++) {
        size_t before = vol_payload_entries(f->node, p.uid, p.name);

        assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
        size_t after = vol_payload_entries(f->node, p.uid, p.name);
        assert_true(after > before);
        assert_true(after - before <= vol_payload_adds(&p));
        p.files = deep;
        p.n_files = sizeof(deep) / sizeof(deep[0]);
    }
}

static void a_full_tmpfs_keeps_the_old_payload(void **state)
{
    struct fixture *f = need(state);
    static char big[9 << 20];
    const struct vol_file more[] = { { .path = "key", .data = big, .size = sizeof(big), .mode = 0644 } };
    struct vol_payload p = { .uid = "u1", .name = "cfg", .files = files, .n_files = 1, .fs_group = -1 };
    char path[160];
    struct err e = { 0 };
    bool changed = false;

    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    p.files = more;
    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_EXHAUSTED);
    assert_non_null(strstr(e.text, "volume cfg: publish to "));
    snprintf(path, sizeof(path), "%s/u1/cfg/key", f->tmpfs);
    assert_file(path, "value");
}

static void names_that_are_no_names_are_refused(void **state)
{
    static const char *const bad[] = { "", ".", "..", ".shm", "a/b", "a b", "a\nb", "../x" };
    struct fixture *f = need(state);
    char path[VOL_PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = { 0 };
        const struct vol_payload p = { .uid = bad[i], .name = "cfg", .fs_group = -1 };
        const struct vol_empty_dir d = { .uid = "u1", .name = bad[i], .fs_group = -1 };
        bool changed;
        assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_INVALID);
        assert_int_equal(vol_payload_path(f->node, "u1", bad[i], path, sizeof(path), &e), ERR_INVALID);
        assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_INVALID);
        assert_int_equal(vol_shm_setup(f->node, bad[i], 0, path, sizeof(path), &e), ERR_INVALID);
        assert_int_equal(vol_pod_teardown(f->node, bad[i], &e), ERR_INVALID);
    }
}

static void a_path_that_does_not_fit_is_an_error(void **state)
{
    struct fixture *f = need(state);
    struct err e = { 0 };
    char path[8];

    assert_int_equal(vol_payload_path(f->node, "u1", "cfg", path, sizeof(path), &e), ERR_RANGE);
}

static void mount_points_inside_a_payload_survive_its_updates(void **state)
{
    struct fixture *f = need(state);
    struct vol_payload p = { .uid = "u1", .name = "cfg", .files = files, .n_files = 1, .fs_group = -1 };
    char path[160];
    struct err e = { 0 };
    bool changed;

    assert_int_equal(vol_payload_mount_point(f->node, "u1", "cfg", "in/side", &e), ERR_OK);
    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    p.n_files = 0;
    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    snprintf(path, sizeof(path), "%s/u1/cfg/in/side", f->tmpfs);
    assert_int_equal(mode_of(path), S_IFDIR | 0755);
    assert_int_equal(vol_payload_mount_point(f->node, "u1", "cfg", "../out", &e), ERR_INVALID);
    assert_int_equal(vol_payload_mount_point(f->node, "u1", "cfg", "..data/x", &e), ERR_INVALID);
}

static void the_pods_shared_memory_is_a_small_tmpfs_for_everybody(void **state)
{
    struct fixture *f = need(state);
    char path[VOL_PATH_MAX], expected[VOL_PATH_MAX + 8];
    struct err e = { 0 };
    struct statfs st;

    assert_int_equal(vol_shm_setup(f->node, "u1", 64 << 20, path, sizeof(path), &e), ERR_OK);
    snprintf(expected, sizeof(expected), "%s/u1/.shm", f->tmpfs);
    assert_string_equal(path, expected);
    assert_int_equal(mode_of(path), S_IFDIR | 01777);
    assert_int_equal(statfs(path, &st), 0);
    assert_int_equal((uint64_t)st.f_blocks * (uint64_t)st.f_bsize, 64 << 20);
    assert_true((st.f_flags & (ST_NOSUID | ST_NODEV | ST_NOEXEC)) == (ST_NOSUID | ST_NODEV | ST_NOEXEC));
    snprintf(expected, sizeof(expected), "%s/kept", path);
    write_file(expected, "x");
    assert_int_equal(vol_shm_setup(f->node, "u1", 64 << 20, path, sizeof(path), &e), ERR_OK);
    assert_file(expected, "x");
}

static void owners_of_both_places_are_listed_once(void **state)
{
    struct fixture *f = need(state);
    const struct vol_payload p = { .uid = "b", .name = "cfg", .files = files, .n_files = 1, .fs_group = -1 };
    struct vol_empty_dir d = { .uid = "b", .name = "data", .fs_group = -1 };
    char path[VOL_PATH_MAX];
    struct err e = { 0 };
    struct strs list = { 0 };
    bool changed;

    assert_int_equal(vol_list_owners(f->node, &list, &e), ERR_OK);
    assert_int_equal(list.n, 0);
    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    d.uid = "a";
    assert_int_equal(vol_empty_dir_setup(f->node, &d, path, sizeof(path), &e), ERR_OK);
    snprintf(path, sizeof(path), "%s/no-folder", f->pods);
    write_file(path, "x");
    assert_int_equal(vol_list_owners(f->node, &list, &e), ERR_OK);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.v[0], "a");
    assert_string_equal(list.v[1], "b");
    strs_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_tmpfs_is_mounted_closed_to_others_and_sized),
        TEST(opening_again_keeps_content_and_takes_the_new_size),
        TEST(closing_with_remove_unmounts),
        TEST(a_symlinked_folder_is_found_in_mountinfo_all_the_same),
        TEST(a_payload_can_be_read_by_others_below_a_root_that_they_cannot_enter),
        TEST(too_much_content_is_refused_before_anything_is_written),
        TEST(a_full_tmpfs_keeps_the_old_payload),
        TEST(what_is_written_or_removed_decides_whether_a_payload_is_large),
        TEST(a_publish_adds_no_more_entries_than_announced),
        TEST(names_that_are_no_names_are_refused),
        TEST(a_path_that_does_not_fit_is_an_error),
        TEST(mount_points_inside_a_payload_survive_its_updates),
        TEST(the_pods_shared_memory_is_a_small_tmpfs_for_everybody),
        TEST(owners_of_both_places_are_listed_once),
    };

    return cmocka_run_group_tests(tests, private_mounts, NULL);
}
