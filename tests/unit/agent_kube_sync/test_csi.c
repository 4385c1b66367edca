/* SPDX-License-Identifier: Apache-2.0 */
/* CSI drivers at the apiserver: the CSINode object, and ids and labels at the Node. Objects are those of
 * recorded sessions of kubelet. */
#include "tests/unit/agent_kube_sync/script_kube.h"

#include "agent/kube/decide/csi_node.h"

#define CSI_NODES "/apis/storage.k8s.io/v1/csinodes"
#define OWN CSI_NODES "/peer"
#define STATUS "/api/v1/nodes/peer/status"
#define NOT_FOUND "{\"kind\":\"Status\",\"reason\":\"NotFound\"}"
#define REGA                                                                                                 \
    "{\"name\":\"rega.example.test\",\"nodeID\":\"id-of-node1\",\"topology\":{"                              \
    "\"topology.rega.example.test/zone\":\"z1\",\"topology.rega.example.test/rack\":\"r2\"},\"count\":7}"
#define REGB "{\"name\":\"regb.example.test\",\"nodeID\":\"id-of-node1\",\"topology\":{}}"
#define REGA_ENTRY                                                                                           \
    "{\"name\":\"rega.example.test\",\"nodeID\":\"id-of-node1\",\"topologyKeys\":["                          \
    "\"topology.rega.example.test/rack\",\"topology.rega.example.test/zone\"],\"allocatable\":{\"count\":"   \
    "7}}"
#define REGB_ENTRY "{\"name\":\"regb.example.test\",\"nodeID\":\"id-of-node1\",\"topologyKeys\":null}"
#define HAS(entries)                                                                                         \
    "{\"kind\":\"CSINode\",\"metadata\":{\"name\":\"peer\",\"resourceVersion\":\"9\"},\"spec\":{\"drivers\"" \
    ":[" entries "]}}"
#define LABELS                                                                                               \
    "\"labels\":{\"topology.rega.example.test/rack\":\"r2\",\"topology.rega.example.test/zone\":\"z1\"}"
#define NODE(version, annotations, labels)                                                                   \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"peer\",\"uid\":\"u8\",\"resourceVersion\":\"" version       \
    "\",\"annotations\":{" annotations "}" labels "}}"

static int joined(void **state)
{
    kube.with_csi = true;
    if (kube_begin(state) != 0)
        return -1;
    tell("{\"type\":\"config\",\"nodeName\":\"peer\"}");
    tell("{\"type\":\"credentials\"}");
    return 0;
}

/* Leaves out the node's lease. */
static struct asked *expect_csi(const char *method, const char *path)
{
    struct asked *a, *next;

    TAILQ_FOREACH_SAFE (a, &kube.asked, link, next)
        if (strstr(a->path, "/leases") != NULL)
            asked_drop(a);
    return expect(method, path);
}

static void node_is(const char *text)
{
    watch_put(watch_of("/api/v1/nodes", NULL), text);
}

/* The node has a CSINode with these entries. */
static void begin(const char *object)
{
    node_is(NODE("1", "", ""));
    answer(expect_csi("GET", OWN), 200, object);
    expect_none();
}

static void the_object_is_made_when_the_node_is_seen(void **state)
{
    struct asked *a;

    (void)state;
    node_is(NODE("1", "", ""));
    answer(expect_csi("GET", OWN), 404, NOT_FOUND);
    a = expect_csi("POST", CSI_NODES);
    assert_json(
        a->body,
        "{\"kind\":\"CSINode\",\"apiVersion\":\"storage.k8s.io/v1\",\"metadata\":{\"name\":\"peer\","
        "\"annotations\":{\"storage.alpha.kubernetes.io/migrated-plugins\":\"kubernetes.io/aws-ebs,"
        "kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,kubernetes.io/gce-pd,"
        "kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume\"},\"ownerReferences\":[{\"apiVersion\":"
        "\"v1\",\"kind\":\"Node\",\"name\":\"peer\",\"uid\":\"u8\"}]},\"spec\":{\"drivers\":[]}}");
    answer(a, 201, NULL);
    expect_none();
}

