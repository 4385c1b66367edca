/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <signal.h>
#include <sys/wait.h>

static enum err_code bind_sub(struct fixture *f, const char *volume_path, const char *sub, char *ret,
                              struct err *e)
{
    const struct vol_sub_path s = {
        .uid = "u1", .volume = "data", .container = "c", .index = 3, .volume_path = volume_path, .sub = sub
    };

    *e = (struct err){ 0 };
    return vol_sub_path_bind(f->node, &s, ret, VOL_PATH_MAX, e);
}

/* A volume with folder in/side, file in/file and the host's secret beside it. */
static const char *make_volume(struct fixture *f)
{
    static char vol[80], path[160];
    struct err e = { 0 };

    snprintf(vol, sizeof(vol), "%s/vol", f->dir);
    snprintf(path, sizeof(path), "%s/in/side", vol);
    assert_int_equal(fs_mkdirs(path, 0755, &e), ERR_OK);
    strcat(path, "/f");
    write_file(path, "inside");
    snprintf(path, sizeof(path), "%s/in/file", vol);
    write_file(path, "a file");
    snprintf(path, sizeof(path), "%s/secret", f->dir);
    write_file(path, "not yours");
    return vol;
}

static void link_in(const char *vol, const char *name, const char *to)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", vol, name);
    assert_int_equal(symlink(to, path), 0);
}

static void folders_and_files_are_bound_where_kubelet_binds_them(void **state)
{
    struct fixture *f = need(state);
    const char *vol = make_volume(f);
    char path[VOL_PATH_MAX], expected[200];
    struct err e = { 0 };

    assert_int_equal(bind_sub(f, vol, "in/side", path, &e), ERR_OK);
    snprintf(expected, sizeof(expected), "%s/u1/volume-subpaths/data/c/3", f->pods);
    assert_string_equal(path, expected);
    assert_true(fs_is_mountpoint(path));
    strcat(expected, "/f");
    assert_file(expected, "inside");

    assert_int_equal(bind_sub(f, vol, "in/file", path, &e),
                     ERR_OK); /* another thing at the same index: bound anew */
    assert_file(path, "a file");
    assert_int_equal(bind_sub(f, vol, "in", path, &e), ERR_OK);
    assert_int_equal(mode_of(path) & S_IFMT, S_IFDIR);
    assert_int_equal(umount2(path, MNT_DETACH), 0);
    assert_false(fs_is_mountpoint(path)); /* never two on top of each other */
    assert_int_equal(mode_of(path), S_IFDIR | 0750);
}

static void the_same_again_is_reused(void **state)
{
    struct fixture *f = need(state);
    const char *vol = make_volume(f);
    char path[VOL_PATH_MAX];
    struct err e = { 0 };

    assert_int_equal(bind_sub(f, vol, "in/file", path, &e), ERR_OK);
    assert_int_equal(bind_sub(f, vol, "in/file", path, &e), ERR_OK);
    assert_int_equal(umount2(path, MNT_DETACH), 0);
    assert_false(fs_is_mountpoint(path));
}

static void missing_folders_get_the_mode_of_the_volume(void **state)
{
    struct fixture *f = need(state);
    const char *vol = make_volume(f);
    char path[VOL_PATH_MAX], made[200];
    struct err e = { 0 };
    mode_t before = umask(077);

    assert_int_equal(chmod(vol, 02775), 0);
    assert_int_equal(bind_sub(f, vol, "in/new/deeper", path, &e), ERR_OK);
    umask(before);
    snprintf(made, sizeof(made), "%s/in/new/deeper", vol);
    assert_int_equal(mode_of(made), S_IFDIR | 02775);
    assert_int_equal(mode_of(path), S_IFDIR | 02775);
    snprintf(made, sizeof(made), "%s/in", vol);
    assert_int_equal(mode_of(made), S_IFDIR | 0755);
}

static void symlinks_that_stay_inside_are_followed(void **state)
{
    struct fixture *f = need(state);
    const char *vol = make_volume(f);
    char path[VOL_PATH_MAX], to[160];
    struct err e = { 0 };

    link_in(vol, "relative", "in/side/../file");
    assert_int_equal(bind_sub(f, vol, "relative", path, &e), ERR_OK);
    assert_file(path, "a file");
    snprintf(to, sizeof(to), "%s/in/side", vol);
    link_in(vol, "absolute", to);
    assert_int_equal(bind_sub(f, vol, "absolute/f", path, &e), ERR_OK);
    assert_file(path, "inside");
    link_in(vol, "folder", "in");
    assert_int_equal(bind_sub(f, vol, "folder/made", path, &e), ERR_OK);
    snprintf(to, sizeof(to), "%s/in/made", vol);
    assert_int_equal(mode_of(to) & S_IFMT, S_IFDIR);
}

