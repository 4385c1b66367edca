/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

static const struct vol_file files[] = { FILE_OF("key", "value", 0400) };

/* One of everything. */
static void make_pod(struct fixture *f, const char *uid)
{
    const struct vol_payload p = { .uid = uid, .name = "cfg", .files = files, .n_files = 1, .fs_group = -1 };
    const struct vol_empty_dir disk = { .uid = uid, .name = "data", .fs_group = -1 };
    const struct vol_empty_dir memory = {
        .uid = uid, .name = "mem", .memory = true, .size_bytes = 1 << 20, .fs_group = -1
    };
    char path[VOL_PATH_MAX], disk_path[VOL_PATH_MAX], file[VOL_PATH_MAX + 16];
    struct err e = { 0 };
    bool changed;

    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    assert_int_equal(vol_shm_setup(f->node, uid, 1 << 20, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(vol_empty_dir_setup(f->node, &memory, path, sizeof(path), &e), ERR_OK);
    snprintf(file, sizeof(file), "%s/x", path);
    write_file(file, "x");
    assert_int_equal(vol_empty_dir_setup(f->node, &disk, disk_path, sizeof(disk_path), &e), ERR_OK);
    const struct vol_sub_path s = {
        .uid = uid, .volume = "data", .container = "c", .index = 0, .volume_path = disk_path, .sub = "deep/er"
    };
    assert_int_equal(vol_sub_path_bind(f->node, &s, path, sizeof(path), &e), ERR_OK);
    snprintf(file, sizeof(file), "%s/x", path);
    write_file(file, "x");
}

static bool exists(const char *base, const char *name)
{
    char path[VOL_PATH_MAX + 512];

    snprintf(path, sizeof(path), "%s/%s", base, name);
    return access(path, F_OK) == 0;
}

static bool count_mount(const struct fs_mount *m, void *arg)
{
    (void)m;
    ++*(unsigned *)arg;
    return true;
}

static unsigned mounts_below(const char *path)
{
    struct err e = { 0 };
    unsigned n = 0;

    assert_int_equal(fs_each_mount(path, count_mount, &n, &e), ERR_OK);
    return n;
}

static void everything_of_one_pod_goes_and_nothing_of_another(void **state)
{
    struct fixture *f = need(state);
    struct err e = { 0 };

    make_pod(f, "u1");
    make_pod(f, "u11"); /* its uid starts like the other's */
    assert_int_equal(mounts_below(f->dir), 7);
    assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_OK);
    assert_false(exists(f->pods, "u1"));
    assert_false(exists(f->tmpfs, "u1"));
    assert_true(exists(f->tmpfs, "u11/cfg/key"));
    assert_true(exists(f->pods, "u11/volumes/kubernetes.io~empty-dir/data/deep/er/x"));
    assert_int_equal(mounts_below(f->dir), 4);
}

static void absent_is_success_and_so_is_twice(void **state)
{
    struct fixture *f = need(state);
    struct err e = { 0 };

    assert_int_equal(vol_pod_teardown(f->node, "never-was", &e), ERR_OK);
    make_pod(f, "u1");
    assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_OK);
    assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_OK);
}

/* Binds a folder with a file over one of the pod's. */
static void mount_foreign(struct fixture *f, const char *at, char file[200])
{
    char precious[160], point[300];

    snprintf(precious, sizeof(precious), "%s/precious", f->dir);
    assert_true(mkdir(precious, 0755) == 0 || errno == EEXIST);
    snprintf(file, 200, "%s/data", precious);
    write_file(file, "must live");
    snprintf(point, sizeof(point), "%s/%s", f->dir, at);
    assert_int_equal(mount(precious, point, NULL, MS_BIND, NULL), 0);
}

static void unmount(struct fixture *f, const char *at)
{
    char point[300];

    snprintf(point, sizeof(point), "%s/%s", f->dir, at);
    assert_int_equal(umount2(point, MNT_DETACH), 0);
}

#define EMPTY "pods/u1/volumes/kubernetes.io~empty-dir/"

static void a_mount_of_somebody_else_holds_its_volume_and_no_other(void **state)
{
    struct fixture *f = need(state);
    char file[200];
    struct err e = { 0 };

    make_pod(f, "u1");
    mount_foreign(f, EMPTY "data/deep", file);
    mount_foreign(f, EMPTY "data/deep", file); /* twice, one over the other */
    assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_PRECONDITION);
    assert_non_null(
        strstr(e.text, "remove volumes of u1: volume \"data\" is in use by a mount that is not ours: "));
    assert_non_null(strstr(e.text, "/" EMPTY "data/deep ("));
    assert_non_null(strstr(e.text, "/precious])"));
    assert_file(file, "must live");
    assert_true(exists(f->dir, EMPTY "data/deep/data"));
    assert_false(exists(f->dir, EMPTY "mem"));
    assert_false(exists(f->tmpfs, "u1"));
    assert_false(exists(f->pods, "u1/volume-subpaths"));
    assert_int_equal(mounts_below(f->dir), 3);

    unmount(f, EMPTY "data/deep");
    e = (struct err){ 0 };
    assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_PRECONDITION);
    unmount(f, EMPTY "data/deep");
    assert_true(exists(f->dir, EMPTY "data/deep/er/x")); /* what is below it was left alone, too */
    e = (struct err){ 0 };
    assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_OK);
    assert_false(exists(f->pods, "u1"));
    assert_file(file, "must live");
}

