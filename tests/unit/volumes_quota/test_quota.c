/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/volumes_quota/fake_kernel.h"

static void usage_is_in_bytes_and_a_project_that_nothing_uses_has_none(void **state)
{
    struct fixture *f = *state;
    struct quota_usage u = { .bytes = 1 };
    struct err e = { 0 };

    assert_int_equal(quota_get(&f->fs, 77, &u, &e), ERR_OK);
    assert_int_equal(u.bytes + u.inodes + u.hard_bytes + u.soft_bytes + u.hard_inodes, 0);
    *fake_find(77, true) = (struct fs_disk_quota){ .d_id = 77,
                                                   .d_bcount = 9,
                                                   .d_icount = 3,
                                                   .d_blk_hardlimit = 20,
                                                   .d_blk_softlimit = 10,
                                                   .d_ino_hardlimit = 5 };
    assert_int_equal(quota_get(&f->fs, 77, &u, &e), ERR_OK);
    assert_int_equal(u.bytes, 9 * 512);
    assert_int_equal(u.inodes, 3);
    assert_int_equal(u.hard_bytes, 20 * 512);
    assert_int_equal(u.soft_bytes, 10 * 512);
    assert_int_equal(u.hard_inodes, 5);
}

static void a_look_that_fails_is_no_usage_of_zero(void **state)
{
    static const struct {
        int sys;
        enum err_code code;
        const char *text;
    } cases[] = {
        { ESRCH, ERR_PRECONDITION, "read usage of project 77: xfs is without project quotas now" },
        { ENOSYS, ERR_PRECONDITION, "read usage of project 77: xfs is without project quotas now" },
        { EIO, ERR_UNKNOWN, "read usage of project 77: Input/output error" },
        { ENOMEM, ERR_EXHAUSTED, "read usage of project 77: Cannot allocate memory" },
        { EPERM, ERR_PERMISSION, "read usage of project 77: Operation not permitted" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct quota_usage u = { .bytes = 1 };
        struct err e = { 0 };

        fake->fail_with[Q_XGETQUOTA & 0xff] = cases[i].sys;
        assert_int_not_equal(quota_get(&f->fs, 77, &u, &e), ERR_OK);
        if (cases[i].code != ERR_UNKNOWN)
            assert_int_equal(e.code, cases[i].code);
        assert_string_equal(e.text, cases[i].text);
        assert_int_equal(u.bytes, 1);
    }
}

static void limits_are_rounded_up_and_a_soft_one_gets_a_moment_far_away(void **state)
{
    struct fixture *f = *state;
    struct quota_limits l = { .hard_bytes = 1025, .hard_inodes = 7 };
    struct err e = { 0 };

    assert_int_equal(quota_set(&f->fs, 77, &l, &e), ERR_OK);
    assert_int_equal(fake_find(77, false)->d_blk_hardlimit, 3);
    assert_int_equal(fake_find(77, false)->d_ino_hardlimit, 7);
    assert_int_equal(fake_find(77, false)->d_fieldmask & FS_DQ_BTIMER, 0);
    l.soft_bytes = 512;
    assert_int_equal(quota_set(&f->fs, 77, &l, &e), ERR_OK);
    assert_int_equal(fake_find(77, false)->d_blk_softlimit, 1);
    assert_int_equal(fake_find(77, false)->d_fieldmask & (FS_DQ_BTIMER | FS_DQ_BIGTIME),
                     FS_DQ_BTIMER | FS_DQ_BIGTIME);
    assert_int_equal(fake_find(77, false)->d_btimer, INT32_MAX); /* 2038 for kernels without the upper byte */
    assert_int_equal(fake_find(77, false)->d_btimer_hi, 1);
    l = (struct quota_limits){ 0 };
    assert_int_equal(quota_set(&f->fs, 77, &l, &e), ERR_OK);
    assert_int_equal(fake_find(77, false)->d_blk_hardlimit, 0);
}

static void limits_that_cannot_be_are_refused(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_int_equal(quota_set(&f->fs, 0, &(struct quota_limits){ .hard_bytes = 1 }, &e), ERR_INVALID);
    assert_int_equal(quota_set(&f->fs, 1, &(struct quota_limits){ .hard_bytes = UINT64_MAX }, &e),
                     ERR_INVALID);
    assert_int_equal(quota_set(&f->fs, 1, &(struct quota_limits){ .hard_bytes = 1, .soft_bytes = 2 }, &e),
                     ERR_INVALID);
    assert_string_equal(e.text, "set limits of project 1: the soft one is above the hard one");
    fake->grace = 3599;
    assert_int_equal(quota_fs_check(&f->fs, &e), ERR_OK);
    assert_false(quota_fs_warns(&f->fs));
    assert_int_equal(quota_set(&f->fs, 1, &(struct quota_limits){ .soft_bytes = 2 }, &e), ERR_PRECONDITION);
    assert_null(fake_find(1, false));
}

static void quotas_may_be_switched_off_at_any_time(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_true(quota_fs_enforces(&f->fs));
    fake->flags = FS_QUOTA_PDQ_ACCT;
    assert_int_equal(quota_fs_check(&f->fs, &e), ERR_OK);
    assert_false(quota_fs_enforces(&f->fs));
    assert_false(quota_fs_warns(&f->fs));
    fake->flags = FS_QUOTA_UDQ_ACCT | FS_QUOTA_UDQ_ENFD; /* those of users are no help */
    assert_int_equal(quota_fs_check(&f->fs, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "xfs without project quotas");
    fake->fail_with[Q_XGETQSTAT & 0xff] = EIO;
    assert_int_not_equal(quota_fs_check(&f->fs, &e), ERR_PRECONDITION); /* it is not known */
}

struct seen {
    uint32_t ids[8];
    size_t n;
};

static void on_project(uint32_t id, const struct quota_usage *u, void *arg)
{
    struct seen *s = arg;

    (void)u;
    assert_true(s->n < ARRAY_LEN(s->ids));
    s->ids[s->n++] = id;
}

static void all_projects_in_use_are_listed(void **state)
{
    struct fixture *f = *state;
    struct seen s = { .n = 0 };
    struct err e = { 0 };

    fake_assign(UINT32_MAX, 1);
    fake_assign(5, 1);
    fake_assign(9, 0); /* an empty one */
    fake_find(7, true)->d_blk_softlimit = 1;
    assert_int_equal(quota_each(&f->fs, on_project, &s, &e), ERR_OK);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.ids[0], 5);
    assert_int_equal(s.ids[1], 7);
    assert_int_equal(s.ids[2], UINT32_MAX);
    fake->fail_with[Q_XGETNEXTQUOTA & 0xff] = EIO;
    assert_int_not_equal(quota_each(&f->fs, on_project, &s, &e), ERR_OK);
}

static void file_systems_without_projects_are_named(void **state)
{
    struct quota_fs *f = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(quota_fs_open(&f, "/proc/self", &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "/proc/self: not XFS or ext4");
    assert_int_equal(quota_fs_open(&f, "/nowhere", &e), ERR_NOT_FOUND);
    assert_null(f);
}

static void a_folder_that_does_not_exist_has_no_project(void **state)
{
    struct fixture *f = *state;
    char path[100];
    uint32_t id = 7;
    struct err e = { 0 };

    snprintf(path, sizeof(path), "%s/none", f->dir);
    assert_true(presence_is_absent(quota_project_of(path, &id, &e)));
    assert_true(presence_is_unknown(quota_project_of("/proc/self", &id, &e)) ||
                presence_is_absent(quota_project_of("/proc/self", &id, &e))); /* a symlink */
    assert_int_equal(id, 7);
}

/* On /dev/shm: tmpfs has no projects. */
static void a_file_system_without_projects_cannot_give_one(void **state)
{
    char path[] = "/dev/shm/coracle-quota-test-XXXXXX";
    struct err e = { 0 };
    uint32_t id = 7;

    (void)state;
    if (mkdtemp(path) == NULL)
        SKIP("no /dev/shm");
    {
        fd_auto fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        (void)!quota_assign(fd, 1048577, &e);
    }
    rmdir(path);
    assert_int_equal(e.code, ERR_PRECONDITION);
    assert_non_null(strstr(e.text, "the file system does not support projects"));
    assert_true(presence_is_unknown(quota_project_of("/proc", &id, &e)));
    assert_int_equal(id, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(usage_is_in_bytes_and_a_project_that_nothing_uses_has_none),
        TEST(a_look_that_fails_is_no_usage_of_zero),
        TEST(limits_are_rounded_up_and_a_soft_one_gets_a_moment_far_away),
        TEST(limits_that_cannot_be_are_refused),
        TEST(quotas_may_be_switched_off_at_any_time),
        TEST(all_projects_in_use_are_listed),
        TEST(file_systems_without_projects_are_named),
        TEST(a_folder_that_does_not_exist_has_no_project),
        TEST(a_file_system_without_projects_cannot_give_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
