/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/files/disk_usage.h"

#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>

#define MIB (1024 * 1024)

static char *at(void **state, const char *name)
{
    static char path[8][4400];
    static unsigned turn;
    char *p = path[turn++ % 8];

    snprintf(p, sizeof(path[0]), "%s/%s", (const char *)*state, name);
    return p;
}

static void folder(void **state, const char *name)
{
    assert_int_equal(mkdir(at(state, name), 0755), 0);
}

static void file(void **state, const char *name, size_t bytes)
{
    int fd = open(at(state, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    static const char block[65536];

    assert_true(fd >= 0);
    for (size_t n = 0; n < bytes; n += sizeof(block))
        assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
    close(fd);
}

/* What the file system says of a tree of its own, by another walk. */
static uint64_t expected;

static int add_blocks(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)path, (void)type, (void)where;
    expected += (uint64_t)st->st_blocks * 512;
    return 0;
}

static uint64_t blocks_below(const char *path)
{
    expected = 0;
    assert_int_equal(nftw(path, add_blocks, 8, FTW_PHYS), 0);
    return expected;
}

static struct disk_usage *begun(const char *path)
{
    struct disk_usage *u = NULL;
    struct err e = { 0 };

    if (disk_usage_begin(&u, path, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return u;
}

static struct disk_usage_sum measured(const char *path)
{
    struct disk_usage *u = begun(path);
    struct disk_usage_sum sum;

    while (!disk_usage_go_on(u, 1)) /* in the smallest slices */
        ;
    sum = disk_usage_sum(u);
    disk_usage_free(u);
    return sum;
}

static void a_tree_is_the_sum_of_its_entries(void **state)
{
    struct disk_usage_sum sum;

    folder(state, "a");
    folder(state, "a/empty");
    folder(state, "a/b");
    folder(state, "c");
    file(state, "one", MIB);
    file(state, "a/b/two", 2 * MIB);
    assert_int_equal(symlink("/", at(state, "a/link")), 0);
    assert_int_equal(mkfifo(at(state, "c/fifo"), 0600), 0);
    sum = measured(*state);
    assert_int_equal(sum.bytes, blocks_below(*state));
    assert_true(sum.bytes >= 3 * MIB);
    assert_int_equal(sum.inodes, 9);
    assert_false(sum.partial);
}

static void a_thousand_files_and_folders_are_counted(void **state)
{
    struct disk_usage_sum sum;
    char name[32];

    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), i % 10 == 0 ? "d%d" : "f%d", i);
        if (i % 10 == 0)
            folder(state, name);
        else
            file(state, name, 1);
    }
    sum = measured(*state);
    assert_int_equal(sum.inodes, 1001);
    assert_int_equal(sum.bytes, blocks_below(*state));
}

static void a_sparse_file_counts_with_its_blocks(void **state)
{
    uint64_t before = measured(*state).bytes;

    file(state, "sparse", 65536);
    assert_int_equal(truncate(at(state, "sparse"), 1LL << 34), 0);
    assert_in_range(measured(*state).bytes - before, 65536, 2 * 65536);
}

static void hard_links_count_once(void **state)
{
    struct disk_usage_sum alone, linked;
    char name[32];

    file(state, "one", MIB);
    alone = measured(*state);
    folder(state, "d");
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "d/%d", i);
        assert_int_equal(link(at(state, "one"), at(state, name)), 0);
    }
    linked = measured(*state);
    assert_int_equal(linked.inodes, alone.inodes + 1);
    assert_true(linked.bytes < alone.bytes + MIB / 2);
    assert_false(linked.partial);
}

static void more_hard_links_than_can_be_remembered_are_shared_out(void **state)
{
    struct disk_usage *u;
    struct disk_usage_sum sum;
    char name[32], other[32];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "%d", i);
        snprintf(other, sizeof(other), "%d-too", i);
        file(state, name, 65536);
        assert_int_equal(link(at(state, name), at(state, other)), 0);
    }
    u = begun(*state);
    disk_usage_set_bounds(u, MIB, 10);
    assert_true(disk_usage_go_on(u, UINT64_MAX / 2));
    sum = disk_usage_sum(u);
    disk_usage_free(u);
    assert_true(sum.partial);
    assert_in_range(sum.bytes, 100 * 65536, 110 * 65536);
}

/* Longer than any path: made and measured relative to each folder. */
static void depth_costs_no_descriptors_and_no_path(void **state)
{
    enum { DEPTH = 3000 };
    int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct disk_usage_sum sum;

    for (int i = 0; i < DEPTH; i++) {
        int next;

        assert_int_equal(mkdirat(fd, "deep", 0755), 0);
        next = openat(fd, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    close(fd);
    sum = measured(*state);
    assert_int_equal(sum.inodes, DEPTH + 1);
    assert_false(sum.partial);
}

static void names_beyond_the_bound_are_left_out(void **state)
{
    struct disk_usage *u;
    struct disk_usage_sum sum;
    char name[32];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "%d", i);
        folder(state, name);
        snprintf(name, sizeof(name), "%d/in", i);
        file(state, name, 65536);
    }
    u = begun(*state);
    disk_usage_set_bounds(u, 40, 10);
    assert_true(disk_usage_go_on(u, UINT64_MAX / 2));
    sum = disk_usage_sum(u);
    disk_usage_free(u);
    assert_true(sum.partial);
    assert_in_range(sum.inodes, 102, 120); /* the folders themselves, and what is in the few that had room */
}

