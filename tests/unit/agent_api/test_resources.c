/* SPDX-License-Identifier: Apache-2.0 */
/* Resources: names, amounts, defaults from limits, pod level, QoS class. */
#include "helper.h"

#include "agent/api/manifest/internal.h"

static void amounts_and_names_are_checked(void **state)
{
    (void)state;
    pod_is_bad(
        "resources: {limits: {cpu: -1, gpu: 1, 'a b': 1, memory: 1Gx}, requests: {cpu: x, storage: 1Gi}}", "",
        "spec.containers[0].resources.limits[memory]: quantity \"1Gx\" has an unknown suffix, allowed are "
        "numbers "
        "with a suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei or an exponent (500m, 1.5Gi, 12e6)",
        "spec.containers[0].resources.requests[cpu]: quantity \"x\" is not a number, allowed are numbers "
        "with a "
        "suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei or an exponent (500m, 1.5Gi, 12e6)",
        "spec.containers[0].resources.limits[a b]: the resource name \"a b\" must be a name of 1 to 63 "
        "characters "
        "(letters, digits, '-', '_', '.', beginning and ending with a letter or digit), optionally behind a "
        "DNS "
        "name and '/'",
        "spec.containers[0].resources.limits[cpu]: -1 is negative, allowed are 0 and more",
        "spec.containers[0].resources.limits[gpu]: \"gpu\" is not a resource of a container, allowed are "
        "cpu, "
        "memory, "
        "ephemeral-storage, hugepages-<size> and names with a domain (example.com/thing)",
        "spec.containers[0].resources.requests[storage]: \"storage\" is not a resource of a container, "
        "allowed "
        "are "
        "cpu, memory, ephemeral-storage, hugepages-<size> and names with a domain (example.com/thing)");
}

static void names_that_begin_as_those_of_quotas_are_refused(void **state)
{
    (void)state;
    pod_is_bad("resources: {limits: {requests.example.com/dev: 1}}", "",
               "spec.containers[0].resources.limits[requests.example.com/dev]: the resource name "
               "\"requests.example.com/dev\" doesn't follow extended resource name standard");
}

static void fractions_of_a_byte_are_told(void **state)
{
    struct decoded d;

    (void)state;
    decode_pod(&d, "resources: {limits: {memory: 0.5m}, requests: {memory: 0.5m, ephemeral-storage: 1500m}}",
               "");
    assert_int_equal(the_pod(&d)->ignored.n, 2);
    assert_string_equal(
        the_pod(&d)->ignored.v[0],
        "spec.containers[0].resources.limits[memory]: a fraction of a byte, rounded up: \"m\" "
        "is a thousandth, \"M\" a million");
    assert_non_null(strstr(the_pod(&d)->ignored.v[1], "resources.requests[ephemeral-storage]: a fraction"));
    assert_int_equal(quantity_value(&the_pod(&d)->spec.containers[0].resources.limits.v[0].amount), 1);
    decoded_done(&d);
    decode_pod(&d, "resources: {limits: {memory: 0.1Gi, cpu: 0.5m}}", "");
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    decoded_done(&d);
}

static void amounts_beyond_all_range_are_refused(void **state)
{
    (void)state;
    pod_is_bad(
        "resources: {limits: {memory: '1e100', cpu: -0.1}}", "",
        "spec.containers[0].resources.limits[memory]: quantity \"1e100\" is too large, allowed are "
        "numbers with a suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei or an exponent (500m, 1.5Gi, 12e6)",
        "spec.containers[0].resources.limits[cpu]: -100m is negative, allowed are 0 and more");
}

static void requests_stay_within_limits(void **state)
{
    (void)state;
    pod_is_bad(
        "resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1001m, memory: 1Gi}}", "",
        "spec.containers[0].resources.requests[cpu]: 1001m must be less than or equal to the cpu limit of 1");
    pod_is_good("resources: {limits: {cpu: 1}, requests: {cpu: 1000m, memory: 5Gi}}", "");
}