static void whatever_leads_out_is_refused(void **state)
{
    struct fixture *f = need(state);
    const char *vol = make_volume(f);
    char path[VOL_PATH_MAX], to[160];
    struct err e = { 0 };

    link_in(vol, "up", "../secret");
    link_in(vol, "root", "/etc/passwd");
    link_in(vol, "dir", "..");
    link_in(vol, "self", "/proc/self/root/etc");
    snprintf(to, sizeof(to), "%s2", vol); /* shares the volume's path as a prefix */
    assert_int_equal(mkdir(to, 0755), 0);
    link_in(vol, "prefix", to);
    static const char *const out[] = {
        "up", "root", "dir/secret", "dir/new/folder", "self/passwd", "prefix"
    };
    for (size_t i = 0; i < ARRAY_LEN(out); i++) {
        assert_int_not_equal(bind_sub(f, vol, out[i], path, &e), ERR_OK);
        assert_non_null(strstr(e.text, "subPath "));
    }
    assert_int_equal(bind_sub(f, vol, "up", path, &e), ERR_PERMISSION);
    assert_string_equal(e.text, "subPath up: open up: path leaves its root");
    snprintf(to, sizeof(to), "%s/new", f->dir);
    assert_int_not_equal(access(to, F_OK), 0);

    static const char *const bad[] = { "", "..", "a/../b", "/abs", "a//b" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(bind_sub(f, vol, bad[i], path, &e), ERR_INVALID);
}

static void a_dangling_symlink_is_an_error_and_not_filled(void **state)
{
    struct fixture *f = need(state);
    const char *vol = make_volume(f);
    char path[VOL_PATH_MAX], to[160];
    struct err e = { 0 };

    link_in(vol, "dangling", "in/nowhere");
    assert_int_equal(bind_sub(f, vol, "dangling/x", path, &e), ERR_NOT_FOUND);
    snprintf(to, sizeof(to), "%s/in/nowhere", vol);
    assert_int_not_equal(access(to, F_OK), 0);
}

static void a_file_of_a_published_payload_can_be_bound(void **state)
{
    struct fixture *f = need(state);
    const struct vol_file files[] = { FILE_OF("app.conf", "one", 0644) };
    const struct vol_payload p = { .uid = "u1", .name = "cfg", .files = files, .n_files = 1, .fs_group = -1 };
    char vol[VOL_PATH_MAX], path[VOL_PATH_MAX];
    struct err e = { 0 };
    bool changed;

    assert_int_equal(vol_payload_publish(f->node, &p, &changed, &e), ERR_OK);
    assert_int_equal(vol_payload_path(f->node, "u1", "cfg", vol, sizeof(vol), &e), ERR_OK);
    assert_int_equal(bind_sub(f, vol, "app.conf", path, &e), ERR_OK);
    assert_file(path, "one");
}

/* Somebody swaps a folder for a symlink to the host while we bind: what is bound is never outside. */
static void a_path_that_is_swapped_under_us_never_leads_out(void **state)
{
    struct fixture *f = need(state);
    const char *vol = make_volume(f);
    char path[VOL_PATH_MAX], a[200], b[200], outside[160], leaked[VOL_PATH_MAX + 8];
    struct err e = { 0 };
    int status;

    snprintf(a, sizeof(a), "%s/flip", vol);
    snprintf(b, sizeof(b), "%s/flop", vol);
    snprintf(outside, sizeof(outside), "%s/outside", f->dir);
    assert_int_equal(mkdir(outside, 0755), 0);
    strcat(outside, "/secret");
    write_file(outside, "not yours");
    *strrchr(outside, '/') = '\0';
    assert_int_equal(mkdir(a, 0755), 0);
    assert_int_equal(symlink(outside, b), 0);
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
    unsigned good = 0;
    for (unsigned i = 0; i < 300; i++) {
        if (bind_sub(f, vol, "flip", path, &e) != ERR_OK)
            continue;
        good++;
        snprintf(leaked, sizeof(leaked), "%s/secret", path);
        if (access(leaked, F_OK) == 0)
            good = 10000;
        umount2(path, MNT_DETACH);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    assert_true(good <= 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(folders_and_files_are_bound_where_kubelet_binds_them),
        TEST(the_same_again_is_reused),
        TEST(missing_folders_get_the_mode_of_the_volume),
        TEST(symlinks_that_stay_inside_are_followed),
        TEST(whatever_leads_out_is_refused),
        TEST(a_dangling_symlink_is_an_error_and_not_filled),
        TEST(a_file_of_a_published_payload_can_be_bound),
        TEST(a_path_that_is_swapped_under_us_never_leads_out),
    };

    return cmocka_run_group_tests(tests, private_mounts, NULL);
}
