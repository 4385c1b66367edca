/* SPDX-License-Identifier: Apache-2.0 */
/* The volumes of an image, on a folder that stands for the root. */
#include "tests/unit/base/helper.h"

#include "rt_fixture.h"

#include "tests/unit/base/nomem.h"

#include <sys/stat.h>

struct added {
    struct arena arena;
    struct rt_config config;
    struct err e;
};

static void add(struct fixture *f, struct added *a, size_t n, const char *const *volumes)
{
    enum err_code code;

    *a = (struct added){ 0 };
    f->image.volumes = (struct img_strs){ .v = (char **)volumes, .n = n };
    code = rt_volumes_add(&f->config, f->fd, &a->arena, &a->config, &a->e);
    assert_int_equal(code, a->e.code);
}

static void read_only(struct fixture *f)
{
    f->security.has_read_only_root_filesystem = f->security.read_only_root_filesystem = true;
}

static void in_root(struct fixture *f, const char *how, const char *name, const char *to)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    assert_int_equal(*how == 'l' ? symlink(to, path) : mkdir(path, 0700), 0);
}

static bool is_folder(struct fixture *f, const char *name)
{
    struct stat st;

    return fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

#define ADD(f, a, ...)                                                                                       \
    add(f, a, ARRAY_LEN(((const char *const[]){ __VA_ARGS__ })), (const char *const[]){ __VA_ARGS__ })

/* Where the i-th mount is, and what of the root it shows. */
static void shows(struct fixture *f, const struct added *a, size_t i, const char *destination)
{
    char source[300];

    assert_true(i < a->config.n_mounts);
    snprintf(source, sizeof(source), "%s%s", f->dir, destination);
    assert_string_equal(a->config.mounts[i].destination, destination);
    assert_string_equal(a->config.mounts[i].source, source);
    assert_false(a->config.mounts[i].read_only);
}

static void folders_are_made_and_need_no_mount_in_a_writable_root(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    struct added a;
    mode_t old = umask(077);

    in_root(f, "folder", "data", NULL);
    ADD(f, &a, "/data", "/var/lib/new");
    umask(old);
    assert_int_equal(a.e.code, ERR_OK);
    assert_int_equal(a.config.n_mounts, 0);
    assert_int_equal(fstatat(f->fd, "var/lib/new", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(fstatat(f->fd, "data", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700); /* as the image has it */
    arena_done(&a.arena);
}

static void a_read_only_root_has_them_mounted_beside_the_pods_own(void **state)
{
    struct fixture *f = *state;
    const struct rt_mount own = { .source = "/v", .destination = "/own", .read_only = true };
    struct added a;

    read_only(f);
    f->config.mounts = &own;
    f->config.n_mounts = 1;
    ADD(f, &a, "/a", "/a/b");
    assert_int_equal(a.e.code, ERR_OK);
    assert_int_equal(a.config.n_mounts, 3);
    assert_string_equal(a.config.mounts[0].source, "/v");
    shows(f, &a, 1, "/a");
    shows(f, &a, 2, "/a/b");
    arena_done(&a.arena);
}

static void links_are_resolved_inside_the_root(void **state)
{
    struct fixture *f = *state;
    struct added a;

    read_only(f);
    in_root(f, "folder", "run", NULL);
    in_root(f, "folder", "etc", NULL);
    in_root(f, "folder", "var", NULL);
    in_root(f, "link", "var/run", "/run");
    in_root(f, "link", "up", "../../../../etc");
    ADD(f, &a, "/var/run/x", "/up", "/up/../..");
    assert_int_equal(a.e.code, ERR_OK);
    assert_int_equal(a.config.n_mounts, 2);
    shows(f, &a, 0, "/run/x");
    shows(f, &a, 1, "/etc");
    assert_true(is_folder(f, "run/x"));
    arena_done(&a.arena);
}

static void a_mount_of_the_pod_behind_a_link_goes_first_too(void **state)
{
    struct fixture *f = *state;
    const struct rt_mount own[] = { { .source = "/v", .destination = "/var/run" },
                                    { .source = "/s", .destination = "/opt/file" },
                                    { .source = "/s", .destination = "/opt/nowhere/socket" } };
    struct added a;

    read_only(f);
    f->config.mounts = own;
    f->config.n_mounts = ARRAY_LEN(own);
    in_root(f, "folder", "run", NULL);
    in_root(f, "folder", "var", NULL);
    in_root(f, "folder", "opt", NULL);
    in_root(f, "link", "var/run", "../run");
    in_root(f, "link", "opt/nowhere", "/not-there");
    assert_int_equal(close(openat(f->fd, "opt/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    ADD(f, &a, "/run/x", "/var/run/y", "/opt/file", "/opt/nowhere/socket");
    assert_int_equal(a.e.code, ERR_OK);
    assert_int_equal(a.config.n_mounts, ARRAY_LEN(own));
    assert_false(is_folder(f, "run/x"));
    arena_done(&a.arena);
}

static void what_the_pod_or_the_runtime_mounts_goes_first(void **state)
{
    struct fixture *f = *state;
    const struct rt_mount own[] = { { .source = "/v", .destination = "//data/" },
                                    { .source = "/s", .destination = "/run/docker.sock" } };
    struct added a;

    read_only(f);
    f->config.mounts = own;
    f->config.n_mounts = 2;
    in_root(f, "folder", "run", NULL);
    in_root(f, "folder", "var", NULL);
    in_root(f, "link", "var/run", "../run");
    in_root(f, "link", "kernel", "/proc");
    ADD(f, &a, "/data", "/data/sub", "/var/run/docker.sock", "/", "/proc", "/proc/x", "/dev", "/dev/shm",
        "/sys/a", "/database");
    assert_int_equal(a.e.code, ERR_OK);
    assert_int_equal(a.config.n_mounts, 3);
    shows(f, &a, 2, "/database");
    assert_false(is_folder(f, "data"));
    assert_false(is_folder(f, "run/docker.sock"));
    assert_false(is_folder(f, "proc"));
    arena_done(&a.arena);
}

static void what_is_no_folder_is_named(void **state)
{
    struct fixture *f = *state;
    struct added a;

    fixture_write(f, "etc/file", "x");
    in_root(f, "link", "nowhere", "/not/there");
    in_root(f, "link", "loop", "loop");
    ADD(f, &a, "/etc/file");
    assert_int_equal(a.e.code, ERR_UNAVAILABLE);
    assert_string_equal(a.e.text, "volume \"/etc/file\" of the image: open /etc/file: Not a directory");
    arena_done(&a.arena);
    ADD(f, &a, "/etc/file/x");
    assert_int_equal(a.e.code, ERR_UNAVAILABLE);
    arena_done(&a.arena);
    ADD(f, &a, "/nowhere/x");
    assert_string_equal(a.e.text, "volume \"/nowhere/x\" of the image: create folder nowhere: File exists");
    arena_done(&a.arena);
    ADD(f, &a, "/loop");
    assert_int_equal(a.e.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(a.e.text, "volume \"/loop\" of the image: open /loop: "));
    arena_done(&a.arena);
}

static void an_image_without_volumes_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct added a;

    read_only(f);
    add(f, &a, 0, NULL);
    assert_int_equal(a.e.code, ERR_OK);
    assert_ptr_equal(a.config.mounts, f->config.mounts);
    assert_int_equal(a.config.n_mounts, 0);
    arena_done(&a.arena);
}

static void every_allocation_may_fail(void **state)
{
    struct fixture *f = *state;
    bool ok = false;

    read_only(f);
    NOMEM_EACH(ok, {
        struct added a;

        ADD(f, &a, "/data", "/a/b");
        ok = a.e.code == ERR_OK;
        arena_done(&a.arena);
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(folders_are_made_and_need_no_mount_in_a_writable_root),
        fixture_test(a_read_only_root_has_them_mounted_beside_the_pods_own),
        fixture_test(links_are_resolved_inside_the_root),
        fixture_test(what_the_pod_or_the_runtime_mounts_goes_first),
        fixture_test(a_mount_of_the_pod_behind_a_link_goes_first_too),
        fixture_test(what_is_no_folder_is_named),
        fixture_test(an_image_without_volumes_is_left_alone),
    };
    const struct CMUnitTest nomem[] = { fixture_test(every_allocation_may_fail) };

    return cmocka_run_group_tests(tests, NULL, NULL) + NOMEM_RUN(nomem);
}
