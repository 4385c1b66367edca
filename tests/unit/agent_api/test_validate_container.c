/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of containers: names, ports, environment, mounts, probes, hooks. */
#include "helper.h"

static void names_are_unique_over_both_lists(void **state)
{
    (void)state;
    pod_is_bad("", "initContainers:\n- {name: main, image: x}\n- {name: b, image: x}\n- {name: b, image: x}",
               "spec.initContainers[0].name: \"main\" is the name of another container of this pod, too",
               "spec.initContainers[2].name: \"b\" is the name of another container of this pod, too");
    text_is_bad(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: A, image: ''}, {}]}\n",
        "spec.containers[0].name: \"A\" must be 1 to 63 characters of a-z, 0-9 and '-', beginning and ending "
        "with a letter or digit",
        "spec.containers[0].image: required", "spec.containers[1].name: required",
        "spec.containers[1].image: required");
}

static void ports_are_checked(void **state)
{
    (void)state;
    pod_is_bad(
        "ports:\n- {}\n- {containerPort: 0}\n- {containerPort: 1, hostPort: 70000, protocol: tcp, hostIP: "
        "a}\n"
        "- {containerPort: 2, name: A}\n- {containerPort: 3, name: x}\n- {containerPort: 4, name: x}\n"
        "- {containerPort: -1}",
        "", "spec.containers[0].ports[0].containerPort: required",
        "spec.containers[0].ports[1].containerPort: required",
        "spec.containers[0].ports[2].hostPort: 70000 is out of range, allowed are 1 to 65535",
        "spec.containers[0].ports[2].protocol: \"tcp\" is not supported, allowed are TCP, UDP and SCTP",
        "spec.containers[0].ports[2].hostIP: \"a\" must be an IP address (10.9.8.7 or 2001:db8::ffff)",
        "spec.containers[0].ports[3].name: \"A\" must be 1 to 15 characters of a-z, 0-9 and '-', with a "
        "letter, "
        "without \"--\", not beginning or ending with '-'",
        "spec.containers[0].ports[5].name: \"x\" is given twice",
        "spec.containers[0].ports[6].containerPort: -1 is out of range, allowed are 1 to 65535");
    pod_is_good("ports: [{containerPort: 1, name: x, hostPort: 0}]", "");
}

static void host_ports_must_not_clash_among_containers_that_run_together(void **state)
{
    (void)state;
    pod_is_bad(
        "ports: [{containerPort: 1, hostPort: 80}, {containerPort: 2, hostPort: 80, protocol: UDP}]",
        "- name: b\n  image: x\n  ports: [{containerPort: 3, hostPort: 80}, {containerPort: 4, hostPort: 80, "
        "hostIP: 10.0.0.1}]\ninitContainers:\n- {name: i, image: x, ports: [{containerPort: 1, hostPort: "
        "80}]}\n"
        "- {name: j, image: x, ports: [{containerPort: 1, hostPort: 81}, {containerPort: 2, hostPort: 81}]}",
        "spec.containers[1].ports[0].hostPort: 80/TCP is used by another port of this pod, too",
        "spec.initContainers[1].ports[1].hostPort: 81/TCP is used by another port of this pod, too");
}

static void host_network_needs_equal_ports(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad(
        "ports: [{containerPort: 80, hostPort: 81}]", "hostNetwork: true",
        "spec.containers[0].ports[0].hostPort: 81 must be the containerPort 80 when hostNetwork is true");
    decode_pod(&d, "ports: [{containerPort: 80}]", "hostNetwork: true");
    assert_int_equal(the_pod(&d)->spec.containers[0].ports[0].host_port, 80);
    decoded_done(&d);
}

