/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/test-look-XXXXXX";
static int dir = -1;

static int make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test-look-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -1 : 0;
}

static int discard(void **state)
{
    struct err e = { 0 };

    (void)state;
    close(dir);
    return fs_remove_tree(AT_FDCWD, folder, &e) == ERR_OK ? 0 : -1;
}

static void put(const char *name)
{
    struct err e = { 0 };

    assert_int_equal(fs_replace_at(dir, name, "x", 1, 0600, false, &e), ERR_OK);
}

static bool count(const char *name, void *arg)
{
    assert_string_not_equal(name, ".");
    assert_string_not_equal(name, "..");
    ++*(unsigned *)arg;
    return true;
}

static void what_is_there_is_present(void **state)
{
    str_auto text = NULL;
    struct err e = { 0 };
    struct stat st;
    unsigned n = 0;

    (void)state;
    put("a");
    assert_int_equal(symlinkat("nowhere", dir, "link"), 0);
    assert_int_equal(presence_of(fs_look_at(dir, "a", &st, &e)), PRESENCE_PRESENT);
    assert_int_equal(st.st_size, 1);
    assert_int_equal(presence_of(fs_look_at(dir, "link", &st, &e)), PRESENCE_PRESENT);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(presence_of(fs_read_if_there(dir, "a", 10, &text, NULL, &e)), PRESENCE_PRESENT);
    assert_string_equal(text, "x");
    assert_int_equal(presence_of(fs_list(dir, ".", count, &n, &e)), PRESENCE_PRESENT);
    assert_int_equal(n, 2);
    assert_int_equal(presence_of(fs_look_mountpoint("/proc", &e)), PRESENCE_PRESENT);
}

static void enoent_and_enotdir_prove_absence(void **state)
{
    str_auto text = NULL;
    struct err e = { 0 };
    unsigned n = 0;

    (void)state;
    put("a");
    assert_int_equal(presence_of(fs_look_at(dir, "b", NULL, &e)), PRESENCE_ABSENT);
    assert_int_equal(presence_of(fs_look_at(dir, "a/b", NULL, &e)), PRESENCE_ABSENT);
    assert_int_equal(presence_of(fs_read_if_there(dir, "b", 10, &text, NULL, &e)), PRESENCE_ABSENT);
    assert_int_equal(presence_of(fs_list(dir, "b", count, &n, &e)), PRESENCE_ABSENT);
    assert_int_equal(presence_of(fs_look_mountpoint("/nowhere/at/all", &e)), PRESENCE_ABSENT);
    assert_int_equal(presence_of(fs_look_mountpoint(folder, &e)), PRESENCE_ABSENT);
    assert_int_equal(e.code, ERR_OK);
    assert_int_equal(n, 0);
}

static void every_other_failure_is_unknown_with_its_error_and_is_counted(void **state)
{
    uint64_t before = presence_unknown_count();
    str_auto text = NULL;
    struct err e = { 0 };
    unsigned n = 0;

    (void)state;
    put("a");
    assert_int_equal(presence_of(fs_look_at(-1, "a", NULL, &e)), PRESENCE_UNKNOWN);
    assert_int_equal(e.sys, EBADF);
    e = (struct err){ 0 };
    assert_int_equal(presence_of(fs_read_if_there(dir, "a", 0, &text, NULL, &e)), PRESENCE_UNKNOWN);
    assert_int_equal(e.code, ERR_EXHAUSTED);
    e = (struct err){ 0 };
    assert_int_equal(presence_of(fs_list(-1, ".", count, &n, &e)), PRESENCE_UNKNOWN);
    assert_int_equal(n, 0);
    assert_int_equal(presence_unknown_count() - before, 3);
}

static void an_answer_that_was_never_set_is_unknown(void **state)
{
    struct presence found = { 0 };

    (void)state;
    assert_true(presence_is_unknown(found));
    assert_false(presence_is_absent(found));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_there_is_present, make, discard),
        cmocka_unit_test_setup_teardown(enoent_and_enotdir_prove_absence, make, discard),
        cmocka_unit_test_setup_teardown(every_other_failure_is_unknown_with_its_error_and_is_counted, make,
                                        discard),
        cmocka_unit_test(an_answer_that_was_never_set_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
