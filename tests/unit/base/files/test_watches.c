/* SPDX-License-Identifier: Apache-2.0 */
/* One instance for all sets of a loop; without one the paths are polled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/files/watches.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEADLINE_MS = 10000 };

struct place {
    uv_loop_t loop;
    char root[64];
};

struct heard {
    struct watch_set *set;
    int n, overflows, ignored, last_wd;
    char names[400];
    bool close_at_once;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    strcpy(p->root, "/tmp/test-watches.XXXXXX");
    if (mkdtemp(p->root) == NULL)
        return -1;
    uv_loop_init(&p->loop);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    struct err e = { 0 };

    uv_run(&p->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&p->loop) != 0 || fs_remove_tree(AT_FDCWD, p->root, &e) != ERR_OK)
        return -1;
    free(p);
    return 0;
}

static void on_event(int wd, uint32_t mask, const char *name, void *arg)
{
    struct heard *h = arg;

    h->n++;
    h->last_wd = wd;
    h->overflows += (mask & IN_Q_OVERFLOW) != 0;
    h->ignored += (mask & IN_IGNORED) != 0;
    if (strlen(h->names) + strlen(name) + 2 < sizeof(h->names))
        strcat(strcat(h->names, name), " ");
    if (h->close_at_once) {
        watch_set_close(h->set);
        h->set = NULL;
    }
}

static void open_set(struct place *p, struct heard *h)
{
    struct err e = { 0 };

    assert_int_equal(watch_set_open(&h->set, &p->loop, on_event, h, &e), ERR_OK);
}

static const char *at(const struct place *p, const char *name)
{
    static char path[200];

    snprintf(path, sizeof(path), "%s/%s", p->root, name);
    return path;
}

static void put(const struct place *p, const char *name, const char *text)
{
    int fd = open(at(p, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void on_tick(uv_timer_t *t)
{
    (void)t;
}

static void turn(struct place *p, uint64_t ms)
{
    uv_timer_t tick;

    uv_timer_init(&p->loop, &tick);
    uv_timer_start(&tick, on_tick, ms, 0);
    uv_run(&p->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&p->loop, UV_RUN_NOWAIT);
}

static void until(struct place *p, const int *count)
{
    uint64_t deadline = clock_mono_ms() + DEADLINE_MS;

    while (*count == 0 && clock_mono_ms() < deadline)
        turn(p, 50);
    assert_true(*count > 0);
}

static int instances(void)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *entry;
    int n = 0;

    while ((entry = readdir(d)) != NULL) {
        char target[64] = "";

        if (readlinkat(dirfd(d), entry->d_name, target, sizeof(target) - 1) > 0)
            n += strcmp(target, "anon_inode:inotify") == 0;
    }
    closedir(d);
    return n;
}

static void sets_share_an_instance_and_do_not_disturb_one_another(void **state)
{
    struct place *p = *state;
    struct heard a = { 0 }, b = { 0 };
    int wd;

    open_set(p, &a);
    open_set(p, &b);
    wd = watch_set_add(a.set, p->root, IN_CREATE | IN_ONLYDIR);
    assert_true(wd > 0);
    assert_int_equal(watch_set_add(a.set, p->root, IN_DELETE), wd); /* the same inode, both masks */
    assert_true(watch_set_add(b.set, p->root, IN_CLOSE_WRITE) > 0);
    assert_int_equal(instances(), 1);
    put(p, "x", "1");
    until(p, &b.n);
    assert_string_equal(a.names, "x ");
    assert_string_equal(b.names, "x ");
    assert_int_equal(a.n, 1); /* of its own mask alone */
    assert_int_equal(b.n, 1);

    watch_set_close(b.set);
    unlink(at(p, "x"));
    a.n = 0;
    until(p, &a.n); /* the other set's goes on */
    watch_set_remove(a.set, wd);
    watch_set_remove(a.set, wd);
    put(p, "y", "1");
    a.n = 0;
    turn(p, 50);
    assert_int_equal(a.n, 0);
    assert_int_equal(watch_set_add(a.set, at(p, "missing"), IN_CREATE), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(watch_set_add(a.set, at(p, "y"), IN_CREATE | IN_ONLYDIR), -1);
    assert_int_equal(errno, ENOTDIR);
    watch_set_close(a.set);
    assert_int_equal(instances(), 0);
}

static void a_set_may_be_closed_amid_its_event(void **state)
{
    struct place *p = *state;
    struct heard a = { .close_at_once = true }, b = { 0 };

    open_set(p, &a);
    open_set(p, &b);
    watch_set_add(a.set, p->root, IN_CREATE);
    watch_set_add(b.set, p->root, IN_CREATE);
    put(p, "x", "1");
    put(p, "y", "1");
    until(p, &b.n);
    assert_int_equal(a.n, 1);
    assert_string_equal(b.names, "x y ");
    watch_set_close(b.set);
}

