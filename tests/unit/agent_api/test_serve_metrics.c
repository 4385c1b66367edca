/* SPDX-License-Identifier: Apache-2.0 */
#include "serve_helper.h"

#include "base/codec/json.h"

static const char summary[] =
    "{\"node\":{\"nodeName\":\"n\",\"cpu\":{\"time\":\"2026-01-01T00:00:00Z\",\"usageNanoCores\":123456789},"
    "\"memory\":{\"workingSetBytes\":1073741824}},\"pods\":["
    "{\"podRef\":{\"name\":\"a\",\"namespace\":\"x\"},\"containers\":[{\"name\":\"c\",\"cpu\":{\"time\":"
    "\"2026-01-01T00:00:01Z\",\"usageNanoCores\":2000000},\"memory\":{\"workingSetBytes\":5000}}]},"
    "{\"podRef\":{\"name\":\"b\",\"namespace\":\"y\"},\"containers\":[{\"name\":\"c\"}]},"
    "{\"podRef\":{\"name\":\"a\",\"namespace\":\"y\"},\"containers\":[]}]}";

static json_t *answer(const char *path, json_t **ret_status)
{
    JSON_AUTO *v = json_loads(summary, 0, NULL);
    JSON_AUTO *objects = json_pack("{s:{s:s}}", "x/a", "l", "1");
    struct api_target t;

    assert_non_null(v);
    assert_true(api_target_parse(path, &t));
    return api_metrics_of(&t, v, objects, ret_status);
}

static void is(const char *path, const char *expected)
{
    json_t *status;
    JSON_AUTO *v = answer(path, &status);
    char *text = json_dumps(v, JSON_COMPACT);

    assert_string_equal(text, expected);
    free(text);
}

#define HEAD(kind) "{\"kind\":\"" kind "\",\"apiVersion\":\"metrics.k8s.io/v1beta1\",\"metadata\":{"

static void the_node_is_measured(void **state)
{
    (void)state;
    is("/apis/metrics.k8s.io/v1beta1/nodes/n",
       HEAD("NodeMetrics") "\"name\":\"n\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"timestamp\":"
                           "\"2026-01-01T00:00:00Z\",\"window\":\"10s\",\"usage\":{\"cpu\":\"123456789n\","
                           "\"memory\":\"1Gi\"}}");
}

static void pods_are_measured_as_soon_as_all_is_known(void **state)
{
    json_t *status;
    JSON_AUTO *all = answer("/apis/metrics.k8s.io/v1beta1/pods", &status);

    (void)state;
    assert_string_equal(text_at(all, "kind"), "PodMetricsList");
    assert_int_equal(json_array_size(json_object_get(all, "items")), 2);
    is("/apis/metrics.k8s.io/v1beta1/namespaces/x/pods/a",
       HEAD(
           "PodMetrics") "\"name\":\"a\",\"namespace\":\"x\",\"creationTimestamp\":\"2026-01-01T00:00:01Z\","
                         "\"labels\":{\"l\":\"1\"}},\"timestamp\":\"2026-01-01T00:00:01Z\",\"window\":"
                         "\"10s\","
                         "\"containers\":[{\"name\":\"c\",\"usage\":{\"cpu\":\"2m\",\"memory\":\"5000\"}}]}");
    assert_null(answer("/apis/metrics.k8s.io/v1beta1/namespaces/y/pods/b", &status));
    assert_string_equal(text_at(status, "message"), "pods.metrics.k8s.io \"b\" not found");
    json_decref(status);
}

/* ---- reviews ---- */

static void replay(const json_t *recorded)
{
    static const char *const groups[] = { "system:masters", "system:authenticated", NULL };
    json_t *result = json_object_get(recorded, "result");
    struct api_target t;

    assert_true(api_target_parse(text_at(recorded, "path"), &t));
    JSON_AUTO *ours = api_review_of(t.kind, json_object_get(recorded, "body"),
                                    &(struct api_reviewed_user){ "kubernetes-admin", groups }, "<time>");
    json_object_del(json_at(result, "status.userInfo"), "extra");
    if (!json_equal(ours, result))
        fail_msg("%s: %s", text_at(recorded, "name"), json_dumps(ours, 0));
}

static void recorded_reviews_hold(void **state)
{
    (void)state;
    each_case("discovery", "selfsubject", replay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_node_is_measured),
        cmocka_unit_test(pods_are_measured_as_soon_as_all_is_known),
        cmocka_unit_test(recorded_reviews_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
