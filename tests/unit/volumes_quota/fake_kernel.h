/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_kernel - project quotas without a kernel that has them: a struct quota_fs whose calls are answered
 * from a table in shared memory (so a forked child that is killed leaves it as it was), with errors by wish.
 * A folder of the test stands for the file system; which tree has which id is noted by fake_assign().
 */
#ifndef TESTS_UNIT_VOLUMES_QUOTA_FAKE_KERNEL_H
#define TESTS_UNIT_VOLUMES_QUOTA_FAKE_KERNEL_H
#include "tests/unit/base/helper.h"

#include "volumes/quota/etc_files.h"
#include "volumes/quota/internal.h"

#include <linux/dqblk_xfs.h>
#include <linux/quota.h>

#define FAKE_MAX 400

struct fake_kernel {
    struct fs_disk_quota dquot[FAKE_MAX]; /* d_id 0: a free place */
    int fail_with[256];                   /* by command & 0xff: an errno */
    unsigned calls, flags;
    uint64_t grace;
    bool taken_from; /* every id looks used */
};

struct fixture {
    struct fake_kernel *kernel;
    struct quota_fs fs;
    char dir[64], state[100], projects[100], projid[100], tree[3][100];
};

static struct fake_kernel *fake; /* of the test that runs */

static inline struct fs_disk_quota *fake_find(uint32_t id, bool make)
{
    for (size_t i = 0; i < FAKE_MAX; i++) {
        if (fake->dquot[i].d_id == id)
            return &fake->dquot[i];
        if (fake->dquot[i].d_id == 0 && make) {
            fake->dquot[i] = (struct fs_disk_quota){ .d_id = id };
            return &fake->dquot[i];
        }
    }
    return NULL;
}

static inline int fake_set(uint32_t id, const struct fs_disk_quota *in)
{
    struct fs_disk_quota *d = fake_find(id, true);

    if ((in->d_fieldmask & FS_DQ_BHARD) != 0)
        d->d_blk_hardlimit = in->d_blk_hardlimit;
    if ((in->d_fieldmask & FS_DQ_BSOFT) != 0)
        d->d_blk_softlimit = in->d_blk_softlimit;
    if ((in->d_fieldmask & FS_DQ_IHARD) != 0)
        d->d_ino_hardlimit = in->d_ino_hardlimit;
    d->d_btimer = in->d_btimer;
    d->d_btimer_hi = in->d_btimer_hi;
    d->d_fieldmask = in->d_fieldmask;
    return 0;
}

static inline int fake_next(uint32_t id, struct fs_disk_quota *out)
{
    const struct fs_disk_quota *found = NULL;

    for (size_t i = 0; i < FAKE_MAX; i++)
        if (fake->dquot[i].d_id >= id && fake->dquot[i].d_id != 0 &&
            (found == NULL || fake->dquot[i].d_id < found->d_id))
            found = &fake->dquot[i];
    if (found == NULL)
        return ENOENT;
    *out = *found;
    return 0;
}

static inline int fake_call(const struct quota_fs *f, int command, uint32_t id, void *data)
{
    const struct fs_disk_quota *d;

    (void)f;
    fake->calls++;
    if (fake->fail_with[command & 0xff] != 0)
        return fake->fail_with[command & 0xff];
    if (command == Q_XGETQSTAT) {
        ((struct fs_quota_stat *)data)->qs_flags = (uint16_t)fake->flags;
        return 0;
    }
    if (command == Q_GETINFO) {
        ((struct if_dqinfo *)data)->dqi_bgrace = fake->grace;
        return 0;
    }
    if (command == Q_XSETQLIM)
        return fake_set(id, data);
    if (command == Q_XGETNEXTQUOTA)
        return fake_next(id, data);
    if (command != Q_XGETQUOTA)
        return EINVAL;
    d = fake_find(id, false);
    if (fake->taken_from && d == NULL) {
        ((struct fs_disk_quota *)data)->d_icount = 1;
        return 0;
    }
    if (d == NULL || id == 0)
        return ENOENT;
    *(struct fs_disk_quota *)data = *d;
    return 0;
}

/* As quota_assign() does to an empty folder; 0 takes its usage away, as its removal does. */
static inline void fake_assign(uint32_t id, uint64_t inodes)
{
    fake_find(id, true)->d_icount = inodes;
    fake_find(id, true)->d_bcount = inodes * 8;
}

static inline int fake_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    strcpy(f->dir, "/tmp/coracle-quota-test-XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        return -1;
    f->kernel = mmap(NULL, sizeof(*f->kernel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (f->kernel == MAP_FAILED)
        return -1;
    fake = f->kernel;
    fake->flags = FS_QUOTA_PDQ_ACCT | FS_QUOTA_PDQ_ENFD;
    fake->grace = 604800;
    snprintf(f->state, sizeof(f->state), "%s/projects.json", f->dir);
    snprintf(f->projects, sizeof(f->projects), "%s/projects", f->dir);
    snprintf(f->projid, sizeof(f->projid), "%s/projid", f->dir);
    for (size_t i = 0; i < ARRAY_LEN(f->tree); i++)
        snprintf(f->tree[i], sizeof(f->tree[i]), "%s/tree%zu", f->dir, i);
    f->fs.fd = -1;
    f->fs.type = "xfs";
    f->fs.call = fake_call;
    strcpy(f->fs.identity, "xfs-0123");
    {
        struct stat st;
        struct err e = { 0 };

        if (stat(f->dir, &st) != 0)
            return -1;
        f->fs.device = st.st_dev;
        return quota_fs_check(&f->fs, &e) == ERR_OK ? 0 : -1;
    }
}

static inline int fake_down(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    munmap(f->kernel, sizeof(*f->kernel));
    if (fs_remove_tree(AT_FDCWD, f->dir, &e) != ERR_OK)
        return -1;
    free(f);
    return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_up, fake_down)

static inline struct projects *must_open(struct fixture *f)
{
    const struct projects_options o = { .state_file = f->state,
                                        .projects_file = f->projects,
                                        .projid_file = f->projid };
    struct projects *p = NULL;
    struct err e = { 0 };

    if (projects_open(&p, &o, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return p;
}

static inline void put_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

static inline void assert_text(const char *path, const char *expected)
{
    struct err e = { 0 };
    char *text = NULL;

    if (fs_read_at(AT_FDCWD, path, 1 << 20, &text, NULL, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_string_equal(text, expected);
    free(text);
}
#endif
