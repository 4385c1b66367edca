/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/scope.h"

#include <sys/mount.h>
#include <sys/resource.h>

static char *in(const char *dir, const char *name)
{
    static char space[4][5000];
    static int next;
    char *ret = space[next++ % 4];

    snprintf(ret, sizeof(space[0]), "%s/%s", dir, name);
    return ret;
}

static void file(const char *dir, const char *name)
{
    int fd = open(in(dir, name), O_WRONLY | O_CREAT | O_EXCL, 0400);

    assert_true(fd >= 0);
    close(fd);
}

static void folder(const char *dir, const char *name)
{
    assert_int_equal(mkdir(in(dir, name), 0755), 0);
}

static bool there(const char *dir, const char *name)
{
    struct stat st;

    return lstat(in(dir, name), &st) == 0;
}

static void assert_removed(const char *dir, const char *name)
{
    struct err e = { 0 };

    if (fs_remove_tree(AT_FDCWD, in(dir, name), &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_false(there(dir, name));
}

static void what_is_missing_is_removed_already(void **state)
{
    assert_removed(*state, "none");
    assert_removed(*state, "none/further/down");
}

static void a_tree_of_all_kinds_is_removed(void **state)
{
    folder(*state, "t");
    folder(*state, "t/a");
    folder(*state, "t/a/empty");
    folder(*state, "t/a/b");
    file(*state, "t/a/b/file");
    file(*state, "t/.hidden");
    assert_int_equal(mkfifo(in(*state, "t/a/fifo"), 0600), 0);
    file(*state, "kept");
    assert_int_equal(symlink("../kept", in(*state, "t/link")), 0);
    assert_int_equal(symlink(*state, in(*state, "t/a/dirlink")), 0);
    assert_removed(*state, "t");
    assert_true(there(*state, "kept"));
}

static void single_files_links_and_empty_folders_are_removed(void **state)
{
    struct err e = { 0 };
    fd_auto dir = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);

    file(*state, "f");
    folder(*state, "d");
    folder(*state, "full");
    file(*state, "full/x");
    assert_int_equal(symlink("full", in(*state, "l")), 0);
    assert_int_equal(fs_remove_tree(dir, "f", &e), ERR_OK);
    assert_int_equal(fs_remove_tree(dir, "d/", &e), ERR_OK);
    assert_int_equal(fs_remove_tree(dir, "l", &e), ERR_OK); /* the link, not what it leads to */
    assert_true(there(*state, "full/x"));
    assert_int_equal(fs_remove_tree(dir, "full//", &e), ERR_OK);
    assert_false(there(*state, "full"));
}

static void names_that_are_no_names_are_refused(void **state)
{
    static const char *const bad[] = { "", "/", ".", "..", "a/..", "a/." };
    struct err e = { 0 };
    fd_auto dir = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    size_t i;

    folder(*state, "a");
    for (i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(fs_remove_tree(dir, bad[i], &e), ERR_INVALID);
    assert_true(there(*state, "a"));
}

static void a_wide_folder_is_removed(void **state)
{
    char name[32];
    int i;

    folder(*state, "t");
    for (i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "t/%d", i);
        if (i % 3 == 0)
            folder(*state, name);
        else
            file(*state, name);
        if (i % 6 == 0) {
            strcat(name, "/x");
            file(*state, name);
        }
    }
    assert_removed(*state, "t");
}

static void a_very_deep_tree_takes_no_more_descriptors_than_a_flat_one(void **state)
{
    enum { LEVELS = 5000 }; /* 50,000 bytes: far over PATH_MAX */
    struct rlimit before, few;
    struct err e = { 0 };
    int at = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC), next, i;

    for (i = 0; i < LEVELS; i++) {
        assert_int_equal(mkdirat(at, "deepfolder", 0755), 0);
        next = openat(at, "deepfolder", O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(at);
        at = next;
        if (i % 100 == 0)
            close(openat(at, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    close(at);
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 32;
    setrlimit(RLIMIT_NOFILE, &few);
    i = fs_remove_tree(AT_FDCWD, in(*state, "deepfolder"), &e);
    setrlimit(RLIMIT_NOFILE, &before);
    if (i != ERR_OK)
        fail_msg("%s", e.text);
    assert_false(there(*state, "deepfolder"));
}

static void a_mount_point_is_neither_entered_nor_removed(void **state)
{
    struct err e = { 0 };
    char want[300];

    folder(*state, "t");
    folder(*state, "t/m");
    if (geteuid() != 0 || mount("tmpfs", in(*state, "t/m"), "tmpfs", 0, "size=64k") != 0)
        SKIP("needs root and a mount");
    assert_int_equal(fs_remove_tree(AT_FDCWD, in(*state, "t"), &e), ERR_PRECONDITION); /* an empty one */
    snprintf(want, sizeof(want), "remove %s/t/m: is a mount point", (char *)*state);
    assert_string_equal(e.text, want);
    file(*state, "t/m/precious");
    assert_int_equal(fs_remove_tree(AT_FDCWD, in(*state, "t"), &e), ERR_PRECONDITION);
    assert_string_equal(e.text, want);
    assert_int_equal(fs_remove_tree(AT_FDCWD, in(*state, "t/m"), &e), ERR_PRECONDITION); /* as the top */
    assert_string_equal(e.text, want);
    assert_true(there(*state, "t/m/precious"));
    assert_int_equal(umount(in(*state, "t/m")), 0);
    assert_removed(*state, "t");
}

static void a_bind_mount_of_the_same_file_system_is_seen_too(void **state)
{
    struct err e = { 0 };

    folder(*state, "precious");
    file(*state, "precious/x");
    folder(*state, "t");
    folder(*state, "t/m");
    file(*state, "t/f");
    if (geteuid() != 0 || mount(in(*state, "precious"), in(*state, "t/m"), NULL, MS_BIND, NULL) != 0)
        SKIP("needs root and a mount");
    assert_int_equal(fs_remove_tree(AT_FDCWD, in(*state, "t"), &e), ERR_PRECONDITION);
    assert_true(there(*state, "precious/x"));
    assert_int_equal(umount(in(*state, "t/m")), 0);

    /* A file as mount point: what subPath and /etc/hosts use. */
    file(*state, "t/m/f");
    assert_int_equal(mount(in(*state, "precious/x"), in(*state, "t/m/f"), NULL, MS_BIND, NULL), 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, in(*state, "t"), &e), ERR_PRECONDITION);
    assert_true(str_ends(e.text, "/t/m/f: is a mount point"));
    assert_int_equal(umount(in(*state, "t/m/f")), 0);
    assert_removed(*state, "t");
    assert_true(there(*state, "precious/x"));
}

static void an_error_names_the_whole_path(void **state)
{
    static const char *const owned[] = { "", "t", "t/a", "t/a/b" };
    struct err e = { 0 };
    char want[300];
    pid_t pid;
    size_t i;
    int status;

    folder(*state, "t");
    folder(*state, "t/a");
    folder(*state, "t/a/b");
    file(*state, "t/a/b/f");
    assert_int_equal(chmod(in(*state, "t/a/b"), 0555), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    if (geteuid() != 0) {
        assert_int_equal(fs_remove_tree(AT_FDCWD, in(*state, "t"), &e), ERR_PERMISSION);
        snprintf(want, sizeof(want), "remove %s/t/a/b/f: Permission denied", (char *)*state);
        assert_string_equal(e.text, want);
        assert_int_equal(chmod(in(*state, "t/a/b"), 0755), 0);
        return;
    }
    for (i = 0; i < ARRAY_LEN(owned); i++)
        assert_int_equal(chown(in(*state, owned[i]), 65534, 65534), 0);
    pid = fork();
    if (pid == 0) {
        if (setuid(65534) != 0)
            _exit(3);
        if (fs_remove_tree(AT_FDCWD, in(*state, "t"), &e) == ERR_OK)
            _exit(4);
        snprintf(want, sizeof(want), "remove %s/t/a/b/f: Permission denied", (char *)*state);
        _exit(strcmp(e.text, want) == 0 ? 0 : 5);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void quiet_removal_takes_files_and_empty_folders(void **state)
{
    file(*state, "f");
    folder(*state, "d");
    folder(*state, "full");
    file(*state, "full/x");
    fs_remove_quietly(AT_FDCWD, in(*state, "f"));
    fs_remove_quietly(AT_FDCWD, in(*state, "d"));
    fs_remove_quietly(AT_FDCWD, in(*state, "none"));
    fs_remove_quietly(AT_FDCWD, in(*state, "full"));
    assert_false(there(*state, "f"));
    assert_false(there(*state, "d"));
    assert_true(there(*state, "full/x"));
}

#define dir_test(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        dir_test(what_is_missing_is_removed_already),
        dir_test(a_tree_of_all_kinds_is_removed),
        dir_test(single_files_links_and_empty_folders_are_removed),
        dir_test(names_that_are_no_names_are_refused),
        dir_test(a_wide_folder_is_removed),
        dir_test(a_very_deep_tree_takes_no_more_descriptors_than_a_flat_one),
        dir_test(a_mount_point_is_neither_entered_nor_removed),
        dir_test(a_bind_mount_of_the_same_file_system_is_seen_too),
        dir_test(an_error_names_the_whole_path),
        dir_test(quiet_removal_takes_files_and_empty_folders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
