/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the pod as a whole: names, namespaces, DNS, scheduling fields, support decisions. */
#include "helper.h"

static void simple_fields_are_checked(void **state)
{
    (void)state;
    pod_is_bad(
        "",
        "hostname: A.b\nsubdomain: a_b\nnodeName: A\nserviceAccountName: B\npriorityClassName: C\n"
        "activeDeadlineSeconds: 0\nrestartPolicy: always\ndnsPolicy: dns\npreemptionPolicy: Maybe",
        "spec.hostname: \"A.b\" must be 1 to 63 characters of a-z, 0-9 and '-', beginning and ending with a "
        "letter "
        "or digit",
        "spec.subdomain: \"a_b\" must be 1 to 63 characters of a-z, 0-9 and '-', beginning and ending with a "
        "letter or digit",
        "spec.nodeName: \"A\" must be a DNS name: at most 253 characters of a-z, 0-9, '-' and '.', each part "
        "beginning and ending with a letter or digit",
        "spec.serviceAccountName: \"B\" must be a DNS name: at most 253 characters of a-z, 0-9, '-' and '.', "
        "each "
        "part beginning and ending with a letter or digit",
        "spec.priorityClassName: \"C\" must be a DNS name: at most 253 characters of a-z, 0-9, '-' and '.', "
        "each "
        "part beginning and ending with a letter or digit",
        "spec.activeDeadlineSeconds: 0 is out of range, allowed are 1 to 2147483647",
        "spec.restartPolicy: \"always\" is not supported, allowed are Always, OnFailure and Never",
        "spec.dnsPolicy: \"dns\" is not supported, allowed are ClusterFirst, ClusterFirstWithHostNet, "
        "Default and "
        "None",
        "spec.preemptionPolicy: \"Maybe\" is not supported, allowed are PreemptLowerPriority and Never");
    pod_is_good("",
                "terminationGracePeriodSeconds: -5\nactiveDeadlineSeconds: 2147483647\nserviceAccount: x");
}

static void defaults_reach_the_structs(void **state)
{
    const struct api_pod_spec *spec;
    struct decoded d;

    (void)state;
    decode_pod(&d, "", "");
    spec = &the_pod(&d)->spec;
    assert_int_equal(spec->restart_policy, API_RESTART_ALWAYS);
    assert_int_equal(spec->termination_grace_seconds, 30);
    assert_string_equal(spec->dns_policy, "ClusterFirst");
    assert_false(spec->has_active_deadline || spec->has_priority || spec->has_resources ||
                 spec->has_host_users);
    assert_null(spec->node_name);
    assert_null(spec->hostname);
    decoded_done(&d);
    decode_pod(&d, "", "serviceAccount: old\nnodeName: n\npriority: 0\nhostPID: true");
    spec = &the_pod(&d)->spec;
    assert_string_equal(spec->service_account_name, "old");
    assert_true(spec->has_priority && spec->host_pid);
    decoded_done(&d);
}

static void host_name_overrides_have_conditions(void **state)
{
    (void)state;
    pod_is_bad("",
               "hostnameOverride: a123456789.b123456789.c123456789.d123456789.e123456789.f123456789\n"
               "setHostnameAsFQDN: true\nhostNetwork: true",
               "spec.hostnameOverride: 65 characters are too many, at most 64 are allowed",
               "spec.hostnameOverride: cannot be used together with setHostnameAsFQDN",
               "spec.hostnameOverride: cannot be used together with hostNetwork");
    pod_is_good("", "hostnameOverride: a.b.c");
}

static void namespaces_of_the_host_exclude_each_other(void **state)
{
    (void)state;
    pod_is_bad("", "hostUsers: false\nhostNetwork: true\nhostPID: true\nhostIPC: true",
               "spec.hostNetwork: cannot be true when hostUsers is false",
               "spec.hostPID: cannot be true when hostUsers is false",
               "spec.hostIPC: cannot be true when hostUsers is false");
    pod_is_good("", "hostUsers: false\nshareProcessNamespace: true");
    pod_is_bad("", "shareProcessNamespace: true\nhostPID: true",
               "spec.shareProcessNamespace: cannot be true together with hostPID");
    pod_is_good(
        "", "shareProcessNamespace: false\nhostUsers: true\nhostPID: true\nhostIPC: true\nhostNetwork: true");
}

