/* SPDX-License-Identifier: Apache-2.0 */
/* What pods refer to, and service account tokens. */
#include "tests/unit/agent_kube_sync/script_kube.h"

#include "agent/kube/sync/objects.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
#define NEED(what, kind)                                                                                     \
    "{\"type\":\"" what "\",\"kind\":\"" kind "\",\"namespace\":\"default\",\"name\":\"cfg\"}"
#define GONE "{\"type\":\"gone\",\"kind\":\"ConfigMap\",\"namespace\":\"default\",\"name\":\"cfg\"}"

static int joined(void **state)
{
    if (kube_begin(state) != 0)
        return -1;
    tell("{\"type\":\"config\",\"nodeName\":\"peer\"}");
    tell("{\"type\":\"credentials\"}");
    return 0;
}

static void an_object_is_followed_from_the_first_need_to_the_last_drop(void **state)
{
    struct kube_reflector *r;

    (void)state;
    tell(NEED("need", "ConfigMap"));
    tell(NEED("need", "ConfigMap"));
    r = watch_of(MAPS, "metadata.name=cfg");
    assert_non_null(r);
    watch_put(r, "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"cfg\",\"managedFields\":[]},\"data\":{"
                 "\"a\":\"1\"}}");
    assert_told("{\"type\":\"put\",\"object\":{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"cfg\"},"
                "\"data\":{\"a\":\"1\"}}}");
    watch_synced(r);
    assert_null(told("gone"));
    r->o.on_gone("default", "cfg", "u1", r->o.arg);
    assert_told("{\"type\":\"gone\",\"kind\":\"ConfigMap\",\"namespace\":\"default\",\"name\":\"cfg\","
                "\"uid\":\"u1\"}");
    tell(NEED("drop", "ConfigMap"));
    assert_non_null(watch_of(MAPS, NULL));
    tell(NEED("drop", "ConfigMap"));
    assert_null(watch_of(MAPS, NULL));
}

static void that_an_object_is_missing_is_told_when_it_is_proven(void **state)
{
    (void)state;
    tell(NEED("need", "ConfigMap"));
    assert_null(told("gone"));
    watch_synced(watch_of(MAPS, NULL));
    assert_told(GONE);
}

static void a_refusal_is_told_once(void **state)
{
    struct kube_reflector *r;
    struct err why = { 0 };

    (void)state;
    err_set(&why, ERR_PERMISSION, "no relationship found");
    tell(NEED("need", "Secret"));
    r = watch_of("/api/v1/namespaces/default/secrets", NULL);
    r->o.on_trouble(&why, 403, r->o.arg);
    assert_told("{\"type\":\"denied\",\"kind\":\"Secret\",\"namespace\":\"default\",\"name\":\"cfg\","
                "\"code\":403,\"message\":"
                "\"no relationship found\"}");
    r->o.on_trouble(&why, 403, r->o.arg);
    assert_null(told("denied"));
    r->o.on_trouble(NULL, 0, r->o.arg);
    r->o.on_trouble(&why, 403, r->o.arg);
    json_decref(told("denied"));
}

#define BUNDLES "/apis/certificates.k8s.io/v1beta1/clustertrustbundles"
#define LATER "/apis/certificates.k8s.io/v1/clustertrustbundles"
#define OF_SIGNER(what) "{\"type\":\"" what "\",\"kind\":\"ClusterTrustBundle\",\"signer\":\"a.b/c,d\"}"

static void bundles_are_chosen_by_name_or_signer(void **state)
{
    struct kube_reflector *r;

    (void)state;
    tell(OF_SIGNER("need"));
    tell("{\"type\":\"need\",\"kind\":\"ClusterTrustBundle\",\"name\":\"a.b:c:one\"}");
    assert_non_null(watch_of(BUNDLES, "metadata.name=a.b:c:one"));
    r = watch_of(BUNDLES, "spec.signerName=a.b/c\\,d");
    assert_non_null(r);
    watch_synced(r);
    assert_told("{\"type\":\"synced\",\"kind\":\"ClusterTrustBundle\",\"signer\":\"a.b/c,d\",\"code\":0,"
                "\"message\":\"\"}");
    tell(OF_SIGNER("drop"));
    assert_null(watch_of(BUNDLES, "spec.signerName=a.b/c\\,d"));
}

