/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_api_patch/patch_case.h"

#include "base/scope.h"

static const struct api_patch_kind *kind;

static enum err_code strategic(const json_t *live, const json_t *patch, json_t **ret, json_t **ret_status,
                               struct err *e)
{
    return api_patch_strategic(kind, live, patch, ret, ret_status, e);
}

static void run_all(const char *version, const char *name, const struct patch_case *cases, size_t n)
{
    kind = api_patch_kind_find(version, name);
    assert_non_null(kind);
    for (size_t i = 0; i < n; i++)
        patch_run(&cases[i], strategic);
}

#define CONTAINERS(list) "{\"spec\":{\"containers\":" list "}}"

static void lists_merge_by_their_key(void **state)
{
    static const struct patch_case cases[] = {
        { CONTAINERS("[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\",\"image\":\"1\"}]"),
          CONTAINERS("[{\"name\":\"b\",\"image\":\"2\"}]"),
          CONTAINERS("[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\",\"image\":\"2\"}]") },
        /* one that is new goes first: nothing of the live list is before it */
        { CONTAINERS("[{\"name\":\"a\"},{\"name\":\"b\"}]"), CONTAINERS("[{\"name\":\"c\"}]"),
          CONTAINERS("[{\"name\":\"c\"},{\"name\":\"a\"},{\"name\":\"b\"}]") },
        { CONTAINERS("[{\"name\":\"a\"},{\"name\":\"b\"}]"),
          CONTAINERS("[{\"name\":\"c\"},{\"name\":\"b\"},{\"name\":\"d\"}]"),
          CONTAINERS("[{\"name\":\"c\"},{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"d\"}]") },
        { CONTAINERS("[{\"name\":\"a\"},{\"name\":\"b\"}]"),
          CONTAINERS("[{\"name\":\"a\",\"$patch\":\"delete\"},{\"name\":\"z\",\"$patch\":\"delete\"}]"),
          CONTAINERS("[{\"name\":\"b\"}]") },
        { CONTAINERS("[{\"name\":\"a\"},{\"name\":\"b\"}]"),
          CONTAINERS("[{\"$patch\":\"replace\"},{\"name\":\"c\"}]"), CONTAINERS("[{\"name\":\"c\"}]") },
        /* by the number alone: the first of two */
        { CONTAINERS("[{\"name\":\"a\",\"ports\":[{\"containerPort\":80,\"protocol\":\"TCP\"},"
                     "{\"containerPort\":80,\"protocol\":\"UDP\"}]}]"),
          CONTAINERS("[{\"name\":\"a\",\"ports\":[{\"containerPort\":80,\"name\":\"p\"}]}]"),
          CONTAINERS("[{\"name\":\"a\",\"ports\":[{\"containerPort\":80,\"protocol\":\"TCP\",\"name\":\"p\"},"
                     "{\"containerPort\":80,\"protocol\":\"UDP\"}]}]") },
        { CONTAINERS("[{\"name\":\"a\",\"args\":[\"x\",\"y\"]}]"),
          CONTAINERS("[{\"name\":\"a\",\"args\":[\"z\"]}]"),
          CONTAINERS("[{\"name\":\"a\",\"args\":[\"z\"]}]") },
        { "{\"spec\":{\"tolerations\":[{\"key\":\"a\"}]}}", "{\"spec\":{\"tolerations\":[{\"key\":\"b\"}]}}",
          "{\"spec\":{\"tolerations\":[{\"key\":\"b\"}]}}" },
    };

    (void)state;
    run_all("v1", "Pod", cases, ARRAY_LEN(cases));
}

