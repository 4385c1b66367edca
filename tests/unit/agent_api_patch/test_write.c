/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/patch/write/write.h"
#include "tests/unit/agent_api_patch/patch_case.h"

#include "base/scope.h"

#define NOW "2030-01-01T00:00:00Z"
#define MAP                                                                                                  \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"namespace\":\"n\","        \
    "\"uid\":\"u\",\"resourceVersion\":\"5\"}"
#define LIVE_MAP MAP ",\"data\":{\"x\":\"1\"}}"

struct outcome {
    json_t *object, *warnings, *status;
    bool same;
};

static struct outcome write_as(struct api_write w, const char *live_text, const char *text)
{
    struct outcome o = { .warnings = json_array() };
    json_t *live = live_text != NULL ? patch_load(live_text) : NULL, *body = patch_load(text);
    struct err e = { 0 };

    w.by.name = "m";
    w.by.now = NOW;
    assert_non_null(w.kind);
    if (api_write(&w, live, body, o.warnings, &o.object, &o.same, &o.status, &e) != ERR_OK)
        assert_non_null(o.status);
    json_decref(live);
    json_decref(body);
    return o;
}

static void done(struct outcome *o)
{
    json_decref(o->object);
    json_decref(o->warnings);
    json_decref(o->status);
}

static struct api_write of_map(enum api_write_type type)
{
    return (struct api_write){
        .type = type, .kind = api_patch_kind_find("v1", "ConfigMap"), .name = "c", .namespace = "n"
    };
}

static struct api_write of_deployment(enum api_write_type type)
{
    return (struct api_write){
        .type = type, .kind = api_patch_kind_find("apps/v1", "Deployment"), .name = "d", .namespace = "n"
    };
}

static void expect_refusal(struct api_write w, const char *live, const char *body, int code,
                           const char *message)
{
    struct outcome o = write_as(w, live, body);

    assert_null(o.object);
    patch_expect_status(o.status, code, message);
    done(&o);
}

static void names_and_versions_are_compared(void **state)
{
    (void)state;
    expect_refusal(of_map(API_WRITE_MERGE), LIVE_MAP, "{\"metadata\":{\"name\":\"o\"}}", 400,
                   "the name of the object (o) does not match the name on the URL (c)");
    expect_refusal(of_map(API_WRITE_MERGE), LIVE_MAP, "{\"metadata\":{\"name\":null}}", 400,
                   "the name of the object (c based on URL) was undeterminable: name must be provided");
    expect_refusal(of_map(API_WRITE_MERGE), LIVE_MAP, "{\"metadata\":{\"namespace\":\"o\"}}", 400,
                   "the namespace of the provided object does not match the namespace sent on the request");
    expect_refusal(of_map(API_WRITE_MERGE), LIVE_MAP, "{\"metadata\":{\"uid\":\"v\"}}", 422,
                   "ConfigMap \"c\" is invalid: metadata.uid: Invalid value: \"v\": field is immutable");
    expect_refusal(
        of_map(API_WRITE_MERGE), LIVE_MAP, "{\"metadata\":{\"resourceVersion\":\"4\"}}", 409,
        "Operation cannot be fulfilled on configmaps \"c\": the object has been modified; please apply "
        "your changes to the latest version and try again");
    expect_refusal(of_map(API_WRITE_MERGE), LIVE_MAP, "{\"metadata\":{\"resourceVersion\":\"x\"}}", 500,
                   "strconv.ParseUint: parsing \"x\": invalid syntax");
    expect_refusal(of_map(API_WRITE_MERGE), NULL, "{}", 404, "configmaps \"c\" not found");
    expect_refusal(
        of_map(API_WRITE_APPLY), NULL,
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"uid\":\"v\"}}", 409,
        "Operation cannot be fulfilled on configmaps \"c\": uid mismatch: the provided object specified "
        "uid v, and no existing object was found");
}

static void unknown_fields_warn_or_fail(void **state)
{
    static const char *const patch = "{\"data\":{\"y\":\"1\"},\"foo\":1,\"metadata\":{\"lables\":{}}}";
    struct api_write w = of_map(API_WRITE_MERGE);
    struct outcome o = write_as(w, LIVE_MAP, patch);

    (void)state;
    patch_expect(o.warnings, "[\"unknown field \\\"foo\\\"\",\"unknown field \\\"metadata.lables\\\"\"]");
    assert_null(json_object_get(o.object, "foo"));
    done(&o);
    w.validation = API_FIELDS_IGNORE;
    o = write_as(w, LIVE_MAP, patch);
    patch_expect(o.warnings, "[]");
    done(&o);
    w.validation = API_FIELDS_STRICT;
    w.type = API_WRITE_STRATEGIC;
    expect_refusal(
        w, LIVE_MAP, "{\"foo\":1}", 422,
        " \"\" is invalid: patch: Invalid value: \"map[foo:1]\": strict decoding error: unknown field "
        "\"foo\"");
}