static void environment_sources_exclude_each_other(void **state)
{
    (void)state;
    pod_is_bad(
        "env:\n- {value: x}\n- {name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n"
        "- {name: B, valueFrom: {}}\n"
        "- {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}, secretKeyRef: {name: a, key: b}}}\n"
        "- {name: D, valueFrom: {configMapKeyRef: {name: A, key: ..}}}\n"
        "- {name: E, valueFrom: {secretKeyRef: {}}}\n"
        "- {name: F, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}\n"
        "- {name: G, valueFrom: {fileKeyRef: {volumeName: w, path: ../p, key: k=}}}\n"
        "- {name: H, valueFrom: {fileKeyRef: {optional: true}}}",
        "volumes: [{name: w, hostPath: {path: /w}}]", "spec.containers[0].env[0].name: required",
        "spec.containers[0].env[1].valueFrom: not allowed when value is not empty",
        "spec.containers[0].env[2].valueFrom: one of fieldRef, resourceFieldRef, configMapKeyRef, "
        "secretKeyRef and fileKeyRef is required",
        "spec.containers[0].env[3].valueFrom: only one source of the value is allowed",
        "spec.containers[0].env[4].valueFrom.configMapKeyRef.name: \"A\" must be a DNS name: at most 253 "
        "characters of a-z, 0-9, '-' and '.', each part beginning and ending with a letter or digit",
        "spec.containers[0].env[4].valueFrom.configMapKeyRef.key: \"..\" must be 1 to 253 letters, digits, "
        "'-', "
        "'_' and '.', not \".\" and not beginning with \"..\"",
        "spec.containers[0].env[5].valueFrom.secretKeyRef.name: required",
        "spec.containers[0].env[5].valueFrom.secretKeyRef.key: required",
        "spec.containers[0].env[6].valueFrom.fileKeyRef.volumeName: \"v\" is not a volume of this pod",
        "spec.containers[0].env[7].valueFrom.fileKeyRef.path: \"../p\" must not contain \"..\"",
        "spec.containers[0].env[7].valueFrom.fileKeyRef.key: \"k=\" must be printable ASCII characters "
        "without "
        "'='",
        "spec.containers[0].env[7].valueFrom.fileKeyRef.volumeName: \"w\" is not an emptyDir",
        "spec.containers[0].env[8].valueFrom.fileKeyRef.volumeName: required",
        "spec.containers[0].env[8].valueFrom.fileKeyRef.path: required",
        "spec.containers[0].env[8].valueFrom.fileKeyRef.key: required");
    pod_is_bad(
        "envFrom:\n- {}\n- {configMapRef: {name: a}, secretRef: {name: b}}\n- {prefix: 'a=', secretRef: {}}",
        "", "spec.containers[0].envFrom[0]: configMapRef or secretRef is required",
        "spec.containers[0].envFrom[1]: only one of configMapRef and secretRef is allowed",
        "spec.containers[0].envFrom[2].prefix: \"a=\" must be printable ASCII characters without '='",
        "spec.containers[0].envFrom[2].secretRef.name: required");
}

static void environment_reaches_the_structs(void **state)
{
    const struct api_container *c;
    struct decoded d;

    (void)state;
    decode_pod(
        &d,
        "envFrom:\n- {prefix: P_, configMapRef: {name: cm, optional: true}}\n- {secretRef: {name: s}}\n"
        "env:\n- {name: A}\n- {name: B, value: $(A)}\n"
        "- {name: C, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}\n"
        "- {name: D, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}\n",
        "");
    c = &the_pod(&d)->spec.containers[0];
    assert_int_equal(c->n_env_from, 2);
    assert_string_equal(c->env_from[0].prefix, "P_");
    assert_string_equal(c->env_from[0].config_map_ref, "cm");
    assert_true(c->env_from[0].optional);
    assert_null(c->env_from[1].config_map_ref);
    assert_string_equal(c->env_from[1].secret_ref, "s");
    assert_string_equal(c->env[0].value, "");
    assert_string_equal(c->env[1].value, "$(A)");
    assert_string_equal(c->env[2].secret_key_ref->key, "k");
    assert_true(c->env[2].secret_key_ref->optional);
    assert_int_equal(quantity_milli(&c->env[3].resource_field_ref->divisor), 1);
    decoded_done(&d);
}

