/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "cni/attachment.h"

static const struct cni_attachment good = { .container_id = "abc",
                                            .netns = "/ns",
                                            .ifname = "eth0",
                                            .pod_namespace = "default",
                                            .pod_name = "web",
                                            .pod_uid = "u-1" };

static void assert_refused(const struct cni_attachment *a, const char *message)
{
    struct err e = { 0 };

    assert_int_equal(cni_attachment_check(a, true, &e), ERR_INVALID);
    assert_string_equal(e.text, message);
}

static void arguments_name_the_pod(void **state)
{
    struct cni_attachment orphan = { .container_id = "abc", .ifname = "eth0" };
    str_auto args = cni_attachment_args(&good);
    str_auto none = cni_attachment_args(&orphan);

    (void)state;
    assert_string_equal(
        args, "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=abc;"
              "K8S_POD_UID=u-1");
    assert_string_equal(
        none, "IgnoreUnknown=1;K8S_POD_NAMESPACE=;K8S_POD_NAME=;K8S_POD_INFRA_CONTAINER_ID=abc;K8S_POD_UID=");
}

static void port_mappings_without_host_port_are_left_out(void **state)
{
    const struct cni_port_mapping ports[] = { { 8080, 80, "tcp", NULL },
                                              { 0, 81, "tcp", "" },
                                              { 53, 53, "udp", "10.0.0.1" } };
    struct cni_attachment a = good;
    json_auto_t *v = NULL;

    (void)state;
    a.ports = ports;
    a.n_ports = ARRAY_LEN(ports);
    v = cni_attachment_capability_args(&a);
    assert_json_equal(
        v, "{\"portMappings\": [{\"hostPort\": 8080, \"containerPort\": 80, \"protocol\": \"tcp\"},"
           " {\"hostPort\": 53, \"containerPort\": 53, \"protocol\": \"udp\", \"hostIP\": \"10.0.0.1\"}]}");
}

static void a_rate_comes_with_its_burst_and_no_rate_with_none(void **state)
{
    struct cni_attachment a = good;
    json_auto_t *none = cni_attachment_capability_args(&good), *one = NULL, *both = NULL;

    (void)state;
    assert_json_equal(none, "{}");
    a.egress_bits = 1000000;
    one = cni_attachment_capability_args(&a);
    assert_json_equal(one, "{\"bandwidth\": {\"egressRate\": 1000000, \"egressBurst\": 96000}}");
    a.ingress_bits = 1000000000000000;
    both = cni_attachment_capability_args(&a);
    assert_json_equal(both, "{\"bandwidth\": {\"egressRate\": 1000000, \"egressBurst\": 96000,"
                            " \"ingressRate\": 1000000000000000, \"ingressBurst\": 2147483647}}");
}

static void what_cannot_be_passed_on_is_refused(void **state)
{
    struct cni_port_mapping port = { 80, 80, "tcp", NULL };
    struct cni_attachment a = good;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_attachment_check(&a, true, &e), ERR_OK);
    a.container_id = "../x";
    assert_refused(&a, "container id \"../x\": must begin with a letter or digit, then letters, digits, "
                       "\"_\", \".\", \"-\", at "
                       "most 100");
    a = good;
    a.ifname = "a/b";
    assert_refused(&a, "interface name \"a/b\": 1 to 15 bytes without \"/\", \":\" and blanks");
    a = good;
    a.netns = "";
    assert_refused(&a, "network namespace \"\" is not an absolute path");
    assert_int_equal(cni_attachment_check(&a, false, &e), ERR_OK); /* DEL: it may be gone */
    a = good;
    a.pod_name = "web;IP=1.2.3.4";
    assert_refused(&a, "\"web;IP=1.2.3.4\" is not valid in CNI_ARGS");
    a = good;
    a.ports = &port;
    a.n_ports = 1;
    port.container_port = 0;
    assert_refused(&a, "port mapping 0: 80 to 0 is out of range");
    port = (struct cni_port_mapping){ 80, 80, "TCP", NULL };
    assert_refused(&a, "port mapping 0: protocol \"TCP\" is not tcp, udp or sctp");
    port = (struct cni_port_mapping){ 80, 80, "tcp", "localhost" };
    assert_refused(&a, "port mapping 0: host IP \"localhost\" is not an address");
    a = good;
    a.egress_bits = -1;
    assert_refused(&a, "bandwidth is negative");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_name_the_pod),
        cmocka_unit_test(port_mappings_without_host_port_are_left_out),
        cmocka_unit_test(a_rate_comes_with_its_burst_and_no_rate_with_none),
        cmocka_unit_test(what_cannot_be_passed_on_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
