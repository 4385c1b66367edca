/* SPDX-License-Identifier: Apache-2.0 */
/* The status of claims whose volume this node makes larger. Statuses are those of recorded sessions of
 * kubelet. */
#include "tests/unit/agent_kube_sync/script_kube.h"

#include "agent/kube/decide/claim_resize.h"

#define CLAIM "/api/v1/namespaces/default/persistentvolumeclaims/data"
#define PENDING                                                                                              \
    "{\"type\":\"FileSystemResizePending\",\"status\":\"True\",\"lastProbeTime\":null,"                      \
    "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"message\":\"Waiting for user to (re-)start a pod to " \
    "finish file system resize of volume on node.\"}"
#define ERROR(text)                                                                                          \
    "{\"type\":\"NodeResizeError\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":"       \
    "\"2026-02-02T00:00:00Z\",\"message\":\"failed to expand pvc with " text "\"}"
#define STATUS(size, conditions, state)                                                                      \
    "{\"phase\":\"Bound\",\"accessModes\":[\"ReadWriteOnce\"],\"capacity\":{\"storage\":\"" size             \
    "\"},\"conditions\":[" conditions "],\"allocatedResources\":{\"storage\":\"2Gi\"},"                      \
    "\"allocatedResourceStatuses\":{\"storage\":\"" state "\"}}"
#define DONE                                                                                                 \
    "{\"phase\":\"Bound\",\"accessModes\":[\"ReadWriteOnce\"],\"capacity\":{\"storage\":\"2Gi\"},"           \
    "\"allocatedResources\":{\"storage\":\"2Gi\"}}"
#define CANNOT                                                                                               \
    "Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = cannot grow"
#define AT "2026-02-02T00:00:00Z"

static void becomes(const char *status, const char *resize, const char *wanted)
{
    json_t *s = json_of(status), *r = json_of(resize), *to = claim_resize_status(s, r, AT);

    assert_json(to, wanted);
    json_decref(s);
    json_decref(r);
    json_decref(to);
}

static void a_finished_resize_leaves_the_size(void **state)
{
    (void)state;
    becomes(STATUS("1Gi", PENDING, "NodeResizePending"), "{\"state\":\"done\",\"size\":\"2Gi\"}", DONE);
    becomes(STATUS("1Gi", PENDING "," ERROR(CANNOT), "NodeResizeInProgress"),
            "{\"state\":\"done\",\"size\":\"2Gi\"}", DONE);
}

static void a_failed_one_says_why(void **state)
{
    (void)state;
    becomes(STATUS("1Gi", PENDING, "NodeResizePending"), "{\"state\":\"progress\"}",
            STATUS("1Gi", PENDING, "NodeResizeInProgress"));
    becomes(STATUS("1Gi", PENDING, "NodeResizePending"), "{\"state\":\"failed\",\"error\":\"" CANNOT "\"}",
            STATUS("1Gi", PENDING "," ERROR(CANNOT), "NodeResizeInProgress"));
    becomes(STATUS("1Gi", PENDING "," ERROR("another"), "NodeResizePending"),
            "{\"state\":\"infeasible\",\"error\":\"" CANNOT "\"}",
            STATUS("1Gi", PENDING "," ERROR(CANNOT), "NodeResizeInfeasible"));
}

static void what_is_said_already_is_not_written(void **state)
{
    json_t *claim = json_of("{\"metadata\":{\"resourceVersion\":\"7\"},\"status\":" STATUS(
               "1Gi", PENDING "," ERROR(CANNOT), "NodeResizeInProgress") "}"),
           *resize = json_of("{\"state\":\"failed\",\"error\":\"" CANNOT "\"}");

    (void)state;
    assert_null(claim_resize_patch(claim, resize, "2026-03-03T00:00:00Z"));
    json_decref(resize);
    resize = json_of("{\"state\":\"unheard of\"}");
    assert_null(claim_resize_patch(claim, resize, AT));
    json_decref(resize);
    json_decref(claim);
}

static int joined(void **state)
{
    if (kube_begin(state) != 0)
        return -1;
    tell("{\"type\":\"config\",\"nodeName\":\"peer\"}");
    tell("{\"type\":\"credentials\"}");
    return 0;
}

#define DONE_MESSAGE                                                                                         \
    "{\"type\":\"claim\",\"namespace\":\"default\",\"name\":\"data\",\"uid\":\"u1\",\"resize\":{\"state\":"  \
    "\"done\",\"size\":\"2Gi\"}}"
#define OBJECT(version)                                                                                      \
    "{\"metadata\":{\"uid\":\"u1\",\"resourceVersion\":\"" version                                           \
    "\"},\"status\":" STATUS("1Gi", PENDING, "NodeResizePending") "}"

static void the_status_is_patched_under_the_version_that_was_read(void **state)
{
    struct asked *a;

    (void)state;
    tell(DONE_MESSAGE);
    answer(expect("GET", CLAIM), 200, OBJECT("7"));
    a = expect("PATCH", CLAIM "/status");
    assert_json(a->body, "{\"metadata\":{\"uid\":\"u1\",\"resourceVersion\":\"7\"},\"status\":{\"capacity\":{"
                         "\"storage\":\"2Gi\"},\"allocatedResourceStatuses\":null,\"conditions\":null}}");
    assert_string_equal(a->content_type, JSON_PATCH_STRATEGIC);
    answer(a, 409, "Conflict");
    pass_ms(201);
    answer(expect("GET", CLAIM), 200, OBJECT("8"));
    answer(expect("PATCH", CLAIM "/status"), 200, "{\"metadata\":{\"uid\":\"u1\"},\"status\":" DONE "}");
    expect_none();
}

static void another_claim_of_the_name_is_left_alone(void **state)
{
    (void)state;
    tell(DONE_MESSAGE);
    answer(expect("GET", CLAIM), 200, "{\"metadata\":{\"uid\":\"u2\"}}");
    expect_none();
    tell(DONE_MESSAGE);
    answer(expect("GET", CLAIM), 404, "gone");
    pass_ms(60000);
    expect_none();
}

static void the_latest_message_counts(void **state)
{
    (void)state;
    tell("{\"type\":\"claim\",\"namespace\":\"default\",\"name\":\"data\",\"resize\":{\"state\":"
         "\"progress\"}}");
    answer(expect("GET", CLAIM), 200, OBJECT("7"));
    tell(DONE_MESSAGE);
    answer(expect("PATCH", CLAIM "/status"), 200, OBJECT("8"));
    answer(expect("PATCH", CLAIM "/status"), 200, "{\"metadata\":{\"uid\":\"u1\"},\"status\":" DONE "}");
    expect_none();
}

static void a_server_that_refuses_is_not_asked_for_ever(void **state)
{
    int n = 0;

    (void)state;
    tell(DONE_MESSAGE);
    while (!TAILQ_EMPTY(&kube.asked) && n < 100) {
        answer(expect("GET", CLAIM), 403, "no");
        pass_ms(31000);
        n++;
    }
    assert_in_range(n, 3, 10);
    tell(DONE_MESSAGE); /* it is under way when the process ends */
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, joined, kube_end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finished_resize_leaves_the_size),
        cmocka_unit_test(a_failed_one_says_why),
        cmocka_unit_test(what_is_said_already_is_not_written),
        T(the_status_is_patched_under_the_version_that_was_read),
        T(another_claim_of_the_name_is_left_alone),
        T(the_latest_message_counts),
        T(a_server_that_refuses_is_not_asked_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
