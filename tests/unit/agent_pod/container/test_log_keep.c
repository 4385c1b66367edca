/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation, with somebody who does what conmon does; the real one: tests/host/test_logs.py. */
#include "agent/pod/container/log_keep.h"

#include "agent/status/log_files.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEADLINE_MS = 30000, FILES = 3 };

struct fixture {
    char path[64], log[80];
    int dir, fd; /* fd: conmon's */
    unsigned line;
    uv_loop_t loop;
    struct log_keep *keep;
};

static int wakes_to_fail;

/* NOLINTBEGIN: glibc's names and parameters */
ssize_t write(int fd, const void *data, size_t n)
{
    if (n == sizeof(uint64_t) && wakes_to_fail > 0) { /* an eventfd's */
        wakes_to_fail--;
        errno = EIO;
        return -1;
    }
    return syscall(SYS_write, fd, data, n);
}
/* NOLINTEND */

static void open_keep(struct fixture *f)
{
    struct err e = { 0 };

    assert_int_equal(log_keep_open(&f->keep, &f->loop, FILES, &e), ERR_OK);
    log_keep_begin(f->keep, f->log);
}

static void close_keep(struct fixture *f)
{
    log_keep_close(f->keep);
    f->keep = NULL;
}

static int set_up(void **state)
{
    static struct fixture f;

    f = (struct fixture){ .fd = -1 };
    uv_loop_init(&f.loop);
    snprintf(f.path, sizeof(f.path), "/tmp/test-log-keep-%d", (int)getpid());
    snprintf(f.log, sizeof(f.log), "%s/0.log", f.path);
    if (mkdir(f.path, 0700) != 0)
        return -1;
    f.dir = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f.fd = open(f.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    *state = &f;
    return f.dir < 0 || f.fd < 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    log_keep_close(f->keep);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    close(f->fd);
    close(f->dir);
    return uv_loop_close(&f->loop) != 0 || fs_remove_tree(AT_FDCWD, f->path, &e) != ERR_OK;
}

static bool there(struct fixture *f, const char *name)
{
    return faccessat(f->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The next file lies ready: its second name comes with it. */
static void wait_ready(struct fixture *f)
{
    uint64_t end = clock_mono_ms() + DEADLINE_MS;

    while (!there(f, "0.log.tmp") || !there(f, ".0.log.next") || !there(f, ".0.log.kept")) {
        assert_true(clock_mono_ms() < end);
        uv_run(&f->loop, UV_RUN_NOWAIT);
        poll(NULL, 0, 1);
    }
}

static void write_line(struct fixture *f)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%u\n", f->line++);

    assert_int_equal(write(f->fd, text, (size_t)n), n);
}

/* As conmon 2.1.6 does it. */
static void rotate(struct fixture *f)
{
    close(f->fd);
    f->fd = openat(f->dir, "0.log.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(f->fd >= 0);
    assert_int_equal(renameat(f->dir, "0.log.tmp", f->dir, "0.log"), 0);
}

/* "3 4 | 5": what stands in the files.  False: one was renamed between the look at the folder and at the
 * file. */
static bool look(struct fixture *f, struct buf *out)
{
    struct log_files files;
    struct err e = { 0 };

    buf_reset(out);
    assert_int_equal(log_files_list(f->dir, "0.log", &files, &e), ERR_OK);
    for (size_t i = 0; i < files.n && e.code == ERR_OK; i++) {
        str_auto text = NULL;

        if (fs_read_at(f->dir, files.v[i].name, 65536, &text, NULL, &e) != ERR_OK)
            break;
        for (char *p = text; *p != '\0'; p++)
            *p = *p == '\n' ? ' ' : *p;
        buf_addf(out, "%s%s", i > 0 ? "| " : "", text);
    }
    log_files_done(&files);
    assert_true(e.code == ERR_OK || e.code == ERR_NOT_FOUND);
    return e.code == ERR_OK;
}

static void contents(struct fixture *f, struct buf *out)
{
    uint64_t end = clock_mono_ms() + DEADLINE_MS;

    while (!look(f, out))
        assert_true(clock_mono_ms() < end);
}

static void assert_contents(struct fixture *f, const char *want)
{
    buf_auto got = BUF_INIT(65536);

    contents(f, &got);
    assert_string_equal(got.p, want);
}

static void wait_contents(struct fixture *f, const char *want)
{
    uint64_t end = clock_mono_ms() + DEADLINE_MS;
    buf_auto got = BUF_INIT(65536);

    for (contents(f, &got); strcmp(got.p, want) != 0; contents(f, &got)) {
        if (clock_mono_ms() >= end)
            assert_string_equal(got.p, want);
        uv_run(&f->loop, UV_RUN_NOWAIT);
        poll(NULL, 0, 1);
    }
}

static void the_newest_files_are_kept_without_a_gap(void **state)
{
    struct fixture *f = *state;

    open_keep(f);
    for (int i = 0; i < 20; i++) {
        wait_ready(f);
        write_line(f);
        write_line(f);
        rotate(f);
    }
    write_line(f);
    wait_ready(f);
    assert_contents(f, "36 37 | 38 39 | 40 ");
    log_keep_end(f->keep, f->log);
    close_keep(f);
    assert_false(there(f, "0.log.tmp"));
    assert_false(there(f, ".0.log.kept"));
    assert_contents(f, "36 37 | 38 39 | 40 ");
}

static void two_rotations_without_anybody_lose_nothing_and_a_third_one_does(void **state)
{
    struct fixture *f = *state;

    for (int rotations = 1; rotations <= 3; rotations++) {
        open_keep(f);
        wait_ready(f);
        close_keep(f);
        for (int i = 0; i < rotations; i++) {
            write_line(f);
            rotate(f);
        }
        write_line(f);
        open_keep(f);
        wait_contents(f, rotations == 1   ? "0 | 1 "
                         : rotations == 2 ? "1 2 | 3 | 4 "   /* 0 is beyond the three */
                                          : "4 5 | 6 | 8 "); /* 7 had no second name */
        close_keep(f);
    }
}

static void what_others_do_to_the_files_is_put_in_order(void **state)
{
    struct fixture *f = *state;

    open_keep(f);
    wait_ready(f);
    write_line(f);
    assert_int_equal(unlinkat(f->dir, "0.log", 0), 0);
    rotate(f); /* what was removed was kept by its second name */
    write_line(f);
    wait_contents(f, "0 | 1 ");
    wait_ready(f);
    assert_int_equal(unlinkat(f->dir, "0.log.tmp", 0), 0); /* conmon makes one itself, nobody is asked */
    rotate(f);
    write_line(f);
    wait_contents(f, "0 | 1 | 2 ");
    wait_ready(f);
    assert_int_equal(unlinkat(f->dir, ".0.log.kept", 0), 0);
    assert_int_equal(unlinkat(f->dir, ".0.log.next", 0), 0);
    rotate(f); /* it is held all the same */
    write_line(f);
    wait_contents(f, "1 | 2 | 3 ");
    wait_ready(f);
    close(open(f->log, O_WRONLY | O_TRUNC | O_CLOEXEC)); /* emptied in place */
    rotate(f);
    write_line(f);
    wait_contents(f, "2 | | 4 ");
}

static void somebody_who_writes_to_the_next_file_does_no_harm(void **state)
{
    struct fixture *f = *state;

    open_keep(f);
    wait_ready(f);
    write_line(f);
    close(openat(f->dir, "0.log.tmp", O_WRONLY | O_CLOEXEC)); /* breaks the lease as conmon would */
    write_line(f);
    rotate(f);
    write_line(f);
    wait_contents(f, "0 1 | 2 ");
    wait_ready(f);
    rotate(f);
    write_line(f);
    wait_contents(f, "0 1 | 2 | 3 ");
}

static void a_removed_run_leaves_nothing_and_a_removed_folder_is_forgotten(void **state)
{
    struct fixture *f = *state;

    open_keep(f);
    wait_ready(f);
    rotate(f);
    wait_ready(f);
    log_keep_remove(f->keep, f->log);
    close_keep(f);
    assert_contents(f, "");
    assert_false(there(f, "0.log.tmp"));
    open_keep(f); /* of a log that does not exist yet */
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(mkdir(f->path, 0700), 0);
    close(f->dir);
    f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close_keep(f);
    assert_contents(f, "");
}

static void an_order_whose_wake_up_fails_is_not_left_to_the_next(void **state)
{
    struct fixture *f = *state;

    wakes_to_fail = 2;
    open_keep(f);
    wait_ready(f);
    assert_int_equal(wakes_to_fail, 0);
    wakes_to_fail = 1;
    close_keep(f);
    uv_run(&f->loop, UV_RUN_DEFAULT); /* its thread has ended */
    assert_int_equal(wakes_to_fail, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(the_newest_files_are_kept_without_a_gap),
        T(two_rotations_without_anybody_lose_nothing_and_a_third_one_does),
        T(what_others_do_to_the_files_is_put_in_order),
        T(somebody_who_writes_to_the_next_file_does_no_harm),
        T(an_order_whose_wake_up_fails_is_not_left_to_the_next),
        T(a_removed_run_leaves_nothing_and_a_removed_folder_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
