/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/volumes_quota/fake_kernel.h"

#include <sys/file.h>
#include <sys/syscall.h>

static char replacing[110]; /* the file that kubelet replaces between our open and our lock; "": none */

/* Stands before the C library's. */
int flock(int fd, int operation)
{
    char beside[120];

    if (replacing[0] != '\0') {
        snprintf(beside, sizeof(beside), "%s.new", replacing);
        put_text(beside, "7:/of kubelet\n");
        assert_int_equal(rename(beside, replacing), 0);
        replacing[0] = '\0';
    }
    return (int)syscall(SYS_flock, fd, operation);
}

static struct etc_files *must_lock(struct fixture *f)
{
    struct etc_files *files = NULL;
    struct err e = { 0 };

    if (etc_files_lock(&files, f->projects, f->projid, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return files;
}

static bool is_locked(const char *path)
{
    fd_auto fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return flock(fd, LOCK_EX | LOCK_NB) != 0;
}

static void missing_files_are_made_with_mode_0644_and_locked(void **state)
{
    struct fixture *f = *state;
    mode_t before = umask(0077);
    struct etc_files *files = must_lock(f);
    struct stat st;

    umask(before);
    assert_int_equal(stat(f->projects, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0644);
    assert_int_equal(stat(f->projid, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0644);
    assert_true(is_locked(f->projects));
    assert_true(is_locked(f->projid));
    etc_files_unlock(files);
    assert_false(is_locked(f->projects));
    assert_false(is_locked(f->projid));
}

static void anything_but_a_regular_file_is_refused(void **state)
{
    struct fixture *f = *state;
    struct etc_files *files = NULL;
    struct err e = { 0 };
    char real[110];

    snprintf(real, sizeof(real), "%s.real", f->projid);
    put_text(real, "x:5\n");
    assert_int_equal(symlink(real, f->projid), 0);
    assert_int_equal(etc_files_lock(&files, f->projects, f->projid, &e), ERR_PRECONDITION);
    assert_non_null(strstr(e.text, "/projid is a symbolic link; only a regular file is used"));
    assert_false(is_locked(f->projects));
    assert_int_equal(unlink(f->projid), 0);
    assert_int_equal(mkfifo(f->projid, 0644), 0);
    assert_int_equal(etc_files_lock(&files, f->projects, f->projid, &e), ERR_PRECONDITION);
    assert_int_equal(unlink(f->projid), 0);
    assert_int_equal(mkdir(f->projid, 0755), 0);
    assert_int_equal(etc_files_lock(&files, f->projects, f->projid, &e), ERR_PRECONDITION);
    assert_text(real, "x:5\n");
    assert_null(files);
}

static void a_lock_that_others_keep_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct etc_files *files = NULL;
    struct err e = { 0 };
    fd_auto fd = open(f->projid, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);

    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(etc_files_lock(&files, f->projects, f->projid, &e), ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "/projid is locked by another program"));
    assert_false(is_locked(f->projects));
}

static void the_lock_of_a_file_that_was_replaced_meanwhile_is_not_the_lock(void **state)
{
    struct fixture *f = *state;
    struct etc_files *files;

    put_text(f->projects, "old\n");
    strcpy(replacing, f->projects);
    files = must_lock(f);
    assert_string_equal(replacing, "");
    assert_string_equal(etc_files_text(files, ETC_PROJECTS).p, "7:/of kubelet\n");
    assert_true(is_locked(f->projects));
    etc_files_unlock(files);
}

static void a_holder_is_waited_for(void **state)
{
    struct fixture *f = *state;
    fd_auto fd = open(f->projects, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
    pid_t pid;
    int status;

    assert_int_equal(flock(fd, LOCK_EX), 0);
    pid = fork();
    if (pid == 0) {
        usleep(100000);
        _exit(flock(fd, LOCK_UN) == 0 ? 0 : 1);
    }
    etc_files_unlock(must_lock(f));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void an_edit_replaces_a_file_with_its_mode_and_nothing_else_changes(void **state)
{
    struct fixture *f = *state;
    struct etc_lines none[2] = { { 0 }, { 0 } }, keep[2] = { { 0 }, { 0 } };
    struct etc_files *files;
    struct stat before, after;
    struct err e = { 0 };

    put_text(f->projects, "7:/of others");
    put_text(f->projid, "");
    assert_int_equal(chmod(f->projects, 0640), 0);
    assert_int_equal(etc_lines_add(&keep[ETC_PROJECTS], ETC_PROJECTS, 8, "/ours", &e), ERR_OK);
    assert_int_equal(stat(f->projid, &before), 0);
    files = must_lock(f);
    assert_int_equal(etc_files_edit(files, none, keep, &e), ERR_OK);
    assert_int_equal(etc_files_edit(files, keep, none, &e),
                     ERR_OK); /* begins with what the first one wrote */
    assert_text(f->projects, "7:/of others\n");
    assert_int_equal(etc_files_edit(files, none, keep, &e), ERR_OK);
    etc_files_unlock(files);
    assert_text(f->projects, "7:/of others\n8:/ours\n");
    assert_int_equal(stat(f->projid, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(stat(f->projects, &after), 0);
    assert_int_equal(after.st_mode & 07777, 0640);
    etc_lines_done(&keep[ETC_PROJECTS]);
}

static void what_a_killed_writer_left_is_removed(void **state)
{
    struct fixture *f = *state;
    char left[110];
    struct etc_files *files;

    snprintf(left, sizeof(left), "%s/.projects.coracle", f->dir);
    put_text(left, "half a fi");
    files = must_lock(f);
    etc_files_unlock(files);
    assert_int_equal(access(left, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(missing_files_are_made_with_mode_0644_and_locked),
        TEST(anything_but_a_regular_file_is_refused),
        TEST(a_lock_that_others_keep_is_an_error),
        TEST(the_lock_of_a_file_that_was_replaced_meanwhile_is_not_the_lock),
        TEST(a_holder_is_waited_for),
        TEST(an_edit_replaces_a_file_with_its_mode_and_nothing_else_changes),
        TEST(what_a_killed_writer_left_is_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