static void a_mount_inside_or_over_one_of_ours_holds_it(void **state)
{
    struct fixture *f = need(state);
    static const char *const at[] = { EMPTY "mem/sub", EMPTY "mem",       EMPTY "data", "tmpfs/u1/cfg",
                                      "tmpfs/u1/.shm", "pods/u1/volumes", "pods/u1" };
    static const char *const named[] = { "volume \"mem\" is", "volume \"mem\" is",  "volume \"data\" is",
                                         "volume \"cfg\" is", "volume \".shm\" is", "its folder is",
                                         "its folder is" };
    char file[200], path[300];

    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        struct err e = { 0 };
        make_pod(f, "u1");
        snprintf(path, sizeof(path), "%s/" EMPTY "mem/sub", f->dir);
        assert_int_equal(mkdir(path, 0755), 0);
        mount_foreign(f, at[i], file);
        assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_PRECONDITION);
        if (strstr(e.text, named[i]) == NULL)
            fail_msg("%s: %s", at[i], e.text);
        assert_file(file, "must live");
        snprintf(path, sizeof(path), "%s/data", at[i]);
        assert_true(exists(f->dir, path));
        unmount(f, at[i]);
        e = (struct err){ 0 };
        assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_OK);
        assert_false(exists(f->pods, "u1"));
        assert_false(exists(f->tmpfs, "u1"));
        assert_file(file, "must live");
    }
}

/* Where mounts are shared, as on a node with systemd, what is mounted on a volume shows in its sub paths. */
static void a_mount_that_shows_in_a_sub_path_is_not_taken_away_with_it(void **state)
{
    struct fixture *f = need(state);
    char file[200], path[300];

    for (int i = 0; i < 4; i++) {
        bool shared = i % 2 != 0, over_all = i / 2 != 0;
        struct err e = { 0 };
        assert_int_equal(mount(f->dir, f->dir, NULL, MS_BIND | MS_REC, NULL), 0);
        assert_int_equal(mount(NULL, f->dir, NULL, MS_SHARED, NULL), 0);
        make_pod(f, "u1");
        snprintf(path, sizeof(path), "%s/" EMPTY "data", f->dir);
        const struct vol_sub_path s = { .uid = "u1",
                                        .volume = "data",
                                        .container = "d",
                                        .volume_path = path,
                                        .sub = "deep",
                                        .shared = shared };
        char target[VOL_PATH_MAX];
        assert_int_equal(vol_sub_path_bind(f->node, &s, target, sizeof(target), &e), ERR_OK);
        mount_foreign(f, EMPTY "data/deep/er", file);
        assert_true(exists(target, "er/data"));
        if (over_all)
            mount_foreign(f, EMPTY "data/deep", file);
        assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_PRECONDITION);
        assert_true(!over_all || exists(f->dir, EMPTY "data/deep/data"));
        if (over_all)
            unmount(f, EMPTY "data/deep");
        assert_true(exists(f->dir, EMPTY "data/deep/er/data"));
        unmount(f, EMPTY "data/deep/er");
        e = (struct err){ 0 };
        assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_OK);
        assert_false(exists(f->pods, "u1"));
        assert_file(file, "must live");
        assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
    }
}

static void a_busy_mount_does_not_stop_it(void **state)
{
    struct fixture *f = need(state);
    char path[200];
    struct err e = { 0 };

    make_pod(f, "u1");
    snprintf(path, sizeof(path), "%s/u1/volumes/kubernetes.io~empty-dir/mem/x", f->pods);
    fd_auto fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_OK);
    assert_false(exists(f->pods, "u1"));
}

static void symlinks_that_a_pod_left_are_not_followed(void **state)
{
    struct fixture *f = need(state);
    char precious[160], file[200], link[200];
    struct err e = { 0 };

    make_pod(f, "u1");
    snprintf(precious, sizeof(precious), "%s/precious", f->dir);
    assert_int_equal(mkdir(precious, 0755), 0);
    snprintf(file, sizeof(file), "%s/data", precious);
    write_file(file, "must live");
    snprintf(link, sizeof(link), "%s/u1/volumes/kubernetes.io~empty-dir/data/link", f->pods);
    assert_int_equal(symlink(precious, link), 0);
    assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_OK);
    assert_false(exists(f->pods, "u1"));
    assert_file(file, "must live");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_of_one_pod_goes_and_nothing_of_another),
        TEST(absent_is_success_and_so_is_twice),
        TEST(a_mount_of_somebody_else_holds_its_volume_and_no_other),
        TEST(a_mount_inside_or_over_one_of_ours_holds_it),
        TEST(a_mount_that_shows_in_a_sub_path_is_not_taken_away_with_it),
        TEST(a_busy_mount_does_not_stop_it),
        TEST(symlinks_that_a_pod_left_are_not_followed),
    };

    return cmocka_run_group_tests(tests, private_mounts, NULL);
}
