/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's fsGroup on the files of a driver's volume. */
#include "tests/unit/base/helper.h"

#include "volumes/csi/group.h"

#include <stdlib.h>

#define GROUP 4711

static void file(const char *name, mode_t mode)
{
    struct err e = { 0 };

    assert_int_equal(fs_replace_at(AT_FDCWD, name, "x", 1, mode, false, &e), ERR_OK);
}

static void is(const char *name, gid_t gid, mode_t mode)
{
    struct stat st;

    assert_int_equal(lstat(name, &st), 0);
    if (st.st_gid != gid || (st.st_mode & 07777) != mode)
        fail_msg("%s: group %u, mode %o", name, st.st_gid, st.st_mode & 07777);
}

static void apply(bool only_if_wrong)
{
    struct err e = { 0 };

    if (csi_group_apply("volume", GROUP, only_if_wrong, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

/* In the scratch folder, which becomes the current one. */
static void tree(void **state)
{
    if (geteuid() != 0)
        SKIP("no other group without root");
    assert_int_equal(chdir(*state), 0);
    assert_int_equal(mkdir("volume", 0755), 0);
    assert_int_equal(mkdir("volume/sub", 0700), 0);
    file("volume/a", 0644);
    file("volume/sub/program", 04755);
    file("outside", 0600);
    assert_int_equal(symlink("../outside", "volume/link"), 0);
}

static void every_file_gets_the_group_and_its_bits(void **state)
{
    tree(state);
    apply(false);
    is("volume", GROUP, 02775);
    is("volume/a", GROUP, 0664);
    is("volume/sub", GROUP, 02770);
    is("volume/sub/program", GROUP, 04775); /* the bit that a change of the group takes away is set again */
    apply(false);
    is("volume/sub/program", GROUP, 04775);
}

static void no_link_is_followed(void **state)
{
    struct stat st;

    tree(state);
    apply(false);
    assert_int_equal(lstat("volume/link", &st), 0);
    assert_int_equal(st.st_gid, GROUP);
    is("outside", getegid(), 0600);
}

/* fsGroupChangePolicy OnRootMismatch */
static void where_the_top_is_right_nothing_is_looked_at(void **state)
{
    tree(state);
    apply(true);
    is("volume/a", GROUP, 0664);
    assert_int_equal(chmod("volume/a", 0600), 0);
    apply(true);
    is("volume/a", GROUP, 0600);
    apply(false);
    is("volume/a", GROUP, 0660);
    assert_int_equal(chmod("volume", 0700), 0);
    assert_int_equal(chmod("volume/a", 0600), 0);
    apply(true);
    is("volume/a", GROUP, 0660);
}

static void what_vanishes_meanwhile_is_no_error(void **state)
{
    struct err e = { 0 };

    assert_int_equal(chdir(*state), 0);
    assert_int_equal(csi_group_apply("none", GROUP, true, &e), ERR_OK);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_file_gets_the_group_and_its_bits),
        TEST(no_link_is_followed),
        TEST(where_the_top_is_right_nothing_is_looked_at),
        TEST(what_vanishes_meanwhile_is_no_error),
    };

    umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
