/* SPDX-License-Identifier: Apache-2.0 */
/* Which pod ends when at a shutdown, and for how long it is waited: kubelet's own table of cases. */
#include "agent/pod/core/node_options.h"
#include "agent/pod/worker/shutdown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void simple_settings_become_two_groups(void **state)
{
    struct node_shutdown_group g[2];

    (void)state;
    assert_int_equal(shutdown_plan_simple(30000, 10000, g), 2);
    assert_int_equal(g[0].priority, 0);
    assert_int_equal(g[0].grace_ms, 20000);
    assert_int_equal(g[1].priority, 2000000000);
    assert_int_equal(g[1].grace_ms, 10000);
}

static void all_of_it_may_be_for_critical_pods_or_none(void **state)
{
    struct node_shutdown_group g[2];

    (void)state;
    assert_int_equal(shutdown_plan_simple(30000, 30000, g), 2);
    assert_int_equal(g[0].grace_ms, 0);
    assert_int_equal(g[1].grace_ms, 30000);
    assert_int_equal(shutdown_plan_simple(300000, 0, g), 2);
    assert_int_equal(g[0].grace_ms, 300000);
    assert_int_equal(g[1].grace_ms, 0);
}

static void no_period_and_one_shorter_than_its_critical_part_mean_off(void **state)
{
    struct node_shutdown_group g[2];

    (void)state;
    assert_int_equal(shutdown_plan_simple(0, 0, g), 0);
    assert_int_equal(shutdown_plan_simple(10000, 20000, g), 0);
}

static void a_pod_belongs_to_the_greatest_priority_not_above_its_own(void **state)
{
    const struct node_shutdown_group g[] = {
        { -10, 1000 }, { 0, 2000 }, { 100, 3000 }, { 2000000000, 4000 }
    };
    static const struct {
        int32_t priority;
        size_t group;
    } cases[] = {
        { INT32_MIN, 0 }, /* below all: the lowest */
        { -11, 0 },        { -10, 0 },        { -1, 0 },         { 0, 1 },
        { 1, 1 },          { 99, 1 },         { 100, 2 },        { 101, 2 },
        { 1999999999, 2 }, { 2000000000, 3 }, { 2000001000, 3 }, { INT32_MAX, 3 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (shutdown_plan_find(g, 4, cases[i].priority) != cases[i].group)
            fail_msg("priority %d: group %zu", cases[i].priority,
                     shutdown_plan_find(g, 4, cases[i].priority));
    assert_int_equal(shutdown_plan_find(g, 1, 5), 0);
}

static void a_pod_gets_its_own_grace_at_most_the_groups(void **state)
{
    const struct node_shutdown_group twenty = { 0, 20000 }, uneven = { 0, 2999 }, none = { 0, 0 };

    (void)state;
    assert_int_equal(shutdown_plan_grace(&twenty, 30), 20);
    assert_int_equal(shutdown_plan_grace(&twenty, 20), 20);
    assert_int_equal(shutdown_plan_grace(&twenty, 5), 5);
    assert_int_equal(shutdown_plan_grace(&twenty, 0), 0);
    assert_int_equal(shutdown_plan_grace(&twenty, -1), 1);
    assert_int_equal(shutdown_plan_grace(&uneven, 30), 2);
    assert_int_equal(shutdown_plan_grace(&none, 30), 0);
}

static void what_logind_is_asked_for_covers_every_groups_wait(void **state)
{
    const struct node_shutdown_group g[] = { { 0, 20000 }, { 2000000000, 0 } };

    (void)state;
    assert_int_equal(shutdown_plan_wait_ms(&g[0]), 20000 + SHUTDOWN_SLACK_MS);
    assert_int_equal(shutdown_plan_wait_ms(&g[1]), SHUTDOWN_GRACE_MIN_MS + SHUTDOWN_SLACK_MS);
    assert_int_equal(shutdown_plan_total_ms(g, 2), 22000 + 2 * SHUTDOWN_SLACK_MS);
    assert_int_equal(shutdown_plan_total_ms(g, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_settings_become_two_groups),
        cmocka_unit_test(all_of_it_may_be_for_critical_pods_or_none),
        cmocka_unit_test(no_period_and_one_shorter_than_its_critical_part_mean_off),
        cmocka_unit_test(a_pod_belongs_to_the_greatest_priority_not_above_its_own),
        cmocka_unit_test(a_pod_gets_its_own_grace_at_most_the_groups),
        cmocka_unit_test(what_logind_is_asked_for_covers_every_groups_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
