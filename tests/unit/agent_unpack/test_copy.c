/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/copy.h"

#include "base/buf.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAR_BLOCK = 512 };

/* libarchive 3.6 does not free its client's state after archive_write_fail(). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libarchive.so\n";
}

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[8], user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is a block");

struct scratch {
    char path[64];
    int dir;
    struct buf warnings;
};

static int setup(void **state)
{
    struct scratch *s = calloc(1, sizeof(*s));

    strcpy(s->path, "/tmp/test-copy.XXXXXX");
    if (mkdtemp(s->path) == NULL)
        return -1;
    s->dir = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    buf_init(&s->warnings, 64 * 1024);
    if (mkdirat(s->dir, "to", 0755) != 0)
        return -1;
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct scratch *s = *state;
    struct err e = { 0 };

    close(s->dir);
    buf_done(&s->warnings);
    if (fs_remove_tree(AT_FDCWD, s->path, &e) != ERR_OK)
        return -1;
    free(s);
    return 0;
}

static void warn(const char *text, void *arg)
{
    buf_addf(arg, "%s\n", text);
}

static enum err_code unpack(struct scratch *s, int archive, bool no_links, const char *rename, struct err *e)
{
    const struct copy_options o = {
        .no_links = no_links, .rename = rename, .warn = warn, .arg = &s->warnings
    };
    fd_auto to = openat(s->dir, "to", O_PATH | O_DIRECTORY | O_CLOEXEC);

    lseek(archive, 0, SEEK_SET);
    return copy_unpack(to, archive, &o, e);
}

static void put(int fd, const char *name, char type, const char *link, const char *content)
{
    struct tar_header h = { .type = type, .magic = "ustar  ", .mode = "0000644" };
    const unsigned char *bytes = (const unsigned char *)&h;
    char block[TAR_BLOCK] = { 0 };
    unsigned sum = 0;

    memcpy(h.name, name, strlen(name));
    memcpy(h.link, link, strlen(link));
    snprintf(h.size, sizeof(h.size), "%011o", (unsigned)strlen(content));
    memset(h.checksum, ' ', sizeof(h.checksum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += bytes[i];
    snprintf(h.checksum, 7, "%06o", sum);
    assert_int_equal(write(fd, &h, sizeof(h)), sizeof(h));
    memcpy(block, content, strlen(content));
    if (content[0] != '\0')
        assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
}

static int archive(void)
{
    return memfd_create("archive", MFD_CLOEXEC);
}

static void expect_file(const struct scratch *s, const char *path, const char *want)
{
    str_auto text = NULL;
    struct err e = { 0 };

    assert_int_equal(fs_read_at(s->dir, path, 4096, &text, NULL, &e), ERR_OK);
    assert_string_equal(text, want);
}

static void a_tree_comes_back_as_it_was(void **state)
{
    struct scratch *s = *state;
    const struct copy_options o = { 0 };
    fd_auto tar = archive();
    fd_auto node = -1;
    char target[20] = "";
    struct err e = { 0 };
    struct stat st;

    assert_int_equal(mkdirat(s->dir, "from", 0755), 0);
    assert_int_equal(mkdirat(s->dir, "from/d", 0700), 0);
    assert_int_equal(fs_replace_at(s->dir, "from/d/file", "text", 4, 0640, false, &e), ERR_OK);
    assert_int_equal(symlinkat("d/file", s->dir, "from/link"), 0);
    node = openat(s->dir, "from", O_PATH | O_CLOEXEC);
    assert_int_equal(copy_pack(node, "name", tar, &o, &e), ERR_OK);
    assert_int_equal(unpack(s, tar, false, "other", &e), ERR_OK);
    expect_file(s, "to/other/d/file", "text");
    assert_int_equal(fstatat(s->dir, "to/other/d/file", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(readlinkat(s->dir, "to/other/link", target, sizeof(target) - 1), 6);
    assert_string_equal(target, "d/file");
}

static enum err_code pack(const char *path, int tar, struct err *e)
{
    const struct copy_options o = { 0 };
    fd_auto node = open(path, O_PATH | O_CLOEXEC);

    return copy_pack(node, "name", tar, &o, e);
}

static void a_file_that_says_it_is_empty_is_read(void **state)
{
    struct scratch *s = *state;
    fd_auto tar = archive();
    str_auto want = NULL;
    struct err e = { 0 };

    assert_int_equal(fs_read_at(AT_FDCWD, "/proc/version", 4096, &want, NULL, &e), ERR_OK);
    assert_int_equal(pack("/proc/version", tar, &e), ERR_OK);
    assert_int_equal(unpack(s, tar, false, NULL, &e), ERR_OK);
    expect_file(s, "to/name", want);
}

static void a_device_alone_is_an_error(void **state)
{
    fd_auto tar = archive();
    struct err e = { 0 };

    (void)state;
    assert_int_equal(pack("/dev/null", tar, &e), ERR_INVALID);
    assert_string_equal(e.text, "name is neither a file, a folder nor a link");
}

static void no_name_leads_out(void **state)
{
    static const char *const names[] = { "../out", "a/../../out", "/out", "a/.." };
    struct scratch *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        fd_auto tar = archive();
        struct err e = { 0 };

        put(tar, names[i], '0', "", "x");
        assert_int_equal(unpack(s, tar, false, NULL, &e), ERR_INVALID);
    }
    assert_int_equal(faccessat(s->dir, "out", F_OK, 0), -1);
}

static void no_link_is_followed_or_written_through(void **state)
{
    struct scratch *s = *state;
    fd_auto tar = archive();
    fd_auto again = archive();
    struct err e = { 0 };

    assert_int_equal(fs_replace_at(s->dir, "victim", "safe", 4, 0644, false, &e), ERR_OK);
    put(tar, "link", '2', "..", "");
    put(tar, "link/victim", '0', "", "bad");
    assert_int_not_equal(unpack(s, tar, false, NULL, &e), ERR_OK);
    expect_file(s, "victim", "safe");
    e = (struct err){ 0 };
    put(again, "file", '2', "../victim", "");
    put(again, "file", '0', "", "new");
    assert_int_equal(unpack(s, again, false, NULL, &e), ERR_OK);
    expect_file(s, "victim", "safe");
    expect_file(s, "to/file", "new");
}

static void what_is_left_out_is_told(void **state)
{
    struct scratch *s = *state;
    fd_auto tar = archive();
    struct err e = { 0 };

    put(tar, "link", '2', "/etc/passwd", "");
    put(tar, "device", '3', "", "");
    put(tar, "file", '0', "", "x");
    assert_int_equal(unpack(s, tar, true, NULL, &e), ERR_OK);
    assert_string_equal(s->warnings.p, "link: left out: a symbolic link\n"
                                       "device: left out: neither a file, a folder nor a symbolic link\n");
    expect_file(s, "to/file", "x");
}

static void warnings_leave_a_terminal_alone(void **state)
{
    struct scratch *s = *state;
    fd_auto tar = archive();
    struct err e = { 0 };

    put(tar, "a\x1b[2J\nb\xff", '3', "", "");
    assert_int_equal(unpack(s, tar, false, NULL, &e), ERR_OK);
    assert_string_equal(s->warnings.p, "a?[2J?b?: left out: neither a file, a folder nor a symbolic link\n");
}

static void what_is_there_stays_until_the_new_file_is_whole(void **state)
{
    struct scratch *s = *state;
    fd_auto torn = archive();
    struct err e = { 0 };
    const struct dirent *entry;
    size_t n = 0;
    DIR *to;

    assert_int_equal(fs_replace_at(s->dir, "to/file", "old", 3, 0644, false, &e), ERR_OK);
    put(torn, "file", '0', "", "content");
    put(torn, "other", '0', "", "content");
    assert_int_equal(ftruncate(torn, TAR_BLOCK + 3), 0);
    assert_int_equal(unpack(s, torn, false, NULL, &e), ERR_DATA_LOSS);
    expect_file(s, "to/file", "old");
    to = fdopendir(openat(s->dir, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    assert_non_null(to);
    while ((entry = readdir(to)) != NULL)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(to);
    assert_int_equal(n, 1);
}

static void one_new_name_is_for_one_file_or_folder(void **state)
{
    static const char *const names[] = { "", ".", "..", "a/b" };
    struct scratch *s = *state;
    fd_auto two = archive();
    struct err e = { 0 };

    put(two, "a/x", '0', "", "x");
    put(two, "a/y", '0', "", "y");
    put(two, "b", '0', "", "b");
    assert_int_equal(unpack(s, two, false, "new", &e), ERR_INVALID);
    assert_string_equal(e.text, "the archive holds more than one file or folder (a, b): its destination must "
                                "be a folder");
    expect_file(s, "to/new/y", "y");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        e = (struct err){ 0 };
        assert_int_equal(unpack(s, two, false, names[i], &e), ERR_INVALID);
        assert_non_null(strstr(e.text, "cannot be the name of a file or folder"));
    }
}

static void the_last_element_of_a_path_is_its_name(void **state)
{
    static const struct {
        const char *path, *name;
    } cases[] = { { "/a/b", "b" }, { "a/b//", "b" }, { "b", "b" },   { "/", "" },
                  { "", "" },      { ".", "" },      { "a/..", "" }, { "/a/.b", ".b" } };
    char name[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        fs_base_name(cases[i].path, name);
        assert_string_equal(name, cases[i].name);
    }
}

static void what_is_no_archive_is_refused(void **state)
{
    struct scratch *s = *state;
    fd_auto garbage = archive();
    fd_auto torn = archive();
    struct err e = { 0 };
    char block[TAR_BLOCK];

    memset(block, 'x', sizeof(block));
    assert_int_equal(write(garbage, block, sizeof(block)), sizeof(block));
    assert_int_equal(unpack(s, garbage, false, NULL, &e), ERR_INVALID);
    assert_string_equal(e.text, "this is not a tar archive, or it is damaged");
    e = (struct err){ 0 };
    put(torn, "file", '0', "", "content");
    assert_int_equal(ftruncate(torn, TAR_BLOCK + 3), 0);
    assert_int_equal(unpack(s, torn, false, NULL, &e), ERR_DATA_LOSS);
    assert_string_equal(e.text, "the archive is truncated");
}

static void of_an_archive_of_a_folder_s_content_the_folder_is_named(void **state)
{
    struct scratch *s = *state;
    fd_auto tar = archive();
    struct err e = { 0 };

    put(tar, ".", '5', "", "");
    put(tar, "./a", '0', "", "1");
    put(tar, "./d/b", '0', "", "2");
    assert_int_equal(unpack(s, tar, false, "new", &e), ERR_OK);
    expect_file(s, "to/new/a", "1");
    expect_file(s, "to/new/d/b", "2");
    assert_int_equal(unpack(s, tar, false, NULL, &e), ERR_OK); /* into a folder that is there */
    expect_file(s, "to/d/b", "2");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_tree_comes_back_as_it_was),
        T(a_file_that_says_it_is_empty_is_read),
        T(a_device_alone_is_an_error),
        T(no_name_leads_out),
        T(no_link_is_followed_or_written_through),
        T(what_is_left_out_is_told),
        T(warnings_leave_a_terminal_alone),
        T(what_is_there_stays_until_the_new_file_is_whole),
        T(one_new_name_is_for_one_file_or_folder),
        T(of_an_archive_of_a_folder_s_content_the_folder_is_named),
        T(the_last_element_of_a_path_is_its_name),
        T(what_is_no_archive_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