static void unsupported_resources_are_refused_or_listed(void **state)
{
    struct decoded d;

    (void)state;
    decode_pod(&d, "resources: {limits: {example.com/gpu: 1, hugepages-2Mi: 4Mi, cpu: 1}}", "");
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    decoded_done(&d);
    pod_is_bad("resources: {requests: {example.com/gpu: 1.5, hugepages-2Mi: 3Mi}}", "",
               "spec.containers[0].resources.requests[example.com/gpu]: 1500m is not a whole number",
               "spec.containers[0].resources.requests[example.com/gpu]: a limit for \"example.com/gpu\" is "
               "required, equal "
               "to the request",
               "spec.containers[0].resources.requests[hugepages-2Mi]: must be a multiple of the page size",
               "spec.containers[0].resources.requests[hugepages-2Mi]: a limit for \"hugepages-2Mi\" is "
               "required, equal to "
               "the request",
               "spec.containers[0].resources: huge pages need cpu or memory next to them");
    decode_pod(&d,
               "resources: {limits: {example.com/gpu: 1, ephemeral-storage: 1Gi, hugepages-2Mi: 0, cpu: 1}}",
               "");
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    decoded_done(&d);
}

static void a_list_where_requests_belong_is_only_a_problem(void **state)
{
    (void)state;
    pod_is_bad("resources: {limits: {cpu: 1}, requests: [a]}", "resources: {limits: {cpu: 1}, requests: x}",
               "spec.containers[0].resources.requests: expected an object, got a list",
               "spec.resources.requests: expected an object, got a string");
}

static void requests_default_to_limits(void **state)
{
    const struct api_resources *r;
    struct decoded d;

    (void)state;
    decode_pod(
        &d, "resources: {limits: {memory: 1Gi, cpu: 0.5, ephemeral-storage: 1k}, requests: {cpu: 100m}}", "");
    r = &the_pod(&d)->spec.containers[0].resources;
    assert_int_equal(r->requests.n, 3);
    assert_int_equal(quantity_value(api_resource_get(&r->requests, "memory")), 1 << 30);
    assert_int_equal(quantity_milli(api_resource_get(&r->requests, "cpu")), 100);
    assert_int_equal(quantity_value(api_resource_get(&r->requests, "ephemeral-storage")), 1000);
    assert_null(api_resource_get(&r->requests, "nope"));
    assert_non_null(strstr(the_pod(&d)->json,
                           "\"resources\":{\"limits\":{\"cpu\":\"500m\",\"ephemeral-storage\":\"1k\","
                           "\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"100m\",\"ephemeral-storage\":"
                           "\"1k\",\"memory\":\"1Gi\"}}"));
    decoded_done(&d);
}

static void amounts_come_as_text_or_number_and_are_rounded_up_to_milli(void **state)
{
    const struct api_resources *r;
    struct decoded d;

    (void)state;
    decode_pod(
        &d, "resources: {limits: {cpu: 0.1, memory: ' 64Mi '}, requests: {cpu: 0.00001, memory: null}}", "");
    r = &the_pod(&d)->spec.containers[0].resources;
    assert_int_equal(quantity_milli(api_resource_get(&r->limits, "cpu")), 100);
    assert_true(api_resource_get(&r->requests, "cpu")->nano == 1000000);
    assert_true(quantity_is_zero(api_resource_get(&r->requests, "memory")));
    decoded_done(&d);
    decode_pod(&d, "resources: {requests: {memory: 1e3}}", "");
    assert_int_equal(
        quantity_value(api_resource_get(&the_pod(&d)->spec.containers[0].resources.requests, "memory")),
        1000);
    decoded_done(&d);
}

static void qos(const char *container, const char *spec, enum api_qos wanted)
{
    struct decoded d;

    decode_pod(&d, container, spec);
    if (the_pod(&d)->qos != wanted)
        fail_msg("%s / %s: %s", container, spec, api_qos_name(the_pod(&d)->qos));
    decoded_done(&d);
}

static void the_qos_class_follows_cpu_and_memory(void **state)
{
    (void)state;
    qos("", "", API_QOS_BEST_EFFORT);
    qos("resources: {limits: {cpu: 0}}", "", API_QOS_BEST_EFFORT);
    qos("resources: {limits: {ephemeral-storage: 1Gi}}", "", API_QOS_BEST_EFFORT);
    qos("resources: {limits: {cpu: 1, memory: 1Gi}}", "", API_QOS_GUARANTEED);
    qos("resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1000m, memory: 1024Mi}}", "",
        API_QOS_GUARANTEED);
    qos("resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}", "", API_QOS_BURSTABLE);
    qos("resources: {limits: {cpu: 1}}", "", API_QOS_BURSTABLE);
    qos("resources: {limits: {cpu: 1, memory: 1Gi}}", "- {name: b, image: x}", API_QOS_BURSTABLE);
    qos("resources: {limits: {cpu: 1, memory: 1Gi}}", "initContainers: [{name: b, image: x}]",
        API_QOS_BURSTABLE);
    qos("resources: {limits: {cpu: 1, memory: 1Gi}}",
        "initContainers: [{name: b, image: x, resources: {limits: {cpu: 1, memory: 1Mi}}}]",
        API_QOS_GUARANTEED);
    qos("", "resources: {limits: {cpu: 1, memory: 1Gi}}", API_QOS_GUARANTEED);
    qos("", "resources: {limits: {cpu: 1}}", API_QOS_BURSTABLE);
    qos("", "resources: {}", API_QOS_BEST_EFFORT);
    assert_string_equal(api_qos_name(API_QOS_GUARANTEED), "Guaranteed");
}