static void dns_settings_are_limited(void **state)
{
    struct buf b = BUF_INIT(1 << 20);
    struct decoded d;

    (void)state;
    pod_is_bad("", "dnsPolicy: None", "spec.dnsConfig: required with dnsPolicy None");
    pod_is_bad("", "dnsPolicy: None\ndnsConfig: {nameservers: []}",
               "spec.dnsConfig.nameservers: at least one is required with dnsPolicy None");
    pod_is_bad("",
               "dnsConfig: {nameservers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4, x], searches: [A], options: "
               "[{value: a}]}",
               "spec.dnsConfig.nameservers[4]: \"x\" must be an IP address (10.9.8.7 or 2001:db8::ffff)",
               "spec.dnsConfig.nameservers: 4 are too many, at most 3 are allowed",
               "spec.dnsConfig.searches[0]: \"A\" must be a DNS name (a-z, 0-9, '-', '_' and '.'), or \".\"",
               "spec.dnsConfig.options[0].name: required");
    buf_adds(&b, "dnsConfig:\n  searches:\n");
    for (int i = 0; i < 33; i++)
        buf_addf(&b, "  - d%d.a123456789.b123456789.c123456789.d123456789.e123456789.f123456789\n", 100 + i);
    pod_is_bad("", b.p, "spec.dnsConfig.searches: 33 are too many, at most 32 are allowed",
               "spec.dnsConfig.searches: 2342 characters are too many, at most 2048 (with blanks between) "
               "are allowed");
    buf_done(&b);
    decode_pod(&d, "",
               "dnsPolicy: None\ndnsConfig: {nameservers: [1.1.1.1], searches: [a_b.c., .], options: [{name: "
               "ndots, value: '2'}, {name: edns0}]}");
    assert_int_equal(the_pod(&d)->spec.dns_nameservers.n, 1);
    assert_string_equal(the_pod(&d)->spec.dns_options[0].value, "2");
    assert_null(the_pod(&d)->spec.dns_options[1].value);
    decoded_done(&d);
}

static void host_aliases_are_checked(void **state)
{
    (void)state;
    pod_is_bad("", "hostAliases: [{ip: x, hostnames: [A]}, {hostnames: [a.b]}]",
               "spec.hostAliases[0].ip: \"x\" must be an IP address (10.9.8.7 or 2001:db8::ffff)",
               "spec.hostAliases[0].hostnames[0]: \"A\" must be a DNS name: at most 253 characters of a-z, "
               "0-9, '-' and "
               "'.', each part beginning and ending with a letter or digit",
               "spec.hostAliases[1].ip: required");
}

static void tolerations_are_checked(void **state)
{
    (void)state;
    pod_is_bad(
        "",
        "tolerations:\n- {}\n- {key: -a, operator: Is, effect: Never}\n"
        "- {key: a, operator: Exists, value: x}\n- {key: a, tolerationSeconds: 5}\n- {key: a, value: 'b c'}",
        "spec.tolerations[0].operator: must be Exists when there is no key",
        "spec.tolerations[1].key: \"-a\" must be a name of 1 to 63 characters (letters, digits, '-', '_', "
        "'.', "
        "beginning and ending with a letter or digit), optionally behind a DNS name and '/'",
        "spec.tolerations[1].operator: \"Is\" is not supported, allowed are Equal and Exists",
        "spec.tolerations[1].effect: \"Never\" is not supported, allowed are NoSchedule, PreferNoSchedule "
        "and "
        "NoExecute",
        "spec.tolerations[2].value: must be empty with operator Exists",
        "spec.tolerations[3].effect: must be NoExecute when tolerationSeconds is set",
        "spec.tolerations[4].value: \"b c\" must be empty or 1 to 63 letters, digits, '-', '_' and '.', "
        "beginning "
        "and ending with a letter or digit");
    pod_is_good("", "tolerations:\n- {operator: Exists}\n- {key: a/b, value: c, effect: NoExecute, "
                    "tolerationSeconds: 0}");
}

