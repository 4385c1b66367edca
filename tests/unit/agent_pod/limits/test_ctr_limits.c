/* SPDX-License-Identifier: Apache-2.0 */
/* What a container's cgroup gets; expected numbers worked out by hand from kubelet's formulas.  The node has
 * 8Gi. */
#include "agent/pod/limits/ctr_limits.h"
#include "tests/unit/agent_pod/world.h"

#define MI (1ll << 20)

static void oom_scores_follow_class_and_share_of_memory(void **state)
{
    struct pod *p =
        world_pod(*state, "guaranteed",
                  "containers: [{name: a, image: x, resources: {limits: {cpu: 1, memory: 1Gi}}}]");

    assert_int_equal(resources_oom_score(p, p->ctrs[0]), -997);
    p = world_pod(*state, "best-effort", "containers: [{name: a, image: x}]");
    assert_int_equal(resources_oom_score(p, p->ctrs[0]), 1000);
    p = world_pod(*state, "burstable",
                  "containers: [{name: a, image: x, resources: {requests: {memory: 2Gi}}},"
                  "{name: b, image: x, resources: {requests: {memory: 8Gi}}},"
                  "{name: c, image: x, resources: {requests: {memory: 1}}}]");
    assert_int_equal(resources_oom_score(p, p->ctrs[0]), 750);
    assert_int_equal(resources_oom_score(p, p->ctrs[1]), 3);
    assert_int_equal(resources_oom_score(p, p->ctrs[2]), 999);
}

static void a_sidecar_is_not_killed_before_what_it_serves(void **state)
{
    struct pod *p = world_pod(*state, "p",
                              "initContainers: [{name: side, image: x, restartPolicy: Always}],"
                              "containers: [{name: a, image: x, resources: {requests: {memory: 4Gi}}}]");

    assert_int_equal(resources_oom_score(p, p->ctrs[0]), 500);
}

static void node_critical_pods_are_told_by_their_class(void **state)
{
    struct pod *p =
        world_pod(*state, "p", "priorityClassName: system-node-critical, containers: [{name: a, image: x}]");

    assert_int_equal(resources_oom_score(p, p->ctrs[0]), -997);
    p = world_pod(*state, "q",
                  "priorityClassName: system-cluster-critical, containers: [{name: a, image: x}]");
    assert_int_equal(resources_oom_score(p, p->ctrs[0]), 1000);
}

static void a_request_of_the_pod_is_shared_among_its_containers(void **state)
{
    /* 6Gi of the pod, 2Gi of its containers: 4Gi beyond, 2Gi for each of both. */
    struct pod *p = world_pod(*state, "p",
                              "resources: {requests: {memory: 6Gi}},"
                              "containers: [{name: a, image: x, resources: {requests: {memory: 2Gi}}},"
                              "{name: b, image: x}]");

    assert_int_equal(resources_oom_score(p, p->ctrs[0]), 500);
    assert_int_equal(resources_oom_score(p, p->ctrs[1]), 750);
}

static struct ctr_limits limits(const struct pod *p, size_t i)
{
    struct ctr_limits l;

    ctr_limits_of(p->ctrs[i], &l);
    return l;
}

static void cpu_and_memory_of_a_container(void **state)
{
    struct pod *p =
        world_pod(*state, "p",
                  "containers: [{name: a, image: x, resources: {requests: {cpu: 250m, memory: 64Mi},"
                  " limits: {cpu: 500m, memory: 128Mi}}}, {name: b, image: x}]");
    struct ctr_limits a = limits(p, 0), b = limits(p, 1);

    assert_int_equal(a.cpu_shares, 256);
    assert_int_equal(a.cpu_quota_us, 50000);
    assert_int_equal(a.cpu_period_us, 100000);
    assert_int_equal(a.memory_max, 128 * MI);
    assert_int_equal(a.memory_min + a.memory_low + a.memory_high + a.swap_max, 0);
    assert_true(a.oom_group);
    assert_int_equal(b.cpu_shares, 2);
    assert_int_equal(b.cpu_quota_us, -1);
    assert_int_equal(b.memory_max, -1);
}

static void limits_of_the_pod_are_those_of_containers_without(void **state)
{
    struct pod *p = world_pod(*state, "p",
                              "resources: {limits: {cpu: 120m, memory: 96Mi}},"
                              "containers: [{name: a, image: x}, {name: b, image: x, resources:"
                              " {limits: {cpu: 20m, memory: 16Mi}}},"
                              "{name: c, image: x, resources: {limits: {cpu: 0, memory: 0}}}]");

    assert_int_equal(limits(p, 0).cpu_shares, 122); /* no request: its limit is one */
    assert_int_equal(limits(p, 0).cpu_quota_us, 12000);
    assert_int_equal(limits(p, 0).memory_max, 96 * MI);
    assert_int_equal(limits(p, 1).cpu_quota_us, 2000);
    assert_int_equal(limits(p, 1).memory_max, 16 * MI);
    assert_int_equal(limits(p, 2).cpu_quota_us, 12000); /* 0 is none, as in kubelet */
    assert_int_equal(limits(p, 2).memory_max, 96 * MI);
}

