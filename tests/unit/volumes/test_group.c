/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's fsGroup on the files of a volume. */
#include "tests/unit/base/helper.h"

#include "volumes/volumes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

    if (only_if_wrong && vol_group_is("volume", GROUP))
        return;
    if (vol_group_set("volume", GROUP, &e) != ERR_OK)
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

/* A container that shares the volume exchanges a folder for a link while the tree is walked. */
static void *exchange(void *arg)
{
    const bool *over = arg;

    while (!__atomic_load_n(over, __ATOMIC_RELAXED)) {
        if (rename("volume/sub", "aside") == 0) {
            if (symlink("../elsewhere", "volume/sub") == 0)
                unlink("volume/sub");
            rename("aside", "volume/sub");
        }
    }
    return NULL;
}

static void files_outside_are_safe_from_links_that_come_meanwhile(void **state)
{
    pthread_t other;
    bool over = false;

    tree(state);
    assert_int_equal(mkdir("elsewhere", 0700), 0);
    file("elsewhere/program", 0600);
    assert_int_equal(pthread_create(&other, NULL, exchange, &over), 0);
    for (int i = 0; i < 2000; i++)
        ERR_IGNORE(vol_group_set("volume", GROUP, &(struct err){ 0 }));
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(other, NULL), 0);
    is("elsewhere", getegid(), 0700);
    is("elsewhere/program", getegid(), 0600);
    is("outside", getegid(), 0600);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    struct err e = { 0 };

    assert_int_equal(chdir(*state), 0);
    assert_int_not_equal(vol_group_set("none", GROUP, &e), ERR_OK);
    assert_non_null(strstr(e.text, "none"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_file_gets_the_group_and_its_bits),
        TEST(no_link_is_followed),
        TEST(where_the_top_is_right_nothing_is_looked_at),
        TEST(files_outside_are_safe_from_links_that_come_meanwhile),
        TEST(a_folder_that_is_not_there_is_named),
    };

    umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
