/* SPDX-License-Identifier: Apache-2.0 */
/* The Node and its Lease, in the shapes that a kubelet of 1.36 was recorded with. */
#include "tests/unit/agent_kube_sync/script_kube.h"

#include "agent/kube/decide/node_merge.h"
#include "agent/kube/sync/internal.h"
#include "agent/kube/sync/lease.h"
#include "agent/kube/sync/node.h"

#define CONFIG                                                                                               \
    "{\"type\":\"config\",\"nodeName\":\"peer\",\"registerNode\":true,\"leaseSeconds\":40,\"updateMs\":"     \
    "10000,"                                                                                                 \
    "\"reportMs\":300000,\"taints\":[{\"key\":\"a\",\"effect\":\"NoSchedule\"}],\"providerID\":\"x://1\"}"
#define CONDITION(type, status, reason, more)                                                                \
    "{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"" reason "\"" more "}"
#define OURS(ready, memory)                                                                                  \
    "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"peer\",\"labels\":{"                  \
    "\"kubernetes.io/os\":\"linux\",\"mine\":\"1\",\"node-restriction.kubernetes.io/x\":\"1\"}},"            \
    "\"spec\":{\"podCIDR\":\"10.0.0.0/24\"},\"status\":{\"capacity\":{\"memory\":\"" memory "\"},"           \
    "\"addresses\":[{\"type\":\"Hostname\",\"address\":\"peer\"}],\"conditions\":[" CONDITION(               \
        "MemoryPressure", "False", "KubeletHasSufficientMemory", "") "," CONDITION("Ready", ready,           \
                                                                                   "Kubelet", "") "]}}"
#define TIMES                                                                                                \
    ",\"lastHeartbeatTime\":\"2027-01-15T08:00:00Z\",\"lastTransitionTime\":\"2027-01-15T08:00:00Z\""
#define THEIRS(version, more, conditions)                                                                    \
    "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"peer\",\"uid\":\"u8\","               \
    "\"resourceVersion\":\"" version "\"" more                                                               \
    "},\"spec\":{},\"status\":{\"capacity\":{\"memory\":\"16Gi\"},\"addresses\":[{\"type\":"                 \
    "\"Hostname\",\"address\":\"peer\"}],\"conditions\":[" conditions "]}}"
#define READY_CONDITIONS                                                                                     \
    CONDITION("MemoryPressure", "False", "KubeletHasSufficientMemory", TIMES)                                \
    "," CONDITION("Ready", "True", "Kubelet", TIMES)

static struct kube_reflector *nodes(void)
{
    struct kube_reflector *r = watch_of("/api/v1/nodes", "metadata.name=peer");

    assert_non_null(r);
    return r;
}

static void begin(const char *ours)
{
    char message[4096];

    tell(CONFIG);
    tell("{\"type\":\"credentials\",\"server\":\"https://x\"}");
    snprintf(message, sizeof(message), "{\"type\":\"node\",\"object\":%s}", ours);
    tell(message);
}

static void say_node(const char *ours)
{
    char message[4096];

    snprintf(message, sizeof(message), "{\"type\":\"node\",\"object\":%s}", ours);
    tell(message);
}

/* The Lease's first round, which follows when the Node is known. */
static void answer_lease(void)
{
    answer(expect("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/peer?timeout=10s"),
           404, NULL);
    answer(expect("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?timeout=10s"), 201,
           NULL);
}