static void a_driver_gets_its_labels_first(void **state)
{
    struct asked *a;

    (void)state;
    begin(HAS(""));
    tell("{\"type\":\"drivers\",\"drivers\":[" REGA "],\"gone\":[]}");
    a = expect_csi("PATCH", STATUS);
    assert_json(a->body, "{\"metadata\":{\"annotations\":{\"csi.volume.kubernetes.io/nodeid\":"
                         "\"{\\\"rega.example.test\\\":\\\"id-of-node1\\\"}\"}," LABELS "}}");
    answer(a, 200,
           NODE("2",
                "\"csi.volume.kubernetes.io/nodeid\":\"{\\\"rega.example.test\\\":\\\"id-of-node1\\\"}\"",
                "," LABELS));
    a = expect_csi("PUT", OWN);
    assert_json(a->body, HAS(REGA_ENTRY));
    answer(a, 200, NULL);
    expect_none();
}

static void the_second_comes_behind_the_first(void **state)
{
    struct asked *a;

    (void)state;
    begin(HAS(REGB_ENTRY));
    node_is(NODE("2",
                 "\"csi.volume.kubernetes.io/nodeid\":\"{\\\"regb.example.test\\\":\\\"id-of-node1\\\"}\"",
                 "," LABELS));
    tell("{\"type\":\"drivers\",\"drivers\":[" REGA "," REGB "],\"gone\":[]}");
    a = expect_csi("PATCH", STATUS);
    assert_json(a->body, "{\"metadata\":{\"annotations\":{\"csi.volume.kubernetes.io/nodeid\":"
                         "\"{\\\"rega.example.test\\\":\\\"id-of-node1\\\",\\\"regb.example.test\\\":"
                         "\\\"id-of-node1\\\"}\"}}}");
    answer(a, 200,
           NODE("3",
                "\"csi.volume.kubernetes.io/nodeid\":\"{\\\"rega.example.test\\\":\\\"id-of-node1\\\","
                "\\\"regb.example.test\\\":\\\"id-of-node1\\\"}\"",
                "," LABELS));
    a = expect_csi("PUT", OWN);
    assert_json(a->body, HAS(REGB_ENTRY "," REGA_ENTRY));
    answer(a, 200, NULL);
    expect_none();
}

static void one_that_is_gone_leaves_its_labels(void **state)
{
    struct asked *a;

    (void)state;
    begin(HAS(REGA_ENTRY "," REGB_ENTRY));
    node_is(NODE("2",
                 "\"csi.volume.kubernetes.io/nodeid\":\"{\\\"rega.example.test\\\":\\\"id-of-node1\\\","
                 "\\\"regb.example.test\\\":\\\"id-of-node1\\\"}\"",
                 "," LABELS));
    tell("{\"type\":\"drivers\",\"drivers\":[" REGB "],\"gone\":[\"rega.example.test\"]}");
    a = expect_csi("PUT", OWN);
    assert_json(a->body, HAS(REGB_ENTRY));
    answer(a, 200, NULL);
    a = expect_csi("PATCH", STATUS);
    assert_json(a->body, "{\"metadata\":{\"annotations\":{\"csi.volume.kubernetes.io/nodeid\":"
                         "\"{\\\"regb.example.test\\\":\\\"id-of-node1\\\"}\"}}}");
    answer(a, 200,
           NODE("3",
                "\"csi.volume.kubernetes.io/nodeid\":\"{\\\"regb.example.test\\\":\\\"id-of-node1\\\"}\"",
                "," LABELS));
    expect_none();
}