/* Instead of the C library's: reads of an inotify instance fail while this is set. */
static int reads_fail, reads_failed;

ssize_t read(int fd, void *to, size_t n)
{
    char link[64], target[64] = "";

    if (reads_fail != 0) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        if (readlink(link, target, sizeof(target) - 1) > 0 && strcmp(target, "anon_inode:inotify") == 0) {
            reads_failed++;
            errno = reads_fail;
            return -1;
        }
    }
    return syscall(SYS_read, fd, to, n);
}

static void a_read_that_fails_is_not_repeated_at_once_and_loses_nothing(void **state)
{
    struct place *p = *state;
    struct heard a = { 0 };
    uint64_t end;

    open_set(p, &a);
    assert_true(watch_set_add(a.set, p->root, IN_CREATE) > 0);
    reads_fail = EIO;
    put(p, "x", "1");
    for (end = clock_mono_ms() + 300; clock_mono_ms() < end;)
        turn(p, 20);
    assert_in_range(reads_failed, 1, 3);
    reads_fail = 0;
    until(p, &a.overflows); /* look at all */
    a.n = 0;
    put(p, "y", "1");
    until(p, &a.n);
    watch_set_close(a.set);
}

static void polled(struct place *p, struct heard *h)
{
    char why[200];

    assert_int_equal(watches_polled(&p->loop, why, sizeof(why)), 0);
    mkdir(at(p, "d"), 0755);
    put(p, "file", "1");
    assert_int_equal(watch_set_add(h->set, at(p, "missing"), IN_CREATE), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(watch_set_add(h->set, at(p, "file"), IN_CREATE | IN_ONLYDIR), -1);
    assert_int_equal(errno, ENOTDIR);
    int wd = watch_set_add(h->set, at(p, "d"), IN_CREATE | IN_ONLYDIR);
    assert_true(wd > 0);
    assert_int_equal(watch_set_add(h->set, at(p, "d"), IN_CREATE), wd);
    assert_int_equal(watches_polled(&p->loop, why, sizeof(why)), 1);
    turn(p, WATCHES_POLL_MS * 3 / 2);
    assert_int_equal(h->n, 0); /* nothing changed */
    put(p, "d/x", "1");
    until(p, &h->overflows);
    assert_int_equal(h->ignored, 0);
    unlink(at(p, "d/x"));
    h->overflows = 0;
    until(p, &h->overflows);
    rmdir(at(p, "d"));
    until(p, &h->ignored);
    assert_int_equal(h->last_wd, wd);
    assert_int_equal(watches_polled(&p->loop, why, sizeof(why)), 0);
}

static void without_an_instance_paths_are_polled_until_there_is_one(void **state)
{
    struct place *p = *state;
    struct heard h = { 0 };
    char why[200];
    int wd;

    open_set(p, &h);
    watches_force_poll(&p->loop, true);
    polled(p, &h);
    wd = watch_set_add(h.set, p->root, IN_CREATE);
    watches_force_poll(&p->loop, false);
    h.overflows = 0;
    until(p, &h.overflows); /* what happened in between is not known */
    assert_int_equal(watches_polled(&p->loop, why, sizeof(why)), 0);
    assert_int_equal(instances(), 1);
    h.n = 0;
    h.names[0] = '\0';
    put(p, "again", "1");
    until(p, &h.n);
    assert_int_equal(h.last_wd, wd);
    assert_string_equal(h.names, "again ");
    watch_set_close(h.set);
}

static void an_instance_that_is_lost_leaves_the_paths_polled(void **state)
{
    struct place *p = *state;
    struct heard h = { 0 };
    char why[200];
    int wd;

    open_set(p, &h);
    wd = watch_set_add(h.set, p->root, IN_CREATE);
    watches_force_poll(&p->loop, true);
    assert_int_equal(watches_polled(&p->loop, why, sizeof(why)), 1);
    put(p, "x", "1");
    until(p, &h.overflows);
    assert_int_equal(watch_set_add(h.set, p->root, IN_CREATE), wd);
    watch_set_close(h.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sets_share_an_instance_and_do_not_disturb_one_another, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_set_may_be_closed_amid_its_event, setup, teardown),
        cmocka_unit_test_setup_teardown(a_read_that_fails_is_not_repeated_at_once_and_loses_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(without_an_instance_paths_are_polled_until_there_is_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_instance_that_is_lost_leaves_the_paths_polled, setup, teardown),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
