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
    char path[200];

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

static void mounts_of_others_inside_are_unmounted_and_their_content_lives(void **state)
{
    struct fixture *f = need(state);
    char precious[160], file[200], point[200];
    struct err e = { 0 };

    make_pod(f, "u1");
    snprintf(precious, sizeof(precious), "%s/precious", f->dir);
    assert_int_equal(mkdir(precious, 0755), 0);
    snprintf(file, sizeof(file), "%s/data", precious);
    write_file(file, "must live");
    snprintf(point, sizeof(point), "%s/u1/volumes/kubernetes.io~empty-dir/data/deep", f->pods);
    assert_int_equal(mount(precious, point, NULL, MS_BIND, NULL), 0);
    assert_int_equal(mount(precious, point, NULL, MS_BIND, NULL), 0); /* twice, one over the other */
    assert_int_equal(vol_pod_teardown(f->node, "u1", &e), ERR_OK);
    assert_false(exists(f->pods, "u1"));
    assert_file(file, "must live");
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
        TEST(mounts_of_others_inside_are_unmounted_and_their_content_lives),
        TEST(a_busy_mount_does_not_stop_it),
        TEST(symlinks_that_a_pod_left_are_not_followed),
    };

    return cmocka_run_group_tests(tests, private_mounts, NULL);
}
