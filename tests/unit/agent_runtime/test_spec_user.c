/* SPDX-License-Identifier: Apache-2.0 */
#include "rt_fixture.h"

#include <sys/stat.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
                             "broken line\n"
                             "toolarge:x:99999999999:1:x:/:/x\n"
                             "alice:x:1000:2000:Alice:/home/alice:/bin/sh\n"
                             "nohome:x:1001:2001:::\n"
                             "alice:x:5:5:second:/nowhere:/bin/sh\n";
static const char groups[] = "root:x:0:root\n"
                             "wheel:x:10:root,alice\n"
                             "staff:x:50:bob,alice,carol\n"
                             "alicex:x:51:alicex\n"
                             "short:x\n"
                             "bad:x:abc:alice\n";

static struct rt_user resolve(struct fixture *f)
{
    struct rt_user u = { 0 };
    struct err e = { 0 };

    if (rt_user_resolve(&f->config, f->fd, &u, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return u;
}

static void expect(struct fixture *f, uint32_t uid, uint32_t gid, const char *home, const char *gids)
{
    struct rt_user u = resolve(f);
    char text[256] = "";
    size_t i, n = 0;

    for (i = 0; i < u.n_gids; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u", i > 0 ? " " : "", u.gids[i]);
    assert_int_equal(u.uid, uid);
    assert_int_equal(u.gid, gid);
    assert_string_equal(u.home, home);
    assert_string_equal(text, gids);
    rt_user_done(&u);
}

static void image_without_user_and_accounts_runs_as_root(void **state)
{
    expect(*state, 0, 0, "/", "0");
}

static void image_user_by_name_brings_its_group_home_and_memberships(void **state)
{
    struct fixture *f = *state;

    fixture_write(f, "etc/passwd", passwd);
    fixture_write(f, "etc/group", groups);
    f->image.user = (char *)"alice";
    expect(f, 1000, 2000, "/home/alice", "10 50 2000");
    f->image.user = (char *)"alice:nosuchgroup"; /* the group is dropped, as under kubelet */
    expect(f, 1000, 2000, "/home/alice", "10 50 2000");
    f->image.user = (char *)"1000:7";
    expect(f, 1000, 2000, "/home/alice", "10 50 2000");
    f->image.user = NULL;
    expect(f, 0, 0, "/root", "0 10");
    f->image.user = (char *)":5";
    expect(f, 0, 0, "/root", "0 10");
}

static void run_as_user_of_container_wins_over_pod_and_image(void **state)
{
    struct fixture *f = *state;

    fixture_write(f, "etc/passwd", passwd);
    f->image.user = (char *)"alice";
    f->pod_security.has_run_as_user = true;
    f->pod_security.run_as_user = 1001;
    expect(f, 1001, 2001, "/", "2001");
    f->security.has_run_as_user = true;
    f->security.run_as_user = 4242;
    expect(f, 4242, 0, "/", "0");
    f->pod_security.has_run_as_group = true;
    f->pod_security.run_as_group = 77;
    expect(f, 4242, 77, "/", "77");
    f->security.has_run_as_group = true;
    f->security.run_as_group = 78;
    expect(f, 4242, 78, "/", "78");
}

static void supplemental_groups_are_merged_or_strict(void **state)
{
    struct fixture *f = *state;
    int64_t more[] = { 20, 10, 20 };

    fixture_write(f, "etc/passwd", passwd);
    fixture_write(f, "etc/group", groups);
    f->image.user = (char *)"alice";
    f->pod_security.has_fs_group = true;
    f->pod_security.fs_group = 4000;
    f->pod_security.supplemental_groups = more;
    f->pod_security.n_supplemental_groups = 3;
    expect(f, 1000, 2000, "/home/alice", "10 20 50 2000 4000");
    f->pod_security.supplemental_groups_policy = (char *)"Strict";
    expect(f, 1000, 2000, "/home/alice", "10 20 2000 4000");
    f->pod_security.supplemental_groups_policy = (char *)"Merge";
    expect(f, 1000, 2000, "/home/alice", "10 20 50 2000 4000");
}

static void unknown_user_name_and_number_out_of_range_are_refused(void **state)
{
    struct fixture *f = *state;
    struct rt_user u;
    struct err e = { 0 };

    f->image.user = (char *)"bob";
    assert_int_equal(rt_user_resolve(&f->config, f->fd, &u, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "unable to find user bob: no matching entries in passwd file");
    f->image.user = (char *)"2147483648";
    assert_int_equal(rt_user_resolve(&f->config, f->fd, &u, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "user 2147483648 of the image: uids and gids must be in range 0-2147483647");
}

static void accounts_are_read_inside_the_image_and_only_from_regular_files(void **state)
{
    struct fixture *f = *state;
    char path[128];

    fixture_write(f, "usr/accounts", passwd);
    fixture_write(f, "etc/x", "");
    snprintf(path, sizeof(path), "%s/etc/passwd", f->dir);
    assert_int_equal(symlink("/../../usr/accounts", path),
                     0); /* absolute and beyond the root: stays inside */
    f->image.user = (char *)"alice";
    expect(f, 1000, 2000, "/home/alice", "2000");

    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* would hang whoever opens it */
    f->image.user = (char *)"7";
    expect(f, 7, 0, "/", "0");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("passwd", path), 0); /* a loop */
    expect(f, 7, 0, "/", "0");
}

static void non_root_policy_speaks_kubelets_words(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_int_equal(rt_user_check_non_root(&f->config, &e), ERR_OK);
    f->pod_security.has_run_as_non_root = f->pod_security.run_as_non_root = true;
    assert_int_equal(rt_user_check_non_root(&f->config, &e), ERR_PRECONDITION);
    assert_string_equal(
        e.text,
        "container has runAsNonRoot and image will run as root (pod: \"web_default(u-1)\", container: main)");
    f->image.user = (char *)"0:5";
    assert_int_equal(rt_user_check_non_root(&f->config, &e), ERR_PRECONDITION);
    f->image.user = (char *)"alice:5";
    assert_int_equal(rt_user_check_non_root(&f->config, &e), ERR_PRECONDITION);
    assert_string_equal(
        e.text, "container has runAsNonRoot and image has non-numeric user (alice), cannot verify user is "
                "non-root (pod: \"web_default(u-1)\", container: main)");
    f->image.user = (char *)"12";
    assert_int_equal(rt_user_check_non_root(&f->config, &e), ERR_OK);
    f->security.has_run_as_user = true;
    assert_int_equal(rt_user_check_non_root(&f->config, &e), ERR_PRECONDITION);
    assert_string_equal(
        e.text, "container's runAsUser breaks non-root policy (pod: \"web_default(u-1)\", container: main)");
    f->security.has_run_as_non_root = true; /* false at the container wins */
    assert_int_equal(rt_user_check_non_root(&f->config, &e), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(image_without_user_and_accounts_runs_as_root),
        fixture_test(image_user_by_name_brings_its_group_home_and_memberships),
        fixture_test(run_as_user_of_container_wins_over_pod_and_image),
        fixture_test(supplemental_groups_are_merged_or_strict),
        fixture_test(unknown_user_name_and_number_out_of_range_are_refused),
        fixture_test(accounts_are_read_inside_the_image_and_only_from_regular_files),
        fixture_test(non_root_policy_speaks_kubelets_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