static void directives_order_delete_and_retain(void **state)
{
    static const struct patch_case cases[] = {
        { CONTAINERS("[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]"),
          "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"c\"},{\"name\":\"a\"}]}}",
          CONTAINERS("[{\"name\":\"b\"},{\"name\":\"c\"},{\"name\":\"a\"}]") },
        { "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}", "{\"metadata\":{\"finalizers\":[\"c\",\"a\"]}}",
          "{\"metadata\":{\"finalizers\":[\"c\",\"a\",\"b\"]}}" },
        { "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
          "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\",\"z\"]}}",
          "{\"metadata\":{\"finalizers\":[\"b\"]}}" },
        { CONTAINERS("[{\"name\":\"a\",\"args\":[\"x\",\"y\"]}]"),
          CONTAINERS("[{\"name\":\"a\",\"$deleteFromPrimitiveList/args\":[\"x\"]}]"),
          CONTAINERS("[{\"name\":\"a\",\"args\":[\"y\"]}]") },
        { "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]}}",
          "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"$retainKeys\":[\"name\",\"secret\"],\"secret\":{}}]}}",
          "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"secret\":{}}]}}" },
        { "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"2\"}}}",
          "{\"metadata\":{\"labels\":{\"$patch\":\"replace\",\"c\":\"3\"}}}",
          "{\"metadata\":{\"labels\":{\"c\":\"3\"}}}" },
        { "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}", "{\"metadata\":{\"labels\":{\"$patch\":\"delete\"}}}",
          "{\"metadata\":{\"labels\":{}}}" },
        { "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}",
          "{\"metadata\":{\"labels\":{\"a\":null,\"z\":null},\"annotations\":{\"q\":null,\"r\":\"1\"}}}",
          "{\"metadata\":{\"labels\":{},\"annotations\":{\"r\":\"1\"}}}" },
        { "{\"a\":1}", "null", "{\"a\":1}" },
    };

    (void)state;
    run_all("v1", "Pod", cases, ARRAY_LEN(cases));
}

static void what_the_library_refuses_has_its_words(void **state)
{
    static const struct patch_case cases[] = {
        { CONTAINERS("[{\"name\":\"a\"}]"), CONTAINERS("[{\"image\":\"i\"}]"), NULL, 500,
          "map: map[image:i] does not contain declared merge key: name" },
        { CONTAINERS("[{\"name\":\"a\"}]"), CONTAINERS("[{\"name\":\"a\",\"$patch\":\"mix\"}]"), NULL, 500,
          "unknown patch type: mix in map: map[$patch:mix name:a]" },
        { "{\"spec\":{}}", "{\"spec\":{\"$patch\":\"merge\",\"z\":3}}", NULL, 500,
          "unknown patch type: merge in map: map[$patch:merge z:3]" },
        { CONTAINERS("[{\"name\":\"a\"}]"), "{\"spec\":{\"$setElementOrder/containers\":\"a\"}}", NULL, 500,
          "expected a []interface {}, but received a string" },
        { CONTAINERS("[{\"name\":\"a\"}]"),
          "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"b\"}],\"containers\":[{\"name\":\"a\"}]}}",
          NULL, 500,
          "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n" },
        { "{\"spec\":{\"volumes\":[{\"name\":\"v\"}]}}",
          "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"$retainKeys\":\"name\"}]}}", NULL, 400,
          "invalid patch format of retainKeys" },
        { "{\"spec\":{\"tolerations\":[{\"key\":\"a\"}]}}",
          "{\"spec\":{\"$setElementOrder/tolerations\":[{\"key\":\"a\"}]}}", NULL, 400,
          "$setElementOrder is not allowed for a list without merge key" },
        { "{\"metadata\":{\"finalizers\":[\"a\"]}}",
          "{\"metadata\":{\"finalizers\":[{\"$patch\":\"replace\"}]}}", NULL, 500,
          "list element types are not identical: [[a] [map[$patch:replace]]]" },
        { "{\"metadata\":{\"finalizers\":[\"a\"]}}", "{\"metadata\":{\"finalizers\":[null]}}", NULL, 400,
          NULL },
        { "{}", "[]", NULL, 400,
          "json: cannot unmarshal array into Go value of type map[string]interface {}" },
    };

    (void)state;
    run_all("v1", "Pod", cases, ARRAY_LEN(cases));
}

static void a_pod_template_merges_as_a_pod(void **state)
{
    static const struct patch_case cases[] = {
        { "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"X\","
          "\"value\":\"1\"}]}]}}}}",
          "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"X\","
          "\"value\":\"2\"}]}]}}}}",
          "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"X\","
          "\"value\":\"2\"}]}]}}}}" },
        { "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"}]}}",
          "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"False\"}]}}",
          "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"False\"}]}}" },
    };

    (void)state;
    run_all("apps/v1", "Deployment", cases, ARRAY_LEN(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_merge_by_their_key),
        cmocka_unit_test(directives_order_delete_and_retain),
        cmocka_unit_test(what_the_library_refuses_has_its_words),
        cmocka_unit_test(a_pod_template_merges_as_a_pod),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
