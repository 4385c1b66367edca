/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of extended resources: capacity, allocatable, and the sum of the pods' requests. */
#include "tests/unit/agent_pod/script_parts.h"

#include "tests/unit/agent_pod/device/provider.h"

#include "agent/pod/limits/allocatable.h"
#include "agent/pod/show/node_object.h"
#include "base/codec/json.h"

#define ONE "containers: [{name: main, image: x, resources: {limits: {" DEV ": 1}}}]"
#define TWO "containers: [{name: main, image: x, resources: {limits: {" DEV ": 2}}}]"
#define PLAIN ((struct dp_options){ 0 })

static const char *amount_of(const json_t *object, const char *what, const char *resource)
{
    return json_str(json_object_get(json_object_get(object, "status"), what), resource);
}

static void node_has(const struct world *w, const char *capacity, const char *allocatable)
{
    json_auto_t *object = node_object(&w->node, NULL);
    const char *total = amount_of(object, "capacity", DEV), *free = amount_of(object, "allocatable", DEV);

    assert_string_equal(total != NULL ? total : "none", capacity);
    assert_string_equal(free != NULL ? free : "none", allocatable);
}

static void counted(struct world *w, int64_t n)
{
    struct err e = { 0 };

    assert_int_equal(dp_inventory_count(devices_inventory_fill(&w->node), DEV, n, &e), ERR_OK);
    script_turn(w);
}

/* ---- of the node ---- */

static void the_node_counts_devices_and_of_these_the_healthy_ones(void **state)
{
    struct world *w = *state;

    node_has(w, "none", "none");
    assert_int_equal(node_capacity(&w->node, DEV), -1);
    provider_comes(w, &provider_one, DEV, "dev-0 dev-1 dev-2-", PLAIN);
    node_has(w, "3", "2");
    provider_list(w, &provider_one, DEV, "dev-0");
    node_has(w, "1", "1");
}

static void capacity_stays_while_a_provider_is_gone_and_then_the_name(void **state)
{
    struct world *w = *state;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1", PLAIN);
    provider_goes(w, &provider_one, DEV);
    node_has(w, "2", "0");
    script_pass(w, 301 * SCRIPT_SECOND);
    node_has(w, "0", "0");
    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    node_has(w, "1", "1");
}

static void a_number_of_the_configuration_is_both(void **state)
{
    struct world *w = *state;
    struct api_count v[] = { { (char *)DEV, 3 } };
    const struct api_counts set = { v, 1 }, none = { 0 };

    w->node.o.extended_resources = &set;
    devices_options(&w->node);
    node_has(w, "3", "3");
    v[0].n = 1024;
    devices_options(&w->node);
    node_has(w, "1024", "1024"); /* not 1Ki */
    w->node.o.extended_resources = &none;
    devices_options(&w->node);
    node_has(w, "0", "0");
}

/* ---- of pods ---- */

static void requests_of_a_number_are_summed_up(void **state)
{
    struct world *w = *state;
    struct pod *a, *b;

    counted(w, 3);
    a = script_pod(w, "a", TWO);
    script_turn(w);
    script_answer_all(w, NULL);
    assert_int_equal(a->state, POD_RUNNING);
    b = script_pod(w, "b", TWO);
    script_turn(w);
    assert_string_equal(b->phase, "Failed");
    assert_string_equal(b->reason, "OutOf" DEV);
    assert_string_equal(b->message, "Pod was rejected: Node didn't have enough resource: " DEV
                                    ", requested: 2, used: 2, capacity: 3");
}

/* Otherwise the device that failed would take the place of the healthy one. */
static void a_held_device_counts_also_when_it_is_unhealthy(void **state)
{
    struct world *w = *state;
    struct pod *a, *b;

    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    a = script_pod(w, "a", ONE);
    script_turn(w);
    provider_allocates(w, NULL);
    script_answer_all(w, NULL);
    assert_int_equal(a->state, POD_RUNNING);
    provider_list(w, &provider_one, DEV, "dev-0- dev-1");
    node_has(w, "2", "1");
    b = script_pod(w, "b", ONE);
    script_turn(w);
    provider_allocates(w, NULL);
    script_answer_all(w, NULL);
    assert_int_equal(b->state, POD_RUNNING);
    provider_list(w, &provider_one, DEV, "dev-2"); /* both are gone from the list */
    b = script_pod(w, "c", ONE);
    script_turn(w);
    provider_allocates(w, NULL);
    script_answer_all(w, NULL);
    assert_int_equal(b->state, POD_RUNNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROVIDER_TEST(the_node_counts_devices_and_of_these_the_healthy_ones),
        PROVIDER_TEST(capacity_stays_while_a_provider_is_gone_and_then_the_name),
        PROVIDER_TEST(a_number_of_the_configuration_is_both),
        PROVIDER_TEST(requests_of_a_number_are_summed_up),
        PROVIDER_TEST(a_held_device_counts_also_when_it_is_unhealthy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
