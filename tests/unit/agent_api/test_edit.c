/* SPDX-License-Identifier: Apache-2.0 */
/* Which edits of a manifest need a new pod. */
#include "helper.h"

/* `wanted` NULL: can be applied in place. */
static void edit(const char *container_a, const char *spec_a, const char *container_b, const char *spec_b,
                 const char *wanted)
{
    struct decoded a, b;
    char why[300];

    decode_pod(&a, container_a, spec_a);
    decode_pod(&b, container_b, spec_b);
    if (api_pod_edit_needs_restart(the_pod(&a), the_pod(&b), why, sizeof(why)) != (wanted != NULL))
        fail_msg("%s -> %s, %s -> %s: %s", container_a, container_b, spec_a, spec_b, why);
    assert_string_equal(why, wanted != NULL ? wanted : "");
    decoded_done(&a);
    decoded_done(&b);
}

static void nothing_changed_needs_nothing(void **state)
{
    (void)state;
    edit("tty: false", "hostNetwork: false\nvolumes: []", "resources: {}", "restartPolicy: Always", NULL);
}

static void the_mutable_fields_change_in_place(void **state)
{
    (void)state;
    edit("", "initContainers: [{name: i, image: a:1}]", "", "initContainers: [{name: i, image: a:2}]", NULL);
    edit("", "initContainers: [{name: i, image: a:1}]", "", "initContainers: [{name: i, image: a:latest}]",
         NULL);
    edit("", "- {name: b, image: a:1}", "", "- {name: b, image: a:2}", NULL);
    edit("", "", "", "activeDeadlineSeconds: 60", NULL);
    edit("", "activeDeadlineSeconds: 60", "", "activeDeadlineSeconds: 50", NULL);
    edit("", "terminationGracePeriodSeconds: -1", "", "terminationGracePeriodSeconds: 1", NULL);
    edit("", "tolerations: [{key: a, operator: Exists, effect: NoExecute}]", "",
         "tolerations: [{operator: Exists}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: "
         "5}]",
         NULL);
    edit("resources: {requests: {cpu: 1}}", "", "resources: {requests: {cpu: 2, memory: 1Gi}}", "", NULL);
    edit("", "resources: {limits: {cpu: 1}}", "", "resources: {limits: {cpu: 2}}", NULL);
}

static void everything_else_needs_a_new_pod(void **state)
{
    (void)state;
    edit("", "", "command: [a]\nenv: [{name: A}]", "hostNetwork: true",
         "spec.containers[0].command, spec.containers[0].env, spec.hostNetwork");
    edit("", "", "", "- {name: b, image: x}", "spec.containers");
    edit("imagePullPolicy: Never", "", "", "", "spec.containers[0].imagePullPolicy");
    edit("", "activeDeadlineSeconds: 60", "", "activeDeadlineSeconds: 61", "spec.activeDeadlineSeconds");
    edit("", "activeDeadlineSeconds: 60", "", "", "spec.activeDeadlineSeconds");
    edit("", "", "", "terminationGracePeriodSeconds: 5", "spec.terminationGracePeriodSeconds");
    edit("", "tolerations: [{operator: Exists}]", "", "", "spec.tolerations");
    edit("resources: {limits: {ephemeral-storage: 1}}", "", "", "", "spec.containers[0].resources");
    edit("", "", "resources: {requests: {cpu: 1}}", "",
         "resources that change the QoS class from BestEffort to Burstable");
    edit("", "volumes: [{name: a}]", "", "volumes: [{name: a, emptyDir: {medium: Memory}}]", "spec.volumes");
}

static void labels_change_in_place_and_identity_does_not(void **state)
{
    struct decoded a, b;
    char why[100];

    (void)state;
#define POD(meta) "apiVersion: v1\nkind: Pod\nmetadata: " meta "\nspec: {containers: [{name: c, image: x}]}\n"
    decode(&a, POD("{name: a, labels: {x: y}, annotations: {a: b}}"));
    decode(&b, POD("{name: a, labels: {x: z}}"));
    assert_false(api_pod_edit_needs_restart(the_pod(&a), the_pod(&b), why, sizeof(why)));
    decoded_done(&b);
    decode(&b, POD("{name: b, namespace: c, uid: d}"));
    assert_true(api_pod_edit_needs_restart(the_pod(&a), the_pod(&b), why, sizeof(why)));
    assert_string_equal(why, "metadata.name, metadata.namespace, metadata.uid");
    decoded_done(&b);
    decoded_done(&a);
}

static void a_profile_by_annotation_needs_a_new_pod_as_by_field(void **state)
{
#define AS(profile)                                                                                          \
    POD("{name: a, annotations: {container.apparmor.security.beta.kubernetes.io/c: " profile "}}")
    struct decoded a, b;
    char why[200];

    (void)state;
    decode(&a, AS("unconfined"));
    decode(&b, AS("localhost/strict"));
    assert_true(api_pod_edit_needs_restart(the_pod(&a), the_pod(&b), why, sizeof(why)));
    assert_string_equal(why, "metadata.annotations: a container's AppArmor profile");
    decoded_done(&b);
    decode(&b, POD("{name: a}"));
    assert_true(api_pod_edit_needs_restart(the_pod(&a), the_pod(&b), why, sizeof(why)));
    assert_false(api_pod_edit_needs_restart(the_pod(&a), the_pod(&a), why, sizeof(why)));
    decoded_done(&a);
    decoded_done(&b);
}

#undef AS
#undef POD

static void a_long_list_is_cut_at_the_end(void **state)
{
    struct decoded a, b;
    char why[40];

    (void)state;
    decode_pod(&a, "", "");
    decode_pod(&b, "command: [a]\nargs: [b]\nworkingDir: /", "");
    assert_true(api_pod_edit_needs_restart(the_pod(&a), the_pod(&b), why, sizeof(why)));
    assert_int_equal(strlen(why), sizeof(why) - 1);
    assert_true(str_ends(why, "..."));
    assert_true(api_pod_edit_needs_restart(the_pod(&a), the_pod(&b), why, 0));
    decoded_done(&a);
    decoded_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changed_needs_nothing),
        cmocka_unit_test(the_mutable_fields_change_in_place),
        cmocka_unit_test(everything_else_needs_a_new_pod),
        cmocka_unit_test(labels_change_in_place_and_identity_does_not),
        cmocka_unit_test(a_profile_by_annotation_needs_a_new_pod_as_by_field),
        cmocka_unit_test(a_long_list_is_cut_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