static void a_node_that_is_missing_is_created(void **state)
{
    struct asked *a;

    (void)state;
    begin(OURS("False", "16777216Ki"));
    expect_none(); /* the watch tells in a moment whether it exists */
    watch_synced(nodes());
    a = expect("POST", "/api/v1/nodes");
    assert_json(
        a->body,
        "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"peer\",\"labels\":{"
        "\"kubernetes.io/os\":\"linux\",\"mine\":\"1\"}},\"spec\":{\"providerID\":\"x://1\",\"taints\":"
        "[{\"key\":\"a\",\"effect\":\"NoSchedule\"}]},\"status\":{\"capacity\":{\"memory\":\"16777216Ki\"},"
        "\"addresses\":[{\"type\":\"Hostname\",\"address\":\"peer\"}],\"conditions\":[" CONDITION(
            "MemoryPressure", "False", "KubeletHasSufficientMemory",
            TIMES) "," CONDITION("Ready", "False", "Kubelet", TIMES) "]}}");
    answer(a, 201,
           THEIRS("216", "",
                  CONDITION("MemoryPressure", "False", "KubeletHasSufficientMemory",
                            TIMES) "," CONDITION("Ready", "False", "Kubelet", TIMES)));
    answer_lease();
    expect_none(); /* 16Gi is what was sent */
    /* It becomes Ready: only what changed, as recorded. */
    pass_ms(1000);
    say_node(OURS("True", "16777216Ki"));
    a = expect("PATCH", "/api/v1/nodes/peer/status?timeout=10s");
    assert_string_equal(a->content_type, JSON_PATCH_STRATEGIC);
    assert_json(
        a->body,
        "{\"status\":{\"$setElementOrder/conditions\":[{\"type\":\"MemoryPressure\"},{\"type\":\"Ready\"}],"
        "\"conditions\":[{\"type\":\"MemoryPressure\",\"lastHeartbeatTime\":\"2027-01-15T08:00:01Z\"},"
        "{\"type\":\"Ready\",\"status\":\"True\",\"lastHeartbeatTime\":\"2027-01-15T08:00:01Z\","
        "\"lastTransitionTime\":\"2027-01-15T08:00:01Z\"}]}}");
    answer(a, 200, THEIRS("217", "", READY_CONDITIONS));
    expect_none();
}

static void a_post_that_fails_is_tried_for_ever(void **state)
{
    (void)state;
    begin(OURS("True", "1Gi"));
    watch_synced(nodes());
    no_answer(expect("POST", "/api/v1/nodes"));
    expect_none();
    pass_ms(99);
    expect_none();
    pass_ms(2);
    answer(expect("POST", "/api/v1/nodes"), 500, "{}");
    pass_ms(190);
    expect_none();
    pass_ms(20);
    no_answer(expect("POST", "/api/v1/nodes"));
    for (int i = 0; i < 10; i++) {
        pass_ms(7001);
        no_answer(expect("POST", "/api/v1/nodes"));
    }
}

static void a_node_that_exists_is_reconciled_without_a_post(void **state)
{
    struct asked *a;

    (void)state;
    begin(OURS("True", "16777216Ki"));
    watch_put(nodes(), THEIRS("300", ",\"labels\":{\"kubernetes.io/os\":\"beos\",\"theirs\":\"1\"}",
                              READY_CONDITIONS "," CONDITION("NetworkUnavailable", "False", "Route", TIMES)));
    answer(expect("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/peer?timeout=10s"),
           200,
           "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"peer\",\"resourceVersion\":\"5\",\"managedFields\":["
           "{}]},"
           "\"spec\":{\"holderIdentity\":\"peer\"}}");
    a = expect("PATCH", "/api/v1/nodes/peer/status?timeout=10s");
    assert_json(a->body, "{\"metadata\":{\"labels\":{\"kubernetes.io/os\":\"linux\"}}}");
    answer(a, 200, THEIRS("301", "", READY_CONDITIONS));
    a = expect("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/peer?timeout=10s");
    assert_json(
        a->body,
        "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"peer\",\"resourceVersion\":\"5\",\"ownerReferences\":"
        "[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"peer\",\"uid\":\"u8\"}]},\"spec\":"
        "{\"holderIdentity\":\"peer\",\"leaseDurationSeconds\":40,\"renewTime\":"
        "\"2027-01-15T08:00:00.000000Z\"}}");
    answer(a, 200, NULL);
    expect_none();
}

