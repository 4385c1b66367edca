/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_api_patch/patch_case.h"

#include "base/scope.h"

/* The RFC's own table (appendix A), where target and patch are objects. */
static void members_merge_as_in_the_rfc(void **state)
{
    static const struct patch_case cases[] = {
        { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
        { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
        { "{\"a\":1}", "{}", "{\"a\":1}" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        patch_run(&cases[i], api_patch_merge);
}

static void what_is_no_object_is_a_bad_request(void **state)
{
    static const struct patch_case cases[] = {
        { "{}", "null", NULL, 400, "Invalid JSON Patch" },
        { "{}", "[]", NULL, 400,
          "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface "
          "{}" },
        { "{}", "\"x\"", NULL, 400,
          "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface "
          "{}" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        patch_run(&cases[i], api_patch_merge);
}

static void a_patch_may_not_nest_without_end(void **state)
{
    char text[4000];
    size_t n = 0;

    (void)state;
    for (int i = 0; i < API_PATCH_DEPTH + 1; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "{\"a\":");
    n += (size_t)snprintf(text + n, sizeof(text) - n, "1");
    for (int i = 0; i < API_PATCH_DEPTH + 1; i++)
        text[n++] = '}';
    text[n] = '\0';
    patch_run(&(struct patch_case){ "{}", text, NULL, 400, "the patch nests deeper than 256 levels" },
              api_patch_merge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_merge_as_in_the_rfc),
        cmocka_unit_test(what_is_no_object_is_a_bad_request),
        cmocka_unit_test(a_patch_may_not_nest_without_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
