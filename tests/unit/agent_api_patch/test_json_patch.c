/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_api_patch/patch_case.h"

#include "base/scope.h"

#define NOT_APPLICABLE "the server rejected our request due to an error in our request"

static void run_all(const struct patch_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        patch_run(&cases[i], api_patch_json);
}

static void operations_change_members_and_elements(void **state)
{
    static const struct patch_case cases[] = {
        { "{}", "[]", "{}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":2}]", "{\"a\":2}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\"}]", "{\"a\":1,\"b\":null}" },
        { "{\"l\":[1,2]}", "[{\"op\":\"add\",\"path\":\"/l/0\",\"value\":0}]", "{\"l\":[0,1,2]}" },
        { "{\"l\":[1,2]}", "[{\"op\":\"add\",\"path\":\"/l/2\",\"value\":3}]", "{\"l\":[1,2,3]}" },
        { "{\"l\":[1,2]}", "[{\"op\":\"add\",\"path\":\"/l/-\",\"value\":3}]", "{\"l\":[1,2,3]}" },
        { "{\"l\":[1,2]}", "[{\"op\":\"add\",\"path\":\"/l/-1\",\"value\":3}]", "{\"l\":[1,2,3]}" },
        { "{\"l\":[1,2]}", "[{\"op\":\"remove\",\"path\":\"/l/-1\"}]", "{\"l\":[1]}" },
        { "{\"l\":[1,2]}", "[{\"op\":\"replace\",\"path\":\"/l/0\",\"value\":[]}]", "{\"l\":[[],2]}" },
        { "{\"a\":{\"b\":1}}", "[{\"op\":\"remove\",\"path\":\"/a/b\"}]", "{\"a\":{}}" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]", "{\"a\":1,\"b\":1}" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"z\":1}}]", "{\"z\":1}" },
        { "{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"}]", "{\"b\":1}" },
        { "{\"l\":[1,2,3]}", "[{\"op\":\"move\",\"from\":\"/l/2\",\"path\":\"/l/0\"}]", "{\"l\":[3,1,2]}" },
        { "{\"a\":[1]}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]", "{\"a\":[1],\"b\":[1]}" },
        { "{}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]", "{\"b\":null}" },
    };

    (void)state;
    run_all(cases, ARRAY_LEN(cases));
}

static void names_are_unescaped_and_a_missing_slash_is_forgiven(void **state)
{
    static const struct patch_case cases[] = {
        { "{}", "[{\"op\":\"add\",\"path\":\"/a~1b\",\"value\":1}]", "{\"a/b\":1}" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/a~0b\",\"value\":1}]", "{\"a~b\":1}" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/a~01b\",\"value\":1}]", "{\"a~1b\":1}" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/\",\"value\":1}]", "{\"\":1}" },
        { "{}", "[{\"op\":\"add\",\"path\":\"x/a\",\"value\":1}]", "{\"a\":1}" },
    };

    (void)state;
    run_all(cases, ARRAY_LEN(cases));
}

static void a_test_compares_values_and_null_with_absence(void **state)
{
    static const struct patch_case cases[] = {
        { "{\"a\":{\"b\":[1,\"x\"]}}",
          "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"b\":[1,\"x\"]}},{\"op\":\"remove\",\"path\":\"/"
          "a\"}]",
          "{}" },
        { "{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", "{}" },
        { "{}", "[{\"op\":\"test\",\"path\":\"/a\"}]", "{}" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"\",\"value\":{\"a\":1}}]", "{\"a\":1}" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":\"1\"}]", NULL, 422, NOT_APPLICABLE },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL, 422, NOT_APPLICABLE },
        { "{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL, 422, NOT_APPLICABLE },
        { "{}", "[{\"op\":\"test\",\"path\":\"/a/b\",\"value\":null}]", NULL, 422, NOT_APPLICABLE },
    };

    (void)state;
    run_all(cases, ARRAY_LEN(cases));
}

