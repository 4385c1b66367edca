/* SPDX-License-Identifier: Apache-2.0 */
#include "serve_helper.h"

#include "base/clock.h"
#include "base/codec/json.h"

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"

static int64_t at(const char *time)
{
    struct err e = { 0 };
    int64_t ns;

    assert_int_equal(clock_parse(time, &ns, &e), ERR_OK);
    return ns;
}

/* The cells of the only row, as compact JSON. */
static void shows(const char *api_version, const char *kind, const char *object, const char *cells)
{
    const struct api_form_options options = { .form = API_FORM_TABLE, .now_ns = at("2026-01-01T01:00:00Z") };
    JSON_AUTO *o = json_loads(object, 0, NULL);
    json_t *status = NULL, *row;
    char *text;

    assert_non_null(o);
    JSON_AUTO *table = api_form_of(api_kind_of_object(api_version, kind), o, &options, &status);
    assert_non_null(table);
    row = json_array_get(json_object_get(table, "rows"), 0);
    assert_int_equal(json_array_size(json_object_get(row, "cells")),
                     json_array_size(json_object_get(table, "columnDefinitions")));
    text = json_dumps(json_object_get(row, "cells"), JSON_COMPACT);
    assert_string_equal(text, cells);
    free(text);
}

static void pods_are_summed_up(void **state)
{
    (void)state;
    shows("v1", "Pod",
          "{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
          "\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\"}],"
          "\"readinessGates\":[{\"conditionType\":\"x/y\"},{\"conditionType\":\"x/z\"}]},"
          "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.1\",\"conditions\":[{\"type\":\"x/"
          "y\",\"status\":"
          "\"True\"},{\"type\":\"Ready\",\"status\":\"True\"}],\"containerStatuses\":[{\"name\":\"c\","
          "\"ready\":true,"
          "\"restartCount\":3,\"state\":{\"running\":{}},\"lastState\":{\"terminated\":{\"finishedAt\":"
          "\"2026-01-01T00:50:00Z\"}}}]}}",
          "[\"a\",\"1/1\",\"Running\",\"3 (10m ago)\",\"60m\",\"10.0.0.1\",\"n\",\"<none>\",\"1/2\"]");
    shows("v1", "Pod", "{}",
          "[\"\",\"0/0\",\"\",\"0\",\"<unknown>\",\"<none>\",\"<none>\",\"<none>\",\"<none>\"]");
}

static void work_shows_its_template_and_selector(void **state)
{
    (void)state;
    shows(
        "apps/v1", "ReplicaSet",
        "{\"metadata\":{\"name\":\"r\"},\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":{\"b\":\"2\"},"
        "\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"y\",\"x\"]},"
        "{\"key\":\"c\",\"operator\":\"DoesNotExist\"},{\"key\":\"d\",\"operator\":\"Exists\"},"
        "{\"key\":\"e\",\"operator\":\"NotIn\",\"values\":[\"z\"]}]},"
        "\"template\":{\"spec\":{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"},{\"name\":\"n\","
        "\"image\":\"j:2\"}]"
        "}}},\"status\":{\"replicas\":1}}",
        "[\"r\",2,1,0,\"<unknown>\",\"m,n\",\"i:1,j:2\",\"a in (x,y),b=2,!c,d,e notin (z)\"]");
    shows("batch/v1", "Job",
          "{\"metadata\":{\"name\":\"j\"},\"spec\":{\"parallelism\":3},\"status\":{\"succeeded\":1,"
          "\"startTime\":"
          "\"2026-01-01T00:00:00Z\",\"completionTime\":\"2026-01-01T00:00:42Z\",\"conditions\":[{\"type\":"
          "\"Complete\","
          "\"status\":\"True\"}]}}",
          "[\"j\",\"Complete\",\"1/1 of 3\",\"42s\",\"<unknown>\",\"\",\"\",\"<none>\"]");
    shows("batch/v1", "CronJob",
          "{\"metadata\":{\"name\":\"j\"},\"spec\":{\"schedule\":\"* * * * "
          "*\",\"suspend\":false},\"status\":{\"active\":"
          "[{}],\"lastScheduleTime\":\"2026-01-01T00:59:00Z\"}}",
          "[\"j\",\"* * * * *\",\"<none>\",\"False\",1,\"60s\",\"<unknown>\",\"\",\"\",\"<none>\"]");
}

static void the_other_kinds(void **state)
{
    (void)state;
    shows("v1", "Node",
          "{\"metadata\":{\"name\":\"n\",\"labels\":{\"node-role.kubernetes.io/worker\":\"\",\"kubernetes.io/"
          "role\":"
          "\"edge\"}},\"spec\":{\"unschedulable\":true},\"status\":{\"conditions\":[{\"type\":\"Ready\","
          "\"status\":"
          "\"False\"}],\"nodeInfo\":{\"kubeletVersion\":\"v1\"}}}",
          "[\"n\",\"NotReady,SchedulingDisabled\",\"edge,worker\",\"<unknown>\",\"v1\",\"<none>\",\"<none>\","
          "\"<unknown>\",\"<unknown>\",\"<unknown>\"]");
    shows("v1", "PersistentVolumeClaim",
          "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"volumeName\":\"v\",\"volumeMode\":\"Filesystem\"},"
          "\"status\":{"
          "\"phase\":\"Bound\",\"capacity\":{\"storage\":\"1Gi\"},\"accessModes\":[\"ReadWriteMany\","
          "\"ReadWriteOnce\"]}"
          "}",
          "[\"c\",\"Bound\",\"v\",\"1Gi\",\"RWO,RWX\",\"\",\"<unset>\",\"<unknown>\",\"Filesystem\"]");
    shows("events.k8s.io/v1", "Event",
          "{\"metadata\":{\"name\":\"e\"},\"regarding\":{\"kind\":\"Pod\",\"name\":\"p\"},\"note\":\" "
          "hello\\n\","
          "\"eventTime\":\"2026-01-01T00:58:00.000000Z\",\"reportingController\":\"c\",\"reportingInstance\":"
          "\"i\"}",
          "[\"2m\",\"\",\"\",\"pod/p\",\"\",\"c, i\",\"hello\",\"2m\",1,\"e\"]");
    shows("v1", "Service",
          "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"type\":\"LoadBalancer\",\"clusterIP\":\"None\","
          "\"ports\":[{\"port\":"
          "80,\"nodePort\":30000}]}}",
          "[\"s\",\"LoadBalancer\",\"None\",\"<pending>\",\"80:30000/TCP\",\"<unknown>\",\"<none>\"]");
    shows("scheduling.k8s.io/v1", "PriorityClass", "{\"metadata\":{\"name\":\"h\"},\"value\":-5}",
          "[\"h\",-5,false,\"<unknown>\",\"PreemptLowerPriority\"]");
}

static void every_kind_has_columns(void **state)
{
    const struct api_form_options options = { .form = API_FORM_TABLE };
    JSON_AUTO *empty = json_object();
    json_t *status;

    (void)state;
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++) {
        JSON_AUTO *table = api_form_of(k, empty, &options, &status);
        json_t *row = json_array_get(json_object_get(table, "rows"), 0);
        assert_int_equal(json_array_size(json_object_get(row, "cells")),
                         json_array_size(json_object_get(table, "columnDefinitions")));
    }
}