static void the_period_is_the_nodes_and_quotas_can_be_off(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [{name: a, image: x, resources: {limits: {cpu: 500m}}}]");

    w->node.o.cpu_cfs_period_us = 10000;
    assert_int_equal(limits(p, 0).cpu_quota_us, 5000);
    w->node.o.cpu_cfs_quota = false;
    assert_int_equal(limits(p, 0).cpu_quota_us, -1);
}

static void memory_is_throttled_between_request_and_limit_with_its_feature(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p",
                              "containers: [{name: a, image: x, resources: {requests: {memory: 100Mi},"
                              " limits: {memory: 200Mi}}},"
                              "{name: b, image: x, resources: {requests: {memory: 1Gi}}},"
                              "{name: c, image: x, resources: {limits: {memory: 50Mi}}}]");

    w->node.o.resources.memory_throttling = 0.9;
    assert_int_equal(limits(p, 0).memory_high, 0);
    w->node.o.resources.memory_qos = true;
    assert_int_equal(limits(p, 0).memory_high, 190 * MI);
    assert_int_equal(limits(p, 0).memory_low, 0);
    /* No limit: up to what is allocatable, 8Gi. floor((1 + 0.9 * 7)Gi / 4096) * 4096 */
    assert_int_equal(limits(p, 1).memory_high, 7838314496);
    assert_int_equal(limits(p, 2).memory_high, 0); /* request = limit */
    w->node.o.resources.memory_tiers = true;
    assert_int_equal(limits(p, 0).memory_low, 100 * MI);
    assert_int_equal(limits(p, 0).memory_min, 0);
    p = world_pod(w, "g", "containers: [{name: a, image: x, resources: {limits: {cpu: 1, memory: 100Mi}}}]");
    assert_int_equal(limits(p, 0).memory_min, 100 * MI);
    assert_int_equal(limits(p, 0).memory_low + limits(p, 0).memory_high, 0);
    p = world_pod(w, "e", "containers: [{name: a, image: x}]");
    assert_int_equal(limits(p, 0).memory_high, 0);
}

static void swap_is_for_burstable_containers_that_ask_for_memory(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p",
                              "containers: [{name: a, image: x, resources: {requests: {memory: 2Gi}}},"
                              "{name: b, image: x, resources: {limits: {memory: 1Gi}}},"
                              "{name: c, image: x}]");

    w->node.o.swap_bytes = 4ull << 30;
    assert_int_equal(limits(p, 0).swap_max, 0);
    w->node.o.resources.limited_swap = true;
    assert_int_equal(limits(p, 0).swap_max, 1 << 30); /* 2 of 8 Gi, of 4 Gi of swap */
    assert_int_equal(limits(p, 1).swap_max, 0);       /* request = limit */
    assert_int_equal(limits(p, 2).swap_max, 0);
    p->priority = 2000000000;
    assert_int_equal(limits(p, 0).swap_max, 0);
    p = world_pod(w, "g", "containers: [{name: a, image: x, resources: {limits: {cpu: 1, memory: 1Gi}}}]");
    assert_int_equal(limits(p, 0).swap_max, 0);
}

static struct pod *with_annotation(struct world *w, const char *name, const char *way)
{
    str_auto text = str_printf("{apiVersion: v1, kind: Pod, metadata: {name: %s, annotations:"
                               " {coracle.dev/oom-kill: %s}}, spec: {containers: [{name: a, image: x}]}}",
                               name, way);

    return world_add(w, text);
}

static void what_an_oom_kill_takes_is_the_nodes_default_or_the_pods_own(void **state)
{
    struct world *w = *state;
    struct pod *plain = world_pod(w, "p", "containers: [{name: a, image: x}]"),
               *process = with_annotation(w, "a", "process"), *ctr = with_annotation(w, "b", "container"),
               *whole = with_annotation(w, "c", "pod");

    assert_true(limits(plain, 0).oom_group);
    assert_false(limits(process, 0).oom_group);
    assert_true(limits(whole, 0).oom_group);
    assert_true(oom_kill_takes_pod(whole));
    assert_false(oom_kill_takes_pod(ctr));
    w->node.o.resources.single_process_oom = true;
    assert_false(limits(plain, 0).oom_group);
    assert_true(limits(ctr, 0).oom_group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(oom_scores_follow_class_and_share_of_memory),
        WORLD_TEST(a_sidecar_is_not_killed_before_what_it_serves),
        WORLD_TEST(node_critical_pods_are_told_by_their_class),
        WORLD_TEST(a_request_of_the_pod_is_shared_among_its_containers),
        WORLD_TEST(cpu_and_memory_of_a_container),
        WORLD_TEST(limits_of_the_pod_are_those_of_containers_without),
        WORLD_TEST(the_period_is_the_nodes_and_quotas_can_be_off),
        WORLD_TEST(memory_is_throttled_between_request_and_limit_with_its_feature),
        WORLD_TEST(swap_is_for_burstable_containers_that_ask_for_memory),
        WORLD_TEST(what_an_oom_kill_takes_is_the_nodes_default_or_the_pods_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