static void pod_level_requests_default_to_the_containers_sum(void **state)
{
    const struct api_pod_spec *spec;
    struct decoded d;

    (void)state;
    decode_pod(&d, "resources: {requests: {cpu: 100m}}",
               "- {name: b, image: x, resources: {requests: {cpu: 200m}}}\nresources: {limits: {cpu: 1, "
               "memory: 1Gi}}");
    spec = &the_pod(&d)->spec;
    assert_true(spec->has_resources);
    assert_int_equal(quantity_milli(api_resource_get(&spec->resources.requests, "cpu")), 300);
    assert_int_equal(quantity_value(api_resource_get(&spec->resources.requests, "memory")), 1 << 30);
    assert_int_equal(the_pod(&d)->qos, API_QOS_BURSTABLE);
    decoded_done(&d);
}

static void pod_level_values_bound_the_containers(void **state)
{
    (void)state;
    pod_is_bad(
        "resources: {requests: {cpu: 600m}, limits: {memory: 2Gi, cpu: 1}}",
        "- {name: b, image: x, resources: {requests: {cpu: 600m}}}\n"
        "resources: {requests: {cpu: 1, memory: 2Gi}, limits: {memory: 1Gi, ephemeral-storage: 1Gi}}",
        "spec.resources.limits[ephemeral-storage]: \"ephemeral-storage\" is not a resource of a pod, allowed "
        "are cpu, "
        "memory, and hugepages-<size>",
        "spec.resources.requests[memory]: 2Gi must be less than or equal to the memory limit of 1Gi",
        "spec.resources.requests[cpu]: must be at least what the containers request together, 1200m",
        "spec.containers[0].resources.limits[memory]: must be less than or equal to the pod's limit of 1Gi");
    pod_is_bad("", "resources: {claims: [{name: a}]}",
               "spec.resources.claims: not supported: dynamic resource allocation needs a control plane and "
               "drivers");
    pod_is_bad("", "overhead: {cpu: -1, gpu: 5}",
               "spec.overhead[cpu]: -1 is negative, allowed are 0 and more",
               "spec.overhead[gpu]: \"gpu\" is not a resource of a container, allowed are cpu, memory, "
               "ephemeral-storage, "
               "hugepages-<size> and names with a domain (example.com/thing)");
}

static void sums_take_sidecars_and_init_containers_into_account(void **state)
{
    struct quantity sum;
    struct decoded d;

    (void)state;
    decode_pod(&d, "resources: {requests: {cpu: 100m}}",
               "initContainers:\n- {name: i, image: x, resources: {requests: {cpu: 50m}}}\n"
               "- {name: s, image: x, restartPolicy: Always, resources: {requests: {cpu: 30m}}}\n"
               "- {name: j, image: x, resources: {requests: {cpu: 200m}}}");
    assert_true(api_sum_requests(&the_pod(&d)->spec, "cpu", &sum));
    assert_int_equal(quantity_milli(&sum), 230); /* j beside the sidecar s */
    assert_false(api_sum_requests(&the_pod(&d)->spec, "memory", &sum));
    decoded_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_and_names_are_checked),
        cmocka_unit_test(names_that_begin_as_those_of_quotas_are_refused),
        cmocka_unit_test(fractions_of_a_byte_are_told),
        cmocka_unit_test(amounts_beyond_all_range_are_refused),
        cmocka_unit_test(requests_stay_within_limits),
        cmocka_unit_test(unsupported_resources_are_refused_or_listed),
        cmocka_unit_test(a_list_where_requests_belong_is_only_a_problem),
        cmocka_unit_test(requests_default_to_limits),
        cmocka_unit_test(amounts_come_as_text_or_number_and_are_rounded_up_to_milli),
        cmocka_unit_test(the_qos_class_follows_cpu_and_memory),
        cmocka_unit_test(pod_level_requests_default_to_the_containers_sum),
        cmocka_unit_test(pod_level_values_bound_the_containers),
        cmocka_unit_test(sums_take_sidecars_and_init_containers_into_account),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
