/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a victim has a grace period. */
#include "tests/unit/base/helper.h"

#include "agent/eviction/manager.h"

#define MIB (UINT64_C(1) << 20)

static const struct ev_settings settings = {
    .n = 3,
    .v = { { .signal = EV_MEMORY, .value = { .quantity = 100 * MIB } },
           { .signal = EV_ALLOCATABLE_MEMORY, .soft = true, .value = { .quantity = 500 * MIB } },
           { .signal = EV_NODEFS, .value = { .quantity = 100 * MIB } } },
};

/* Looks so many ms apart at a signal that has so many MiB left each time. */
static struct ev_check looks(enum ev_signal signal, uint64_t apart_ms, const uint64_t *mib, size_t n)
{
    struct ev_manager *m = ev_manager_new(&settings, EV_LAYOUT_ONE);
    struct ev_check look = { 0 };

    assert_non_null(m);
    for (size_t i = 0; i < n; i++) {
        struct ev_observation o = { 0 };
        o.v[signal] = (struct ev_value){ .known = true, .available = mib[i] * MIB, .capacity = 2048 * MIB };
        ev_manager_check(m, &o, 1000 + i * apart_ms, &look);
    }
    ev_manager_free(m);
    return look;
}

static bool urgent(enum ev_signal signal, uint64_t apart_ms, uint64_t before, uint64_t now)
{
    const uint64_t mib[] = { before, now };
    struct ev_check look = looks(signal, apart_ms, mib, 2);

    assert_int_not_equal(look.n_all, 0);
    return look.all[0].urgent;
}

static void a_gigabyte_a_second_leaves_no_grace(void **state)
{
    (void)state;
    assert_true(urgent(EV_MEMORY, 16, 115, 99));
    assert_true(urgent(EV_MEMORY, 100, 109, 98)); /* 110 a second: just before the grace ends */
}

static void slow_growth_leaves_the_grace(void **state)
{
    (void)state;
    assert_false(urgent(EV_MEMORY, 1000, 109, 99));
    assert_false(urgent(EV_MEMORY, 5000, 200, 99)); /* too far apart to tell */
}

static void less_than_half_of_the_threshold_leaves_none_of_memory(void **state)
{
    (void)state;
    assert_false(urgent(EV_MEMORY, 5000, 50, 50));
    assert_true(urgent(EV_MEMORY, 5000, 49, 49)); /* slowed down by the kernel: no rate is seen */
    assert_false(urgent(EV_NODEFS, 5000, 10, 10));
}

static void a_soft_threshold_is_never_urgent(void **state)
{
    (void)state;
    assert_false(urgent(EV_ALLOCATABLE_MEMORY, 16, 300, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gigabyte_a_second_leaves_no_grace),
        cmocka_unit_test(slow_growth_leaves_the_grace),
        cmocka_unit_test(less_than_half_of_the_threshold_leaves_none_of_memory),
        cmocka_unit_test(a_soft_threshold_is_never_urgent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
