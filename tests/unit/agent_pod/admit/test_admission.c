/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in, in kubelet's order and words; and who waits for one that is ending. */
#include "agent/pod/admit/admit.h"
#include "tests/unit/agent_pod/world.h"

static void refused(struct pod *p, const char *why, const char *text)
{
    struct err e = { 0 };
    char reason[64] = "";

    assert_true(admit_pod(p, reason, &e) == ERR_PRECONDITION || e.code == ERR_EXHAUSTED);
    assert_string_equal(reason, why);
    assert_string_equal(e.text, text);
}

static void waits(struct pod *p, const char *text)
{
    struct err e = { 0 };
    char reason[64] = "";

    assert_int_equal(admit_pod(p, reason, &e), ERR_UNAVAILABLE);
    assert_string_equal(e.text, text);
}

static void admitted(struct pod *p)
{
    struct err e = { 0 };
    char reason[64] = "";

    if (admit_pod(p, reason, &e) != ERR_OK)
        fail_msg("%s: %s", reason, e.text);
    p->admitted = true;
    p->state = POD_RUNNING;
}

static void only_safe_sysctls_are_allowed(void **state)
{
    admitted(world_pod(*state, "a",
                       "securityContext: {sysctls: [{name: net/ipv4/ip_local_port_range, value: '1 2'}]},"
                       "containers: [{name: a, image: x}]"));
    refused(world_pod(*state, "b",
                      "securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}, containers: [{name: "
                      "a, image: x}]"),
            "SysctlForbidden", "forbidden sysctl: \"kernel.msgmax\" not allowlisted");
}

static void resources_are_compared_with_what_others_have(void **state)
{
    const char *half = "containers: [{name: a, image: x, resources: {requests: {cpu: 2, memory: 5Gi}}}]";

    admitted(world_pod(*state, "a", half));
    refused(world_pod(*state, "b", half), "OutOfmemory",
            "Node didn't have enough resource: memory, requested: 5368709120, used: 5368709120, capacity: "
            "8589934592");
    refused(world_pod(*state, "c", "containers: [{name: a, image: x, resources: {requests: {cpu: 2500m}}}]"),
            "OutOfcpu", "Node didn't have enough resource: cpu, requested: 2500, used: 2000, capacity: 4000");
    admitted(world_pod(*state, "d", "containers: [{name: a, image: x}]"));
}

static void a_pod_that_is_ending_is_waited_for(void **state)
{
    struct pod *old = world_pod(*state, "a",
                                "containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 80}],"
                                "resources: {requests: {cpu: 3}}}]");
    struct pod *port = world_pod(
        *state, "b", "containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 80}]}]");
    struct pod *cpu =
        world_pod(*state, "c", "containers: [{name: a, image: x, resources: {requests: {cpu: 3}}}]");

    admitted(old);
    refused(port, "NodePorts",
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports: 80/TCP "
            "is pod default/a's");
    old->state = POD_TERMINATING;
    waits(port, "waits for a host port: pod default/a is ending");
    waits(cpu, "waits for cpu: 1 pods are ending");
    old->state = POD_TERMINATED; /* done, and still in the table */
    admitted(port);
    admitted(cpu);
}

static void ports_clash_by_number_protocol_and_address(void **state)
{
    admitted(
        world_pod(*state, "a",
                  "containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 53, protocol: UDP, "
                  "hostIP: 192.0.2.1}]}]"));
    admitted(world_pod(*state, "b",
                       "containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 53}]}]"));
    admitted(
        world_pod(*state, "c",
                  "containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 53, protocol: UDP, "
                  "hostIP: 192.0.2.2}]}]"));
    refused(
        world_pod(
            *state, "d",
            "containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 53, protocol: UDP}]}]"),
        "NodePorts",
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports: 53/UDP is "
        "pod default/a's");
}

static void ports_of_sidecars_count_and_those_of_init_containers_do_not(void **state)
{
    const char *sidecar =
        "initContainers: [{name: i, image: x, ports: [{containerPort: 1, hostPort: 81}]},"
        "{name: s, image: x, restartPolicy: Always, ports: [{containerPort: 1, hostPort: 80}]}],"
        "containers: [{name: a, image: x}]";
    const char *text = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod "
                       "ports: 80/TCP is pod default/a's";

    admitted(world_pod(*state, "a", sidecar));
    refused(world_pod(*state, "b", sidecar), "NodePorts", text);
    refused(world_pod(*state, "c",
                      "containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 80}]}]"),
            "NodePorts", text);
    admitted(world_pod(*state, "d",
                       "containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 81}]}]"));
}

