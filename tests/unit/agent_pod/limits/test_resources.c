/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and limits of a pod by kubelet's formulas. */
#include "agent/pod/limits/limits.h"
#include "tests/unit/agent_pod/world.h"

static int64_t request(const struct pod *p, const char *name)
{
    struct quantity q = resources_pod_request(p->api, name);

    return strcmp(name, "cpu") == 0 ? quantity_milli(&q) : quantity_value(&q);
}

static void init_containers_count_only_as_a_peak(void **state)
{
    struct pod *p =
        world_pod(*state, "p",
                  "initContainers: [{name: i, image: x, resources: {requests: {cpu: 500m, memory: 1Gi}}}],"
                  "containers: [{name: a, image: x, resources: {requests: {cpu: 300m, memory: 100Mi}}},"
                  "             {name: b, image: x, resources: {requests: {cpu: 400m, memory: 100Mi}}}]");

    assert_int_equal(request(p, "cpu"), 700);
    assert_int_equal(request(p, "memory"), 1 << 30);
}

static void sidecars_count_with_what_runs_beside_them(void **state)
{
    struct pod *p = world_pod(
        *state, "p",
        "initContainers: [{name: before, image: x, resources: {requests: {cpu: 900m}}},"
        "                 {name: side, image: x, restartPolicy: Always, resources: {requests: {cpu: 200m}}},"
        "                 {name: after, image: x, resources: {requests: {cpu: 800m}}}],"
        "containers: [{name: a, image: x, resources: {requests: {cpu: 300m}}}]");

    assert_int_equal(request(p, "cpu"), 1000); /* side + after */
}

static void overhead_is_added_to_limits_only_where_there_are_some(void **state)
{
    struct pod *p = world_pod(
        *state, "p",
        "overhead: {cpu: 100m}, containers: [{name: a, image: x, resources: {requests: {cpu: 1}}}]");
    struct quantity q = resources_pod_limit(p->api, "cpu", &(bool){ false });

    assert_int_equal(request(p, "cpu"), 1100);
    assert_true(quantity_is_zero(&q));
}

static bool all_limited(const struct pod *p)
{
    bool all = false;

    resources_pod_limit(p->api, "memory", &all);
    return all;
}

static void a_pod_is_limited_only_if_every_container_is(void **state)
{
    assert_true(all_limited(
        world_pod(*state, "a", "containers: [{name: a, image: x, resources: {limits: {memory: 1Gi}}}]")));
    assert_false(all_limited(world_pod(*state, "b",
                                       "containers: [{name: a, image: x, resources: {limits: {memory: 1Gi}}},"
                                       "{name: b, image: x}]")));
    assert_false(
        all_limited(world_pod(*state, "c",
                              "initContainers: [{name: i, image: x}],"
                              "containers: [{name: a, image: x, resources: {limits: {memory: 1Gi}}}]")));
}

static void a_limit_of_zero_is_none(void **state)
{
    assert_false(all_limited(world_pod(*state, "a",
                                       "containers: [{name: a, image: x, resources: {limits: {memory: 1Gi}}},"
                                       "{name: b, image: x, resources: {limits: {memory: 0}}}]")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(init_containers_count_only_as_a_peak),
        WORLD_TEST(sidecars_count_with_what_runs_beside_them),
        WORLD_TEST(overhead_is_added_to_limits_only_where_there_are_some),
        WORLD_TEST(a_pod_is_limited_only_if_every_container_is),
        WORLD_TEST(a_limit_of_zero_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
