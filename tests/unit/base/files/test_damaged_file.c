/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/files/damaged_file.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/test-aside-XXXXXX";
static int dir = -1;

static int make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test-aside-XXXXXX");
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

static void count(const char *name, void *arg)
{
    assert_true(damaged_file_is(name));
    ++*(unsigned *)arg;
}

static unsigned number(void)
{
    unsigned n = 0;
    struct err e = { 0 };

    assert_false(presence_is_unknown(damaged_file_look(dir, count, &n, &e)));
    return n;
}

static void a_file_is_set_aside_under_its_name_and_the_time(void **state)
{
    char away[DAMAGED_FILE_NAME_SIZE];
    struct err e = { 0 };

    (void)state;
    put("a.json");
    assert_int_equal(damaged_file_set_aside(dir, "a.json", away, &e), ERR_OK);
    assert_int_equal(strncmp(away, "a.json.damaged-20", 17), 0);
    assert_int_equal(strlen(away), strlen("a.json.damaged-20260102T030405Z"));
    assert_int_equal(faccessat(dir, away, F_OK, 0), 0);
    assert_int_not_equal(faccessat(dir, "a.json", F_OK, 0), 0);
    assert_true(damaged_file_since_ns(away) > INT64_C(1500000000) * 1000000000);
}

static void the_time_is_read_back(void **state)
{
    (void)state;
    assert_int_equal(damaged_file_since_ns("a.json.damaged-20260102T030405Z"),
                     INT64_C(1767323045) * 1000000000);
    assert_int_equal(damaged_file_since_ns("a.json.damaged-2026"), 0);
    assert_int_equal(damaged_file_since_ns("a.json"), 0);
    assert_false(damaged_file_is("a.json.damaged"));
}

static void a_folder_keeps_the_newest(void **state)
{
    char away[DAMAGED_FILE_NAME_SIZE], name[64];
    struct err e = { 0 };

    (void)state;
    for (int i = 0; i < DAMAGED_FILE_MAX; i++) {
        snprintf(name, sizeof(name), "f%d.json.damaged-202001%02dT000000Z", 50 - i, i + 1);
        put(name);
    }
    put("a.json");
    assert_int_equal(damaged_file_set_aside(dir, "a.json", away, &e), ERR_OK);
    assert_int_equal(number(), DAMAGED_FILE_MAX);
    assert_int_not_equal(faccessat(dir, "f50.json.damaged-20200101T000000Z", F_OK, 0), 0);
    assert_int_equal(faccessat(dir, "f49.json.damaged-20200102T000000Z", F_OK, 0), 0);
}

static void what_cannot_be_renamed_is_said(void **state)
{
    char away[DAMAGED_FILE_NAME_SIZE];
    struct err e = { 0 };

    (void)state;
    assert_int_equal(damaged_file_set_aside(dir, "none.json", away, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "set none.json aside: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_set_aside_under_its_name_and_the_time, make, discard),
        cmocka_unit_test_setup_teardown(the_time_is_read_back, make, discard),
        cmocka_unit_test_setup_teardown(a_folder_keeps_the_newest, make, discard),
        cmocka_unit_test_setup_teardown(what_cannot_be_renamed_is_said, make, discard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
