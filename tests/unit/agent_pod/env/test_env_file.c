/* SPDX-License-Identifier: Apache-2.0 */
/* Environment files: which lines count, what is refused and where, and what is not opened at all. */
#include "tests/unit/base/helper.h"

#include "agent/pod/env/env_file.h"

#include <sys/mount.h>

static void has(const char *text, const char *name, const char *value)
{
    struct arena a = { 0 };
    struct err e = { 0 };
    char *found;

    if (env_file_find(text, strlen(text), name, &a, &found, &e) != ERR_OK)
        fail_msg("%s", e.text);
    if (value == NULL)
        assert_null(found);
    else
        assert_string_equal(found, value);
    arena_done(&a);
}

static void refuses(const char *text, size_t n, const char *name, const char *why)
{
    struct arena a = { 0 };
    struct err e = { 0 };
    char *found;

    assert_int_equal(env_file_find(text, n, name, &a, &found, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, why);
    arena_done(&a);
}

static void values_stand_in_single_quotes_and_nothing_in_them_is_special(void **state)
{
    (void)state;
    has("A='one'\nB='two'\n", "B", "two");
    has("  # comment\n\n\t A='x'  \n \nB=' # $A ${A} \\n \"q\" = ' # after\nC='", "B",
        " # $A ${A} \\n \"q\" = ");
    has("A=''", "A", "");
    has("A='first\n  second\n\nlast'\nB='b'", "A", "first\n  second\n\nlast");
    has("A='first\n'\nB='b'", "B", "b");
    has("A='1'\nA='2'\n", "A", "1");
    has("odd.name-1='x'", "odd.name-1", "x");
    has("A='x'\n", "B", NULL);
    has("", "A", NULL);
    has(" \n\t\n# only comments", "A", NULL);
}

static void what_is_wrong_is_told_with_its_line(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "A='x'\nB=two\n", "line 2: value must be enclosed in single quotes" },
        { "A=\"x\"\n", "line 1: value must be enclosed in single quotes" },
        { "A=", "line 1: value must be enclosed in single quotes" },
        { "A= 'x'\n", "line 1: value must be enclosed in single quotes" },
        { "\nA ='x'\n", "line 2: whitespace before '=' is not allowed" },
        { "export A='x'\n", "line 1: invalid environment variable format" },
        { "A\n", "line 1: invalid environment variable format" },
        { "='x'\n", "line 1: invalid environment variable format" },
        { "\xc3\xbc='x'\n", "line 1: invalid environment variable format" },
        { "A='x''y'\n", "line 1: unexpected content after closing quote" },
        { "A='x'# no comment\n", "line 1: unexpected content after closing quote" },
        { "A='x\ny'z\n", "line 2: unexpected content after closing quote" },
        { "A='x'\nB='open\n", "line 2: the value's single quote is not closed" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refuses(bad[i].text, strlen(bad[i].text), "Z", bad[i].why);
    refuses("A='x\0y'", 7, "Z", "line 1: the value contains a NUL byte");
    has("Z='x'\nand then rubbish", "Z", "x"); /* not looked at any more */
}

static void only_a_regular_file_of_the_volume_itself_is_read(void **state)
{
    char folder[] = "/tmp/test-env-file-XXXXXX", big[64];
    struct err e = { 0 };
    char *text = NULL;
    size_t n;

    (void)state;
    assert_non_null(mkdtemp(folder));
    {
        fd_auto dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fd_auto fd = openat(dir, "plain", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, "A='x'\n", 6), 6);
        assert_int_equal(mkdirat(dir, "sub", 0755), 0);
        assert_int_equal(symlinkat("../plain", dir, "sub/in"), 0);
        assert_int_equal(symlinkat("/etc/passwd", dir, "out"), 0);
        assert_int_equal(mkfifoat(dir, "pipe", 0600), 0);
        snprintf(big, sizeof(big), "%s/big", folder);
        assert_int_equal(close(openat(dir, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
        assert_int_equal(truncate(big, ENV_FILE_MAX + 1), 0);
    }
    assert_int_equal(env_file_read(folder, "plain", &text, &n, &e), ERR_OK);
    assert_string_equal(text, "A='x'\n");
    free(take_ptr(&text));
    assert_int_equal(env_file_read(folder, "sub/in", &text, &n, &e), ERR_OK);
    free(take_ptr(&text));
    assert_int_equal(env_file_read(folder, "none", &text, &n, &e), ERR_NOT_FOUND);
    e = (struct err){ 0 };
    assert_int_not_equal(env_file_read(folder, "out", &text, &n, &e), ERR_OK);
    e = (struct err){ 0 };
    assert_int_equal(env_file_read(folder, "pipe", &text, &n, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "it is not a regular file");
    e = (struct err){ 0 };
    assert_int_equal(env_file_read(folder, "big", &text, &n, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "it has 1048577 bytes, allowed are 1048576");
    e = (struct err){ 0 };
    assert_int_equal(env_file_read("/tmp/no-such-volume", "plain", &text, &n, &e), ERR_NOT_FOUND);
    e = (struct err){ 0 };
    assert_int_equal(fs_remove_tree(AT_FDCWD, folder, &e), ERR_OK);
    assert_null(text);
}

/* A container may mount a file system of its own in the volume: its answer might never come. */
static void what_is_mounted_in_the_volume_is_not_asked(void **state)
{
    char folder[] = "/tmp/test-env-file-XXXXXX", sub[64], file[80];
    struct err e = { 0 };
    char *text = NULL;
    size_t n;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(sub, sizeof(sub), "%s/sub", folder);
    snprintf(file, sizeof(file), "%s/f", sub);
    assert_int_equal(mkdir(sub, 0755), 0);
    if (mount("tmpfs", sub, "tmpfs", 0, "size=64k") != 0) {
        rmdir(sub);
        rmdir(folder);
        SKIP("tmpfs cannot be mounted");
    }
    assert_int_equal(close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    assert_int_not_equal(env_file_read(folder, "sub/f", &text, &n, &e), ERR_OK);
    assert_int_equal(e.sys, EXDEV);
    assert_int_equal(umount(sub), 0);
    assert_int_equal(rmdir(sub) + rmdir(folder), 0);
    assert_null(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stand_in_single_quotes_and_nothing_in_them_is_special),
        cmocka_unit_test(what_is_wrong_is_told_with_its_line),
        cmocka_unit_test(only_a_regular_file_of_the_volume_itself_is_read),
        cmocka_unit_test(what_is_mounted_in_the_volume_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
