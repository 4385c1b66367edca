/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The v2 side of a hybrid must offer no controller.  A folder imitates the cgroup file systems; the mounts
 * are real where root is at hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define MOUNTINFO                                                                                            \
    "32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                                      \
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

struct fake {
    char dir[64], scratch[80];
    int fd;
    struct cg_tree *tree;
};

static void put(const struct fake *f, const char *file, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/sys/fs/cgroup/%s", f->dir, file);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static int set_up(void **state)
{
    struct fake *f = calloc(1, sizeof(*f));
    struct err e = { 0 };
    char path[256];
    static const char *const levels[] = {
        "",         "/kubepods",    "/kubepods/burstable", "/kubepods/besteffort",
        "/coracle", "/coracle/ops", "/coracle/conmon"
    };

    strcpy(f->dir, "/tmp/coracle-hybrid-test-XXXXXX");
    if (mkdtemp(f->dir) == NULL || (f->fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return -1;
    snprintf(f->scratch, sizeof(f->scratch), "%s/scratch", f->dir);
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup/memory%s", f->dir, levels[i]);
        if (fs_mkdirs(path, 0755, &e) != ERR_OK)
            return -1;
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup/unified%s", f->dir, levels[i]);
        if (fs_mkdirs(path, 0755, &e) != ERR_OK)
            return -1;
        snprintf(path, sizeof(path), "unified%s/cgroup.controllers", levels[i]);
        put(f, path, "");
        snprintf(path, sizeof(path), "unified%s/cgroup.subtree_control", levels[i]);
        put(f, path, "");
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    if (f->tree != NULL)
        cg_unpin_controllers(f->tree);
    cg_close(f->tree, false);
    close(f->fd);
    int rc = fs_remove_tree(AT_FDCWD, f->dir, &e) == ERR_OK ? 0 : -1;
    free(f);
    return rc;
}

static enum err_code fake_open(struct fake *f, bool scratch, const char *proc_cgroup, struct err *e)
{
    struct cg_options o = { .root = "/", .scratch_dir = scratch ? f->scratch : NULL };
    struct cg_env env = { .mountinfo = MOUNTINFO, .proc_cgroup = proc_cgroup, .root_fd = f->fd };

    return cg_open_env(&f->tree, &o, &env, e);
}

static void a_clean_v2_side_needs_nothing(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    assert_int_equal(fake_open(f, true, "4:memory:/\n0::/\n", &e), ERR_OK);
    assert_int_equal(cg_layout(f->tree), CG_HYBRID);
    assert_int_equal(f->tree->n_pinned, 0);
    assert_int_not_equal(access(f->scratch, F_OK), 0);
}

static void a_controller_in_use_is_left_alone_and_named(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    put(f, "unified/cgroup.controllers", "hugetlb misc\n");
    put(f, "unified/cgroup.subtree_control", "hugetlb\n");
    assert_int_equal(fake_open(f, true, "4:memory:/\n0::/\n", &e), ERR_PRECONDITION);
    assert_string_equal(
        e.text,
        "cgroup v1 and v2 are mixed and controller \"hugetlb\" is used below /sys/fs/cgroup/unified, so OCI "
        "runtimes refuse to start containers: write -hugetlb to "
        "/sys/fs/cgroup/unified/cgroup.subtree_control, or boot with v2 alone "
        "(systemd.unified_cgroup_hierarchy=1)");
}

static void without_a_scratch_folder_the_error_says_what_to_mount(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };

    put(f, "unified/cgroup.controllers", "hugetlb\n");
    assert_int_equal(fake_open(f, false, "4:memory:/\n0::/\n", &e), ERR_PRECONDITION);
    assert_non_null(strstr(e.text, "mount it as v1 (mount -t cgroup -o hugetlb none <folder>)"));
}

static void a_mount_that_fails_is_explained_and_leaves_no_folder(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    char point[128];

    put(f, "unified/cgroup.controllers", "coracletest\n");
    assert_int_equal(fake_open(f, true, "4:memory:/\n0::/\n", &e), ERR_PRECONDITION);
    assert_non_null(strstr(e.text, "mounting it as v1 at "));
    assert_non_null(strstr(e.text, "/scratch/coracletest failed: "));
    snprintf(point, sizeof(point), "%s/coracletest", f->scratch);
    assert_int_not_equal(access(point, F_OK), 0);
}

static void a_controller_is_held_out_of_sight_until_the_tree_is_closed(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    char point[128];

    if (geteuid() != 0) {
        print_message("skipped: not root\n");
        skip();
    }
    put(f, "unified/cgroup.controllers", "hugetlb\n");
    snprintf(point, sizeof(point), "%s/hugetlb", f->scratch);
    if (fake_open(f, true, "4:memory:/\n0::/\n", &e) != ERR_OK) {
        print_message("skipped: %s\n", e.text);
        skip();
    }
    assert_int_equal(f->tree->n_pinned, 1);
    assert_int_equal(fcntl(f->tree->pinned_fd[0], F_GETFD), FD_CLOEXEC);
    assert_int_not_equal(access(point, F_OK), 0);
    int fd = f->tree->pinned_fd[0];
    cg_close(f->tree, false);
    f->tree = NULL;
    assert_int_equal(fcntl(fd, F_GETFD), -1);

    /* Another agent holds it: the controller is off v2, and its hierarchy is mounted nowhere. */
    put(f, "unified/cgroup.controllers", "\n");
    assert_int_equal(fake_open(f, true, "11:hugetlb:/\n4:memory:/\n0::/\n", &e), ERR_OK);
    assert_int_equal(f->tree->n_pinned, 1);
    assert_int_not_equal(access(point, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_clean_v2_side_needs_nothing),
        TEST(a_controller_in_use_is_left_alone_and_named),
        TEST(without_a_scratch_folder_the_error_says_what_to_mount),
        TEST(a_mount_that_fails_is_explained_and_leaves_no_folder),
        TEST(a_controller_is_held_out_of_sight_until_the_tree_is_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