#define TWICE(id) "{\"name\":\"twice.example.test\",\"nodeID\":\"" id "\",\"topology\":{}}"
#define TWICE_ENTRY(id) "{\"name\":\"twice.example.test\",\"nodeID\":\"" id "\",\"topologyKeys\":null}"
#define TWICE_ID(id) "\"csi.volume.kubernetes.io/nodeid\":\"{\\\"twice.example.test\\\":\\\"" id "\\\"}\""

static void another_node_id_needs_another_entry(void **state)
{
    struct asked *a;

    (void)state;
    begin(HAS(TWICE_ENTRY("id-of-node1")));
    tell("{\"type\":\"drivers\",\"drivers\":[" TWICE("third") "],\"gone\":[]}");
    answer(expect_csi("PATCH", STATUS), 200, NODE("3", TWICE_ID("third"), ""));
    a = expect_csi("PUT", OWN);
    assert_json(a->body, HAS(""));
    answer(a, 200, NULL);
    a = expect_csi("PUT", OWN);
    assert_json(a->body, HAS(TWICE_ENTRY("third")));
    answer(a, 200, NULL);
    expect_none();
}

#define ALLOC(count)                                                                                         \
    "{\"type\":\"drivers\",\"drivers\":[{\"name\":\"alloc.example.test\",\"nodeID\":\"id-of-node1\","        \
    "\"count\":" count "}],\"gone\":[]}"
#define ALLOC_ENTRY(count)                                                                                   \
    "{\"name\":\"alloc.example.test\",\"nodeID\":\"id-of-node1\",\"topologyKeys\":null,\"allocatable\":{"    \
    "\"count\":" count "}}"

static void the_number_of_volumes_changes(void **state)
{
    struct asked *a;

    (void)state;
    begin(HAS(ALLOC_ENTRY("5")));
    tell(ALLOC("8"));
    answer(expect_csi("PATCH", STATUS), 200,
           NODE("3",
                "\"csi.volume.kubernetes.io/nodeid\":\"{\\\"alloc.example.test\\\":\\\"id-of-node1\\\"}\"",
                ""));
    a = expect_csi("PUT", OWN);
    assert_json(a->body, HAS(ALLOC_ENTRY("8")));
    answer(a, 200, NULL);
    expect_none();
    tell(ALLOC("9"));
    answer(expect_csi("PUT", OWN), 422, "field is immutable");
    a = expect_csi("PUT", OWN); /* an older apiserver: it has to go first */
    assert_json(a->body, HAS(""));
    answer(a, 200, NULL);
    a = expect_csi("PUT", OWN);
    assert_json(a->body, HAS(ALLOC_ENTRY("9")));
    answer(a, 200, NULL);
    expect_none();
}

static void a_refused_driver_holds_up_no_other(void **state)
{
    struct asked *a;

    (void)state;
    begin(HAS(""));
    node_is(NODE("2",
                 "\"csi.volume.kubernetes.io/nodeid\":\"{\\\"rega.example.test\\\":\\\"id-of-node1\\\","
                 "\\\"regb.example.test\\\":\\\"id-of-node1\\\"}\"",
                 "," LABELS));
    tell("{\"type\":\"drivers\",\"drivers\":[" REGA "," REGB "],\"gone\":[]}");
    answer(expect_csi("PUT", OWN), 422, "not this one");
    a = expect_csi("PUT", OWN);
    assert_json(a->body, HAS(REGB_ENTRY));
    answer(a, 200, NULL);
    expect_none();
    pass_ms(999);
    expect_none();
    pass_ms(2);
    answer(expect_csi("GET", OWN), 200, HAS(REGB_ENTRY));
    answer(expect_csi("PUT", OWN), 200, HAS(REGB_ENTRY "," REGA_ENTRY));
    expect_none();
}

