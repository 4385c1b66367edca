/* SPDX-License-Identifier: Apache-2.0 */
/* Which folders of a refused start are removed, and which are not. */
#include "agent/made.h"
#include "base/files/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[64];

static int setup(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/test_made.XXXXXX");
    return mkdtemp(top) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    struct err e = { 0 };

    (void)state;
    return fs_remove_tree(AT_FDCWD, top, &e) == ERR_OK ? 0 : -1;
}

static const char *below(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    return path;
}

static bool is_there(const char *name)
{
    return access(below(name), F_OK) == 0;
}

static void make(struct made *m, const char *name)
{
    struct err e = { 0 };

    assert_int_equal(made_mkdirs(m, below(name), 0700, &e), ERR_OK);
}

static void what_was_made_goes_with_its_parents(void **state)
{
    struct made m = { 0 };

    (void)state;
    assert_int_equal(mkdir(below("old"), 0700), 0);
    make(&m, "old");
    make(&m, "old/a/b/c");
    make(&m, "old/a/d");
    assert_true(made_has(&m, below("old/a/d")));
    assert_false(made_has(&m, below("old")));
    assert_false(made_has(&m, below("old/a"))); /* only as a parent */
    made_remove(&m);
    assert_true(is_there("old"));
    assert_false(is_there("old/a"));
    assert_int_equal(m.n, 0);
}

static void what_somebody_put_something_into_stays(void **state)
{
    struct made m = { 0 };
    int fd;

    (void)state;
    make(&m, "a/b");
    make(&m, "c/d");
    fd = open(below("a/file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    made_remove(&m);
    assert_true(is_there("a/file"));
    assert_false(is_there("a/b"));
    assert_false(is_there("c"));
}

static void what_cannot_be_made_fails_and_leaves_nothing(void **state)
{
    struct made m = { 0 };
    struct err e = { 0 };
    int fd = open(below("file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_not_equal(made_mkdirs(&m, below("file/x"), 0700, &e), ERR_OK);
    made_remove(&m);
    assert_true(is_there("file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_made_goes_with_its_parents, setup, teardown),
        cmocka_unit_test_setup_teardown(what_somebody_put_something_into_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_made_fails_and_leaves_nothing, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
