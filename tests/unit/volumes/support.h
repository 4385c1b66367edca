/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vol_node below a scratch folder, in a mount namespace of this process: nothing that a test mounts is seen
 * by the host or stays on it.  Without the right to that, tests are skipped.
 */
#ifndef TESTS_UNIT_VOLUMES_SUPPORT_H
#define TESTS_UNIT_VOLUMES_SUPPORT_H
#include "tests/unit/base/helper.h"
#include "tests/unit/base/own_mounts.h"

#include "volumes/internal.h"

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

struct fixture {
    char dir[64], tmpfs[80], pods[80];
    struct vol_node *node;
    bool warning;
};

static bool mounts_are_private;

static inline int private_mounts(void **state)
{
    (void)state;
    mounts_are_private = own_mounts();
    return 0;
}

static inline enum err_code open_node(struct fixture *f, uint64_t bytes, struct err *e)
{
    const struct vol_node_options o = { .tmpfs_dir = f->tmpfs, .tmpfs_bytes = bytes, .pods_dir = f->pods };

    return vol_node_open(&f->node, &o, &f->warning, e);
}

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err e = { 0 };

    strcpy(f->dir, "/tmp/coracle-volumes-test-XXXXXX");
    *state = f;
    if (mkdtemp(f->dir) == NULL)
        return -1;
    snprintf(f->tmpfs, sizeof(f->tmpfs), "%s/tmpfs", f->dir);
    snprintf(f->pods, sizeof(f->pods), "%s/pods", f->dir);
    if (mounts_are_private && open_node(f, 8 << 20, &e) != ERR_OK) {
        print_message("%s\n", e.text);
        return -1;
    }
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    int rc = 0;

    vol_node_close(f->node, true);
    if (fs_unmount_below(f->dir, &e) != ERR_OK || fs_remove_tree(AT_FDCWD, f->dir, &e) != ERR_OK) {
        print_message("%s\n", e.text);
        rc = -1;
    }
    free(f);
    return rc;
}

static inline struct fixture *need(void **state)
{
    struct fixture *f = *state;

    if (f->node == NULL)
        SKIP("no mount namespace of our own");
    return f;
}

static inline mode_t mode_of(const char *path)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        fail_msg("%s: %s", path, strerror(errno));
    return st.st_mode;
}

static inline void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static inline void assert_file(const char *path, const char *text)
{
    struct err e = { 0 };
    str_auto is = NULL;

    if (fs_read_at(AT_FDCWD, path, 4096, &is, NULL, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_string_equal(is, text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define FILE_OF(p, text, m)                                                                                  \
    {                                                                                                        \
        .path = (p), .data = (text), .size = sizeof(text) - 1, .mode = (m)                                   \
    }
#endif
