/* SPDX-License-Identifier: Apache-2.0 */
/* What network plugins are told of a pod. */
#include "agent/pod/sandbox/internal.h"
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/sandbox/files.h"
#include "agent/pod/sandbox/net_attach.h"

static struct pod *annotated(struct world *w, const char *name, const char *annotations)
{
    str_auto text = str_printf("{apiVersion: v1, kind: Pod, metadata: {name: %s, annotations: {%s}}, spec: "
                               "{containers: [{name: a, image: x}]}}",
                               name, annotations);

    return world_add(w, text);
}

static void bandwidth_is_a_quantity_of_bits_from_1k_to_1p(void **state)
{
    static const struct {
        const char *text;
        int64_t bits;
        const char *problem;
    } cases[] = {
        { "'1k'", 1000, NULL },
        { "'10M'", 10000000, NULL },
        { "'1Mi'", 1048576, NULL },
        { "'1P'", INT64_C(1000000000000000), NULL },
        { "'999'", 0, "annotation kubernetes.io/egress-bandwidth: resource is unreasonably small (< 1kbit)" },
        { "'0'", 0, "annotation kubernetes.io/egress-bandwidth: resource is unreasonably small (< 1kbit)" },
        { "'-1M'", 0, "annotation kubernetes.io/egress-bandwidth: resource is unreasonably small (< 1kbit)" },
        { "'2P'", 0, "annotation kubernetes.io/egress-bandwidth: resource is unreasonably large (> 1Pbit)" },
        { "'fast'", 0, "annotation kubernetes.io/egress-bandwidth: " },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[16];
        str_auto kv = str_printf("kubernetes.io/egress-bandwidth: %s", cases[i].text);
        struct pod *p;
        struct err e = { 0 };
        int64_t bits = -1;

        snprintf(name, sizeof(name), "p%zu", i);
        p = annotated(*state, name, kv);
        assert_int_equal(net_bandwidth(p->api, "kubernetes.io/ingress-bandwidth", &bits, &e), ERR_OK);
        assert_int_equal(bits, 0);
        assert_int_equal(net_bandwidth(p->api, "kubernetes.io/egress-bandwidth", &bits, &e) != ERR_OK,
                         cases[i].problem != NULL);
        assert_int_equal(bits, cases[i].bits);
        if (cases[i].problem != NULL && !str_starts(e.text, cases[i].problem))
            fail_msg("\"%s\" is not \"%s\"", e.text, cases[i].problem);

        /* What is wrong holds up an ADD, never a DEL. */
        e = (struct err){ 0 };
        assert_int_equal(net_attach_fill(p, true, true, &e) != ERR_OK, cases[i].problem != NULL);
        e = (struct err){ 0 };
        assert_int_equal(net_attach_fill(p, false, true, &e), ERR_OK);
    }
}

static void each_host_port_of_regular_containers_is_mapped_once(void **state)
{
    struct pod *p = world_pod(
        *state, "a",
        "initContainers: [{name: i, image: x, ports: [{containerPort: 1, hostPort: 1}]}],"
        "containers: [{name: a, image: x, ports: [{containerPort: 80, hostPort: 8080}, {containerPort: 81},"
        " {containerPort: 53, hostPort: 53, protocol: UDP, hostIP: 192.0.2.1}]},"
        " {name: b, image: x, ports: [{containerPort: 9, hostPort: 9, protocol: SCTP}]}]");
    struct err e = { 0 };

    assert_int_equal(net_attach_fill(p, true, true, &e), ERR_OK);
    assert_int_equal(sandbox_of(p)->cni_att.n_ports, 3);
    assert_int_equal(sandbox_of(p)->cni_att.ports[0].host_port, 8080);
    assert_string_equal(sandbox_of(p)->cni_att.ports[0].protocol, "tcp");
    assert_string_equal(sandbox_of(p)->cni_att.ports[1].protocol, "udp");
    assert_string_equal(sandbox_of(p)->cni_att.ports[1].host_ip, "192.0.2.1");
    assert_string_equal(sandbox_of(p)->cni_att.ports[2].protocol, "sctp");
    assert_int_equal(net_attach_fill(p, false, false, &e), ERR_OK);
    assert_string_equal(sandbox_of(p)->cni_att.netns, "");
}

static void ranges_annotations_and_dns_are_told(void **state)
{
    struct world *w = *state;
    struct pod *p = annotated(w, "a", "k: v, l: ''");
    char path[512];
    struct err e = { 0 };

    w->node.o.pod_cidr = "10.1.0.0/16,fd00::/64";
    assert_int_equal(files_path(p, "", path, sizeof(path), &e), ERR_OK);
    assert_int_equal(fs_mkdirs(path, 0700, &e), ERR_OK);
    assert_int_equal(files_path(p, "resolv.conf", path, sizeof(path), &e), ERR_OK);
    const char *text = "nameserver 10.96.0.10\nnameserver fd00::a\nsearch a.svc svc\noptions ndots:5 edns0\n";
    assert_int_equal(fs_replace_at(AT_FDCWD, path, text, strlen(text), 0644, false, &e), ERR_OK);
    assert_int_equal(net_attach_fill(p, true, true, &e), ERR_OK);
    assert_string_equal(sandbox_of(p)->cni_att.ip_ranges[0], "10.1.0.0/16");
    assert_string_equal(sandbox_of(p)->cni_att.ip_ranges[1], "fd00::/64");
    assert_null(sandbox_of(p)->cni_att.ip_ranges[2]);
    assert_string_equal(sandbox_of(p)->cni_att.dns_servers[1], "fd00::a");
    assert_null(sandbox_of(p)->cni_att.dns_servers[2]);
    assert_string_equal(sandbox_of(p)->cni_att.dns_searches[1], "svc");
    assert_string_equal(sandbox_of(p)->cni_att.dns_options[1], "edns0");
    assert_int_equal(sandbox_of(p)->cni_att.n_annotations, 2);
    assert_string_equal(sandbox_of(p)->cni_att.annotations[0].value, "v");
    assert_null(sandbox_of(p)->cni_att.ip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(bandwidth_is_a_quantity_of_bits_from_1k_to_1p),
        WORLD_TEST(each_host_port_of_regular_containers_is_mapped_once),
        WORLD_TEST(ranges_annotations_and_dns_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
