/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations, thresholds and memory settings as numbers. */
#include "helper.h"

static const struct api_node_resources *of(struct scratch *s, const char *text, const char *flags)
{
    str_auto file = str_printf("%s%s", KUBELET, text);

    put(s, "config.yaml", file);
    parses(s, flags);
    return &s->c.resources;
}

static void without_settings_only_the_eviction_threshold_is_kept_free(void **state)
{
    const struct api_node_resources *r = of(*state, "", "");

    assert_int_equal(r->system.cpu_milli + r->kube.cpu_milli + r->system.memory_bytes + r->kube.pids, 0);
    assert_int_equal(r->evict_memory.bytes, 100 << 20);
    assert_int_equal(r->evict_storage.bytes, 0);
    assert_true(r->evict_storage.share > 0.0999 && r->evict_storage.share < 0.1001);
    assert_int_equal(r->enforce, API_ENFORCE_PODS);
    assert_false(r->memory_qos || r->memory_tiers || r->limited_swap || r->single_process_oom);
    assert_true(r->memory_throttling > 0.899 && r->memory_throttling < 0.901);
}

static void reservations_are_read_in_kubernetes_quantities(void **state)
{
    const struct api_node_resources *r =
        of(*state,
           "systemReserved: {cpu: 250m, memory: 1Gi, ephemeral-storage: 2G, pid: '1000'}\n"
           "kubeReserved: {cpu: '1', memory: 100M}\n"
           "evictionHard: {memory.available: 5%, nodefs.available: 1Gi}\n",
           "");

    assert_int_equal(r->system.cpu_milli, 250);
    assert_int_equal(r->system.memory_bytes, 1 << 30);
    assert_int_equal(r->system.storage_bytes, 2000000000);
    assert_int_equal(r->system.pids, 1000);
    assert_int_equal(r->kube.cpu_milli, 1000);
    assert_int_equal(r->kube.memory_bytes, 100000000);
    assert_int_equal(r->evict_memory.bytes, 0);
    assert_true(r->evict_memory.share > 0.0499 && r->evict_memory.share < 0.0501);
    assert_int_equal(r->evict_storage.bytes, 1 << 30);
}

static void no_percent_and_all_of_them_are_no_threshold(void **state)
{
    assert_true(of(*state, "evictionHard: {memory.available: 0%}\n", "")->evict_memory.share == 0);
    assert_true(of(*state, "evictionHard: {memory.available: 100%}\n", "")->evict_memory.share == 0);
}

static void reserved_processors_take_the_place_of_reserved_cpu(void **state)
{
    const struct api_node_resources *r = of(*state,
                                            "systemReserved: {cpu: 250m}\nkubeReserved: {cpu: '1'}\n"
                                            "reservedSystemCPUs: 0-1,4\n",
                                            "");

    assert_int_equal(r->system.cpu_milli, 3000);
    assert_int_equal(r->kube.cpu_milli, 0);
}

static void what_is_enforced_is_a_set(void **state)
{
    const struct api_node_resources *r =
        of(*state,
           "systemReservedCgroup: /system.slice\nkubeReservedCgroup: /kube\n"
           "enforceNodeAllocatable: [pods, system-reserved, kube-reserved-compressible]\n",
           "");

    assert_int_equal(r->enforce, API_ENFORCE_PODS | API_ENFORCE_SYSTEM | API_ENFORCE_KUBE_CPU);
    assert_string_equal(((struct scratch *)*state)->c.system_reserved_cgroup, "/system.slice");
    assert_int_equal(of(*state, "enforceNodeAllocatable: [none]\n", "")->enforce, 0);
}

static void memory_settings(void **state)
{
    const struct api_node_resources *r =
        of(*state,
           "featureGates: {MemoryQoS: true}\nmemoryThrottlingFactor: 0.5\n"
           "memoryReservationPolicy: TieredReservation\nsingleProcessOOMKill: true\n"
           "memorySwap: {swapBehavior: LimitedSwap}\n",
           "");

    assert_true(r->memory_qos && r->memory_tiers && r->limited_swap && r->single_process_oom);
    assert_true(r->memory_throttling == 0.5);
}

#define T(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(without_settings_only_the_eviction_threshold_is_kept_free),
        T(reservations_are_read_in_kubernetes_quantities),
        T(no_percent_and_all_of_them_are_no_threshold),
        T(reserved_processors_take_the_place_of_reserved_cpu),
        T(what_is_enforced_is_a_set),
        T(memory_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
