/* SPDX-License-Identifier: Apache-2.0 */
/* A look that fails changes no mount: nothing is mounted over what is there. */
#include "support.h"

#include "tests/unit/base/failing.h"

static bool count_line(const struct fs_mount *m, void *arg)
{
    struct {
        const char *path;
        unsigned n;
    } *c = arg;

    c->n += strcmp(m->point, c->path) == 0;
    return true;
}

static unsigned mounts_at(const char *path)
{
    struct {
        const char *path;
        unsigned n;
    } c = { path, 0 };
    struct err e = { 0 };

    assert_int_equal(fs_each_mount(path, count_line, &c, &e), ERR_OK);
    return c.n;
}

static const struct failure {
    const char *call, *part;
} failures[] = { { "statx", "" }, { "openat", "mountinfo" } };

static void reopen(struct fixture *f, const struct failure *how, unsigned times, enum err_code wanted)
{
    struct err e = { 0 };

    vol_node_close(f->node, false);
    f->node = NULL;
    failing_arm(how->call, how->part, EIO, times);
    assert_int_equal(open_node(f, 8 << 20, &e) == ERR_OK, wanted == ERR_OK);
    failing_arm("", "", 0, 0);
    assert_int_equal(mounts_at(f->tmpfs), 1);
}

static void the_volumes_tmpfs_is_not_mounted_twice(void **state)
{
    struct fixture *f = need(state);

    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        reopen(f, &failures[i], 1, ERR_OK); /* the next try succeeds */
        reopen(f, &failures[i], 1000, ERR_INTERNAL);
        reopen(f, &failures[i], 0, ERR_OK);
    }
}

static void an_empty_dir_in_memory_is_not_mounted_twice(void **state)
{
    struct fixture *f = need(state);
    const struct vol_empty_dir v = { .uid = "pod", .name = "mem", .memory = true, .fs_group = -1 };
    char path[VOL_PATH_MAX];
    struct err e = { 0 };

    assert_int_equal(vol_empty_dir_setup(f->node, &v, path, sizeof(path), &e), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        failing_arm(failures[i].call, failures[i].part[0] != '\0' ? failures[i].part : "/mem", EIO, 1);
        assert_int_not_equal(vol_empty_dir_setup(f->node, &v, path, sizeof(path), &e), ERR_OK);
        e = (struct err){ 0 };
        assert_int_equal(failing_times, 0);
        assert_int_equal(vol_empty_dir_setup(f->node, &v, path, sizeof(path), &e), ERR_OK);
        assert_int_equal(mounts_at(path), 1);
    }
}

static void shared_memory_is_not_mounted_twice(void **state)
{
    struct fixture *f = need(state);
    char path[VOL_PATH_MAX];
    struct err e = { 0 };

    assert_int_equal(vol_shm_setup(f->node, "pod", 1 << 20, path, sizeof(path), &e), ERR_OK);
    failing_arm("statx", "/.shm", ENOMEM, 1);
    assert_int_not_equal(vol_shm_setup(f->node, "pod", 1 << 20, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(failing_times, 0);
    e = (struct err){ 0 };
    assert_int_equal(vol_shm_setup(f->node, "pod", 1 << 20, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(mounts_at(path), 1);
}

static void a_sub_path_is_not_bound_twice(void **state)
{
    struct fixture *f = need(state);
    const struct vol_empty_dir v = { .uid = "pod", .name = "vol", .fs_group = -1 };
    char volume[VOL_PATH_MAX], path[VOL_PATH_MAX];
    struct err e = { 0 };

    assert_int_equal(vol_empty_dir_setup(f->node, &v, volume, sizeof(volume), &e), ERR_OK);
    const struct vol_sub_path s = {
        .uid = "pod", .volume = "vol", .container = "c", .volume_path = volume, .sub = "a"
    };
    assert_int_equal(vol_sub_path_bind(f->node, &s, path, sizeof(path), &e), ERR_OK);
    failing_arm("statx", "/volume-subpaths/", EIO, 1);
    assert_int_not_equal(vol_sub_path_bind(f->node, &s, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(failing_times, 0);
    e = (struct err){ 0 };
    assert_int_equal(vol_sub_path_bind(f->node, &s, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(mounts_at(path), 1);
}

static void owners_are_all_or_none(void **state)
{
    struct fixture *f = need(state);
    const struct vol_empty_dir v = { .uid = "pod", .name = "vol", .fs_group = -1 };
    char path[VOL_PATH_MAX];
    struct strs owners = { 0 };
    struct err e = { 0 };

    assert_int_equal(vol_empty_dir_setup(f->node, &v, path, sizeof(path), &e), ERR_OK);
    failing_arm("readdir", "", EIO, 1);
    assert_int_not_equal(vol_list_owners(f->node, &owners, &e), ERR_OK);
    assert_int_equal(e.sys, EIO);
}

static void what_was_published_is_not_known_after_a_failed_look(void **state)
{
    struct fixture *f = need(state);
    struct err e = { 0 };

    failing_arm("fstatat", "..data", EIO, 1);
    assert_int_equal(presence_of(vol_payload_published(f->node, "pod", "vol", &e)), PRESENCE_UNKNOWN);
    assert_int_equal(presence_of(vol_payload_published(f->node, "pod", "vol", &e)), PRESENCE_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_volumes_tmpfs_is_not_mounted_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_dir_in_memory_is_not_mounted_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shared_memory_is_not_mounted_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sub_path_is_not_bound_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(owners_are_all_or_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_published_is_not_known_after_a_failed_look, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, private_mounts, NULL);
}
