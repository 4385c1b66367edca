/* SPDX-License-Identifier: Apache-2.0 */
/* In-place resize: what counts as one, and a manifest with the amounts of another. */
#include "helper.h"

static void pair(struct decoded *a, struct decoded *b, const char *one, const char *other)
{
    decode_pod(a, one, "");
    decode_pod(b, other, "");
}

static void only_cpu_and_memory_of_containers_and_the_pod_count(void **state)
{
    struct decoded a, b;

    (void)state;
    pair(&a, &b, "resources: {requests: {cpu: 1}}", "resources: {requests: {cpu: 1000m}}");
    assert_false(api_pod_resources_differ(the_pod(&a), the_pod(&b)));
    decoded_done(&b);
    decode_pod(&b, "resources: {requests: {cpu: 2}}", "");
    assert_true(api_pod_resources_differ(the_pod(&a), the_pod(&b)));
    decoded_done(&b);
    decode_pod(&b, "resources: {requests: {cpu: 1}}\nworkingDir: /x", "");
    assert_false(api_pod_resources_differ(the_pod(&a), the_pod(&b)));
    decoded_done(&b);
    decode_pod(&b, "resources: {requests: {cpu: 1}}", "resources: {requests: {cpu: 2}}");
    assert_true(api_pod_resources_differ(the_pod(&a), the_pod(&b)));
    decoded_done(&a);
    decoded_done(&b);
}

static void the_amounts_of_another_manifest_are_taken_over(void **state)
{
    struct api_pod *mixed = NULL;
    struct decoded a, b;
    struct err e = { 0 };

    (void)state;
    pair(&a, &b, "resources: {limits: {memory: 9Gi}}\nworkingDir: /new", "resources: {requests: {cpu: 1}}");
    assert_int_equal(api_pod_with_resources_of(the_pod(&a), the_pod(&b), &mixed, &e), ERR_OK);
    assert_string_equal(mixed->spec.containers[0].working_dir, "/new");
    assert_null(api_resource_get(&mixed->spec.containers[0].resources.limits, "memory"));
    assert_int_equal(quantity_milli(api_resource_get(&mixed->spec.containers[0].resources.requests, "cpu")),
                     1000);
    assert_false(api_pod_resources_differ(mixed, the_pod(&b)));
    api_pod_unref(mixed);
    decoded_done(&a);
    decoded_done(&b);
}

static void the_resize_policy_is_kept(void **state)
{
    struct decoded d;
    const struct api_container *c;

    (void)state;
    decode_pod(&d, "resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]", "");
    c = &the_pod(&d)->spec.containers[0];
    assert_int_equal(c->n_resize_policies, 1);
    assert_int_equal(c->resize_policies[0].resource, API_RESIZE_MEMORY);
    assert_int_equal(c->resize_policies[0].restart, API_RESIZE_RESTART_CONTAINER);
    decoded_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_cpu_and_memory_of_containers_and_the_pod_count),
        cmocka_unit_test(the_amounts_of_another_manifest_are_taken_over),
        cmocka_unit_test(the_resize_policy_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
