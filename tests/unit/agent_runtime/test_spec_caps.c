/* SPDX-License-Identifier: Apache-2.0 */
#include "rt_fixture.h"

#include <inttypes.h>

static uint64_t caps_of(struct fixture *f, const char *const *add, size_t n_add, const char *const *drop,
                        size_t n_drop)
{
    struct err e = { 0 };
    uint64_t caps = 0;

    f->security.caps_add = (struct api_strs){ .v = (char **)add, .n = n_add };
    f->security.caps_drop = (struct api_strs){ .v = (char **)drop, .n = n_drop };
    assert_int_equal(rt_caps_resolve(&f->rt.host, &f->security, &caps, &e), ERR_OK);
    return caps;
}

/* The numbers are what a container under kubelet and containerd shows in /proc/self/status. */
static void sets_equal_those_under_containerd(void **state)
{
    struct fixture *f = *state;
    const char *const all[] = { "ALL" }, *const lower[] = { "all" };
    const char *const two[] = { "NET_BIND_SERVICE", "CHOWN" }, *const admins[] = { "SYS_ADMIN",
                                                                                   "CAP_NET_ADMIN" };
    const char *const off[] = { "CHOWN", "mknod" }, *const sys_admin[] = { "SYS_ADMIN" };

    assert_int_equal(caps_of(f, NULL, 0, NULL, 0), 0xa80425fb);
    assert_int_equal(caps_of(f, NULL, 0, all, 1), 0);
    assert_int_equal(caps_of(f, two, 2, lower, 1), 0x401);
    assert_int_equal(caps_of(f, admins, 2, off, 2), 0xa02435fa);
    assert_true(caps_of(f, all, 1, NULL, 0) == UINT64_C(0x1fffeffffff));
    assert_true(caps_of(f, all, 1, sys_admin, 1) == UINT64_C(0x1fffedfffff));
    f->security.has_privileged = f->security.privileged = true;
    assert_true(caps_of(f, NULL, 0, all, 1) == UINT64_C(0x1fffeffffff));
}

/* containerd knows no CAP_CAP_NET_RAW, and leaves the container what it was to lose. */
static void a_name_counts_with_its_prefix_as_without(void **state)
{
    struct fixture *f = *state;
    const char *const with[] = { "CAP_NET_RAW", "cap_mknod" }, *const without[] = { "NET_RAW", "MKNOD" };
    const char *const all_with[] = { "CAP_ALL" };

    assert_int_equal(caps_of(f, NULL, 0, with, 2), caps_of(f, NULL, 0, without, 2));
    assert_int_equal(caps_of(f, NULL, 0, with, 2), 0xa00405fb);
    assert_int_equal(caps_of(f, with, 2, all_with, 1), 0x8002000);
}

static void unknown_capability_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    char *names[] = { (char *)"NET_RWA" };
    struct err e = { 0 };
    uint64_t caps;

    f->security.caps_drop = (struct api_strs){ .v = names, .n = 1 };
    assert_int_equal(rt_caps_resolve(&f->rt.host, &f->security, &caps, &e), ERR_UNIMPLEMENTED);
    assert_string_equal(e.text, "unknown capability \"NET_RWA\"");
}

static void names_follow_the_kernels_numbers(void **state)
{
    json_t *names = rt_caps_names(RT_CAP_BIT(0) | RT_CAP_BIT(21) | RT_CAP_BIT(40));

    (void)state;
    assert_int_equal(json_array_size(names), 3);
    assert_string_equal(json_string_value(json_array_get(names, 0)), "CAP_CHOWN");
    assert_string_equal(json_string_value(json_array_get(names, 1)), "CAP_SYS_ADMIN");
    assert_string_equal(json_string_value(json_array_get(names, 2)), "CAP_CHECKPOINT_RESTORE");
    json_decref(names);
    assert_int_equal(rt_cap_number("cap_setfcap"), 31);
    assert_int_equal(rt_cap_number("CAP_"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(sets_equal_those_under_containerd),
        fixture_test(a_name_counts_with_its_prefix_as_without),
        fixture_test(unknown_capability_is_refused_by_name),
        cmocka_unit_test(names_follow_the_kernels_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
