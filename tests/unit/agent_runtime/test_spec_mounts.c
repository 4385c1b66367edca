/* SPDX-License-Identifier: Apache-2.0 */
#include "rt_fixture.h"

struct built {
    json_t *mounts;
    const char *propagation;
    struct err e;
};

static struct built build(struct fixture *f)
{
    struct built b = { .mounts = json_array() };

    (void)(rt_mounts_build(&f->rt.host, &f->config, b.mounts, &b.propagation, &b.e) == ERR_OK);
    return b;
}

/* "/proc proc nosuid,noexec,nodev; /dev ..." */
static char *text_of(const json_t *mounts)
{
    struct buf out = BUF_INIT(16 * 1024);
    const json_t *m, *o;
    size_t i, k;

    json_array_foreach (mounts, i, m) {
        buf_addf(&out, "%s%s %s", i > 0 ? "; " : "", json_string_value(json_object_get(m, "destination")),
                 json_string_value(json_object_get(m, "source")));
        json_array_foreach (json_object_get(m, "options"), k, o)
            buf_addf(&out, "%s%s", k > 0 ? "," : " ", json_string_value(o));
    }
    return buf_detach(&out);
}

static void expect(struct fixture *f, const char *text)
{
    struct built b = build(f);
    str_auto got = text_of(b.mounts);

    assert_int_equal(b.e.code, ERR_OK);
    assert_string_equal(got, text);
    json_decref(b.mounts);
}

#define KERNEL_MOUNTS                                                                                        \
    "/proc proc nosuid,noexec,nodev; /dev tmpfs nosuid,strictatime,mode=755,size=65536k; "                   \
    "/dev/pts devpts nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5; /dev/mqueue mqueue "           \
    "nosuid,noexec,nodev; "

static void defaults_are_containerds(void **state)
{
    struct fixture *f = *state;

    f->config.shm_path = "/run/x/shm";
    expect(f, KERNEL_MOUNTS
           "/sys sysfs nosuid,noexec,nodev,ro; /sys/fs/cgroup cgroup nosuid,noexec,nodev,relatime,ro; "
           "/dev/shm /run/x/shm rbind,rprivate,rw,nosuid,noexec,nodev");
    f->config.shm_path = NULL; /* hostIPC */
    f->security.has_privileged = f->security.privileged = true;
    expect(f, KERNEL_MOUNTS
           "/sys sysfs nosuid,noexec,nodev,rw; /sys/fs/cgroup cgroup nosuid,noexec,nodev,relatime,rw; "
           "/dev/shm /dev/shm rbind,rprivate,rw,nosuid,noexec,nodev");
}

static void volumes_replace_defaults_and_shallow_ones_come_first(void **state)
{
    struct fixture *f = *state;
    const struct rt_mount mounts[] = {
        { .source = "/v/deep", .destination = "/a/b/c", .read_only = true },
        { .source = "/v/dev", .destination = "/dev/" },
        { .source = "/v/sys", .destination = "//sys", .propagation = "rprivate" },
        { .source = "/v/one", .destination = "/a" },
        { .source = "/v/two", .destination = "/b/", .propagation = "rslave" },
    };

    f->config.mounts = mounts;
    f->config.n_mounts = ARRAY_LEN(mounts);
    expect(f, "/proc proc nosuid,noexec,nodev; /sys/fs/cgroup cgroup nosuid,noexec,nodev,relatime,ro; "
              "/dev/ /v/dev rbind,rprivate,rw; //sys /v/sys rbind,rprivate,rw; /a /v/one rbind,rprivate,rw; "
              "/b/ /v/two rbind,rslave,rw; /a/b/c /v/deep rbind,rprivate,ro");
}

static void root_takes_the_widest_propagation_of_its_mounts(void **state)
{
    struct fixture *f = *state;
    struct rt_mount mounts[] = { { .source = "/", .destination = "/a" },
                                 { .source = "/", .destination = "/b" } };
    struct built b;

    f->config.mounts = mounts;
    f->config.n_mounts = 2;
    b = build(f);
    assert_null(b.propagation);
    json_decref(b.mounts);
    mounts[1].propagation = "rslave";
    b = build(f);
    assert_string_equal(b.propagation, "rslave");
    json_decref(b.mounts);
}

static void bidirectional_on_a_private_mount_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct rt_mount m = { .source = "/proc/sys/fs", .destination = "/a", .propagation = "rshared" };
    struct built b;

    f->config.mounts = &m;
    f->config.n_mounts = 1;
    b = build(f);
    if (b.e.code == ERR_OK) { /* where /proc is shared */
        assert_string_equal(b.propagation, "rshared");
    } else {
        assert_int_equal(b.e.code, ERR_UNAVAILABLE);
        assert_string_equal(b.e.text,
                            "path \"/proc/sys/fs\" is mounted on \"/proc\" but it is not a shared mount");
    }
    json_decref(b.mounts);
}

static void recursive_read_only_needs_a_runtime_that_has_it(void **state)
{
    struct fixture *f = *state;
    const struct rt_mount m = {
        .source = "/v", .destination = "/a", .read_only = true, .recursive_read_only = true
    };
    struct built b;

    f->config.mounts = &m;
    f->config.n_mounts = 1;
    b = build(f);
    assert_int_equal(b.e.code, ERR_UNIMPLEMENTED);
    assert_string_equal(b.e.text, "crun on this kernel cannot mount \"/a\" recursively read-only");
    json_decref(b.mounts);
    f->rt.host.features.recursive_read_only = true;
    b = build(f);
    str_auto text = text_of(b.mounts);
    assert_non_null(strstr(text, "/a /v rbind,rprivate,rro"));
    json_decref(b.mounts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(defaults_are_containerds),
        fixture_test(volumes_replace_defaults_and_shallow_ones_come_first),
        fixture_test(root_takes_the_widest_propagation_of_its_mounts),
        fixture_test(bidirectional_on_a_private_mount_is_refused),
        fixture_test(recursive_read_only_needs_a_runtime_that_has_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