/* ---- the Accept header ---- */

static void the_better_quality_comes_first(void **state)
{
    struct api_accept a;
    json_t *status;

    (void)state;
    assert_true(api_accept_read("application/json;q=0.5,application/yaml", &a, &status));
    assert_true(a.yaml);
    assert_true(api_accept_read("*/*, application/yaml", &a, &status)); /* the more specific one */
    assert_true(a.yaml);
    assert_true(api_accept_read("application/json;as=Foo;v=v1;g=meta.k8s.io, application/json", &a, &status));
    assert_int_equal(a.form, API_FORM_OBJECT);
    assert_true(
        api_accept_read("application/vnd.kubernetes.protobuf,application/json;pretty=1", &a, &status));
    assert_true(a.pretty && !a.yaml);
}

/* ---- recorded ---- */

static const char *decoded(const char *query, const char *key)
{
    const char *found = strstr(query, key);

    return found == NULL ? NULL : found + strlen(key);
}

static json_t *placeholders_gone(json_t *v)
{
    /* Descriptions are our own; ages depend on the time. */
    json_t *column;
    size_t i;

    json_array_foreach (json_object_get(v, "columnDefinitions"), i, column)
        json_object_del(column, "description");
    return v;
}

/* An object that shows as these cells, where that is needed: the recordings have no objects beside tables. */
static void compare_columns(const json_t *recorded)
{
    const json_t *result = json_object_get(recorded, "result"),
                 *headers = json_object_get(recorded, "requestHeaders");
    struct api_target t;
    struct api_accept a;
    json_t *status;

    if (!api_accept_read(text_at(headers, "Accept"), &a, &status)) {
        assert_int_equal(json_integer_value(json_object_get(recorded, "code")), 406);
        json_decref(status);
        return;
    }
    if (strcmp(text_at(result, "kind"), "Table") != 0)
        return;
    assert_true(api_target_parse(text_at(recorded, "path"), &t));
    assert_int_equal(a.form, API_FORM_TABLE);
    JSON_AUTO *empty = json_pack("{s:{}, s:[]}", "metadata", "items");
    JSON_AUTO *ours =
        api_form_of(t.kind, empty, &(struct api_form_options){ .form = a.form, .beta = a.beta }, &status);
    assert_non_null(ours);
    json_object_set(ours, "rows", json_object_get(result, "rows"));
    json_object_set(ours, "metadata", json_object_get(result, "metadata"));
    placeholders_gone(ours);
    placeholders_gone(json_object_get(recorded, "result"));
    if (!json_equal(ours, result))
        fail_msg("%s:\n%s\nbut ours\n%s", text_at(recorded, "name"), json_dumps(result, 0),
                 json_dumps(ours, 0));
}