static void affinity_is_checked_although_it_is_the_schedulers(void **state)
{
    (void)state;
    pod_is_bad(
        "",
        "affinity:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n      "
        "nodeSelectorTerms:\n"
        "      - matchExpressions: [{key: a, operator: In}, {key: a, operator: Exists, values: [b]}, {key: "
        "a, "
        "operator: Gt, values: [a, b]}]\n        matchFields: [{key: metadata.uid, operator: In, values: "
        "[a]}]\n"
        "    preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {}}]\n"
        "  podAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n"
        "    - {labelSelector: {matchLabels: {a: 'b c'}, matchExpressions: [{key: a, operator: Near}]}, "
        "matchLabelKeys: [a]}\n"
        "  podAntiAffinity:\n    preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, "
        "podAffinityTerm: "
        "{topologyKey: zone, namespaces: [A], mismatchLabelKeys: [x]}}]",
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
        ".matchExpressions[0].values: at least one is required with operator In",
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
        ".matchExpressions[1].values: not allowed with operator Exists",
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
        ".matchExpressions[2].values: exactly one is required with operator Gt",
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
        ".matchFields[0].key: \"metadata.uid\" is not supported, allowed is metadata.name",
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: 101 is out of "
        "range, allowed are 1 to 100",
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: required",
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector."
        "matchLabels[a]: "
        "the value \"b c\" must be empty or 1 to 63 letters, digits, '-', '_' and '.', beginning and ending "
        "with a "
        "letter or digit",
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector"
        ".matchExpressions[0].operator: \"Near\" is not supported, allowed are In, NotIn, Exists and "
        "DoesNotExist",
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]: "
        "\"a\" is in "
        "labelSelector, too",
        "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm"
        ".namespaces[0]: \"A\" must be 1 to 63 characters of a-z, 0-9 and '-', beginning and ending with a "
        "letter "
        "or digit",
        "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm"
        ".mismatchLabelKeys: not allowed without labelSelector");
}

static void spread_constraints_are_checked(void **state)
{
    (void)state;
    pod_is_bad(
        "",
        "topologySpreadConstraints:\n- {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}\n"
        "- {maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a]}\n"
        "- {maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, minDomains: 2, nodeTaintsPolicy: x}",
        "spec.topologySpreadConstraints[1].maxSkew: 0 is out of range, allowed are 1 to 2147483647",
        "spec.topologySpreadConstraints[1]: the pair of topologyKey \"zone\" and whenUnsatisfiable "
        "DoNotSchedule "
        "is given twice",
        "spec.topologySpreadConstraints[1].matchLabelKeys: not allowed without labelSelector",
        "spec.topologySpreadConstraints[2].topologyKey: required",
        "spec.topologySpreadConstraints[2].minDomains: only allowed with whenUnsatisfiable DoNotSchedule",
        "spec.topologySpreadConstraints[2].nodeTaintsPolicy: \"x\" is not supported, allowed are Honor and "
        "Ignore");
}

static void fields_of_a_control_plane_are_accepted_without_a_word(void **state)
{
    struct decoded d;

    (void)state;
    decode_pod(&d, "",
               "schedulerName: mine\npreemptionPolicy: Never\nautomountServiceAccountToken: false\n"
               "overhead: {cpu: 10m}\nos: {name: linux}\nschedulingGroup: {podGroupName: g}\n"
               "affinity: {nodeAffinity: {}}\ntolerations: [{operator: Exists}]");
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    decoded_done(&d);
}