static void downward_references_name_known_fields(void **state)
{
    (void)state;
    pod_is_bad(
        "env:\n- {name: A, valueFrom: {fieldRef: {fieldPath: spec.volumes}}}\n"
        "- {name: B, valueFrom: {fieldRef: {apiVersion: v2, fieldPath: metadata.name}}}\n"
        "- {name: C, valueFrom: {fieldRef: {fieldPath: \"metadata.name['x']\"}}}\n"
        "- {name: D, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['-x']\"}}}\n"
        "- {name: E, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}\n"
        "- {name: F, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1k}}}\n"
        "- {name: G, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 3Mi}}}\n"
        "- {name: H, valueFrom: {resourceFieldRef: {}}}",
        "",
        "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: \"spec.volumes\" is not supported, allowed "
        "are "
        "metadata.name, metadata.namespace, metadata.uid, metadata.labels['key'], "
        "metadata.annotations['key'], "
        "spec.nodeName, spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP and "
        "status.podIPs",
        "spec.containers[0].env[1].valueFrom.fieldRef.apiVersion: \"v2\" is not supported, allowed is v1",
        "spec.containers[0].env[2].valueFrom.fieldRef.fieldPath: \"metadata.name['x']\" cannot have a "
        "subscript, "
        "only metadata.labels and metadata.annotations can",
        "spec.containers[0].env[3].valueFrom.fieldRef.fieldPath: the key \"-x\" must be a name of 1 to 63 "
        "characters (letters, digits, '-', '_', '.', beginning and ending with a letter or digit), "
        "optionally "
        "behind a DNS name and '/'",
        "spec.containers[0].env[4].valueFrom.resourceFieldRef.resource: \"limits.gpu\" is not supported, "
        "allowed "
        "are limits. and requests. with cpu, memory, ephemeral-storage or hugepages-<size>",
        "spec.containers[0].env[5].valueFrom.resourceFieldRef.divisor: 1k is not supported for limits.cpu, "
        "allowed are 1m and 1",
        "spec.containers[0].env[6].valueFrom.resourceFieldRef.divisor: 3Mi is not supported for "
        "requests.memory, "
        "allowed are 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi and 1Ei",
        "spec.containers[0].env[7].valueFrom.resourceFieldRef.resource: required");
    pod_is_good(
        "env:\n- {name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['Example.com/X']\"}}}\n"
        "- {name: B, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}\n"
        "- {name: C, valueFrom: {resourceFieldRef: {resource: limits.hugepages-2Mi, divisor: 1Mi}}}",
        "");
}

static void mounts_name_volumes_and_do_not_overlap(void **state)
{
    (void)state;
    pod_is_bad(
        "volumeMounts:\n- {name: nope, mountPath: /a}\n- {name: v, mountPath: /b}\n- {name: v, mountPath: "
        "/b}\n"
        "- {name: v, mountPath: /c, subPath: /abs}\n- {name: v, mountPath: /d, subPath: a, subPathExpr: b}\n"
        "- {name: v, mountPath: /e, subPathExpr: a/..}\n- {mountPath: /f}\n- {name: v}",
        "volumes: [{name: v}]",
        "spec.containers[0].volumeMounts[0].name: there is no volume \"nope\" in this pod",
        "spec.containers[0].volumeMounts[2].mountPath: \"/b\" is given twice in this container",
        "spec.containers[0].volumeMounts[3].subPath: \"/abs\" must be a relative path",
        "spec.containers[0].volumeMounts[4].subPathExpr: not allowed together with subPath",
        "spec.containers[0].volumeMounts[5].subPathExpr: \"a/..\" must not contain \"..\"",
        "spec.containers[0].volumeMounts[6].name: required",
        "spec.containers[0].volumeMounts[7].mountPath: required");
}

