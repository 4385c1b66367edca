/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for Services, which a node keeps and shows. */
#include "helper.h"

#define SERVICE(spec) "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {" spec "}\n"

static void expect_good(const char *text)
{
    struct decoded d;

    decode(&d, text);
    print_problems(&d);
    assert_int_equal(d.problems.n, 0);
    assert_int_equal(d.objects.n, 1);
    decoded_done(&d);
}

static void what_a_cluster_takes_is_taken(void **state)
{
    (void)state;
    expect_good(SERVICE("selector: {app: a}, ports: [{port: 80}]"));
    expect_good(SERVICE("clusterIP: None"));
    expect_good(SERVICE("clusterIP: 10.96.0.9, ports: [{port: 80}]"));
    expect_good(SERVICE("type: ExternalName, externalName: a.example.org."));
    expect_good(SERVICE("type: NodePort, ports: [{name: a, port: 80, nodePort: 30080, targetPort: web}, "
                        "{name: b, port: 80, protocol: UDP}]"));
    expect_good(SERVICE("type: LoadBalancer, loadBalancerSourceRanges: [1.2.3.0/24], ports: [{port: 1}]"));
    expect_good(SERVICE("sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 9}}, "
                        "ports: [{port: 1}]"));
}

static void ports_are_checked(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d, SERVICE("selector: {a: b}"));
    expect_problems(&d, "spec.ports: required");
    decoded_done(&d);
    decode(&d, SERVICE("ports: [{port: 0}, {name: x, port: 99999, protocol: ICMP}, {name: x, port: 1, "
                       "targetPort: A_}]"));
    assert_int_equal(d.problems.n, 8);
    decoded_done(&d);
    decode(&d, SERVICE("ports: [{name: a, port: 80}, {name: b, port: 80}]"));
    expect_problems(&d, "spec.ports[1]: 80/TCP is given twice");
    decoded_done(&d);
    decode(&d, SERVICE("ports: [{port: 80, nodePort: 30000}]"));
    expect_problems(&d, "spec.ports[0].nodePort: not allowed: may not be used when `type` is 'ClusterIP'");
    decoded_done(&d);
}

static void fields_go_with_the_type(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d, SERVICE("type: ExternalName, clusterIP: None"));
    expect_problems(&d, "spec.clusterIPs: not allowed: may not be set for ExternalName services",
                    "spec.externalName: required");
    decoded_done(&d);
    decode(&d, SERVICE("type: Odd, sessionAffinity: Odd, loadBalancerClass: a.b/c, ports: [{port: 1}]"));
    expect_problems(
        &d, "spec.sessionAffinity: \"Odd\" is not supported, allowed are ClientIP and None",
        "spec.type: \"Odd\" is not supported, allowed are ClusterIP, ExternalName, LoadBalancer and "
        "NodePort",
        "spec.loadBalancerClass: not allowed: may only be used when `type` is 'LoadBalancer'");
    decoded_done(&d);
    decode(&d, SERVICE("clusterIP: x, ports: [{port: 1}], externalTrafficPolicy: Local"));
    assert_int_equal(d.problems.n, 2);
    decoded_done(&d);
    decode(&d, "apiVersion: v1\nkind: Service\nmetadata: {name: a.b}\nspec: {ports: [{port: 1}]}\n");
    assert_int_equal(d.problems.n, 1);
    decoded_done(&d);
}

static void what_is_no_service_at_all_does_no_harm(void **state)
{
    static const char *const specs[] = { SERVICE("ports: 5"),
                                         SERVICE("ports: [5, a, null]"),
                                         SERVICE("ports: [{port: a, targetPort: [1]}], type: 7"),
                                         SERVICE(
                                             "selector: [a], externalIPs: {a: b}, sessionAffinityConfig: 1"),
                                         "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
                                         "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: 5\n" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        struct decoded d;

        decode(&d, specs[i]);
        assert_true(d.problems.n > 0);
        decoded_done(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_cluster_takes_is_taken),
        cmocka_unit_test(ports_are_checked),
        cmocka_unit_test(fields_go_with_the_type),
        cmocka_unit_test(what_is_no_service_at_all_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
