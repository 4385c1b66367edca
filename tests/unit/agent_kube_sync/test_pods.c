/* SPDX-License-Identifier: Apache-2.0 */
/* Pods: their way to the daemon, their status, deletion, mirror pods; shapes as recorded of a kubelet
 * of 1.36. */
#include "tests/unit/agent_kube_sync/script_kube.h"

#include "agent/kube/decide/mirror.h"
#include "agent/kube/decide/pod_decide.h"
#include "agent/kube/decide/pod_merge.h"

#define STATUS "/api/v1/namespaces/default/pods/app/status"
#define LEASE "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
#define T0 "\"lastTransitionTime\":\"2027-01-15T08:00:00Z\""
#define POD(version, meta, status)                                                                           \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"app\",\"namespace\":\"default\","      \
    "\"uid\":"                                                                                               \
    "\"u11\",\"resourceVersion\":\"" version "\"" meta                                                       \
    "},\"spec\":{\"nodeName\":\"peer\"},\"status\":{" status "}}"
#define OURS(ended, status)                                                                                  \
    "{\"type\":\"pod\",\"static\":false,\"ended\":" ended                                                    \
    ",\"object\":{\"metadata\":{\"name\":\"app\",\"namespace\":"                                             \
    "\"default\",\"uid\":\"u11\"},\"status\":{" status "}}}"
#define STATIC(image)                                                                                        \
    "{\"type\":\"pod\",\"static\":true,\"ended\":false,\"object\":{\"metadata\":{\"name\":\"web\","          \
    "\"namespace\":\"default\","                                                                             \
    "\"uid\":\"s1\",\"labels\":{\"s\":\"t\"},\"annotations\":{\"kubernetes.io/"                              \
    "config.hash\":\"s1\",\"mine\":\"yes\"}},\"spec\":"                                                      \
    "{\"containers\":[{\"name\":\"main\",\"image\":\"" image "\"}]},\"status\":{\"phase\":\"Running\"}}}"
#define MIRROR(version, uid, more)                                                                           \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-peer\",\"namespace\":\"default\",\"uid\":\"" uid         \
    "\",\"resourceVersion\":"                                                                                \
    "\"" version "\",\"annotations\":{\"kubernetes.io/config.mirror\":\"%s\"}" more                          \
    "},\"spec\":{},\"status\":{\"phase\":"                                                                   \
    "\"Pending\"}}"

static struct kube_reflector *pods(void)
{
    struct kube_reflector *r = watch_of("/api/v1/pods", "spec.nodeName=peer");

    assert_non_null(r);
    return r;
}

/* The Node exists and is as it was said; the Lease is there. */
static int joined(void **state)
{
    if (kube_begin(state) != 0)
        return -1;
    tell("{\"type\":\"config\",\"nodeName\":\"peer\"}");
    tell("{\"type\":\"credentials\"}");
    assert_null(watch_of("/api/v1/pods", NULL)); /* only once the Node was seen */
    watch_put(watch_of("/api/v1/nodes", NULL),
              "{\"kind\":\"Node\",\"metadata\":{\"name\":\"peer\",\"uid\":\"u8\","
              "\"resourceVersion\":\"1\"},\"status\":{}}");
    answer(expect("GET", LEASE "/peer?timeout=10s"), 404, NULL);
    answer(expect("POST", LEASE "?timeout=10s"), 201, NULL);
    expect_none();
    json_array_clear(kube.told);
    return 0;
}

/* ---- status ---- */