static void what_cannot_be_honoured_is_refused_with_the_reason(void **state)
{
    (void)state;
    pod_is_bad(
        "",
        "ephemeralContainers: [{name: d, image: x, targetContainerName: main}]\n"
        "schedulingGates: [{name: a/b}]\nresourceClaims: [{name: a, resourceClaimName: b}, {name: c}]",
        "spec.ephemeralContainers: not supported: ephemeral containers cannot be set when a pod is created; "
        "kubectl debug and coracle debug add them",
        "spec.resourceClaims[1]: resourceClaimName or resourceClaimTemplateName is required",
        "spec.resourceClaims: not supported: dynamic resource allocation needs a control plane and drivers");
    pod_is_good("", "ephemeralContainers: []\nschedulingGates: [{name: a/b}]");
}

static void a_runtime_class_is_a_name_or_none(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_good("", "runtimeClassName: null");
    decode_pod(&d, "", "runtimeClassName: gvisor.example.com\noverhead: {cpu: 10m, memory: 1Mi}");
    assert_string_equal(the_pod(&d)->spec.runtime_class_name, "gvisor.example.com");
    assert_int_equal(the_pod(&d)->spec.overhead.n, 2);
    decoded_done(&d);
    pod_is_bad("", "runtimeClassName: \"\"",
               "spec.runtimeClassName: \"\" must be a DNS name: at most 253 characters of a-z, 0-9, '-' and "
               "'.', each part beginning and ending with a letter or digit");
    pod_is_bad(
        "", "runtimeClassName: Big",
        "spec.runtimeClassName: \"Big\" must be a DNS name: at most 253 characters of a-z, 0-9, '-' and "
        "'.', each part beginning and ending with a letter or digit");
}

static void what_is_not_acted_on_yet_is_listed(void **state)
{
    struct decoded d;

    (void)state;
    decode_pod(&d, "restartPolicy: Never",
               "activeDeadlineSeconds: 60\nreadinessGates: [{conditionType: a/b}]\n"
               "securityContext: {seLinuxOptions: {level: s0}, appArmorProfile: {type: RuntimeDefault}}");
    assert_int_equal(the_pod(&d)->ignored.n, 1);
    assert_int_equal(the_pod(&d)->spec.containers[0].restart_policy, API_RESTART_NEVER);
    assert_int_equal(the_pod(&d)->spec.active_deadline_seconds, 60);
    assert_int_equal(the_pod(&d)->spec.n_readiness_gates, 1);
    assert_string_equal(the_pod(&d)->spec.readiness_gates[0].condition_type, "a/b");
    decoded_done(&d);
    decode_pod(&d, "securityContext: {appArmorProfile: {type: Unconfined}, seLinuxOptions: {}}", "");
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    decoded_done(&d);
}

static void node_selectors_are_labels(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad("", "nodeSelector: {-a: b}",
               "spec.nodeSelector[-a]: the key \"-a\" must be a name of 1 to 63 characters (letters, digits, "
               "'-', '_', "
               "'.', beginning and ending with a letter or digit), optionally behind a DNS name and '/'");
    decode_pod(&d, "", "nodeSelector: {z: '1', a/b: c}");
    assert_string_equal(api_kvs_get(&the_pod(&d)->spec.node_selector, "a/b"), "c");
    decoded_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_fields_are_checked),
        cmocka_unit_test(defaults_reach_the_structs),
        cmocka_unit_test(host_name_overrides_have_conditions),
        cmocka_unit_test(namespaces_of_the_host_exclude_each_other),
        cmocka_unit_test(dns_settings_are_limited),
        cmocka_unit_test(host_aliases_are_checked),
        cmocka_unit_test(tolerations_are_checked),
        cmocka_unit_test(affinity_is_checked_although_it_is_the_schedulers),
        cmocka_unit_test(spread_constraints_are_checked),
        cmocka_unit_test(fields_of_a_control_plane_are_accepted_without_a_word),
        cmocka_unit_test(what_cannot_be_honoured_is_refused_with_the_reason),
        cmocka_unit_test(a_runtime_class_is_a_name_or_none),
        cmocka_unit_test(what_is_not_acted_on_yet_is_listed),
        cmocka_unit_test(node_selectors_are_labels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