static void mount_modes_need_their_conditions(void **state)
{
    (void)state;
    pod_is_bad(
        "volumeMounts:\n- {name: v, mountPath: /a, mountPropagation: Bidirectional}\n"
        "- {name: v, mountPath: /b, mountPropagation: Both}\n"
        "- {name: v, mountPath: /c, recursiveReadOnly: Enabled}\n"
        "- {name: v, mountPath: /d, recursiveReadOnly: IfPossible, readOnly: true, mountPropagation: "
        "HostToContainer}\n- {name: v, mountPath: /e, recursiveReadOnly: Yes!}",
        "volumes: [{name: v}]",
        "spec.containers[0].volumeMounts[0].mountPropagation: Bidirectional is only allowed for privileged "
        "containers",
        "spec.containers[0].volumeMounts[1].mountPropagation: \"Both\" is not supported, allowed are None, "
        "HostToContainer and Bidirectional",
        "spec.containers[0].volumeMounts[2].recursiveReadOnly: Enabled needs readOnly to be true",
        "spec.containers[0].volumeMounts[3].recursiveReadOnly: IfPossible cannot be combined with "
        "mountPropagation "
        "HostToContainer",
        "spec.containers[0].volumeMounts[4].recursiveReadOnly: \"Yes!\" is not supported, allowed are "
        "Disabled, "
        "IfPossible and Enabled");
    pod_is_good(
        "securityContext: {privileged: true}\nvolumeMounts:\n"
        "- {name: v, mountPath: rel, mountPropagation: Bidirectional}\n"
        "- {name: v, mountPath: /c, recursiveReadOnly: Enabled, readOnly: true, mountPropagation: None}",
        "volumes: [{name: v}]");
    pod_is_bad(
        "securityContext: {privileged: true}\n"
        "volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]",
        "volumes: [{name: v}]\nhostUsers: false",
        "spec.containers[0].volumeMounts[0].mountPropagation: Bidirectional has no effect when hostUsers is "
        "false: mounts made in a user namespace do not show outside of it");
    pod_is_good("volumeMounts: [{name: v, mountPath: /a, mountPropagation: HostToContainer}]",
                "volumes: [{name: v}]\nhostUsers: false");
}

static void block_devices_are_of_claims(void **state)
{
    (void)state;
    pod_is_bad("volumeDevices: [{name: v, devicePath: /a}]\nvolumeMounts: [{name: v, mountPath: /a}]",
               "volumes: [{name: v}]",
               "spec.containers[0].volumeDevices[0].name: can only use volume source type of "
               "PersistentVolumeClaim or Ephemeral for block mode",
               "spec.containers[0].volumeMounts[0].name: \"v\" is used in volumeDevices, too",
               "spec.containers[0].volumeMounts[0].mountPath: \"/a\" is used in volumeDevices, too");
    pod_is_bad(
        "volumeDevices: [{name: v, devicePath: /a}, {name: v, devicePath: /a}, {name: w, devicePath: /c}]",
        "volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]",
        "spec.containers[0].volumeDevices[1].devicePath: \"/a\" is given twice in this container",
        "spec.containers[0].volumeDevices[1].name: \"v\" is given twice in this container",
        "spec.containers[0].volumeDevices[2].name: there is no volume \"w\" in this pod");
}

static void probes_are_checked_although_not_acted_on(void **state)
{
    (void)state;
    pod_is_bad(
        "livenessProbe: {}\nreadinessProbe: {exec: {}, terminationGracePeriodSeconds: 5}\n"
        "startupProbe: {tcpSocket: {port: http_x}, successThreshold: 2, periodSeconds: -1}",
        "", "spec.containers[0].livenessProbe: one of exec, httpGet, tcpSocket and grpc is required",
        "spec.containers[0].readinessProbe.exec.command: required",
        "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: not allowed for readiness probes",
        "spec.containers[0].startupProbe.tcpSocket.port: \"http_x\" must be 1 to 15 characters of a-z, 0-9 "
        "and "
        "'-', with a letter, without \"--\", not beginning or ending with '-'",
        "spec.containers[0].startupProbe.periodSeconds: -1 is out of range, allowed are 1 to 2147483647",
        "spec.containers[0].startupProbe.successThreshold: 2 is not allowed, it must be 1");
    pod_is_bad(
        "livenessProbe: {httpGet: {port: 0, scheme: http, httpHeaders: [{name: 'a b'}]}, exec: {command: "
        "[a]}, "
        "terminationGracePeriodSeconds: 0}\nreadinessProbe: {grpc: {port: a}}",
        "", "spec.containers[0].livenessProbe: only one of exec, httpGet, tcpSocket and grpc is allowed",
        "spec.containers[0].livenessProbe.httpGet.port: 0 is out of range, allowed are 1 to 65535",
        "spec.containers[0].livenessProbe.httpGet.scheme: \"http\" is not supported, allowed are HTTP and "
        "HTTPS",
        "spec.containers[0].livenessProbe.httpGet.httpHeaders[0].name: \"a b\" must be an HTTP header name: "
        "letters, digits and '-'",
        "spec.containers[0].livenessProbe.terminationGracePeriodSeconds: 0 is out of range, allowed are 1 to "
        "9223372036854775807",
        "spec.containers[0].readinessProbe.grpc.port: expected a whole number, got a string");
}

