/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/scope.h"

#include <sys/mount.h>

struct found {
    struct buf text;
    int stop_after;
};

static bool note(const struct fs_mount *m, void *arg)
{
    struct found *f = arg;

    buf_addf(&f->text, "%s|%s|%s|%s|%s|%s|%d\n", m->point, m->fstype, m->source, m->root, m->options,
             m->super_options, m->shared);
    return --f->stop_after != 0;
}

static const char *parsed(struct found *f, const char *text, const char *prefix)
{
    str_auto copy = strdup(text);

    buf_reset(&f->text);
    assert_true(fs_parse_mountinfo(copy, prefix, note, f));
    return f->text.p;
}

static const char sample[] =
    "22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
    "40 28 0:35 /sub /var/lib/a\\040b rw master:3 propagate_from:2 - tmpfs  rw,size=64k\n"
    "41 28 0:35 / /var/lib/a\\040b/c\\134d\\012e ro - ext4 /dev/sd\\011a rw\n"
    "42 28 0:4 net:[4026532451] /var/library rw shared:5 unbindable - nsfs nsfs rw";

static bool note_ids(const struct fs_mount *m, void *arg)
{
    struct found *f = arg;

    buf_addf(&f->text, "%d<%d%s%s\n", (int)m->id, (int)m->parent, m->shared ? " shared" : "",
             m->slave ? " slave" : "");
    return true;
}

static void a_mount_has_its_id_and_what_it_is_mounted_on(void **state)
{
    struct found f = { .text = BUF_INIT(10000) };
    str_auto copy = strdup(sample);

    (void)state;
    assert_true(fs_parse_mountinfo(copy, NULL, note_ids, &f));
    assert_string_equal(f.text.p, "22<28 shared\n40<28 slave\n41<28\n42<28 shared\n");
    buf_done(&f.text);
}

static void lines_are_taken_apart_and_unescaped(void **state)
{
    struct found f = { .text = BUF_INIT(10000) };

    (void)state;
    assert_string_equal(parsed(&f, sample, NULL), "/sys|sysfs|sysfs|/|rw,nosuid|rw|1\n"
                                                  "/var/lib/a b|tmpfs||/sub|rw|rw,size=64k|0\n"
                                                  "/var/lib/a b/c\\d\ne|ext4|/dev/sd\ta|/|ro|rw|0\n"
                                                  "/var/library|nsfs|nsfs|net:[4026532451]|rw|rw|1\n");
    buf_done(&f.text);
}

static void a_prefix_matches_whole_elements(void **state)
{
    struct found f = { .text = BUF_INIT(10000) };

    (void)state;
    assert_string_equal(parsed(&f, sample, "/var/lib/a b/c\\d\ne"),
                        "/var/lib/a b/c\\d\ne|ext4|/dev/sd\ta|/|ro|rw|0\n");
    assert_null(strstr(parsed(&f, sample, "/var/lib"), "library"));
    assert_non_null(strstr(f.text.p, "/var/lib/a b|"));
    assert_null(strstr(parsed(&f, sample, "/var/lib/"), "library"));
    assert_non_null(strstr(f.text.p, "/var/lib/a b|"));
    assert_non_null(strstr(parsed(&f, sample, "/"), "library"));
    assert_string_equal(parsed(&f, sample, "/va"), "");
    buf_done(&f.text);
}

static void broken_lines_are_left_out(void **state)
{
    struct found f = { .text = BUF_INIT(10000) };

    (void)state;
    assert_string_equal(parsed(&f, "", NULL), "");
    assert_string_equal(parsed(&f,
                               "\n\n x\n1 2 3:4 / /x rw\n1 2 3:4 / /x rw -\n1 2 3:4 / /x rw - a\n"
                               "1 2 3:4 / /x rw - a b\n1 2 3:4  /x rw - a b c\n"
                               "1 2 3:4 / /good rw - a b c d\n",
                               NULL),
                        "/good|a|b|/|rw|c d|0\n");
    assert_string_equal(parsed(&f, "1 2 3:4 / /x\\000\\04\\999\\ rw - a b c", NULL),
                        "/x\\000\\04\\999\\|a|b|/|rw|c|0\n");
    buf_done(&f.text);
}

