/* SPDX-License-Identifier: Apache-2.0 */
/* Soft limits warn before a sum can be exceeded unnoticed; hard ones stop a tree that grows alone exactly. */
#include "agent/pod/usage/local_plan.h"
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIB ((uint64_t)1024 * 1024)

static struct plan_tree tree(enum local_kind kind, size_t index, uint64_t bytes)
{
    return (struct plan_tree){ .kind = kind, .index = index, .bytes = bytes, .quota = true, .warns = true };
}

static void one_tree_is_warned_at_its_limit(void **state)
{
    struct plan_tree t[] = { tree(LOCAL_VOLUME, 3, 5 * MIB), tree(LOCAL_VOLUME, 4, 0) };
    const struct plan_limit l = { PLAN_OF_VOLUME, 3, 8 * MIB };

    (void)state;
    local_plan(t, 2, &l, 1, false);
    assert_int_equal(t[0].soft, 8 * MIB);
    assert_int_equal(t[0].hard, 0);
    assert_int_equal(t[1].soft, 0);
    t[0].bytes = 8 * MIB; /* at the limit is not above it: the next block warns */
    assert_false(local_plan_exceeded(t, 2, &l, 1, false));
    local_plan(t, 2, &l, 1, false);
    assert_in_range(t[0].soft, 8 * MIB + 1, 8 * MIB + 4095);
    t[0].bytes += 4096;
    assert_true(local_plan_exceeded(t, 2, &l, 1, false));
}

static void a_container_shares_between_its_layer_and_its_log(void **state)
{
    struct plan_tree t[] = { tree(LOCAL_LAYER, 0, 2 * MIB), tree(LOCAL_LOG, 0, 2 * MIB),
                             tree(LOCAL_LAYER, 1, 50 * MIB), tree(LOCAL_VOLUME, 0, 50 * MIB) };
    const struct plan_limit l = { PLAN_OF_CONTAINER, 0, 10 * MIB };

    (void)state;
    local_plan(t, 4, &l, 1, false);
    assert_int_equal(t[0].soft, 5 * MIB);
    assert_int_equal(t[1].soft, 5 * MIB);
    assert_int_equal(t[2].soft, 0);
    assert_int_equal(t[3].soft, 0);
}

static void the_lowest_limit_decides(void **state)
{
    struct plan_tree t[] = { tree(LOCAL_LAYER, 0, 0), tree(LOCAL_VOLUME, 0, 0) };
    const struct plan_limit l[] = { { PLAN_OF_VOLUME, 0, 1 * MIB }, { PLAN_OF_POD, 0, 10 * MIB } };

    (void)state;
    local_plan(t, 2, l, 2, false);
    assert_int_equal(t[0].soft, 5 * MIB);
    assert_int_equal(t[1].soft, 1 * MIB);
}

static void a_scanned_tree_counts_but_gets_nothing(void **state)
{
    struct plan_tree t[] = { tree(LOCAL_LAYER, 0, 0), tree(LOCAL_VOLUME, 0, 6 * MIB) };
    const struct plan_limit l = { PLAN_OF_POD, 0, 10 * MIB };

    (void)state;
    t[1].quota = t[1].warns = false;
    local_plan(t, 2, &l, 1, false);
    assert_int_equal(t[0].soft, 4 * MIB);
    assert_int_equal(t[1].soft, 0);
    local_plan(&t[1], 1, &l, 1, true); /* nothing to limit at all */
    assert_int_equal(t[1].hard, 0);
}

static void enforced_limits_leave_logs_alone(void **state)
{
    struct plan_tree t[] = { tree(LOCAL_LAYER, 0, 2 * MIB), tree(LOCAL_LOG, 0, 90 * MIB),
                             tree(LOCAL_VOLUME, 0, 1 * MIB) };
    const struct plan_limit l[] = { { PLAN_OF_POD, 0, 10 * MIB }, { PLAN_OF_CONTAINER, 0, 8 * MIB } };

    (void)state;
    local_plan(t, 3, l, 2, true);
    assert_int_equal(t[0].hard, 8 * MIB);
    assert_int_equal(t[1].hard, 0);
    assert_int_equal(t[1].soft, 0);
    assert_int_equal(t[2].hard, 8 * MIB); /* what is left of the pod's */
    assert_in_range(t[0].soft, 2 * MIB + 1, 8 * MIB - 1);
    assert_false(local_plan_exceeded(t, 3, l, 2, true));
    assert_true(local_plan_exceeded(t, 3, l, 2, false));
}

static void a_full_tree_may_not_grow(void **state)
{
    struct plan_tree t = tree(LOCAL_VOLUME, 0, 9 * MIB);
    const struct plan_limit l = { PLAN_OF_VOLUME, 0, 8 * MIB };

    (void)state;
    local_plan(&t, 1, &l, 1, true);
    assert_int_equal(t.hard, 9 * MIB);
    t.bytes = 0;
    local_plan(&t, 1, &(struct plan_limit){ PLAN_OF_VOLUME, 0, 0 }, 1, true);
    assert_int_not_equal(t.hard, 0); /* which would be no limit */
}

/* Blocks are written by chance until the sum is passed: at that moment some tree is above its soft limit, and
 * only few plans were needed. */
static void no_sum_is_passed_without_a_warning(void **state)
{
    (void)state;
    srandom(4711);
    for (unsigned round = 0; round < 200; round++) {
        struct plan_tree t[6];
        size_t n = 2 + (size_t)(random() % 5);
        struct plan_limit l = { PLAN_OF_POD, 0, (uint64_t)(random() % 4000) * 4096 };
        unsigned plans = 1;
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
            t[i] = tree(LOCAL_VOLUME, i, 0);
        local_plan(t, n, &l, 1, false);
        for (;;) {
            struct plan_tree *x = &t[(size_t)random() % n];

            x->bytes += 4096;
            sum += 4096;
            if (x->bytes <= x->soft) {
                assert_true(sum <= l.bytes); /* nobody looks now */
                continue;
            }
            if (local_plan_exceeded(t, n, &l, 1, false))
                break;
            local_plan(t, n, &l, 1, false);
            plans++;
        }
        assert_in_range(sum, l.bytes + 1, l.bytes + 4096);
        assert_in_range(plans, 1, 120);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_tree_is_warned_at_its_limit),
        cmocka_unit_test(a_container_shares_between_its_layer_and_its_log),
        cmocka_unit_test(the_lowest_limit_decides),
        cmocka_unit_test(a_scanned_tree_counts_but_gets_nothing),
        cmocka_unit_test(enforced_limits_leave_logs_alone),
        cmocka_unit_test(a_full_tree_may_not_grow),
        cmocka_unit_test(no_sum_is_passed_without_a_warning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
