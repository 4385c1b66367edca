/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/scope.h"

#include <dirent.h>
#include <sys/mount.h>

static char *in(const char *dir, const char *name)
{
    static char space[4][5000];
    static int next;
    char *ret = space[next++ % 4];

    snprintf(ret, sizeof(space[0]), "%s/%s", dir, name);
    return ret;
}

static void put(const char *dir, const char *name, const char *text)
{
    struct err e = { 0 };

    assert_int_equal(fs_replace_at(AT_FDCWD, in(dir, name), text, strlen(text), 0644, false, &e), ERR_OK);
}

static void assert_content(int dirfd, const char *path, const char *want)
{
    str_auto text = NULL;
    struct err e = { 0 };

    assert_int_equal(fs_read_at(dirfd, path, 1000, &text, NULL, &e), ERR_OK);
    assert_string_equal(text, want);
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static size_t entries(const char *dir)
{
    struct dirent **list;
    int n = scandir(dir, &list, NULL, NULL), i;

    for (i = 0; i < n; i++)
        free(list[i]);
    free(list);
    return (size_t)n - 2;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static void files_are_read_whole(void **state)
{
    str_auto text = NULL;
    str_auto empty = NULL;
    struct err e = { 0 };
    size_t n = 0;

    put(*state, "a", "hello");
    assert_int_equal(fs_read_at(AT_FDCWD, in(*state, "a"), 5, &text, &n, &e), ERR_OK);
    assert_int_equal(n, 5);
    assert_string_equal(text, "hello");
    put(*state, "b", "");
    assert_int_equal(fs_read_at(AT_FDCWD, in(*state, "b"), 0, &empty, &n, &e), ERR_OK);
    assert_int_equal(n, 0);
    assert_string_equal(empty, "");
}

static void kernel_files_of_size_zero_are_read_whole(void **state)
{
    str_auto text = NULL;
    struct err e = { 0 };
    size_t n = 0;

    (void)state;
    assert_int_equal(fs_read_at(AT_FDCWD, "/proc/self/status", FS_SMALL_MAX, &text, &n, &e), ERR_OK);
    assert_true(n > 100);
    assert_int_equal(strlen(text), n);
    assert_non_null(strstr(text, "nonvoluntary_ctxt_switches"));
}

static void a_file_over_the_limit_is_an_error(void **state)
{
    char *text = NULL;
    struct err e = { 0 };

    put(*state, "a", "hello");
    assert_int_equal(fs_read_at(AT_FDCWD, in(*state, "a"), 4, &text, NULL, &e), ERR_EXHAUSTED);
    assert_non_null(strstr(e.text, "/a: more than 4 bytes"));
    assert_true(str_starts(e.text, "read /tmp/"));
    assert_null(text);
    assert_int_equal(fs_read_at(AT_FDCWD, "/dev/zero", 10, &text, NULL, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "read /dev/zero: not a regular file");
}

static void missing_files_folders_and_fifos_are_errors(void **state)
{
    char *text = NULL;
    struct err e = { 0 };

    assert_int_equal(fs_read_at(AT_FDCWD, "/nonexistent/y", 4, &text, NULL, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "open /nonexistent/y: No such file or directory");
    assert_int_equal(fs_read_at(AT_FDCWD, "/", 4, &text, NULL, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "read /: Is a directory");
    assert_int_equal(mkfifo(in(*state, "fifo"), 0600), 0);
    assert_int_equal(fs_read_at(AT_FDCWD, in(*state, "fifo"), 4, &text, NULL, &e),
                     ERR_PRECONDITION); /* no hang */
}

static void a_pipe_is_read_to_its_end(void **state)
{
    str_auto text = NULL;
    struct err e = { 0 };
    int fds[2];
    size_t n;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "a\0b", 3), 3);
    close(fds[1]);
    assert_int_equal(fs_read_fd(fds[0], 10, &text, &n, &e), ERR_OK);
    close(fds[0]);
    assert_int_equal(n, 3);
    assert_memory_equal(text, "a\0b", 4);
    assert_int_equal(fs_read_fd(9999, 10, &text, &n, &e), ERR_INTERNAL);
    assert_string_equal(e.text, "read: Bad file descriptor");
}

/* ---- writing ------------------------------------------------------------------------------------- */

static void control_files_are_written_but_never_made(void **state)
{
    struct err e = { 0 };

    put(*state, "a", "old");
    assert_int_equal(fs_write_control(AT_FDCWD, in(*state, "a"), "new", &e), ERR_OK);
    assert_content(AT_FDCWD, in(*state, "a"), "new");
    assert_int_equal(fs_write_control(AT_FDCWD, "/nonexistent/cpu.max", "max", &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "write /nonexistent/cpu.max: No such file or directory");
    assert_int_equal(fs_write_control(AT_FDCWD, "/proc/self/oom_score_adj", "x", &e), ERR_INVALID);
    assert_string_equal(e.text, "write /proc/self/oom_score_adj: Invalid argument");
}

static void replacing_is_whole_and_leaves_nothing_behind(void **state)
{
    struct err e = { 0 };
    fd_auto dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mode_t before = umask(077);

    assert_int_equal(fs_replace_at(dir, "a", "one", 3, 0644, false, &e), ERR_OK);
    assert_int_equal(mode_of(in(*state, "a")), 0644); /* exact, whatever the umask */
    assert_int_equal(fs_replace_at(dir, "a", "second", 6, 0400, true, &e), ERR_OK);
    umask(before);
    assert_content(dir, "a", "second");
    assert_int_equal(mode_of(in(*state, "a")), 0400);
    assert_int_equal(mkdir(in(*state, "sub"), 0755), 0);
    assert_int_equal(fs_replace_at(dir, "sub/b", "", 0, 0600, true, &e), ERR_OK);
    assert_content(dir, "sub/b", "");
    assert_int_equal(entries(*state), 2);
    assert_int_equal(entries(in(*state, "sub")), 1);
}

static void a_symlink_is_replaced_not_followed(void **state)
{
    put(*state, "target", "untouched");
    assert_int_equal(symlink("target", in(*state, "link")), 0);
    put(*state, "link", "new");
    assert_content(AT_FDCWD, in(*state, "target"), "untouched");
    assert_content(AT_FDCWD, in(*state, "link"), "new");
}

static void the_longest_name_can_be_replaced(void **state)
{
    char name[256];

    memset(name, 'n', 255);
    name[255] = '\0';
    put(*state, name, "x");
    assert_content(AT_FDCWD, in(*state, name), "x");
}

static void a_failed_replacement_leaves_the_old_file(void **state)
{
    struct err e = { 0 };

    assert_int_equal(mkdir(in(*state, "dir"), 0755), 0);
    put(*state, "dir/x", "inside");
    assert_int_equal(fs_replace_at(AT_FDCWD, in(*state, "dir"), "x", 1, 0644, false, &e), ERR_PRECONDITION);
    assert_non_null(strstr(e.text, "/dir: Is a directory"));
    assert_true(str_starts(e.text, "rename "));
    assert_int_equal(entries(*state), 1);
    assert_int_equal(fs_replace_at(AT_FDCWD, "/nonexistent/d/f", "x", 1, 0644, false, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "open folder of /nonexistent/d/f: No such file or directory");
    assert_int_equal(fs_replace_at(AT_FDCWD, in(*state, "dir/"), "x", 1, 0644, false, &e), ERR_PRECONDITION);
    assert_int_equal(fs_replace_at(AT_FDCWD, in(*state, "dir/.."), "x", 1, 0644, false, &e),
                     ERR_PRECONDITION);
}

static void a_lazy_replacement_is_one_too(void **state)
{
    struct err e = { 0 };
    fd_auto dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd_auto old = -1;
    char text[8] = "";

    assert_int_equal(fs_replace_lazily_at(dir, "a", "one", 3, 0644, &e), ERR_OK); /* a new name */
    old = openat(dir, "a", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fs_replace_lazily_at(dir, "a", "second", 6, 0600, &e), ERR_OK);
    assert_content(dir, "a", "second");
    assert_int_equal(mode_of(in(*state, "a")), 0600);
    assert_int_equal(read(old, text, sizeof(text)), 3); /* another file, not new content of the old one */
    assert_string_equal(text, "one");
    assert_int_equal(entries(*state), 1);

    put(*state, "target", "untouched");
    assert_int_equal(symlink("target", in(*state, "link")), 0);
    assert_int_equal(fs_replace_lazily_at(dir, "link", "new", 3, 0644, &e), ERR_OK);
    assert_content(dir, "target", "untouched");
    assert_content(dir, "link", "new");

    assert_int_equal(mkdir(in(*state, "dir"), 0755), 0);
    assert_int_equal(fs_replace_lazily_at(dir, "dir", "x", 1, 0644, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "rename dir: Is a directory");
    assert_int_equal(entries(*state), 4);
}

static void a_full_disk_is_an_error_and_the_old_file_stays(void **state)
{
    char *big = calloc(1, 200000);
    struct err e = { 0 };

    if (geteuid() != 0 || mount("tmpfs", *state, "tmpfs", 0, "size=64k") != 0) {
        free(big);
        SKIP("needs root and a mount");
    }
    put(*state, "a", "old");
    assert_int_equal(fs_replace_at(AT_FDCWD, in(*state, "a"), big, 200000, 0644, false, &e), ERR_EXHAUSTED);
    free(big);
    assert_int_equal(e.sys, ENOSPC);
    assert_content(AT_FDCWD, in(*state, "a"), "old");
    assert_int_equal(entries(*state), 1);
}

/* ---- folders ------------------------------------------------------------------------------------- */

static void folders_are_made_with_the_exact_mode(void **state)
{
    struct err e = { 0 };
    mode_t before = umask(077);

    assert_int_equal(mkdir(in(*state, "old"), 0700), 0);
    assert_int_equal(fs_mkdirs(in(*state, "old/a//b/./c/"), 0751, &e), ERR_OK);
    umask(before);
    assert_int_equal(mode_of(in(*state, "old")), 0700);
    assert_int_equal(mode_of(in(*state, "old/a")), 0751);
    assert_int_equal(mode_of(in(*state, "old/a/b/c")), 0751);
    assert_int_equal(fs_mkdirs(in(*state, "old/a/b/c"), 0700, &e), ERR_OK);
    assert_int_equal(mode_of(in(*state, "old/a/b/c")), 0751);
    assert_int_equal(fs_mkdirs("/", 0700, &e), ERR_OK);
    assert_int_equal(fs_mkdirs("", 0700, &e), ERR_NOT_FOUND);
}

/* Whether it takes effect is the file system's affair; it harms none. */
static void folders_may_be_spread_on_any_file_system(void **state)
{
    struct err e = { 0 };

    assert_int_equal(fs_mkdirs(in(*state, "spread"), 0751, &e), ERR_OK);
    fs_spread_below(in(*state, "spread"));
    fs_spread_below(in(*state, "spread"));
    fs_spread_below("/proc/self");
    fs_spread_below(in(*state, "missing"));
    assert_int_equal(mode_of(in(*state, "spread")), 0751);
    assert_int_equal(fs_remove_tree(AT_FDCWD, in(*state, "spread"), &e), ERR_OK);
}

static void a_file_in_the_way_is_named(void **state)
{
    struct err e = { 0 };
    char want[300];

    put(*state, "file", "x");
    assert_int_equal(fs_mkdirs(in(*state, "file/a/b"), 0755, &e), ERR_PRECONDITION);
    snprintf(want, sizeof(want), "mkdir %s/file: Not a directory", (char *)*state);
    assert_string_equal(e.text, want);
}

static void mkdirs_follows_symlinks_that_are_there(void **state)
{
    struct err e = { 0 };

    assert_int_equal(mkdir(in(*state, "real"), 0755), 0);
    assert_int_equal(symlink("real", in(*state, "link")), 0);
    assert_int_equal(fs_mkdirs(in(*state, "link/a"), 0755, &e), ERR_OK);
    assert_int_equal(access(in(*state, "real/a"), F_OK), 0);
}

static void folders_beneath_a_root_stay_there(void **state)
{
    struct err e = { 0 };
    fd_auto root = -1;

    assert_int_equal(mkdir(in(*state, "root"), 0755), 0);
    assert_int_equal(mkdir(in(*state, "outside"), 0755), 0);
    assert_int_equal(mkdir(in(*state, "root/real"), 0755), 0);
    assert_int_equal(symlink("../outside", in(*state, "root/escape")), 0);
    assert_int_equal(symlink("/", in(*state, "root/abs")), 0);
    assert_int_equal(symlink("nowhere", in(*state, "root/dangling")), 0);
    assert_int_equal(symlink("real", in(*state, "root/fine")), 0);
    put(*state, "root/file", "x");
    root = open(in(*state, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(fs_mkdirs_beneath(root, "a/./b//c/", 0750, &e), ERR_OK);
    assert_int_equal(mode_of(in(*state, "root/a/b")), 0750);
    assert_int_equal(fs_mkdirs_beneath(root, "a/b/c", 0700, &e), ERR_OK);
    assert_int_equal(mode_of(in(*state, "root/a/b/c")), 0750);
    assert_int_equal(fs_mkdirs_beneath(root, ".", 0700, &e), ERR_OK);

    assert_int_equal(fs_mkdirs_beneath(root, "escape/x", 0700, &e), ERR_PERMISSION);
    assert_string_equal(e.text, "open escape: path leaves its root");
    assert_int_equal(fs_mkdirs_beneath(root, "abs/x", 0700, &e), ERR_PERMISSION);
    assert_int_equal(fs_mkdirs_beneath(root, "a/../../x", 0700, &e), ERR_INVALID);
    assert_string_equal(e.text, "mkdir a/../../x: \"..\" is not allowed");
    assert_int_equal(fs_mkdirs_beneath(root, "/x", 0700, &e), ERR_INVALID);
    assert_int_equal(fs_mkdirs_beneath(root, "dangling/x", 0700, &e), ERR_NOT_FOUND);
    assert_int_equal(fs_mkdirs_beneath(root, "file/x", 0700, &e), ERR_PRECONDITION);
    assert_int_equal(fs_mkdirs_beneath(root, "fine/x", 0700, &e), ERR_OK);
    assert_int_equal(access(in(*state, "root/real/x"), F_OK), 0);
    assert_int_equal(entries(in(*state, "outside")), 0);
}

/* ---- beneath ---------------------------------------------------------------------------------------- */

static void build_root(const char *dir)
{
    assert_int_equal(mkdir(in(dir, "root"), 0755), 0);
    assert_int_equal(mkdir(in(dir, "root/etc"), 0755), 0);
    put(dir, "root/etc/passwd", "inside");
    put(dir, "secret", "outside");
    assert_int_equal(symlink("/etc/passwd", in(dir, "root/abs")), 0);
    assert_int_equal(symlink("../secret", in(dir, "root/up")), 0);
    assert_int_equal(symlink("etc", in(dir, "root/etclink")), 0);
    assert_int_equal(symlink("etc/passwd", in(dir, "root/rel")), 0);
    assert_int_equal(symlink("loop", in(dir, "root/loop")), 0);
    assert_int_equal(symlink("/proc/self/root", in(dir, "root/magic")), 0);
}

static int try_open(int (*opener)(int, const char *, int, mode_t, struct err *), int root, const char *path,
                    const char *want, struct err *e)
{
    int fd = opener(root, path, O_RDONLY, 0, e);
    char text[32] = "";

    if (fd < 0)
        return -e->code;
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true(read(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    if (want != NULL)
        assert_string_equal(text, want);
    return 0;
}

#define BENEATH(path, want) try_open(fs_open_beneath, root, path, want, &e)
#define IN_ROOT(path, want) try_open(fs_open_in_root, root, path, want, &e)

static void a_path_beneath_cannot_leave(void **state)
{
    struct err e = { 0 };
    fd_auto root = -1;

    build_root(*state);
    root = open(in(*state, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(BENEATH("etc/passwd", "inside"), 0);
    assert_int_equal(BENEATH("./etc//passwd", "inside"), 0);
    assert_int_equal(BENEATH("rel", "inside"), 0);
    assert_int_equal(BENEATH("etclink/passwd", "inside"), 0);
    assert_int_equal(BENEATH("etc/../etc/passwd", "inside"), 0);
    assert_int_equal(BENEATH("up", NULL), -ERR_PERMISSION);
    assert_string_equal(e.text, "open up: path leaves its root");
    assert_int_equal(BENEATH("abs", NULL), -ERR_PERMISSION);
    assert_int_equal(BENEATH("/etc/passwd", NULL), -ERR_PERMISSION);
    assert_int_equal(BENEATH("../secret", NULL), -ERR_PERMISSION);
    assert_int_equal(BENEATH("magic/etc/passwd", NULL), -ERR_PERMISSION);
    assert_int_equal(BENEATH("loop", NULL), -ERR_INVALID);
    assert_int_equal(BENEATH("none", NULL), -ERR_NOT_FOUND);
    assert_string_equal(e.text, "open none: No such file or directory");
    assert_int_equal(BENEATH("", NULL), -ERR_NOT_FOUND);
}

static void a_path_in_a_root_resolves_as_in_a_chroot(void **state)
{
    struct err e = { 0 };
    fd_auto root = -1;

    build_root(*state);
    root = open(in(*state, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(IN_ROOT("/etc/passwd", "inside"), 0);
    assert_int_equal(IN_ROOT("abs", "inside"), 0);
    assert_int_equal(IN_ROOT("../../etc/passwd", "inside"), 0);
    assert_int_equal(IN_ROOT("up", NULL), -ERR_NOT_FOUND); /* /secret inside */
    assert_int_equal(IN_ROOT("magic/etc/passwd", NULL), -ERR_NOT_FOUND);
}

static void files_are_created_beneath(void **state)
{
    struct err e = { 0 };
    fd_auto root = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    mode_t before = umask(022);
    int fd = fs_open_beneath(root, "new", O_WRONLY | O_CREAT | O_EXCL, 0640, &e);

    assert_true(fd >= 0);
    close(fd);
    umask(before);
    assert_int_equal(mode_of(in(*state, "new")), 0640);
    assert_int_equal(fs_open_beneath(root, "new", O_WRONLY | O_CREAT | O_EXCL, 0640, &e), -1);
    assert_int_equal(e.code, ERR_EXISTS);
    fd = fs_open_beneath(root, "new", O_RDONLY, 0640, &e); /* a mode without O_CREAT is ignored */
    assert_true(fd >= 0);
    close(fd);
    fd = fs_open_beneath(root, ".", O_TMPFILE | O_RDWR, 0600, &e);
    if (fd >= 0)
        close(fd);
    else
        assert_int_equal(e.code, ERR_UNIMPLEMENTED);
}

static void safe_paths_have_only_plain_elements(void **state)
{
    char name[257], path[4100];
    size_t i;

    (void)state;
    assert_true(fs_path_is_safe("a"));
    assert_true(fs_path_is_safe("a/b.c/..d/...e/f.."));
    assert_true(fs_path_is_safe("..."));
    assert_false(fs_path_is_safe(""));
    assert_false(fs_path_is_safe("/"));
    assert_false(fs_path_is_safe("/a"));
    assert_false(fs_path_is_safe("a/"));
    assert_false(fs_path_is_safe("a//b"));
    assert_false(fs_path_is_safe("."));
    assert_false(fs_path_is_safe(".."));
    assert_false(fs_path_is_safe("a/./b"));
    assert_false(fs_path_is_safe("a/../b"));
    assert_false(fs_path_is_safe("a/.."));
    memset(name, 'n', 256);
    name[256] = '\0';
    assert_false(fs_path_is_safe(name));
    name[255] = '\0';
    assert_true(fs_path_is_safe(name));
    for (i = 0; i < sizeof(path) - 1; i++)
        path[i] = i % 2 == 0 ? 'a' : '/';
    path[4095] = '\0';
    assert_true(fs_path_is_safe(path));
    path[4095] = 'b';
    path[4096] = '\0';
    assert_true(fs_path_is_safe(path));
    path[4096] = 'c';
    path[4097] = '\0';
    assert_false(fs_path_is_safe(path));
}

static void a_path_is_cleaned_of_what_says_nothing(void **state)
{
    static const char *const cases[][2] = {
        { "", "" },
        { "/", "" },
        { ".", "" },
        { "./", "" },
        { "a", "a" },
        { "//a/./b/", "a/b" },
        { "a/b", "a/b" },
        { "././/a//././b/.", "a/b" },
        { "..", ".." },
        { "/../a", "../a" },
        { ".a/b./.", ".a/b." },
        { "/a/.../", "a/..." },
    };
    char path[32];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        strcpy(path, cases[i][0]);
        assert_string_equal(fs_path_clean(path), cases[i][1]);
    }
}

#define dir_test(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        dir_test(files_are_read_whole),
        dir_test(kernel_files_of_size_zero_are_read_whole),
        dir_test(a_file_over_the_limit_is_an_error),
        dir_test(missing_files_folders_and_fifos_are_errors),
        dir_test(a_pipe_is_read_to_its_end),
        dir_test(control_files_are_written_but_never_made),
        dir_test(replacing_is_whole_and_leaves_nothing_behind),
        dir_test(a_symlink_is_replaced_not_followed),
        dir_test(the_longest_name_can_be_replaced),
        dir_test(a_failed_replacement_leaves_the_old_file),
        dir_test(a_lazy_replacement_is_one_too),
        dir_test(a_full_disk_is_an_error_and_the_old_file_stays),
        dir_test(folders_are_made_with_the_exact_mode),
        dir_test(folders_may_be_spread_on_any_file_system),
        dir_test(a_file_in_the_way_is_named),
        dir_test(mkdirs_follows_symlinks_that_are_there),
        dir_test(folders_beneath_a_root_stay_there),
        dir_test(a_path_beneath_cannot_leave),
        dir_test(a_path_in_a_root_resolves_as_in_a_chroot),
        dir_test(files_are_created_beneath),
        cmocka_unit_test(safe_paths_have_only_plain_elements),
        cmocka_unit_test(a_path_is_cleaned_of_what_says_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