static void probes_get_defaults(void **state)
{
    const struct api_pod *pod;
    struct decoded d;

    (void)state;
    decode_pod(
        &d,
        "livenessProbe: {httpGet: {port: web, httpHeaders: [{name: A, value: b}]}, timeoutSeconds: 0}\n"
        "startupProbe: {grpc: {port: 5}}",
        "");
    pod = the_pod(&d);
    assert_int_equal(pod->spec.containers[0].liveness->handler.kind, API_HANDLER_HTTP);
    assert_string_equal(pod->spec.containers[0].liveness->handler.port, "web");
    assert_string_equal(pod->spec.containers[0].liveness->handler.path, "/");
    assert_string_equal(pod->spec.containers[0].liveness->handler.headers[0].value, "b");
    assert_int_equal(pod->spec.containers[0].liveness->timeout_seconds, 1);
    assert_int_equal(pod->spec.containers[0].liveness->failure_threshold, 3);
    assert_int_equal(pod->spec.containers[0].startup->handler.kind, API_HANDLER_GRPC);
    assert_string_equal(pod->spec.containers[0].startup->handler.port, "5");
    assert_string_equal(pod->spec.containers[0].startup->handler.grpc_service, "");
    assert_null(pod->spec.containers[0].readiness);
    assert_int_equal(pod->ignored.n, 0);
    decoded_done(&d);
}

static void hooks_are_checked(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad(
        "lifecycle: {postStart: {}, preStop: {sleep: {seconds: 31}}, stopSignal: SIGTERM}", "",
        "spec.containers[0].lifecycle.postStart: one of exec, httpGet, tcpSocket and sleep is required",
        "spec.containers[0].lifecycle.preStop.sleep: 31 is out of range, allowed are 0 to "
        "terminationGracePeriodSeconds (30)",
        "spec.containers[0].lifecycle.stopSignal: needs spec.os.name to be set");
    pod_is_bad("lifecycle: {stopSignal: TERM}", "os: {name: linux}",
               "spec.containers[0].lifecycle.stopSignal: \"TERM\" is not supported, allowed are names such "
               "as SIGABRT, "
               "SIGALRM and SIGBUS");
    decode_pod(&d, "lifecycle: {preStop: {exec: {command: [a, b]}}, stopSignal: SIGUSR1}",
               "os: {name: linux}");
    assert_string_equal(the_pod(&d)->spec.containers[0].stop_signal, "SIGUSR1");
    assert_int_equal(the_pod(&d)->spec.containers[0].pre_stop->command.n, 2);
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    decoded_done(&d);
}

static void plain_init_containers_have_no_probes_and_sidecars_may(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad(
        "",
        "initContainers:\n- name: i\n  image: x\n  lifecycle: {preStop: {sleep: {seconds: 1}}}\n"
        "  livenessProbe: {exec: {command: [a]}}\n  readinessProbe: {exec: {command: [a]}}\n"
        "  startupProbe: {exec: {command: [a]}}",
        "spec.initContainers[0].lifecycle: not allowed for init containers without restartPolicy Always",
        "spec.initContainers[0].livenessProbe: not allowed for init containers without restartPolicy Always",
        "spec.initContainers[0].readinessProbe: not allowed for init containers without restartPolicy Always",
        "spec.initContainers[0].startupProbe: not allowed for init containers without restartPolicy Always");
    decode_pod(&d, "",
               "initContainers:\n- name: i\n  image: x\n  restartPolicy: Always\n"
               "  livenessProbe: {exec: {command: [a]}}\n- {name: j, image: x, restartPolicy: Never}");
    assert_int_equal(the_pod(&d)->spec.init_containers[0].restart_policy, API_RESTART_ALWAYS);
    assert_int_equal(the_pod(&d)->spec.init_containers[1].restart_policy, API_RESTART_NEVER);
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    decoded_done(&d);
}