static void a_status_goes_as_a_patch_with_the_uid_and_without_a_get(void **state)
{
    struct asked *a;

    (void)state;
    watch_put(pods(), POD("10", "", "\"phase\":\"Pending\",\"qosClass\":\"BestEffort\""));
    watch_synced(pods());
    tell(OURS("false", "\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"," T0
                       "}],\"hostIP\":"
                       "\"10.0.0.1\",\"resources\":{}"));
    a = expect("PATCH", STATUS);
    assert_string_equal(a->content_type, JSON_PATCH_STRATEGIC);
    assert_json(a->body, "{\"metadata\":{\"uid\":\"u11\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
                         "\"status\":\"False\"," T0 ",\"lastProbeTime\":null}],\"hostIP\":\"10.0.0.1\"}}");
    /* What changes while it is under way goes along in one patch. */
    tell(OURS("false", "\"phase\":\"Pending\",\"hostIP\":\"10.0.0.1\",\"podIP\":\"10.1.0.2\""));
    tell(OURS(
        "false",
        "\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
        "\"lastTransitionTime\":\"2027-01-15T08:00:05Z\"}],\"hostIP\":\"10.0.0.1\",\"podIP\":\"10.1.0.2\""));
    answer(a, 200,
           POD("11", "",
               "\"phase\":\"Pending\",\"hostIP\":\"10.0.0.1\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
               "\"False\"," T0 ",\"lastProbeTime\":null}]"));
    a = expect("PATCH", STATUS);
    assert_json(
        a->body,
        "{\"metadata\":{\"uid\":\"u11\"},\"status\":{\"$setElementOrder/conditions\":[{\"type\":\"Ready\"}],"
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"2027-01-15T08:00:"
        "05Z\"}],"
        "\"phase\":\"Running\",\"podIP\":\"10.1.0.2\"}}");
    answer(
        a, 200,
        POD("12", "",
            "\"phase\":\"Running\",\"hostIP\":\"10.0.0.1\",\"podIP\":\"10.1.0.2\",\"conditions\":[{\"type\":"
            "\"Ready\","
            "\"status\":\"True\",\"lastTransitionTime\":\"2027-01-15T08:00:05Z\",\"lastProbeTime\":null}]"));
    expect_none();
    /* The watch brings back what the answers said: older, and the same. */
    watch_put(pods(), POD("11", "", "\"phase\":\"Pending\""));
    expect_none();
}

static void a_status_that_the_apiserver_lost_is_sent_again(void **state)
{
    (void)state;
    watch_put(pods(), POD("10", "", "\"phase\":\"Running\""));
    watch_synced(pods());
    tell(OURS("false", "\"phase\":\"Running\""));
    expect_none();
    watch_put(pods(), POD("11", "", "\"phase\":\"Pending\""));
    assert_json(expect("PATCH", STATUS)->body,
                "{\"metadata\":{\"uid\":\"u11\"},\"status\":{\"phase\":\"Running\"}}");
}

static void what_the_apiserver_does_not_keep_is_not_sent_for_ever(void **state)
{
    (void)state;
    watch_put(pods(), POD("10", "", "\"phase\":\"Running\""));
    tell(OURS("false", "\"phase\":\"Running\",\"observedGeneration\":3"));
    answer(expect("PATCH", STATUS), 200, POD("10", "", "\"phase\":\"Running\""));
    expect_none();
    watch_put(pods(), POD("11", "", "\"phase\":\"Running\""));
    answer(expect("PATCH", STATUS), 200, POD("11", "", "\"phase\":\"Running\""));
    expect_none();
}

static void a_status_waits_for_its_pod_and_one_of_another_uid_is_dropped(void **state)
{
    (void)state;
    tell(OURS("false", "\"phase\":\"Running\""));
    expect_none();
    watch_put(pods(),
              "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"app\",\"namespace\":\"default\",\"uid\":\"u99\","
              "\"resourceVersion\":\"9\"},\"status\":{}}");
    expect_none();
    pods()->o.on_gone("default", "app", "u99", pods()->o.arg);
    watch_put(pods(), POD("10", "", "\"phase\":\"Pending\""));
    expect("PATCH", STATUS);
}

static void a_pod_that_fails_waits_and_holds_up_no_other(void **state)
{
    (void)state;
    watch_put(pods(), POD("10", "", ""));
    watch_put(pods(),
              "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\",\"namespace\":\"default\",\"uid\":\"ub\","
              "\"resourceVersion\":\"9\"},\"status\":{}}");
    tell(OURS("false", "\"phase\":\"Running\""));
    tell("{\"type\":\"pod\",\"object\":{\"metadata\":{\"name\":\"b\",\"namespace\":\"default\",\"uid\":"
         "\"ub\"},\"status\":"
         "{\"phase\":\"Running\"}}}");
    answer(expect("PATCH", STATUS), 500, "etcd is away");
    answer(expect("PATCH", "/api/v1/namespaces/default/pods/b/status"), 422, "invalid");
    expect_none();
    pass_ms(1001);
    answer(expect("PATCH", STATUS), 200, POD("12", "", "\"phase\":\"Running\""));
    expect_none();
    pass_ms(9001);
    expect("PATCH", "/api/v1/namespaces/default/pods/b/status");
}

