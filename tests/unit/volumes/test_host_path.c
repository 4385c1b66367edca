/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/fs.h"
#include "volumes/volumes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char dir[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/coracle-hostpath-test-XXXXXX");
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    struct err e = { 0 };

    (void)state;
    return fs_remove_tree(AT_FDCWD, dir, &e) == ERR_OK ? 0 : -1;
}

static const char *at(const char *name)
{
    static char path[2][200];
    static unsigned turn;

    turn ^= 1;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

static void assert_refused(const char *path, const char *type, const char *what)
{
    struct err e = { 0 };
    char expected[400];

    assert_int_equal(vol_host_path_check(path, type, &e), ERR_PRECONDITION);
    snprintf(expected, sizeof(expected), "hostPath type check failed: %s is not %s", path, what);
    assert_string_equal(e.text, expected);
}

static void assert_fine(const char *path, const char *type)
{
    struct err e = { 0 };

    if (vol_host_path_check(path, type, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static void each_type_accepts_its_kind_and_names_what_it_wanted(void **state)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    fd_auto sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", at("sock"));
    assert_int_equal(bind(sock, (struct sockaddr *)&sa, sizeof(sa)), 0);
    close(open(at("file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(mkdir(at("folder"), 0700), 0);

    assert_fine(at("folder"), "Directory");
    assert_fine(at("folder"), "DirectoryOrCreate");
    assert_fine(at("file"), "File");
    assert_fine(at("file"), "FileOrCreate");
    assert_fine(at("sock"), "Socket");
    assert_fine("/dev/null", "CharDevice");
    assert_fine(at("file"), "");

    assert_refused(at("file"), "Directory", "a directory");
    assert_refused(at("file"), "DirectoryOrCreate", "a directory");
    assert_refused(at("folder"), "File", "a file");
    assert_refused(at("folder"), "FileOrCreate", "a file");
    assert_refused(at("file"), "Socket", "a socket file");
    assert_refused(at("file"), "CharDevice", "a character device");
    assert_refused("/dev/null", "BlockDevice", "a block device");
}

static void what_is_missing_fails_or_is_created_as_the_type_says(void **state)
{
    struct stat st;
    struct err e = { 0 };
    mode_t before = umask(077);

    (void)state;
    assert_refused(at("none"), "Directory", "a directory");
    assert_refused(at("none"), "File", "a file");
    assert_refused(at("none"), "Socket", "a socket file");
    assert_int_not_equal(access(at("none"), F_OK), 0);

    assert_fine(at("new/deep/folder"), "DirectoryOrCreate");
    assert_int_equal(stat(at("new/deep/folder"), &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0755);
    assert_fine(at("new/file"), "FileOrCreate");
    assert_int_equal(stat(at("new/file"), &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0644);
    assert_fine(at("any"), "");
    assert_int_equal(stat(at("any"), &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0755);

    assert_int_equal(vol_host_path_check(at("no/parent"), "FileOrCreate", &e), ERR_NOT_FOUND);
    assert_true(str_starts(e.text, "open "));
    assert_non_null(strstr(e.text, "/no/parent: no such file or directory"));
    umask(before);
}

static void symlinks_are_followed(void **state)
{
    (void)state;
    assert_int_equal(symlink("/dev", at("link")), 0);
    assert_fine(at("link"), "Directory");
    assert_fine(at("link/null"), "CharDevice");
}

static void odd_paths_and_types_are_refused(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(vol_host_path_check("/tmp/../etc", "Directory", &e), ERR_INVALID);
    assert_string_equal(e.text, "hostPath type check failed: /tmp/../etc must not contain '..'");
    assert_int_equal(vol_host_path_check("relative", "", &e), ERR_INVALID);
    assert_string_equal(e.text, "hostPath type check failed: relative is not an absolute path");
    assert_int_equal(vol_host_path_check("/tmp", "Folder", &e), ERR_INVALID);
    assert_string_equal(e.text, "hostPath type check failed: \"Folder\" is an invalid volume type");
    assert_fine(at("..two-dots-more"), "");
}

/* What is known without asking is what the check would say; whether the caches know it depends on the
 * machine. */
static void what_is_known_without_asking_is_fine(void **state)
{
    const char *const types[] = { "",       "Directory",  "DirectoryOrCreate", "File",  "FileOrCreate",
                                  "Socket", "CharDevice", "BlockDevice",       "Folder" };
    struct stat st;

    (void)state;
    close(open(at("file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(stat(dir, &st), 0);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        assert_false(vol_host_path_known(at("missing"), types[i]));
        assert_false(vol_host_path_known("/proc/self", types[i])); /* on no disk */
        assert_false(vol_host_path_known("/tmp/../tmp", types[i]));
        if (vol_host_path_known(dir, types[i])) {
            assert_fine(dir, types[i]);
            assert_true(st.st_dev > 0xff);
        }
        if (vol_host_path_known(at("file"), types[i]))
            assert_fine(at("file"), types[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_type_accepts_its_kind_and_names_what_it_wanted),
        TEST(what_is_missing_fails_or_is_created_as_the_type_says),
        TEST(symlinks_are_followed),
        TEST(odd_paths_and_types_are_refused),
        TEST(what_is_known_without_asking_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