static void the_node_must_be_the_one_that_is_asked_for(void **state)
{
    admitted(
        world_pod(*state, "a",
                  "nodeSelector: {kubernetes.io/hostname: node-a, kubernetes.io/os: linux}, nodeName: node-a,"
                  "containers: [{name: a, image: x}]"));
    refused(world_pod(*state, "b", "nodeSelector: {disk: ssd}, containers: [{name: a, image: x}]"),
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector");
    refused(world_pod(*state, "c", "nodeName: node-b, containers: [{name: a, image: x}]"), "NodeName",
            "Predicate NodeName failed: node(s) didn't match the requested node name");
}

static void taints_that_forbid_to_run_must_be_tolerated(void **state)
{
    struct world *w = *state;
    const char *text = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
    static const struct api_taint taints[] = {
        { (char *)"gpu", (char *)"yes", (char *)"NoSchedule" }, /* a scheduler's */
        { (char *)"gpu", (char *)"yes", (char *)"NoExecute" },
    };

    w->node.o.taints = taints;
    w->node.o.n_taints = 1;
    admitted(world_pod(w, "a", "containers: [{name: a, image: x}]"));
    w->node.o.n_taints = 2;
    refused(world_pod(w, "b", "containers: [{name: a, image: x}]"), "TaintToleration", text);
    refused(
        world_pod(w, "c",
                  "tolerations: [{key: gpu, value: 'no'}, {key: gpu, operator: Exists, effect: NoSchedule}], "
                  "containers: [{name: a, image: x}]"),
        "TaintToleration", text);
    admitted(world_pod(w, "d",
                       "tolerations: [{key: gpu, value: 'yes', effect: NoExecute, tolerationSeconds: 1}], "
                       "containers: [{name: a, image: x}]"));
    admitted(
        world_pod(w, "e", "tolerations: [{key: gpu, operator: Exists}], containers: [{name: a, image: x}]"));
    admitted(world_pod(w, "f", "tolerations: [{operator: Exists}], containers: [{name: a, image: x}]"));
}

static void init_containers_sidecars_overhead_and_the_pods_own_requests_count(void **state)
{
    refused(
        world_pod(*state, "a",
                  "initContainers: [{name: s, image: x, restartPolicy: Always, resources: {requests: {cpu: "
                  "1}}}, {name: i, image: x, resources: {requests: {cpu: 3500m}}}],"
                  "containers: [{name: a, image: x, resources: {requests: {cpu: 2}}}]"),
        "OutOfcpu", "Node didn't have enough resource: cpu, requested: 4500, used: 0, capacity: 4000");
    refused(world_pod(*state, "b",
                      "overhead: {cpu: 2500m},"
                      "containers: [{name: a, image: x, resources: {requests: {cpu: 2}}}]"),
            "OutOfcpu", "Node didn't have enough resource: cpu, requested: 4500, used: 0, capacity: 4000");
    refused(
        world_pod(*state, "c",
                  "resources: {requests: {cpu: 5}}, containers: [{name: a, image: x, resources: {requests: "
                  "{cpu: 2}}}]"),
        "OutOfcpu", "Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000");
}

static void what_no_plugin_offers_is_not_asked_for_but_unknown_page_sizes_are(void **state)
{
    admitted(world_pod(*state, "a",
                       "containers: [{name: a, image: x, resources: {limits: {example.com/gadget: 1}}}]"));
    refused(world_pod(*state, "b",
                      "containers: [{name: a, image: x, resources: {limits: {memory: 1Gi, hugepages-3Mi: "
                      "3Mi}}}]"),
            "OutOfhugepages-3Mi",
            "Node didn't have enough resource: hugepages-3Mi, requested: 3145728, used: 0, capacity: 0; this "
            "machine has no huge pages of that size");
}

static void pods_of_another_system_are_refused(void **state)
{
    admitted(world_pod(*state, "a", "os: {name: linux}, containers: [{name: a, image: x}]"));
    refused(world_pod(*state, "b", "os: {name: windows}, containers: [{name: a, image: x}]"),
            "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS");
    refused(world_add(*state,
                      "{apiVersion: v1, kind: Pod, metadata: {name: c, labels: {kubernetes.io/os: windows}}, "
                      "spec: {containers: [{name: a, image: x}]}}"),
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label");
}

static void apparmor_needs_a_host_that_has_it(void **state)
{
    if (access("/sys/module/apparmor", F_OK) == 0) {
        print_message("skipped: this host has AppArmor\n");
        skip();
    }
    admitted(world_pod(
        *state, "a",
        "securityContext: {appArmorProfile: {type: Unconfined}}, containers: [{name: a, image: x}]"));
    refused(
        world_pod(
            *state, "b",
            "securityContext: {appArmorProfile: {type: RuntimeDefault}}, containers: [{name: a, image: x}]"),
        "AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host");
    refused(world_pod(*state, "c",
                      "containers: [{name: a, image: x, securityContext: {appArmorProfile: {type: Localhost, "
                      "localhostProfile: mine}}}]"),
            "AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host");
    refused(world_add(*state, "{apiVersion: v1, kind: Pod, metadata: {name: d, annotations: "
                              "{container.apparmor.security.beta.kubernetes.io/a: runtime/default}}, "
                              "spec: {containers: [{name: a, image: x}]}}"),
            "AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host");
}

static void the_number_of_pods_is_bounded(void **state)
{
    struct world *w = *state;

    w->node.o.max_pods = 1;
    admitted(world_pod(w, "a", "containers: [{name: a, image: x}]"));
    refused(world_pod(w, "b", "containers: [{name: a, image: x}]"), "OutOfpods",
            "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(only_safe_sysctls_are_allowed),
        WORLD_TEST(resources_are_compared_with_what_others_have),
        WORLD_TEST(a_pod_that_is_ending_is_waited_for),
        WORLD_TEST(ports_clash_by_number_protocol_and_address),
        WORLD_TEST(ports_of_sidecars_count_and_those_of_init_containers_do_not),
        WORLD_TEST(the_node_must_be_the_one_that_is_asked_for),
        WORLD_TEST(taints_that_forbid_to_run_must_be_tolerated),
        WORLD_TEST(init_containers_sidecars_overhead_and_the_pods_own_requests_count),
        WORLD_TEST(what_no_plugin_offers_is_not_asked_for_but_unknown_page_sizes_are),
        WORLD_TEST(pods_of_another_system_are_refused),
        WORLD_TEST(apparmor_needs_a_host_that_has_it),
        WORLD_TEST(the_number_of_pods_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