static void a_removed_pod_is_deleted_after_its_last_status(void **state)
{

    struct asked *a;

    (void)state;
    watch_put(pods(), POD("10", "", "\"phase\":\"Running\""));
    watch_put(pods(), POD("11", ",\"deletionTimestamp\":\"2027-01-15T08:00:30Z\"", "\"phase\":\"Running\""));
    /* It runs: its final phase is held back. */
    tell(OURS("false",
              "\"phase\":\"Failed\",\"reason\":\"Evicted\",\"containerStatuses\":[{\"name\":\"a\",\"state\":"
              "{\"running\":{\"startedAt\":\"x\"}}}]"));
    a = expect("PATCH", STATUS);
    assert_json(
        a->body,
        "{\"metadata\":{\"uid\":\"u11\"},\"status\":{\"containerStatuses\":[{\"name\":\"a\",\"state\":"
        "{\"running\":{\"startedAt\":\"x\"}}}]}}");
    answer(a, 200,
           POD("12", ",\"deletionTimestamp\":\"2027-01-15T08:00:30Z\"",
               "\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"a\",\"state\":{\"running\":{"
               "\"startedAt\":\"x\"}}}]"));
    expect_none();
    tell(OURS("true", "\"phase\":\"Succeeded\",\"containerStatuses\":[{\"name\":\"a\",\"state\":{"
                      "\"terminated\":{\"exitCode\":0}}}]"));
    a = expect("PATCH", STATUS);
    assert_string_equal(json_str(json_object_get(a->body, "status"), "phase"), "Succeeded");
    answer(a, 200,
           POD("13", ",\"deletionTimestamp\":\"2027-01-15T08:00:30Z\"",
               "\"phase\":\"Succeeded\",\"containerStatuses\":[{\"name\":\"a\",\"state\":{\"terminated\":{"
               "\"exitCode\":0}}}]"));
    a = expect("DELETE", "/api/v1/namespaces/default/pods/app");
    assert_json(
        a->body,
        "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0,\"preconditions\":"
        "{\"uid\":\"u11\"}}");
    answer(a, 200, NULL);
    /* A finalizer holds it: nothing more is done. */
    watch_put(pods(), POD("14", ",\"deletionTimestamp\":\"2027-01-15T08:00:30Z\"",
                          "\"phase\":\"Succeeded\",\"containerStatuses\":[{\"name\":\"a\",\"state\":{"
                          "\"terminated\":{\"exitCode\":0}}}]"));
    expect_none();
    pods()->o.on_gone("default", "app", "u11", pods()->o.arg);
    expect_none();
}

static void a_finished_pod_keeps_its_status_when_the_node_forgets_it(void **state)
{
    (void)state;
    watch_put(pods(), POD("10", "", "\"phase\":\"Succeeded\""));
    tell(OURS("true", "\"phase\":\"Succeeded\""));
    tell("{\"type\":\"podgone\",\"namespace\":\"default\",\"name\":\"app\",\"uid\":\"u11\"}");
    pass_ms(60000);
    answer(expect("PUT", LEASE "/peer?timeout=10s"), 200, NULL);
    expect_none();
}

/* ---- to the daemon ---- */

static void the_daemon_is_told_of_what_is_not_its_own_status(void **state)
{
    json_t *m;

    (void)state;
    watch_put(pods(), POD("10", ",\"managedFields\":[{}]", "\"phase\":\"Pending\""));
    m = told("put");
    assert_json(m, "{\"type\":\"put\",\"object\":" POD("10", "", "\"phase\":\"Pending\"") "}");
    json_decref(m);
    watch_put(pods(), POD("11", "",
                          "\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]"));
    assert_null(told("put"));
    watch_put(pods(), POD("12", "",
                          "\"phase\":\"Running\",\"conditions\":[{\"type\":\"gate\",\"status\":\"True\"}]"));
    m = told("put");
    assert_non_null(m); /* a readiness gate */
    json_decref(m);
    watch_put(pods(), POD("13", ",\"labels\":{\"a\":\"b\"}", "\"phase\":\"Running\""));
    m = told("put");
    assert_non_null(m);
    json_decref(m);
    watch_synced(pods());
    assert_told("{\"type\":\"synced\",\"kind\":\"Pod\"}");
    pods()->o.on_gone("default", "app", "u11", pods()->o.arg);
    assert_told(
        "{\"type\":\"gone\",\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"app\",\"uid\":\"u11\"}");
}