static void the_daemon_is_told_of_labels_and_taints_but_not_of_its_own_status(void **state)
{
    (void)state;
    begin(OURS("True", "16777216Ki"));
    watch_put(nodes(), THEIRS("300", "", READY_CONDITIONS));
    assert_told(
        "{\"type\":\"put\",\"object\":{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
        "\"peer\",\"uid\":\"u8\",\"resourceVersion\":\"300\"},\"spec\":{}}}");
    watch_put(nodes(), THEIRS("301", "", READY_CONDITIONS "," CONDITION("New", "True", "x", "")));
    assert_null(told("put"));
    watch_put(nodes(), THEIRS("302", ",\"labels\":{\"a\":\"b\"}", READY_CONDITIONS));
    assert_told(
        "{\"type\":\"put\",\"object\":{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
        "\"peer\",\"uid\":\"u8\",\"resourceVersion\":\"302\",\"labels\":{\"a\":\"b\"}},\"spec\":{}}}");
}

static void nothing_but_heartbeats_goes_every_report_period(void **state)
{
    struct node_pace p = { .update_ms = 10000, .report_ms = 300000 };

    (void)state;
    assert_int_equal(node_pace_wait_ms(&p, false, false, 5000), 0); /* not reported yet */
    p.reported = true;
    p.last_ms = 5000;
    assert_int_equal(node_pace_wait_ms(&p, false, false, 6000), 299000);
    p.stretch_ms = -150000;
    assert_int_equal(node_pace_wait_ms(&p, false, false, 6000), 149000);
    assert_int_equal(node_pace_wait_ms(&p, true, false, 6000), 9000); /* images */
    assert_int_equal(node_pace_wait_ms(&p, true, true, 5400), 600);   /* the scheduler waits for it */
    assert_int_equal(node_pace_wait_ms(&p, true, true, 6000), 0);
}

static void extended_resources_and_conditions_of_others_stay(void **state)
{
    json_t *theirs = json_of(
        "{\"status\":{\"capacity\":{\"cpu\":\"1\",\"example.com/"
        "a\":\"3\",\"hugepages-2Mi\":\"1\"},\"volumesAttached\":"
        "[{\"name\":\"v\"}],\"conditions\":[{\"type\":\"NetworkUnavailable\",\"status\":\"False\"}]}}");
    json_t *ours =
        json_of("{\"status\":{\"capacity\":{\"cpu\":\"2\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
                "\"True\"}]}}");
    json_t *status = node_status_merge(theirs, ours, "T");

    (void)state;
    assert_json(
        status,
        "{\"capacity\":{\"cpu\":\"2\",\"example.com/a\":\"3\"},\"volumesAttached\":[{\"name\":\"v\"}],"
        "\"conditions\":[{\"type\":\"NetworkUnavailable\",\"status\":\"False\"},{\"type\":\"Ready\","
        "\"status\":\"True\",\"lastHeartbeatTime\":\"T\",\"lastTransitionTime\":\"T\"}]}");
    json_decref(status);
    json_decref(ours);
    json_decref(theirs);
}

static void changed_addresses_replace_the_list(void **state)
{
    json_t *theirs =
        json_of("{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.1\"}]}}");
    json_t *ours = json_of("{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.2\"},"
                           "{\"type\":\"InternalIP\",\"address\":\"fd00::2\"}]}}");
    json_t *status = node_status_merge(theirs, ours, "T"),
           *patch = node_status_patch(theirs, ours, status, false);

    (void)state;
    assert_json(patch, "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.2\"},"
                       "{\"type\":\"InternalIP\",\"address\":\"fd00::2\"},{\"$patch\":\"replace\"}]}}");
    json_decref(patch);
    json_decref(status);
    json_decref(ours);
    json_decref(theirs);
}

static void labels_that_noderestriction_refuses_are_left_out(void **state)
{
    (void)state;
    assert_true(node_label_is_allowed("anything"));
    assert_true(node_label_is_allowed("example.com/x"));
    assert_true(node_label_is_allowed("kubernetes.io/hostname"));
    assert_true(node_label_is_allowed("node.kubernetes.io/role"));
    assert_true(node_label_is_allowed("a.kubelet.kubernetes.io/role"));
    assert_true(node_label_is_allowed("notk8s.io/x"));
    assert_false(node_label_is_allowed("node-role.kubernetes.io/worker"));
    assert_false(node_label_is_allowed("node-restriction.kubernetes.io/x"));
    assert_false(node_label_is_allowed("x.k8s.io/y"));
}

