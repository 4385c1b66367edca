/* SPDX-License-Identifier: Apache-2.0 */
/* Why a pod is looked at. */
#include "tests/unit/agent_pod/world.h"

#define ONE "containers: [{name: main, image: a:1}]"

static void the_reason_is_that_of_the_first_wake(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "a", ONE);

    worker_node(&w->node)->runner_active = true; /* nobody looks at it here */
    pod_wake(p, "container event");
    pod_wake(p, "manifest changed");
    assert_string_equal(p->woken_why, "container event");
}

static void a_wake_at_a_time_says_what_it_was_for(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "a", ONE);

    worker_node(&w->node)->runner_active = true;
    pod_wake_at(p, clock_boot_in_ms(60000), "stop deadline");
    pod_wake_at(p, clock_boot_in_ms(1), "back-off is over");
    pod_wake_at(p, clock_boot_in_ms(30000), "kill is repeated"); /* later: the earlier one stays */
    while (!p->dirty_queued)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_string_equal(p->woken_why, "back-off is over");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(the_reason_is_that_of_the_first_wake),
        WORLD_TEST(a_wake_at_a_time_says_what_it_was_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