static void bundles_are_looked_for_in_a_later_version(void **state)
{
    struct err why = { 0 };
    struct kube_reflector *r;

    (void)state;
    err_set(&why, ERR_NOT_FOUND, "the server could not find the requested resource");
    tell(OF_SIGNER("need"));
    r = watch_of(BUNDLES, NULL);
    r->o.on_trouble(&why, 404, r->o.arg);
    assert_null(watch_of(BUNDLES, NULL));
    r = watch_of(LATER, "spec.signerName=a.b/c\\,d");
    assert_non_null(r);
    assert_null(told("denied"));
    r->o.on_trouble(&why, 404, r->o.arg);
    r = watch_of(BUNDLES, NULL);
    assert_null(told("denied"));
    r->o.on_trouble(&why, 404, r->o.arg);
    assert_told("{\"type\":\"denied\",\"kind\":\"ClusterTrustBundle\",\"signer\":\"a.b/c,d\",\"code\":404,"
                "\"message\":\"the server could not find the requested resource\"}");
}

static void what_a_node_may_not_read_is_not_asked_for(void **state)
{
    (void)state;
    tell("{\"type\":\"need\",\"kind\":\"PriorityClass\",\"name\":\"high\"}");
    assert_told("{\"type\":\"denied\",\"kind\":\"PriorityClass\",\"name\":\"high\",\"code\":403,\"message\":"
                "\"a node may not read objects of this kind\"}");
    expect_none();
}

static void a_claim_is_read_and_asked_for_again_while_it_is_missing(void **state)
{
    const char *path = "/api/v1/namespaces/default/persistentvolumeclaims/cfg";

    (void)state;
    tell(NEED("need", "PersistentVolumeClaim"));
    answer(expect("GET", path), 404, "not found");
    json_decref(told("gone"));
    pass_ms(801);
    answer(expect("GET", path), 200, "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"cfg\"}}");
    json_decref(told("put"));
    pass_ms(60000);
    expect_none();
    tell(NEED("need", "PersistentVolumeClaim"));
    expect("GET", path);
    tell(NEED("drop", "PersistentVolumeClaim"));
    tell(NEED("drop", "PersistentVolumeClaim")); /* while it is asked for */
}

static void an_attachment_is_read_when_it_is_asked_for(void **state)
{
    const char *path = "/apis/storage.k8s.io/v1/volumeattachments/csi-1";

    (void)state;
    tell("{\"type\":\"look\",\"kind\":\"VolumeAttachment\",\"name\":\"csi-1\"}");
    expect_none();
    tell("{\"type\":\"need\",\"kind\":\"VolumeAttachment\",\"name\":\"csi-1\"}");
    tell("{\"type\":\"look\",\"kind\":\"VolumeAttachment\",\"name\":\"csi-1\"}");
    answer(expect("GET", path), 200, "{\"metadata\":{\"name\":\"csi-1\"}}");
    assert_told("{\"type\":\"put\",\"object\":{\"kind\":\"VolumeAttachment\",\"metadata\":{\"name\":"
                "\"csi-1\"}}}");
    expect_none();
    tell("{\"type\":\"look\",\"kind\":\"VolumeAttachment\",\"name\":\"csi-1\"}");
    answer(expect("GET", path), 403, "no relationship found");
    json_decref(told("denied"));
    pass_ms(801);
    expect("GET", path);
    tell("{\"type\":\"drop\",\"kind\":\"VolumeAttachment\",\"name\":\"csi-1\"}");
}

static void there_is_an_end_to_what_pods_may_need(void **state)
{
    char text[200];

    (void)state;
    for (int i = 0; i <= OBJECTS_MAX; i++) {
        snprintf(text, sizeof(text),
                 "{\"type\":\"need\",\"kind\":\"Secret\",\"namespace\":\"a\",\"name\":\"s%d\"}", i);
        json_t *m = json_of(text);
        kube_sync_message(kube.sync, "need", m);
        json_decref(m);
    }
    assert_told("{\"type\":\"denied\",\"kind\":\"Secret\",\"namespace\":\"a\",\"name\":\"s2048\",\"code\":"
                "429,\"message\":"
                "\"pods of this node refer to too many objects\"}");
}