static void a_lease_is_renewed_in_time_and_survives_a_conflict(void **state)
{
    const char *path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/peer?timeout=10s";

    (void)state;
    begin(OURS("True", "16777216Ki"));
    watch_put(nodes(), THEIRS("300", ",\"labels\":{\"kubernetes.io/os\":\"linux\"}", READY_CONDITIONS));
    answer_lease();
    pass_ms(9999);
    expect_none();
    pass_ms(402); /* 4% */
    answer(expect("PUT", path), 409, "Conflict");
    answer(expect("GET", path), 200, "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{}}");
    answer(expect("PUT", path), 200, NULL);
    expect_none();
    pass_ms(10401);
    no_answer(expect("PUT", path));
    pass_ms(201);
    answer(expect("PUT", path), 200, NULL);
    expect_none();
}

static void a_deleted_node_is_not_registered_again(void **state)
{
    (void)state;
    begin(OURS("True", "16777216Ki"));
    watch_put(nodes(), THEIRS("300", ",\"labels\":{\"kubernetes.io/os\":\"linux\"}", READY_CONDITIONS));
    answer_lease();
    nodes()->o.on_gone("", "peer", "u8", nodes()->o.arg);
    say_node(OURS("False", "16777216Ki"));
    expect_none();
    assert_told("{\"type\":\"gone\",\"kind\":\"Node\",\"name\":\"peer\",\"uid\":\"u8\"}");
}

static void a_process_that_ends_leaves_nothing(void **state)
{
    (void)state;
    begin(OURS("True", "1Gi"));
    watch_synced(nodes());
    expect("POST", "/api/v1/nodes"); /* it is cancelled by the end */
}

/* A date of a server whose clock is ahead comes as hours. */
static void a_retry_after_is_kept_for_a_minute_at_most(void **state)
{
    const struct err no = { 0 };
    struct sync_answer a = { .error = &no, .http = 429 };
    uint64_t last_ms = 0;

    (void)state;
    a.retry_after_ms = 20000;
    assert_int_equal(sync_wait_ms(&a, &last_ms, 200, 7000), 20000);
    a.retry_after_ms = 3600000;
    assert_int_equal(sync_wait_ms(&a, &last_ms, 200, 7000), KUBE_RETRY_AFTER_MS);
    a.retry_after_ms = 0;
    assert_in_range(sync_wait_ms(&a, &last_ms, 200, 7000), 1, 7000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_node_that_is_missing_is_created, kube_begin, kube_end),
        cmocka_unit_test_setup_teardown(a_post_that_fails_is_tried_for_ever, kube_begin, kube_end),
        cmocka_unit_test_setup_teardown(a_node_that_exists_is_reconciled_without_a_post, kube_begin,
                                        kube_end),
        cmocka_unit_test_setup_teardown(the_daemon_is_told_of_labels_and_taints_but_not_of_its_own_status,
                                        kube_begin, kube_end),
        cmocka_unit_test(nothing_but_heartbeats_goes_every_report_period),
        cmocka_unit_test(extended_resources_and_conditions_of_others_stay),
        cmocka_unit_test(changed_addresses_replace_the_list),
        cmocka_unit_test(labels_that_noderestriction_refuses_are_left_out),
        cmocka_unit_test_setup_teardown(a_lease_is_renewed_in_time_and_survives_a_conflict, kube_begin,
                                        kube_end),
        cmocka_unit_test(a_retry_after_is_kept_for_a_minute_at_most),
        cmocka_unit_test_setup_teardown(a_deleted_node_is_not_registered_again, kube_begin, kube_end),
        cmocka_unit_test_setup_teardown(a_process_that_ends_leaves_nothing, kube_begin, kube_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
