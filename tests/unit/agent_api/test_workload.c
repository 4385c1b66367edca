/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#define DEPLOYMENT(spec, labels, pod)                                                                        \
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n"                                  \
    "  selector: {matchLabels: {app: web}}\n" spec "  template:\n    metadata: {labels: {" labels "}}\n"     \
    "    spec:\n      containers: [{name: c, image: busybox}]\n" pod

static const struct api_generic *the_generic(const struct decoded *d, enum api_kind kind)
{
    print_problems(d);
    assert_int_equal(d->problems.n, 0);
    assert_int_equal(d->objects.n, 1);
    assert_int_equal(d->objects.v[0].kind, kind);
    return d->objects.v[0].generic;
}

static void a_deployment_has_defaults_and_its_template(void **state)
{
    const struct api_workload *w;
    struct decoded d;

    (void)state;
    decode(&d, DEPLOYMENT("", "app: web", ""));
    w = the_generic(&d, API_KIND_DEPLOYMENT)->workload;
    assert_int_equal(w->replicas, 1);
    assert_int_equal(w->progress_deadline_seconds, 600);
    assert_int_equal(w->update, API_UPDATE_ROLLING);
    assert_string_equal(w->pods.pod->spec.containers[0].image, "busybox");
    assert_int_equal(strlen(w->pods.hash), API_HASH_SIZE - 1);
    decoded_done(&d);
}

static void the_hash_is_of_the_template_alone(void **state)
{
    struct decoded a, b, c;

    (void)state;
    decode(&a, DEPLOYMENT("", "app: web", ""));
    decode(&b, DEPLOYMENT("  replicas: 3\n", "app: web", ""));
    decode(&c, DEPLOYMENT("", "app: web, x: y", ""));
    assert_string_equal(the_generic(&a, API_KIND_DEPLOYMENT)->workload->pods.hash,
                        the_generic(&b, API_KIND_DEPLOYMENT)->workload->pods.hash);
    assert_string_not_equal(the_generic(&a, API_KIND_DEPLOYMENT)->workload->pods.hash,
                            the_generic(&c, API_KIND_DEPLOYMENT)->workload->pods.hash);
    decoded_done(&a);
    decoded_done(&b);
    decoded_done(&c);
}

static void problems_of_the_template_have_their_place(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d, DEPLOYMENT("", "app: web", "      hostnam: x\n"));
    expect_problems(&d, "spec.template.spec.hostnam: unknown field, did you mean hostname?");
    assert_int_equal(d.problems.v[0].place.line, 10);
    decoded_done(&d);
}

static void rules_of_a_deployment(void **state)
{
    (void)state;
    text_is_bad(DEPLOYMENT("", "app: other", ""),
                "spec.template.metadata.labels: the labels do not match the selector");
    text_is_bad(DEPLOYMENT("", "app: web", "      restartPolicy: Never\n"),
                "spec.template.spec.restartPolicy: must be Always: a Deployment keeps its pods running");
    text_is_bad(DEPLOYMENT("  replicas: -1\n", "app: web", ""),
                "spec.replicas: -1 is out of range, allowed are 0 to 2147483647");
    text_is_bad(
        DEPLOYMENT("  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: \"0%\"}}\n", "app: web", ""),
        "spec.strategy.rollingUpdate.maxUnavailable: may not be 0 when maxSurge is 0");
    text_is_bad(DEPLOYMENT("  strategy: {rollingUpdate: {maxSurge: lots}}\n", "app: web", ""),
                "spec.strategy.rollingUpdate.maxSurge: \"lots\" must be a number, or a percentage such as "
                "\"25%\"");
    text_is_bad("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: 1}\n",
                "spec.selector: required", "spec.template.spec.containers: required",
                "spec.template.metadata.labels: the labels do not match the selector");
}

static void a_pod_of_a_workload_keeps_its_owner(void **state)
{
    struct api_kv labels[] = { { (char[]){ "pod-template-hash" }, (char[]){ "abc" } } };
    struct api_expansion x = { .namespace_ = "default",
                               .name = "web-abc-0",
                               .labels = labels,
                               .n_labels = 1,
                               .owner_api_version = "apps/v1",
                               .owner_kind = "Deployment",
                               .owner_name = "web",
                               .owner_uid = "11111111-2222-8333-8444-555555555555" };
    struct api_problems problems = { 0 };
    struct api_pod *pod = NULL, *again = NULL;
    struct decoded d;
    struct err e = { 0 };
    json_t *record;

    (void)state;
    decode(&d, DEPLOYMENT("", "app: web", ""));
    assert_int_equal(api_expand_pod(the_generic(&d, API_KIND_DEPLOYMENT)->workload->pods.pod, &x, &pod, &e),
                     ERR_OK);
    assert_string_equal(pod->meta.name, "web-abc-0");
    assert_string_equal(api_kvs_get(&pod->meta.labels, "pod-template-hash"), "abc");
    assert_string_equal(api_kvs_get(&pod->meta.labels, "app"), "web");
    assert_string_equal(pod->owner_uid, x.owner_uid);

    record = json_loads(pod->json, 0, NULL); /* as after a restart of the agent */
    assert_int_equal(api_decode_pod(record, &again, &problems, &e), ERR_OK);
    assert_string_equal(again->owner_uid, x.owner_uid);
    assert_string_equal(again->json, pod->json);
    json_decref(record);
    api_pod_unref(pod);
    api_pod_unref(again);
    api_problems_done(&problems);
    decoded_done(&d);
}

static void kinds_for_a_control_plane_are_kept_whole(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d, "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {clusterIP: None, x: 1}\n");
    assert_string_equal(the_generic(&d, API_KIND_SERVICE)->json,
                        "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"web\","
                        "\"namespace\":\"default\"},\"spec\":{\"clusterIP\":\"None\",\"x\":1}}");
    decoded_done(&d);
    text_is_bad(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x, namespace: y}\n"
        "rule: []\n",
        "metadata.namespace: not supported: objects of this kind have no namespace",
        "rule: unknown field, did you mean rules?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deployment_has_defaults_and_its_template),
        cmocka_unit_test(the_hash_is_of_the_template_alone),
        cmocka_unit_test(problems_of_the_template_have_their_place),
        cmocka_unit_test(rules_of_a_deployment),
        cmocka_unit_test(a_pod_of_a_workload_keeps_its_owner),
        cmocka_unit_test(kinds_for_a_control_plane_are_kept_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
