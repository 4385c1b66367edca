/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/cri_log.h"
#include "agent/status/log_files.h"
#include "agent/status/log_walk.h"

#include "base/files/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct folder {
    char path[64];
    int fd;
};

static int set_up(void **state)
{
    static struct folder f;

    snprintf(f.path, sizeof(f.path), "/tmp/test-log-files-%d", (int)getpid());
    assert_int_equal(mkdir(f.path, 0700), 0);
    f.fd = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = &f;
    return f.fd < 0;
}

static int tear_down(void **state)
{
    struct folder *f = *state;
    struct err e = { 0 };

    close(f->fd);
    return fs_remove_tree(AT_FDCWD, f->path, &e) != ERR_OK;
}

static void put(struct folder *f, const char *name, const char *text)
{
    int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void assert_files(struct folder *f, const char *want)
{
    struct buf got = BUF_INIT(4096);
    struct log_files files;
    struct err e = { 0 };

    assert_int_equal(log_files_list(f->fd, "0.log", &files, &e), ERR_OK);
    for (size_t i = 0; i < files.n; i++)
        buf_addf(&got, "%s%s", i > 0 ? " " : "", files.v[i].name);
    assert_string_equal(got.p, want);
    buf_done(&got);
    log_files_done(&files);
}

static void names_are_those_of_kubelet_and_no_others(void **state)
{
    (void)state;
    assert_true(log_file_is_rotated("0.log.20260102-030405", "0.log"));
    assert_true(log_file_is_rotated("0.log.20260102-030405.000001", "0.log"));
    assert_false(log_file_is_rotated("0.log", "0.log"));
    assert_false(log_file_is_rotated("0.log.tmp", "0.log"));
    assert_false(log_file_is_rotated("10.log.20260102-030405", "0.log"));
    assert_false(log_file_is_rotated("0.log.20260102-030405.gz", "0.log"));
    assert_false(log_file_is_rotated("0.log.20260102-030405.tmp", "0.log"));
    assert_false(log_file_is_rotated("0.log.20260102-03040x", "0.log"));
    assert_false(log_file_is_rotated("0.log.20260102-0304050", "0.log"));
}

static void a_new_name_sorts_behind_the_newest_whatever_the_clock_says(void **state)
{
    const int64_t t = INT64_C(1767323045) * 1000000000; /* 2026-01-02T03:04:05Z */
    char name[LOG_NAME_SIZE];

    (void)state;
    log_file_rotated_name("0.log", t, NULL, name);
    assert_string_equal(name, "0.log.20260102-030405");
    log_file_rotated_name("0.log", t, "0.log.20260102-030404.000007", name);
    assert_string_equal(name, "0.log.20260102-030405");
    log_file_rotated_name("0.log", t, "0.log.20260102-030405", name);
    assert_string_equal(name, "0.log.20260102-030405.000001");
    log_file_rotated_name("0.log", t, "0.log.20260102-030405.000009", name);
    assert_string_equal(name, "0.log.20260102-030405.000010");
    log_file_rotated_name("0.log", t, "0.log.20270102-030405", name); /* the clock was set back */
    assert_string_equal(name, "0.log.20270102-030405.000001");
}

static void files_come_in_the_order_in_which_they_were_written_each_once(void **state)
{
    struct folder *f = *state;

    assert_files(f, "");
    put(f, "0.log", "x");
    put(f, "0.log.20260102-030405.000001", "");
    put(f, "0.log.20260102-030405", "");
    put(f, "0.log.20251231-235959", "");
    put(f, "0.log.20260102-030405.gz", "");
    put(f, "1.log", "");
    assert_int_equal(symlinkat("/etc/passwd", f->fd, "0.log.20200101-000000"), 0);
    assert_files(f, "0.log.20251231-235959 0.log.20260102-030405 0.log.20260102-030405.000001 0.log");
    assert_int_equal(linkat(f->fd, "0.log", f->fd, ".0.log.kept", 0), 0);
    put(f, "0.log.tmp", "");
    assert_int_equal(linkat(f->fd, "0.log.tmp", f->fd, ".0.log.next", 0), 0);
    assert_files(f, "0.log.20251231-235959 0.log.20260102-030405 0.log.20260102-030405.000001 0.log");
    /* conmon has rotated without an agent: */
    assert_int_equal(renameat(f->fd, "0.log.tmp", f->fd, "0.log"), 0);
    assert_files(f, "0.log.20251231-235959 0.log.20260102-030405 0.log.20260102-030405.000001 .0.log.kept "
                    "0.log");
    log_files_remove(f->fd, "0.log");
    assert_files(f, "");
    assert_int_equal(faccessat(f->fd, "1.log", F_OK, 0), 0);
    assert_int_equal(faccessat(f->fd, ".0.log.kept", F_OK, 0), -1);
}

#define T0 "2026-01-02T03:04:05.5Z stdout F "

static struct log_walk begin(struct folder *f, uint64_t tail)
{
    struct err e = { 0 };
    struct log_walk w;
    char path[128];

    snprintf(path, sizeof(path), "%s/0.log", f->path);
    log_walk_init(&w, path);
    assert_int_equal(log_walk_seek(&w, tail, 0, &e), ERR_OK);
    return w;
}

static void assert_next(struct log_walk *w, const char *want)
{
    struct buf got = BUF_INIT(65536);
    struct err e = { 0 };
    char piece[50];
    size_t n;

    do {
        assert_int_equal(log_walk_read(w, piece, sizeof(piece), &n, &e), ERR_OK);
        buf_add(&got, piece, n);
    } while (n > 0);
    assert_string_equal(got.p, want);
    buf_done(&got);
}

static void a_walk_reads_all_files_and_a_tail_counts_lines_across_them(void **state)
{
    struct folder *f = *state;
    struct log_walk w;

    put(f, "0.log.20260102-030405", T0 "one\n" T0 "two\n");
    put(f, "0.log.20260102-030406", T0 "three\n2026-01-02T03:04:05.5Z stdout P fo\n");
    put(f, "0.log", T0 "ur\n" T0 "five\n");
    w = begin(f, UINT64_MAX);
    assert_next(&w,
                T0 "one\n" T0 "two\n" T0 "three\n2026-01-02T03:04:05.5Z stdout P fo\n" T0 "ur\n" T0 "five\n");
    log_walk_done(&w);
    w = begin(f, 1);
    assert_next(&w, T0 "five\n");
    log_walk_done(&w);
    w = begin(f, 2); /* the line that began in the file before, whole */
    assert_next(&w, "2026-01-02T03:04:05.5Z stdout P fo\n" T0 "ur\n" T0 "five\n");
    log_walk_done(&w);
    w = begin(f, 4);
    assert_next(&w, T0 "two\n" T0 "three\n2026-01-02T03:04:05.5Z stdout P fo\n" T0 "ur\n" T0 "five\n");
    log_walk_done(&w);
    w = begin(f, 0);
    assert_next(&w, "");
    put(f, "0.log", T0 "six\n");
    assert_next(&w, T0 "six\n");
    log_walk_done(&w);
}

static void a_walk_goes_on_over_rotations_and_over_files_that_were_removed(void **state)
{
    struct folder *f = *state;
    struct log_walk w = begin(f, UINT64_MAX);

    assert_next(&w, ""); /* nothing there yet */
    put(f, "0.log", "a\n");
    assert_next(&w, "a\n");
    put(f, "0.log", "b\n");
    assert_int_equal(renameat(f->fd, "0.log", f->fd, "0.log.20260102-030405"), 0);
    assert_next(&w, "b\n");
    put(f, "0.log", "c\n");
    assert_int_equal(renameat(f->fd, "0.log", f->fd, "0.log.20260102-030406"), 0);
    put(f, "0.log", "d\n");
    assert_next(&w, "c\nd\n"); /* two rotations at once */
    put(f, "0.log", "e\n");
    assert_int_equal(renameat(f->fd, "0.log", f->fd, "0.log.20260102-030407"), 0);
    put(f, "0.log", "f\n");
    assert_int_equal(unlinkat(f->fd, "0.log.20260102-030407", 0), 0); /* the one it stands in */
    assert_next(&w, "e\nf\n");
    put(f, "0.log", "g\n");
    assert_int_equal(unlinkat(f->fd, "0.log", 0), 0); /* somebody removes all of it */
    assert_next(&w, "g\n");
    put(f, "0.log", "h\n");
    assert_next(&w, "h\n");
    log_walk_done(&w);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_kubelet_and_no_others),
        cmocka_unit_test(a_new_name_sorts_behind_the_newest_whatever_the_clock_says),
        T(files_come_in_the_order_in_which_they_were_written_each_once),
        T(a_walk_reads_all_files_and_a_tail_counts_lines_across_them),
        T(a_walk_goes_on_over_rotations_and_over_files_that_were_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