static void services_are_watched_from_the_first_pod_on(void **state)
{
    (void)state;
    assert_null(watch_of("/api/v1/services", NULL));
    watch_put(pods(), POD("10", "", ""));
    assert_non_null(watch_of("/api/v1/services", "spec.clusterIP!=None"));
    assert_non_null(watch_of("/apis/node.k8s.io/v1/runtimeclasses", ""));
}

static void services_are_watched_for_a_static_pod(void **state)
{
    (void)state;
    assert_null(watch_of("/api/v1/services", NULL));
    tell(STATIC("a"));
    assert_non_null(watch_of("/api/v1/services", "spec.clusterIP!=None"));
}

/* ---- merging ---- */

static void merges(const char *theirs, const char *ours, bool ended, const char *wanted)
{
    json_t *a = json_of(theirs), *b = json_of(ours), *m = pod_merge(a, b, ended);

    assert_json(m, wanted);
    json_decref(m);
    json_decref(b);
    json_decref(a);
}

static void foreign_conditions_and_fields_are_kept(void **state)
{
    (void)state;
    merges("{\"phase\":\"Pending\",\"nominatedNodeName\":\"n\",\"resourceClaimStatuses\":[{\"name\":\"r\"}],"
           "\"reason\":\"old\","
           "\"conditions\":[{\"type\":\"gate\",\"status\":\"True\"},{\"type\":\"PodResizePending\","
           "\"status\":\"True\"},"
           "{\"type\":\"Ready\",\"status\":\"False\",\"lastTransitionTime\":\"old\"}]}",
           "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
           "\"lastTransitionTime\":\"new\"},"
           "{\"type\":\"alien\",\"status\":\"True\"}]}",
           false,
           "{\"phase\":\"Running\",\"nominatedNodeName\":\"n\",\"resourceClaimStatuses\":[{\"name\":\"r\"}],"
           "\"conditions\":["
           "{\"type\":\"gate\",\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"False\","
           "\"lastTransitionTime\":\"old\","
           "\"lastProbeTime\":null}]}");
}

static void a_final_phase_makes_a_pod_unready(void **state)
{
    (void)state;
    merges("{\"phase\":\"Running\"}",
           "{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":"
           "\"DisruptionTarget\",\"status\":"
           "\"True\"}]}",
           false,
           "{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":"
           "\"PodFailed\","
           "\"lastProbeTime\":null},{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"lastProbeTime\":"
           "null}]}");
}

static void a_pod_of_which_nothing_is_left_is_final(void **state)
{
    (void)state;
    merges("{\"phase\":\"Pending\"}", "{\"phase\":\"Pending\"}", true,
           "{\"phase\":\"Failed\",\"conditions\":[]}");
    merges("{\"phase\":\"Succeeded\"}", "{\"phase\":\"Running\"}", true,
           "{\"phase\":\"Succeeded\",\"conditions\":[]}");
}

static void a_disruption_is_told_with_the_final_phase_only(void **state)
{
    (void)state;
    merges("{\"phase\":\"Running\",\"startTime\":\"then\"}",
           "{\"phase\":\"Failed\",\"startTime\":\"now\",\"conditions\":[{\"type\":\"DisruptionTarget\","
           "\"status\":\"True\"}],"
           "\"containerStatuses\":[{\"name\":\"a\",\"state\":{\"running\":{}}}]}",
           false,
           "{\"phase\":\"Running\",\"startTime\":\"then\",\"conditions\":[],\"containerStatuses\":[{\"name\":"
           "\"a\",\"state\":"
           "{\"running\":{}}}]}");
}

/* ---- mirror pods ---- */

