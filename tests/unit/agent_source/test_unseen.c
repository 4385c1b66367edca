/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the manifest folder that fail: nothing that it holds is taken for gone. */
#include "live_folder.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The calls below fail with this for what lies below the folder named, while it is not 0. */
static struct {
    int sys;
    bool folder, files, list;
    char below[96];
    unsigned hits;
} fault;

static bool hit(const char *path, bool is_list)
{
    size_t n = strlen(fault.below);
    bool self, below;

    if (fault.sys == 0 || n == 0 || strncmp(path, fault.below, n) != 0)
        return false;
    self = path[n] == '\0';
    below = path[n] == '/';
    if (!((self && (is_list ? fault.list : fault.folder)) || (below && fault.files)))
        return false;
    fault.hits++;
    errno = fault.sys;
    return true;
}

/* In place of the C library's, whose headers name the arguments. */
int stat(const char *restrict path, struct stat *restrict st)
{
    return hit(path, false) ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

int lstat(const char *restrict path, struct stat *restrict st)
{
    return hit(path, false) ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
    return hit(path, false) ? -1 : (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return hit(path, true) ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}

static void fail_with(const struct fixture *f, int sys)
{
    memset(&fault, 0, sizeof(fault));
    fault.sys = sys;
    snprintf(fault.below, sizeof(fault.below), "%s", f->dir);
}

static void two_pods(struct fixture *f)
{
    fault.sys = 0;
    write_file(f, "a.yaml", POD("a", "x:1"));
    write_file(f, "b.yaml", POD("b", "x:1"));
    start(f);
    to_see(f, "added Pod default/b x:1\n");
    to_see(f, "first set\n");
    buf_reset(&f->seen);
}

static void until_hit(struct fixture *f)
{
    uint64_t until = clock_mono_ms() + DEADLINE_MS;

    while (fault.hits == 0 && clock_mono_ms() < until)
        turn(f, 20);
    assert_true(fault.hits > 0);
}

static void a_listing_that_fails_removes_nothing_and_is_repeated(void **state)
{
    struct fixture *f = *state;

    two_pods(f);
    fail_with(f, EIO);
    fault.list = true;
    delete (f, "b.yaml");
    write_file(f, "c.yaml", POD("c", "x:1"));
    folder_rescan(f->folder);
    until_hit(f);
    quiet(f);
    assert_null(strstr(f->seen.p, "removed Pod default/a"));
    fault.sys = 0;
    to_see(f, "removed Pod default/b\n");
    to_see(f, "added Pod default/c x:1\n");
    assert_null(strstr(f->seen.p, "removed Pod default/a"));
}

static void a_first_listing_that_fails_takes_no_seeded_pod_for_gone(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    struct api_pod *pod;

    two_pods(f);
    pod = src_store_pod(f->store, API_FROM_FOLDER, "default", "a");
    src_folder_close(f->folder);
    quiet(f);

    fail_with(f, EMFILE);
    fault.list = fault.files = true;
    start(f);
    assert_true(fault.hits > 0);
    assert_int_equal(src_folder_seed(f->folder, "a.yaml", pod, &e), ERR_OK);
    to_see(f, "first set\n");
    quiet(f);
    quiet(f);
    assert_null(strstr(f->seen.p, "removed"));
    fault.sys = 0;
    to_see(f, "file a.yaml ok 1\n");
    assert_null(strstr(f->seen.p, "removed"));
}

static void a_file_that_cannot_be_looked_at_is_not_gone(void **state)
{
    const int errors[] = { EIO, ENOMEM, EACCES };
    struct fixture *f = *state;

    two_pods(f);
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        fail_with(f, errors[i]);
        fault.files = true;
        folder_missing(f->folder, "a.yaml", SRC_FOLDER_SETTLE_MS); /* as after an event */
        until_hit(f);
        quiet(f);
        assert_null(strstr(f->seen.p, "removed"));
    }
    fault.sys = 0;
    delete (f, "b.yaml");
    to_see(f, "removed Pod default/b\n");
    assert_null(strstr(f->seen.p, "removed Pod default/a"));
}

static void a_folder_that_cannot_be_looked_at_is_not_gone(void **state)
{
    struct fixture *f = *state;

    two_pods(f);
    fail_with(f, EIO);
    fault.folder = true;
    assert_false(watch_check(f->folder));
    assert_int_equal(f->folder->state, WATCH_FOLDER);
    delete (f, "b.yaml"); /* nothing is decided while the folder itself is in doubt */
    until_hit(f);
    quiet(f);
    assert_seen(f, "");
    fault.sys = 0;
    to_see(f, "removed Pod default/b\n");
    assert_null(strstr(f->seen.p, "removed Pod default/a"));
}

static void an_unmounted_disk_that_leaves_nothing_to_look_at_ends_no_pod(void **state)
{
    struct fixture *f = *state;

    if (mount("test-folder", f->dir, "tmpfs", 0, NULL) < 0) {
        print_message("skipped: needs root\n");
        skip();
    }
    two_pods(f);
    fail_with(f, EIO);
    fault.folder = true;
    assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
    until_hit(f);
    quiet(f);
    fault.sys = 0; /* the bare folder below is seen from now on */
    quiet(f);
    quiet(f);
    assert_seen(f, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_listing_that_fails_removes_nothing_and_is_repeated),
        T(a_first_listing_that_fails_takes_no_seeded_pod_for_gone),
        T(a_file_that_cannot_be_looked_at_is_not_gone),
        T(a_folder_that_cannot_be_looked_at_is_not_gone),
        T(an_unmounted_disk_that_leaves_nothing_to_look_at_ends_no_pod),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