static void types_are_checked_in_the_words_of_go(void **state)
{
    struct outcome o = write_as(of_map(API_WRITE_MERGE), LIVE_MAP, "{\"data\":{\"x\":1}}");
    const char *message = json_string_value(json_object_get(o.status, "message"));

    (void)state;
    assert_non_null(
        strstr(message, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"));
    done(&o);
    expect_refusal(
        of_map(API_WRITE_STRATEGIC), LIVE_MAP, "{\"data\":{\"x\":5}}", 422,
        " \"\" is invalid: patch: Invalid value: \"map[data:map[x:5]]\": cannot convert int64 to string");
    expect_refusal(
        of_map(API_WRITE_STRATEGIC), LIVE_MAP, "{\"data\":[\"a\"]}", 422,
        " \"\" is invalid: patch: Invalid value: \"map[data:[a]]\": cannot restore map from slice");
}

static void a_write_of_the_same_changes_nothing(void **state)
{
    struct outcome o = write_as(of_map(API_WRITE_MERGE), LIVE_MAP, "{\"data\":{\"x\":\"1\"}}");

    (void)state;
    assert_true(o.same);
    patch_expect(o.object, LIVE_MAP);
    done(&o);
    o = write_as(of_map(API_WRITE_MERGE), LIVE_MAP, "{\"data\":{\"x\":\"2\"}}");
    assert_false(o.same);
    done(&o);
}

#define META                                                                                                 \
    "\"apiVersion\":\"apps/"                                                                                 \
    "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\",\"namespace\":\"n\",\"uid\":\"u\","           \
    "\"generation\":3}"

static void a_path_changes_spec_or_status(void **state)
{
    static const char *const live = "{" META ",\"spec\":{\"replicas\":1},\"status\":{\"replicas\":1}}";
    struct api_write w = of_deployment(API_WRITE_MERGE);
    struct outcome o = write_as(w, live, "{\"spec\":{\"replicas\":2},\"status\":{\"replicas\":7}}");

    (void)state;
    patch_expect(json_object_get(o.object, "status"), "{\"replicas\":1}");
    patch_expect(json_object_get(json_object_get(o.object, "spec"), "replicas"), "2");
    patch_expect(json_object_get(json_object_get(o.object, "metadata"), "generation"), "4");
    done(&o);
    w.by.subresource = "status";
    o = write_as(w, live, "{\"spec\":{\"replicas\":2},\"status\":{\"replicas\":7}}");
    patch_expect(json_object_get(o.object, "status"), "{\"replicas\":7}");
    patch_expect(json_object_get(json_object_get(o.object, "spec"), "replicas"), "1");
    patch_expect(json_object_get(json_object_get(o.object, "metadata"), "generation"), "3");
    done(&o);
}

static void defaults_come_back(void **state)
{
    struct outcome o = write_as(
        of_deployment(API_WRITE_CREATE), NULL,
        "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\","
        "\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":0.5}}}],\"volumes\":[{\"name\":\"v\"}]}}}}");
    const json_t *spec = json_object_get(o.object, "spec"),
                 *pod = json_object_get(json_object_get(spec, "template"), "spec"),
                 *container = json_array_get(json_object_get(pod, "containers"), 0);

    (void)state;
    patch_expect(
        json_object_get(spec, "strategy"),
        "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":\"25%\",\"maxSurge\":\"25%\"}}");
    patch_expect(json_object_get(spec, "replicas"), "1");
    patch_expect(json_object_get(container, "imagePullPolicy"), "\"Always\"");
    patch_expect(json_object_get(container, "resources"), "{\"limits\":{\"cpu\":\"500m\"}}");
    patch_expect(json_object_get(pod, "volumes"), "[{\"name\":\"v\",\"emptyDir\":{}}]");
    assert_null(json_object_get(pod, "enableServiceLinks"));
    assert_null(json_object_get(json_object_get(json_object_get(spec, "template"), "metadata"), "namespace"));
    patch_expect(json_object_get(json_object_get(o.object, "metadata"), "generation"), "1");
    done(&o);
}

static void expect_pod_update(const char *from, const char *patch, const char *message)
{
    const struct api_write w = {
        .type = API_WRITE_MERGE, .kind = api_patch_kind_find("v1", "Pod"), .name = "p", .namespace = "n"
    };
    struct outcome first = write_as(
                       (struct api_write){ .type = API_WRITE_CREATE, .kind = w.kind, .namespace = "n" }, NULL,
                       from),
                   o;
    mem_auto char *live = json_dumps(first.object, 0);

    o = write_as(w, live, patch);
    if (message == NULL)
        assert_non_null(o.object);
    else
        patch_expect_status(o.status, 422, message);
    done(&first);
    done(&o);
}

#define POD(spec)                                                                                            \
    "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i:1\"}]" spec "}}"