static void the_function_may_stop(void **state)
{
    struct found f = { .text = BUF_INIT(10000), .stop_after = 2 };
    str_auto copy = strdup(sample);

    (void)state;
    assert_false(fs_parse_mountinfo(copy, NULL, note, &f));
    assert_null(strstr(f.text.p, "ext4"));
    assert_non_null(strstr(f.text.p, "tmpfs"));
    buf_done(&f.text);
}

static void the_own_mounts_are_listed(void **state)
{
    struct found f = { .text = BUF_INIT(10000000) };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(fs_each_mount("/proc", note, &f, &e), ERR_OK);
    assert_true(str_starts(f.text.p, "/proc|proc|"));
    assert_true(fs_is_mountpoint("/proc"));
    assert_true(fs_is_mountpoint("/"));
    assert_false(fs_is_mountpoint("/proc/self"));
    assert_false(fs_is_mountpoint("/nonexistent"));
    buf_done(&f.text);
}

static bool make_mount(const char *dir, const char *name, const char *from)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return false;
    return mount(from == NULL ? "tmpfs" : from, path, from == NULL ? "tmpfs" : NULL,
                 from == NULL ? 0 : MS_BIND, from == NULL ? "size=64k" : NULL) == 0;
}

static void everything_below_is_unmounted_and_nothing_beside(void **state)
{
    struct found f = { .text = BUF_INIT(10000) };
    struct err e = { 0 };
    char path[300];

    if (geteuid() != 0 || !make_mount(*state, "m", NULL))
        SKIP("needs root and a mount");
    assert_true(make_mount(*state, "m/deep", NULL));
    assert_true(make_mount(*state, "m/deep/er mount", NULL));
    assert_true(make_mount(*state, "m/deep/er mount", NULL)); /* twice on the same point */
    assert_true(make_mount(*state, "m/bind", "/proc"));
    assert_true(make_mount(*state, "m", NULL)); /* hides all of these */
    assert_true(make_mount(*state, "mm", NULL));
    snprintf(path, sizeof(path), "%s/m", (char *)*state);
    assert_true(fs_is_mountpoint(path));
    assert_int_equal(fs_unmount_below(path, &e), ERR_OK);
    assert_int_equal(fs_each_mount(path, note, &f, &e), ERR_OK);
    assert_string_equal(f.text.p, "");
    assert_false(fs_is_mountpoint(path));
    assert_true(fs_is_mountpoint("/proc"));
    snprintf(path, sizeof(path), "%s/mm", (char *)*state);
    assert_true(fs_is_mountpoint(path));
    assert_int_equal(fs_unmount_below(path, &e), ERR_OK);
    assert_int_equal(fs_unmount_below(path, &e), ERR_OK); /* again: nothing to do */
}

static void the_whole_host_is_never_unmounted(void **state)
{
    static const char *const bad[] = { "/", "//", "", "relative", NULL };
    struct err e = { 0 };
    size_t i;

    (void)state;
    for (i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(fs_unmount_below(bad[i], &e), ERR_INVALID);
    assert_string_equal(e.text, "unmount below \"\": not a folder of the agent");
}

#define dir_test(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mount_has_its_id_and_what_it_is_mounted_on),
        cmocka_unit_test(lines_are_taken_apart_and_unescaped),
        cmocka_unit_test(a_prefix_matches_whole_elements),
        cmocka_unit_test(broken_lines_are_left_out),
        cmocka_unit_test(the_function_may_stop),
        cmocka_unit_test(the_own_mounts_are_listed),
        dir_test(everything_below_is_unmounted_and_nothing_beside),
        cmocka_unit_test(the_whole_host_is_never_unmounted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