static void a_patch_that_does_not_apply_changes_nothing(void **state)
{
    static const struct patch_case cases[] = {
        { "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", NULL, 422, NOT_APPLICABLE },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b/c\",\"value\":1}]", NULL, 422, NOT_APPLICABLE },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/c\",\"value\":1}]", NULL, 422, NOT_APPLICABLE },
        { "{\"l\":[]}", "[{\"op\":\"add\",\"path\":\"/l/1\",\"value\":1}]", NULL, 422, NOT_APPLICABLE },
        { "{\"l\":[]}", "[{\"op\":\"add\",\"path\":\"/l/x\",\"value\":1}]", NULL, 422, NOT_APPLICABLE },
        { "{\"l\":[]}", "[{\"op\":\"remove\",\"path\":\"/l/-\"}]", NULL, 422, NOT_APPLICABLE },
        { "{\"l\":[1]}", "[{\"op\":\"replace\",\"path\":\"/l/1\",\"value\":1}]", NULL, 422, NOT_APPLICABLE },
        { "{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", NULL, 422, NOT_APPLICABLE },
        { "{\"a\":1}", "[{\"op\":\"move\",\"path\":\"/b\"}]", NULL, 422, NOT_APPLICABLE },
        { "{\"a\":1}", "[{\"path\":\"/b\"}]", NULL, 422, NOT_APPLICABLE },
        { "{\"a\":1}", "[{\"op\":\"add\",\"value\":1}]", NULL, 422, NOT_APPLICABLE },
        { "{\"a\":1}", "[{\"op\":\"merge\",\"path\":\"/a\",\"value\":1}]", NULL, 422, NOT_APPLICABLE },
        { "{\"a\":1}", "[null]", NULL, 422, NOT_APPLICABLE },
        { "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\"},{\"op\":\"remove\",\"path\":\"/a\"}]", NULL, 422,
          NOT_APPLICABLE },
    };

    (void)state;
    run_all(cases, ARRAY_LEN(cases));
}

static void what_is_no_patch_is_a_bad_request(void **state)
{
    static const struct patch_case cases[] = {
        { "{}", "{}", NULL, 400,
          "error decoding patch: json: cannot unmarshal object into Go value of type "
          "[]handlers.jsonPatchOp" },
        { "{}", "[\"a\"]", NULL, 400,
          "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp" },
        { "{}", "[{\"op\":1}]", NULL, 400,
          "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type "
          "string" },
    };

    (void)state;
    run_all(cases, ARRAY_LEN(cases));
}

/* A patch of operations that copy what was copied. */
static json_t *copies(const char *from, const char *path, int n)
{
    json_t *patch = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(patch, json_pack("{s:s, s:s, s:s}", "op", "copy", "from", from, "path", path));
    return patch;
}

static void growth_is_bounded(void **state)
{
    static const char *const paths[] = { "/a/a", "/l/-" };
    json_t *live = patch_load("{\"a\":{\"x\":[]},\"l\":[[\"0123456789\"]]}"), *ret = NULL, *status, *patch;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        status = NULL;
        e = (struct err){ 0 };
        patch = copies(i == 0 ? "/a" : "/l", paths[i], 300);
        assert_int_equal(api_patch_json(live, patch, &ret, &status, &e), ERR_INVALID);
        patch_expect_status(status, 422, NOT_APPLICABLE);
        json_decref(status);
        json_decref(patch);
    }
    status = NULL;
    e = (struct err){ 0 };
    patch = copies("/a/x", "/b", API_PATCH_OPS + 1);
    assert_int_equal(api_patch_json(live, patch, &ret, &status, &e), ERR_INVALID);
    patch_expect_status(status, 413, NULL);
    json_decref(status);
    json_decref(patch);
    json_decref(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_change_members_and_elements),
        cmocka_unit_test(names_are_unescaped_and_a_missing_slash_is_forgiven),
        cmocka_unit_test(a_test_compares_values_and_null_with_absence),
        cmocka_unit_test(a_patch_that_does_not_apply_changes_nothing),
        cmocka_unit_test(what_is_no_patch_is_a_bad_request),
        cmocka_unit_test(growth_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