static void a_pod_changes_in_few_fields(void **state)
{
    (void)state;
    expect_pod_update(POD(""), "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i:2\"}]}}", NULL);
    expect_pod_update(
        POD(""), "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i:1\"},{\"name\":\"b\"}]}}",
        "Pod \"p\" is invalid: spec.containers: Forbidden: pod updates may not add or remove containers");
    expect_pod_update(POD(""), "{\"spec\":{\"tolerations\":[{\"key\":\"a\"}]}}", NULL);
    expect_pod_update(
        POD(",\"tolerations\":[{\"key\":\"a\"}]"), "{\"spec\":{\"tolerations\":[]}}",
        "Pod \"p\" is invalid: spec.tolerations: Forbidden: existing toleration can not be modified "
        "except its tolerationSeconds");
    expect_pod_update(POD(",\"activeDeadlineSeconds\":9"), "{\"spec\":{\"activeDeadlineSeconds\":8}}", NULL);
    expect_pod_update(
        POD(",\"activeDeadlineSeconds\":9"), "{\"spec\":{\"activeDeadlineSeconds\":10}}",
        "Pod \"p\" is invalid: spec.activeDeadlineSeconds: Invalid value: 10: must be less than or equal to "
        "previous value");
    expect_pod_update(
        POD(",\"activeDeadlineSeconds\":9"), "{\"spec\":{\"activeDeadlineSeconds\":null}}",
        "Pod \"p\" is invalid: spec.activeDeadlineSeconds: Invalid value: null: must not update from a "
        "positive integer to nil value");
    expect_pod_update(POD(",\"terminationGracePeriodSeconds\":-1"),
                      "{\"spec\":{\"terminationGracePeriodSeconds\":1}}", NULL);
    expect_pod_update(POD(",\"schedulingGates\":[{\"name\":\"g\"}]"),
                      "{\"spec\":{\"schedulingGates\":[],\"nodeSelector\":{\"a\":\"b\"}}}", NULL);
    expect_pod_update(
        POD(""), "{\"spec\":{\"schedulingGates\":[{\"name\":\"g\"}]}}",
        "Pod \"p\" is invalid: spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found "
        "new scheduling gate 'g'");
    expect_pod_update(
        POD(""), "{\"spec\":{\"hostname\":\"h\"}}",
        "Pod \"p\" is invalid: spec: Forbidden: pod updates may not change fields other than "
        "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
        "`spec.tolerations` (only additions to existing tolerations),"
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)");
}

static void what_is_immutable_stays(void **state)
{
    static const char *const map = MAP ",\"data\":{\"x\":\"1\"},\"immutable\":true}";
    static const char *const live = "{" META ",\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"1\"}},"
                                    "\"template\":{\"metadata\":{\"labels\":{\"a\":\"1\"}}}}}";

    (void)state;
    expect_refusal(of_map(API_WRITE_MERGE), map, "{\"data\":{\"x\":\"2\"}}", 422,
                   "ConfigMap \"c\" is invalid: data: Forbidden: field is immutable when `immutable` is set");
    expect_refusal(
        of_map(API_WRITE_MERGE), map, "{\"immutable\":null}", 422,
        "ConfigMap \"c\" is invalid: immutable: Forbidden: field is immutable when `immutable` is set");
    expect_refusal(
        of_deployment(API_WRITE_MERGE), live, "{\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"2\"}}}}",
        422,
        "Deployment.apps \"d\" is invalid: [spec.template.metadata.labels: Invalid value: {\"a\":\"1\"}: "
        "`selector` does not match template `labels`, spec.selector: Invalid value: "
        "{\"matchLabels\":{\"a\":\"2\"}}: field is immutable]");
}

static void options_are_checked(void **state)
{
    static const struct {
        const char *manager, *validation, *dry_run, *force;
        bool apply;
        const char *message;
    } cases[] = {
        { "", NULL, NULL, NULL, true, "fieldManager: Required value: is required for apply patch" },
        { "a\x01", NULL, NULL, NULL, false,
          "fieldManager: Invalid value: \"\\x01\": invalid character U+0001 (at position 1)" },
        { "m", "Maybe", NULL, NULL, false,
          "fieldValidation: Unsupported value: \"Maybe\": supported values: \"\", \"Ignore\", \"Strict\", "
          "\"Warn\"" },
        { "m", NULL, "Some", NULL, false,
          "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"" },
        { "m", NULL, NULL, "true", false, "force: Forbidden: may not be specified for non-apply patch" },
        { "m", "Strict", "All", NULL, false, NULL },
        { "m", NULL, NULL, "true", true, NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *status = NULL;
        struct err e = { 0 };
        str_auto message = NULL;

        ERR_IGNORE(api_patch_options_check(cases[i].manager, cases[i].validation, cases[i].dry_run,
                                           cases[i].force, cases[i].apply, &status, &e));
        assert_true((status == NULL) == (cases[i].message == NULL));
        assert_true(asprintf(&message, "PatchOptions.meta.k8s.io \"\" is invalid: %s",
                             cases[i].message != NULL ? cases[i].message : "") > 0);
        if (status != NULL)
            patch_expect_status(status, 422, message);
        json_decref(status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_versions_are_compared),
        cmocka_unit_test(unknown_fields_warn_or_fail),
        cmocka_unit_test(types_are_checked_in_the_words_of_go),
        cmocka_unit_test(a_write_of_the_same_changes_nothing),
        cmocka_unit_test(a_path_changes_spec_or_status),
        cmocka_unit_test(defaults_come_back),
        cmocka_unit_test(a_pod_changes_in_few_fields),
        cmocka_unit_test(what_is_immutable_stays),
        cmocka_unit_test(options_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