static void a_static_pod_gets_a_mirror_and_its_status(void **state)
{
    char mirror[1024], hash[MIRROR_HASH_SIZE];
    struct asked *a;

    (void)state;
    tell(STATIC("a"));
    expect_none(); /* whether it exists is not known yet */
    watch_synced(pods());
    a = expect("POST", "/api/v1/namespaces/default/pods");
    snprintf(hash, sizeof(hash), "%s",
             json_str(json_object_get(json_object_get(a->body, "metadata"), "annotations"),
                      "kubernetes.io/config.mirror"));
    snprintf(mirror, sizeof(mirror),
             "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-peer\",\"namespace\":"
             "\"default\",\"uid\":\"s1\","
             "\"labels\":{\"s\":\"t\"},\"annotations\":{\"kubernetes.io/config.hash\":\"%s\",\"kubernetes.io/"
             "config.mirror\":\"%s\","
             "\"kubernetes.io/"
             "config.source\":\"file\",\"mine\":\"yes\"},\"ownerReferences\":[{\"apiVersion\":\"v1\","
             "\"kind\":\"Node\","
             "\"name\":\"peer\",\"uid\":\"u8\",\"controller\":true}]},\"spec\":{\"containers\":[{\"name\":"
             "\"main\",\"image\":\"a\"}],"
             "\"nodeName\":\"peer\",\"tolerations\":[{\"operator\":\"Exists\",\"effect\":\"NoExecute\"}]},"
             "\"status\":{\"phase\":"
             "\"Pending\"}}",
             hash, hash);
    assert_json(a->body, mirror);
    snprintf(mirror, sizeof(mirror), MIRROR("20", "m1", ""), hash);
    answer(a, 201, mirror);
    a = expect("PATCH", "/api/v1/namespaces/default/pods/web-peer/status");
    assert_json(a->body, "{\"metadata\":{\"uid\":\"m1\"},\"status\":{\"phase\":\"Running\"}}");
    answer(a, 200, NULL);
    json_array_clear(kube.told);
    watch_put(pods(), mirror);
    assert_null(told("put")); /* the daemon has the pod itself */
}

static void a_mirror_of_another_hash_is_replaced(void **state)
{
    struct asked *a;
    char mirror[1024];

    (void)state;
    snprintf(mirror, sizeof(mirror), MIRROR("20", "m1", ""), "old");
    watch_put(pods(), mirror);
    watch_synced(pods());
    tell(STATIC("b"));
    a = expect("DELETE", "/api/v1/namespaces/default/pods/web-peer");
    assert_json(
        a->body,
        "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0,\"preconditions\":"
        "{\"uid\":\"m1\"}}");
    answer(a, 200, NULL);
    expect_none();
    pods()->o.on_gone("default", "web-peer", "m1", pods()->o.arg);
    turn();
    expect("POST", "/api/v1/namespaces/default/pods");
    assert_null(told("gone")); /* the static pod runs on */
}

static void the_watch_may_overtake_the_answer_to_a_delete(void **state)
{
    char mirror[1024];
    struct asked *a;

    (void)state;
    snprintf(mirror, sizeof(mirror), MIRROR("20", "m1", ""), "old");
    watch_put(pods(), mirror);
    watch_synced(pods());
    tell(STATIC("b"));
    a = expect("DELETE", "/api/v1/namespaces/default/pods/web-peer");
    pods()->o.on_gone("default", "web-peer", "m1", pods()->o.arg);
    answer(a, 200, NULL);
    snprintf(mirror, sizeof(mirror), MIRROR("21", "m2", ""), "another");
    answer(expect("POST", "/api/v1/namespaces/default/pods"), 201, mirror);
    expect("DELETE", "/api/v1/namespaces/default/pods/web-peer"); /* m2 was not deleted yet */
}

static void an_edit_makes_another_hash(void **state)
{
    json_t *a = json_of(STATIC("a")), *b = json_of(STATIC("b"));
    char x[MIRROR_HASH_SIZE], y[MIRROR_HASH_SIZE], z[MIRROR_HASH_SIZE];

    (void)state;
    mirror_hash(json_object_get(a, "object"), x);
    mirror_hash(json_object_get(a, "object"), z);
    mirror_hash(json_object_get(b, "object"), y);
    assert_string_equal(x, z);
    assert_string_not_equal(x, y);
    json_decref(a);
    json_decref(b);
}

