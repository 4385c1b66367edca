/* SPDX-License-Identifier: Apache-2.0 */
/* fake_v2 - a folder that imitates cgroupfs for the v2 backend, without any privilege. */
#ifndef TESTS_UNIT_CGROUPS_FAKE_V2_H
#define TESTS_UNIT_CGROUPS_FAKE_V2_H
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MOUNTINFO "31 22 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
#define ALL "cpuset cpu io memory hugetlb pids rdma misc\n"

struct fake {
    char dir[64];
    int fd;
    struct cg_tree *tree;
};

static inline void put(const struct fake *f, const char *cgroup, const char *file, const char *text)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s/%s", f->dir, cgroup, file);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static inline const char *get(const struct fake *f, const char *cgroup, const char *file)
{
    static char text[256];
    char path[512];

    snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s/%s", f->dir, cgroup, file);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
    fclose(in);
    return text;
}

static inline bool present(const struct fake *f, const char *cgroup)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s", f->dir, cgroup);
    return access(path, F_OK) == 0;
}

/* The kernel fills a new cgroup with files; here they are put there before. */
static inline void fake_cgroup(const struct fake *f, const char *cgroup, const char *controllers)
{
    static const char *const empty[] = { "cgroup.subtree_control",
                                         "cgroup.procs",
                                         "cgroup.kill",
                                         "cgroup.freeze",
                                         "cpu.weight",
                                         "cpu.max",
                                         "memory.max",
                                         "pids.max" };
    struct err e = { 0 };
    char path[512];

    snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s", f->dir, cgroup);
    assert_int_equal(fs_mkdirs(path, 0755, &e), ERR_OK);
    put(f, cgroup, "cgroup.controllers", controllers);
    for (size_t i = 0; i < ARRAY_LEN(empty); i++)
        put(f, cgroup, empty[i], "");
}

static inline void fake_tree(const struct fake *f, const char *root, const char *controllers)
{
    static const char *const subs[] = {
        "",         "/kubepods",    "/kubepods/burstable", "/kubepods/besteffort",
        "/coracle", "/coracle/ops", "/coracle/conmon"
    };
    char cgroup[256];

    for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
        snprintf(cgroup, sizeof(cgroup), "%s%s", root, subs[i]);
        fake_cgroup(f, cgroup, controllers);
    }
}

static inline enum err_code fake_open(struct fake *f, const char *root, const char *own, struct err *e)
{
    char proc_cgroup[256];
    struct cg_options o = { .root = root };

    snprintf(proc_cgroup, sizeof(proc_cgroup), "0::%s\n", own);
    struct cg_env env = {
        .mountinfo = MOUNTINFO, .proc_cgroup = proc_cgroup, .root_fd = f->fd, .required = CG_REQUIRED
    };
    return cg_open_env(&f->tree, &o, &env, e);
}

static inline int set_up(void **state)
{
    struct fake *f = calloc(1, sizeof(*f));

    strcpy(f->dir, "/tmp/coracle-cgroup-test-XXXXXX");
    if (mkdtemp(f->dir) == NULL || (f->fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return -1;
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fake *f = *state;
    struct err e = { 0 };
    int rc = 0;

    cg_close(f->tree, false);
    close(f->fd);
    if (fs_remove_tree(AT_FDCWD, f->dir, &e) != ERR_OK)
        rc = -1;
    free(f);
    return rc;
}
#endif
