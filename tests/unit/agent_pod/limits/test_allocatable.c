/* SPDX-License-Identifier: Apache-2.0 */
/* What the node has and what pods may ask for; expected numbers worked out by hand from kubelet's formulas.
 */
#include "agent/pod/limits/allocatable.h"
#include "tests/unit/agent_pod/world.h"

#define GI (1ll << 30)

static void without_settings_pods_may_have_what_there_is(void **state)
{
    struct world *w = *state;

    assert_int_equal(node_capacity(&w->node, "cpu"), 4000);
    assert_int_equal(node_allocatable(&w->node, "cpu"), 4000);
    assert_int_equal(node_capacity(&w->node, "memory"), 8 * GI);
    assert_int_equal(node_allocatable(&w->node, "memory"), 8 * GI);
    assert_int_equal(node_allocatable(&w->node, "pods"), 110);
    assert_true(node_allocatable(&w->node, "ephemeral-storage") > 0);
    assert_true(node_allocatable(&w->node, "pid") > 0);
    assert_int_equal(node_allocatable(&w->node, "example.com/gpu"), -1);
    assert_int_equal(node_allocatable(&w->node, "hugepages-2Mi"), -1); /* a kernel without such pages */
}

static void reservations_and_thresholds_are_taken_off(void **state)
{
    struct world *w = *state;
    struct api_node_resources *r = &w->node.o.resources;
    int64_t storage = node_capacity(&w->node, "ephemeral-storage"), ids = node_capacity(&w->node, "pid");

    r->system = (struct api_reserved){ 250, GI, GI, 1000 };
    r->kube = (struct api_reserved){ 500, GI / 2, 0, 24 };
    r->evict_memory.bytes = 100 << 20;
    r->evict_storage.share = 0.25;
    assert_int_equal(node_allocatable(&w->node, "cpu"), 3250);
    assert_int_equal(node_allocatable(&w->node, "memory"), 8 * GI - GI - GI / 2 - (100 << 20));
    assert_int_equal(node_allocatable(&w->node, "ephemeral-storage"),
                     storage - GI - (int64_t)(storage * 0.25));
    assert_int_equal(node_allocatable(&w->node, "pid"), ids - 1024);
    assert_int_equal(node_capacity(&w->node, "memory"), 8 * GI);
}

static void more_than_there_is_leaves_nothing(void **state)
{
    struct world *w = *state;

    w->node.o.resources.system = (struct api_reserved){ 3000, 5 * GI, 0, 0 };
    w->node.o.resources.kube = (struct api_reserved){ 3000, 5 * GI, 0, 0 };
    w->node.o.resources.evict_memory.share = 0.5;
    assert_int_equal(node_allocatable(&w->node, "cpu"), 0);
    assert_int_equal(node_allocatable(&w->node, "memory"), 0);
}

static void expect_refused(const struct world *w, const char *text)
{
    struct err e = { 0 };

    assert_int_equal(allocatable_check(&w->node.o, &e), ERR_INVALID);
    assert_string_equal(e.text, text);
}

static void more_than_the_machine_has_is_refused(void **state)
{
    struct world *w = *state;
    struct api_node_resources *r = &w->node.o.resources;
    struct err e = { 0 };
    char text[300];

    r->evict_memory.bytes = GI;
    r->system = (struct api_reserved){ 2000, 5 * GI, 0, 0 };
    r->kube = (struct api_reserved){ 2000, 2 * GI, 0, 0 }; /* exactly all there is */
    assert_int_equal(allocatable_check(&w->node.o, &e), ERR_OK);
    r->kube.cpu_milli++;
    expect_refused(w, "invalid Node Allocatable configuration: resource \"cpu\" has a reservation of 4001m "
                      "(systemReserved, kubeReserved and evictionHard) but a capacity of 4000m");
    r->kube.cpu_milli--;
    r->evict_memory = (struct api_threshold){ .share = 0.25 };
    expect_refused(
        w, "invalid Node Allocatable configuration: resource \"memory\" has a reservation of 9663676416 "
           "(systemReserved, kubeReserved and evictionHard) but a capacity of 8589934592");
    r->evict_memory = (struct api_threshold){ 0 };
    r->system.pids = r->kube.pids = INT64_MAX;
    snprintf(text, sizeof(text),
             "invalid Node Allocatable configuration: resource \"pid\" has a reservation of %lld "
             "(systemReserved, kubeReserved and evictionHard) but a capacity of %lld",
             (long long)INT64_MAX, (long long)node_capacity(&w->node, "pid"));
    expect_refused(w, text);
    r->system.pids = r->kube.pids = 0;
    r->system.storage_bytes = node_capacity(&w->node, "ephemeral-storage") + 1;
    assert_int_equal(allocatable_check(&w->node.o, &e), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(without_settings_pods_may_have_what_there_is),
        WORLD_TEST(reservations_and_thresholds_are_taken_off),
        WORLD_TEST(more_than_there_is_leaves_nothing),
        WORLD_TEST(more_than_the_machine_has_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