static void an_orphan_is_deleted_when_the_daemon_told_all(void **state)
{
    char mirror[1024];

    (void)state;
    snprintf(mirror, sizeof(mirror), MIRROR("20", "m1", ""), "old");
    watch_put(pods(), mirror);
    watch_synced(pods());
    expect_none();
    pass_ms(29000);
    answer(expect("PUT", LEASE "/peer?timeout=10s"), 200, NULL);
    expect_none();
    pass_ms(1001);
    expect("DELETE", "/api/v1/namespaces/default/pods/web-peer");
}

static void the_mirror_goes_with_its_static_pod(void **state)
{
    char mirror[1024];
    struct asked *a;

    (void)state;
    watch_synced(pods());
    tell(STATIC("a"));
    a = expect("POST", "/api/v1/namespaces/default/pods");
    snprintf(
        mirror, sizeof(mirror), MIRROR("20", "m1", ""),
        json_str(json_object_get(json_object_get(a->body, "metadata"), "annotations"), MIRROR_ANNOTATION));
    answer(a, 201, mirror);
    answer(expect("PATCH", "/api/v1/namespaces/default/pods/web-peer/status"), 200, mirror);
    expect_none();
    tell("{\"type\":\"podgone\",\"namespace\":\"default\",\"name\":\"web\",\"uid\":\"s1\"}");
    answer(expect("DELETE", "/api/v1/namespaces/default/pods/web-peer"), 200, NULL);
    pods()->o.on_gone("default", "web-peer", "m1", pods()->o.arg);
    turn();
    expect_none();
}

static void a_mirror_that_is_forbidden_is_told(void **state)
{
    (void)state;
    watch_synced(pods());
    json_array_clear(kube.told);
    tell(STATIC("a"));
    answer(expect("POST", "/api/v1/namespaces/default/pods"), 403, "can not reference secrets");
    assert_told("{\"type\":\"denied\",\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"web-peer\","
                "\"code\":403,\"message\":"
                "\"can not reference secrets\"}");
    pass_ms(9000);
    expect_none();
}

static void an_ordinary_pod_of_the_name_is_left_alone(void **state)
{
    const struct pod_facts f = { .synced = true,
                                 .node_known = true,
                                 .there = true,
                                 .ours = true,
                                 .ours_is_static = true,
                                 .differs = true,
                                 .told = true };

    (void)state;
    assert_int_equal(pod_decide(&f), POD_NOTHING);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, joined, kube_end)
    const struct CMUnitTest tests[] = {
        T(a_status_goes_as_a_patch_with_the_uid_and_without_a_get),
        T(a_status_that_the_apiserver_lost_is_sent_again),
        T(what_the_apiserver_does_not_keep_is_not_sent_for_ever),
        T(a_status_waits_for_its_pod_and_one_of_another_uid_is_dropped),
        T(a_pod_that_fails_waits_and_holds_up_no_other),
        T(a_removed_pod_is_deleted_after_its_last_status),
        T(a_finished_pod_keeps_its_status_when_the_node_forgets_it),
        T(the_daemon_is_told_of_what_is_not_its_own_status),
        T(services_are_watched_from_the_first_pod_on),
        T(services_are_watched_for_a_static_pod),
        cmocka_unit_test(foreign_conditions_and_fields_are_kept),
        cmocka_unit_test(a_final_phase_makes_a_pod_unready),
        cmocka_unit_test(a_pod_of_which_nothing_is_left_is_final),
        cmocka_unit_test(a_disruption_is_told_with_the_final_phase_only),
        T(a_static_pod_gets_a_mirror_and_its_status),
        T(a_mirror_of_another_hash_is_replaced),
        T(the_watch_may_overtake_the_answer_to_a_delete),
        cmocka_unit_test(an_edit_makes_another_hash),
        T(an_orphan_is_deleted_when_the_daemon_told_all),
        T(the_mirror_goes_with_its_static_pod),
        T(a_mirror_that_is_forbidden_is_told),
        cmocka_unit_test(an_ordinary_pod_of_the_name_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