static void restart_rules_and_resize_policies_are_checked(void **state)
{
    (void)state;
    pod_is_bad(
        "restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}, {action: Stop, "
        "exitCodes: "
        "{operator: Is}}]\nresizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}, "
        "{resourceName: cpu, "
        "restartPolicy: NotRequired}, {resourceName: gpu}]",
        "restartPolicy: Never",
        "spec.containers[0].restartPolicyRules: need the container's restartPolicy to be set",
        "spec.containers[0].restartPolicyRules[1].action: \"Stop\" is not supported, allowed are Restart and "
        "RestartAllContainers",
        "spec.containers[0].restartPolicyRules[1].exitCodes.operator: \"Is\" is not supported, allowed are "
        "In and "
        "NotIn",
        "spec.containers[0].restartPolicyRules[1].exitCodes.values: required",
        "spec.containers[0].resizePolicy[0].restartPolicy: must be NotRequired when the pod's restartPolicy "
        "is "
        "Never",
        "spec.containers[0].resizePolicy[1].resourceName: \"cpu\" is given twice",
        "spec.containers[0].resizePolicy[2].resourceName: \"gpu\" is not supported, allowed are cpu and "
        "memory",
        "spec.containers[0].resizePolicy[2].restartPolicy: required");
}

static void the_pull_policy_follows_the_tag(void **state)
{
    static const struct {
        const char *image;
        enum api_pull_policy policy;
    } images[] = { { "a", API_PULL_ALWAYS },
                   { "a:latest", API_PULL_ALWAYS },
                   { "a:1", API_PULL_IF_NOT_PRESENT },
                   { "host:5000/a", API_PULL_ALWAYS },
                   { "host:5000/a:1", API_PULL_IF_NOT_PRESENT },
                   { "a@sha256:00", API_PULL_IF_NOT_PRESENT },
                   { "a:latest@sha256:00", API_PULL_ALWAYS },
                   { "h:5000/a:1@sha256:00", API_PULL_IF_NOT_PRESENT } };
    char text[200];
    struct decoded d;

    (void)state;
    for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++) {
        snprintf(text, sizeof(text), "initContainers: [{name: i, image: '%s'}]", images[i].image);
        decode_pod(&d, "", text);
        if (the_pod(&d)->spec.init_containers[0].pull_policy != images[i].policy)
            fail_msg("%s", images[i].image);
        decoded_done(&d);
    }
    decode_pod(&d, "imagePullPolicy: Never", "");
    assert_int_equal(the_pod(&d)->spec.containers[0].pull_policy, API_PULL_NEVER);
    decoded_done(&d);
}

static void commands_and_messages_reach_the_structs(void **state)
{
    const struct api_container *c;
    struct decoded d;

    (void)state;
    decode_pod(
        &d,
        "command: [a]\nargs: []\nworkingDir: /w\nterminationMessagePolicy: FallbackToLogsOnError\ntty: true",
        "");
    c = &the_pod(&d)->spec.containers[0];
    assert_int_equal(c->command.n, 1);
    assert_int_equal(c->args.n, 0);
    assert_string_equal(c->working_dir, "/w");
    assert_true(c->message_fallback_to_logs);
    assert_string_equal(c->termination_message_path, "/dev/termination-log");
    assert_true(c->tty && !c->stdin_open);
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    decoded_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique_over_both_lists),
        cmocka_unit_test(ports_are_checked),
        cmocka_unit_test(host_ports_must_not_clash_among_containers_that_run_together),
        cmocka_unit_test(host_network_needs_equal_ports),
        cmocka_unit_test(environment_sources_exclude_each_other),
        cmocka_unit_test(environment_reaches_the_structs),
        cmocka_unit_test(downward_references_name_known_fields),
        cmocka_unit_test(mounts_name_volumes_and_do_not_overlap),
        cmocka_unit_test(mount_modes_need_their_conditions),
        cmocka_unit_test(block_devices_are_of_claims),
        cmocka_unit_test(probes_are_checked_although_not_acted_on),
        cmocka_unit_test(probes_get_defaults),
        cmocka_unit_test(hooks_are_checked),
        cmocka_unit_test(plain_init_containers_have_no_probes_and_sidecars_may),
        cmocka_unit_test(restart_rules_and_resize_policies_are_checked),
        cmocka_unit_test(the_pull_policy_follows_the_tag),
        cmocka_unit_test(commands_and_messages_reach_the_structs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