static void names_are_escaped(void **state)
{
    str_auto path = object_path(object_kind_of("Secret"), "a/../b", "x?y");

    (void)state;
    assert_string_equal(path, "/api/v1/namespaces/a%2F..%2Fb/secrets/x%3Fy");
}

/* ---- tokens ---- */

#define TOKEN                                                                                                \
    "{\"type\":\"token\",\"id\":7,\"namespace\":\"default\",\"serviceAccount\":\"sa\",\"request\":{"         \
    "\"audiences\":[\"a\"],"                                                                                 \
    "\"expirationSeconds\":3600,\"boundObjectRef\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"name\":"        \
    "\"app\",\"uid\":\"u11\"}}}"

static void a_token_is_requested_and_answered(void **state)
{
    struct asked *a;

    (void)state;
    tell(TOKEN);
    a = expect("POST", "/api/v1/namespaces/default/serviceaccounts/sa/token");
    assert_json(
        a->body,
        "{\"kind\":\"TokenRequest\",\"apiVersion\":\"authentication.k8s.io/v1\",\"metadata\":{},\"spec\":"
        "{\"audiences\":[\"a\"],\"expirationSeconds\":3600,\"boundObjectRef\":{\"kind\":\"Pod\","
        "\"apiVersion\":"
        "\"v1\",\"name\":\"app\",\"uid\":\"u11\"}}}");
    answer(a, 201, "{\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"x\"}}");
    assert_told("{\"type\":\"answer\",\"id\":7,\"object\":{\"status\":{\"token\":\"t\","
                "\"expirationTimestamp\":\"x\"}}}");
    tell(TOKEN);
    answer(TAILQ_FIRST(&kube.asked), 403, "unbound");
    assert_told("{\"type\":\"answer\",\"id\":7,\"code\":403,\"message\":\"unbound\"}");
    tell(TOKEN);
    no_answer(TAILQ_FIRST(&kube.asked));
    assert_told("{\"type\":\"answer\",\"id\":7,\"code\":0,\"message\":\"connection refused\"}");
    tell(TOKEN); /* it is under way when the process ends */
}

static void people_are_told_what_cannot_be_done(void **state)
{
    struct err why = { 0 };
    struct kube_reflector *r = watch_of("/api/v1/nodes", NULL);

    (void)state;
    err_set(&why, ERR_UNAVAILABLE, "connection refused");
    r->o.on_trouble(&why, 0, r->o.arg);
    tell(TOKEN);
    answer(TAILQ_FIRST(&kube.asked), 201, "{}");
    pass_ms(1001);
    assert_told("{\"type\":\"parts\",\"requests\":1,\"verbs\":{\"POST\":1},\"answers\":{},"
                "\"certificates\":{},\"parts\":{\"watch of the node\":{\"since\":"
                "\"2027-01-15T08:00:00Z\",\"error\":\"connection refused\"}}}");
    r->o.on_trouble(NULL, 0, r->o.arg);
    pass_ms(1001);
    assert_told("{\"type\":\"parts\",\"requests\":1,\"verbs\":{\"POST\":1},\"answers\":{},"
                "\"certificates\":{},\"parts\":{}}");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, joined, kube_end)
    const struct CMUnitTest tests[] = {
        T(an_object_is_followed_from_the_first_need_to_the_last_drop),
        T(that_an_object_is_missing_is_told_when_it_is_proven),
        T(a_refusal_is_told_once),
        T(bundles_are_chosen_by_name_or_signer),
        T(bundles_are_looked_for_in_a_later_version),
        T(what_a_node_may_not_read_is_not_asked_for),
        T(a_claim_is_read_and_asked_for_again_while_it_is_missing),
        T(an_attachment_is_read_when_it_is_asked_for),
        T(there_is_an_end_to_what_pods_may_need),
        cmocka_unit_test(names_are_escaped),
        T(a_token_is_requested_and_answered),
        T(people_are_told_what_cannot_be_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