/* Tree: d0..d9 with ten folders each, each with a file.  While it is measured, folders move. */
static void folders_that_move_lead_nobody_out_and_stop_nobody(void **state)
{
    struct disk_usage *u;
    struct disk_usage_sum sum;
    char name[64], other[64];
    unsigned round = 0;

    folder(state, "outside");
    file(state, "outside/secret", 8 * MIB);
    folder(state, "tree");
    for (int i = 0; i < 100; i++) {
        if (i % 10 == 0) {
            snprintf(name, sizeof(name), "tree/d%d", i / 10);
            folder(state, name);
        }
        snprintf(name, sizeof(name), "tree/d%d/e%d", i / 10, i % 10);
        folder(state, name);
        snprintf(name, sizeof(name), "tree/d%d/e%d/f", i / 10, i % 10);
        file(state, name, 65536);
    }
    u = begun(at(state, "tree"));
    while (!disk_usage_go_on(u, 1) && round < 10000) {
        snprintf(name, sizeof(name), "tree/d%u/e%u", round / 3 % 10, round % 10);
        snprintf(other, sizeof(other), "outside/d%ue%u", round / 3 % 10, round % 10);
        if (round++ % 4 == 0)
            (void)!rename(at(state, name), at(state, other)); /* with the scan in it, now and then */
    }
    assert_true(disk_usage_go_on(u, UINT64_MAX / 2));
    sum = disk_usage_sum(u);
    disk_usage_free(u);
    assert_true(round > 0);
    assert_true(sum.bytes < 8 * MIB); /* nothing of what is outside */
    assert_true(sum.inodes >= 11);
}

static void the_folder_at_hand_is_moved_away(void **state)
{
    struct disk_usage *u;
    struct disk_usage_sum sum;
    char name[64];

    folder(state, "outside");
    folder(state, "outside/big");
    file(state, "outside/big/f", 8 * MIB);
    folder(state, "tree");
    folder(state, "tree/a");
    folder(state, "tree/a/b");
    for (int i = 0; i < 1000; i++) { /* more than a slice of entries */
        snprintf(name, sizeof(name), "tree/a/b/%d", i);
        folder(state, name);
    }
    u = begun(at(state, "tree"));
    assert_false(disk_usage_go_on(u, 1)); /* tree, a, and some of b */
    assert_false(disk_usage_go_on(u, 1));
    assert_int_equal(rename(at(state, "tree/a/b"), at(state, "outside/b")), 0);
    assert_true(disk_usage_go_on(u, UINT64_MAX / 2));
    sum = disk_usage_sum(u);
    disk_usage_free(u);
    assert_true(sum.bytes < 8 * MIB);
    assert_in_range(sum.inodes, 4, 1003);
}

static void mounts_are_not_entered(void **state)
{
    struct disk_usage_sum sum;
    uint64_t bytes;

    folder(state, "a");
    file(state, "a/f", MIB);
    folder(state, "m");
    folder(state, "same");
    bytes = measured(*state).bytes;
    if (mount("none", at(state, "m"), "tmpfs", 0, NULL) != 0) {
        assert_int_equal(errno, EPERM);
        SKIP("mounting is not permitted");
    }
    file(state, "m/f", MIB);
    assert_int_equal(mount(at(state, "a"), at(state, "same"), NULL, MS_BIND, NULL), 0);
    sum = measured(*state);
    assert_true(sum.bytes <= bytes); /* not even the same file system once more */
    assert_int_equal(sum.inodes, 3);
}

static void what_is_not_there_and_what_is_no_folder_is_said(void **state)
{
    struct disk_usage *u = NULL;
    struct err e = { 0 };

    assert_int_equal(disk_usage_begin(&u, at(state, "none"), &e), ERR_NOT_FOUND);
    e = (struct err){ 0 };
    assert_int_equal(symlink("/", at(state, "link")), 0);
    assert_int_not_equal(disk_usage_begin(&u, at(state, "link"), &e), ERR_OK);
    assert_null(u);
    disk_usage_free(NULL);
}

#define SCRATCH_TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_tree_is_the_sum_of_its_entries),
        SCRATCH_TEST(a_thousand_files_and_folders_are_counted),
        SCRATCH_TEST(a_sparse_file_counts_with_its_blocks),
        SCRATCH_TEST(hard_links_count_once),
        SCRATCH_TEST(more_hard_links_than_can_be_remembered_are_shared_out),
        SCRATCH_TEST(depth_costs_no_descriptors_and_no_path),
        SCRATCH_TEST(names_beyond_the_bound_are_left_out),
        SCRATCH_TEST(folders_that_move_lead_nobody_out_and_stop_nobody),
        SCRATCH_TEST(the_folder_at_hand_is_moved_away),
        SCRATCH_TEST(mounts_are_not_entered),
        SCRATCH_TEST(what_is_not_there_and_what_is_no_folder_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