/* The objects that the recorded answer was made of, as far as it shows them. */
static json_t *shown_objects(const json_t *result)
{
    json_t *list = json_pack("{s:O, s:[]}", "metadata", json_object_get(result, "metadata"), "items"), *row;
    json_t *from = json_object_get(result, strcmp(text_at(result, "kind"), "Table") == 0 ? "rows" : "items");
    size_t i;

    json_array_foreach (from, i, row) {
        json_t *object = json_object_get(row, "object");
        json_array_append_new(
            json_object_get(list, "items"),
            json_pack("{s:O}", "metadata", json_object_get(object != NULL ? object : row, "metadata")));
    }
    return list;
}

static void replay_metadata(const json_t *recorded)
{
    json_t *result = json_object_get(recorded, "result"), *status, *row;
    const bool one = strcmp(text_at(result, "kind"), "PartialObjectMetadata") == 0;
    JSON_AUTO *object =
        one ? json_pack("{s:O}", "metadata", json_object_get(result, "metadata")) : shown_objects(result);
    struct api_target t;
    struct api_accept a;
    size_t i;

    assert_true(api_target_parse(text_at(recorded, "path"), &t));
    assert_true(api_accept_read(text_at(json_object_get(recorded, "requestHeaders"), "Accept"), &a, &status));
    JSON_AUTO *ours =
        api_form_of(t.kind, object, &(struct api_form_options){ .form = a.form, .beta = a.beta }, &status);
    if (a.form == API_FORM_TABLE) {
        json_array_foreach (json_object_get(result, "rows"), i, row)
            json_object_set(json_array_get(json_object_get(ours, "rows"), i), "cells",
                            json_object_get(row, "cells"));
        placeholders_gone(ours);
        placeholders_gone(result);
    }
    if (!json_equal(ours, result))
        fail_msg("%s:\n%s\nbut ours\n%s", text_at(recorded, "name"), json_dumps(result, 0),
                 json_dumps(ours, 0));
}

static void replay_include(const json_t *recorded)
{
    const char *include = decoded(text_at(recorded, "query"), "includeObject=");
    enum api_include how;
    json_t *status;

    if (api_include_read(include, &how, &status)) {
        assert_int_equal(json_integer_value(json_object_get(recorded, "code")), 200);
        return;
    }
    if (!json_equal(status, json_object_get(recorded, "status")))
        fail_msg("%s: %s", text_at(recorded, "name"), json_dumps(status, 0));
    json_decref(status);
}

/* The recorded messages name protobuf, too. */
static json_t *without_protobuf(json_t *status)
{
    char *message = strdup(text_at(status, "message")), *end = strstr(message, ", application/vnd");

    if (end != NULL)
        *end = '\0';
    json_object_set_new(status, "message", json_string(message));
    free(message);
    return status;
}

static void replay_accept(const json_t *recorded)
{
    const json_t *headers = json_object_get(recorded, "requestHeaders");
    const json_int_t code = json_integer_value(json_object_get(recorded, "code"));
    JSON_AUTO *object = json_pack("{s:s, s:s, s:{}}", "kind", "ConfigMap", "apiVersion", "v1", "metadata");
    json_t *status = NULL, *shown = NULL;
    struct api_accept a;
    struct api_target t;

    if (strcmp(text_at(recorded, "name"), "accept-protobuf") == 0)
        return; /* not spoken */
    assert_true(api_target_parse(text_at(recorded, "path"), &t));
    if (api_accept_read(json_string_value(json_object_get(headers, "Accept")), &a, &status))
        shown = api_form_of(t.kind, object, &(struct api_form_options){ .form = a.form }, &status);
    if (shown != NULL) {
        assert_int_equal(code, 200);
        assert_int_equal(a.yaml, json_object_get(recorded, "text") != NULL);
    } else {
        assert_int_equal(code, 406);
        if (!json_equal(status, without_protobuf(json_object_get(recorded, "status"))))
            fail_msg("%s: %s", text_at(recorded, "name"), json_dumps(status, 0));
    }
    json_decref(shown);
    json_decref(status);
}

static void recorded_columns_hold(void **state)
{
    (void)state;
    each_case("table", "table-get", compare_columns);
    each_case("table", "table-list", compare_columns);
    each_case("table", "table-empty", compare_columns);
    each_case("table", "table-kubectl", compare_columns);
    each_case("table", "table-v1beta1", compare_columns);
    each_case("table", "table-includeobject", replay_include);
    each_case("table", "table-limit", replay_metadata);
    each_case("table", "table-list", replay_metadata);
    each_case("table", "partialmetadata", replay_metadata);
}

static void recorded_negotiation_holds(void **state)
{
    (void)state;
    each_case("accept", "", replay_accept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_summed_up),
        cmocka_unit_test(work_shows_its_template_and_selector),
        cmocka_unit_test(the_other_kinds),
        cmocka_unit_test(every_kind_has_columns),
        cmocka_unit_test(the_better_quality_comes_first),
        cmocka_unit_test(recorded_columns_hold),
        cmocka_unit_test(recorded_negotiation_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