static void somebody_elses_change_is_read_first(void **state)
{
    (void)state;
    begin(HAS(""));
    node_is(NODE(
        "2", "\"csi.volume.kubernetes.io/nodeid\":\"{\\\"regb.example.test\\\":\\\"id-of-node1\\\"}\"", ""));
    tell("{\"type\":\"drivers\",\"drivers\":[" REGB "],\"gone\":[]}");
    answer(expect_csi("PUT", OWN), 409, "Conflict");
    answer(expect_csi("GET", OWN), 200, HAS(REGB_ENTRY));
    expect_none();
}

static void what_is_undone_each_time_is_given_up_for_a_while(void **state)
{
    int n = 0;

    (void)state;
    begin(HAS(""));
    tell("{\"type\":\"drivers\",\"drivers\":[" REGB "],\"gone\":[]}");
    while (!TAILQ_EMPTY(&kube.asked) && n < 100) {
        answer(expect_csi("PATCH", STATUS), 200, NODE("2", "", ""));
        n++;
    }
    assert_in_range(n, 2, 20);
}

static void the_apiserver_is_away(void **state)
{
    (void)state;
    node_is(NODE("1", "", ""));
    no_answer(expect_csi("GET", OWN));
    pass_ms(199);
    assert_null(watch_of("x", NULL));
    pass_ms(500);
    answer(expect_csi("GET", OWN), 200, HAS(""));
    pass_ms(720001);
    expect_csi("GET", OWN); /* a node may not watch it */
}

static void another_value_of_a_label_is_refused(void **state)
{
    json_t *node = json_of("{\"metadata\":{\"labels\":{\"a/zone\":\"z1\"}}}"),
           *driver = json_of("{\"name\":\"d\",\"nodeID\":\"n\",\"topology\":{\"a/zone\":\"z2\"}}"),
           *patch = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(csi_node_metadata(node, driver, &patch, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "detected topology value collision: driver reported \"a/zone\":\"z2\" but "
                                "existing label is \"a/zone\":\"z1\"");
    json_decref(node);
    json_decref(driver);
}

static void a_damaged_annotation_is_written_anew(void **state)
{
    json_t *node = json_of("{\"metadata\":{\"annotations\":{\"csi.volume.kubernetes.io/nodeid\":\"no\"}}}"),
           *driver = json_of("{\"name\":\"d\",\"nodeID\":\"n\"}"), *patch = NULL;
    struct err e = { 0 };

    (void)state;
    assert_null(csi_node_metadata_without(node, "d"));
    assert_int_equal(csi_node_metadata(node, driver, &patch, &e), ERR_OK);
    assert_json(patch,
                "{\"metadata\":{\"annotations\":{\"csi.volume.kubernetes.io/nodeid\":\"{\\\"d\\\":\\\"n\\\"}"
                "\"}}}");
    json_decref(patch);
    json_decref(node);
    node = json_of("{\"metadata\":{" TWICE_ID("n") "}}");
    json_decref(node);
    node =
        json_of("{\"metadata\":{\"annotations\":{\"csi.volume.kubernetes.io/nodeid\":\"{\\\"d\\\":\\\"n\\\""
                "}\"}}}");
    patch = csi_node_metadata_without(node, "d");
    assert_json(patch, "{\"metadata\":{\"annotations\":{\"csi.volume.kubernetes.io/nodeid\":null}}}");
    json_decref(patch);
    json_decref(node);
    json_decref(driver);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, joined, kube_end)
    const struct CMUnitTest tests[] = {
        T(the_object_is_made_when_the_node_is_seen),
        T(a_driver_gets_its_labels_first),
        T(the_second_comes_behind_the_first),
        T(one_that_is_gone_leaves_its_labels),
        T(another_node_id_needs_another_entry),
        T(the_number_of_volumes_changes),
        T(a_refused_driver_holds_up_no_other),
        T(somebody_elses_change_is_read_first),
        T(what_is_undone_each_time_is_given_up_for_a_while),
        T(the_apiserver_is_away),
        cmocka_unit_test(another_value_of_a_label_is_refused),
        cmocka_unit_test(a_damaged_annotation_is_written_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
