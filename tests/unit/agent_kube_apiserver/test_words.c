/* SPDX-License-Identifier: Apache-2.0 */
/* The words of an apiserver: for texts that cannot be read, and for what is wrong with an object. */
#include "agent/api/serve/words.h"
#include "agent/kube/apiserver/json_look.h"

#include "tests/unit/agent_api/helper.h"

#include <string.h>

static void why_of(const char *text, const char *expected)
{
    char why[160];

    json_look(text, strlen(text), why, sizeof(why), NULL);
    assert_string_equal(why, expected);
}

static void texts_are_refused_in_the_words_of_go(void **state)
{
    (void)state;
    why_of("{\"a\": [1, -2.5e+3, \"\\u00e9\\n\", true, false, null, {}]} ", "");
    why_of("", "unexpected end of JSON input");
    why_of("{\"a\":", "unexpected end of JSON input");
    why_of("\"a", "unexpected end of JSON input");
    why_of("data: 1", "invalid character 'd' looking for beginning of value");
    why_of("{a", "invalid character 'a' looking for beginning of object key string");
    why_of("{\"a\" 1}", "invalid character '1' after object key");
    why_of("{\"a\":1 2}", "invalid character '2' after object key:value pair");
    why_of("[1 2]", "invalid character '2' after array element");
    why_of("tru]", "invalid character ']' in literal true (expecting 'e')");
    why_of("01", "invalid character '1' after top-level value");
    why_of("1.x", "invalid character 'x' after decimal point in numeric literal");
    why_of("\"\t\"", "invalid character '\\t' in string literal");
    why_of("\"\\x\"", "invalid character 'x' in string escape code");
}

static void members_given_twice_are_told_in_order(void **state)
{
    static const char text[] = "{\"data\":{\"x\":1,\"x\":2},\"l\":[{},{\"a\":1,\"a\":2}],\"data\":{\"x\":1}}";
    json_t *twice = json_array();
    char why[160];

    (void)state;
    json_look(text, strlen(text), why, sizeof(why), twice);
    assert_int_equal(json_array_size(twice), 3);
    assert_string_equal(json_string_value(json_array_get(twice, 0)), "data.x");
    assert_string_equal(json_string_value(json_array_get(twice, 1)), "l[1].a");
    assert_string_equal(json_string_value(json_array_get(twice, 2)), "data");
    json_decref(twice);
}

/* One cause of {"spec":{"n":-1,"list":[{"name":"a"}],"strategy":{"type":"X"}}}. */
static void cause_is(const char *field, const char *message, const char *reason, const char *where,
                     const char *expected)
{
    json_t *object =
               json_loads("{\"spec\":{\"n\":-1,\"list\":[{\"name\":\"a\"}],\"strategy\":{\"type\":\"X\"},"
                          "\"labels\":{\"a b\":\"1\"},\"volumes\":[{\"secret\":{},\"emptyDir\":{}}]}}",
                          0, NULL),
           *causes = json_array(), *cause;

    words_add(causes, object, field, message);
    assert_int_equal(json_array_size(causes), 1);
    cause = json_array_get(causes, 0);
    assert_string_equal(json_string_value(json_object_get(cause, "reason")), reason);
    assert_string_equal(json_string_value(json_object_get(cause, "field")), where);
    assert_string_equal(json_string_value(json_object_get(cause, "message")), expected);
    json_decref(object);
    json_decref(causes);
}

static void problems_have_the_words_of_an_apiserver(void **state)
{
    (void)state;
    cause_is("spec.x", "required", "FieldValueRequired", "spec.x", "Required value");
    cause_is("spec.n", "-1 is out of range, allowed are 0 to 2147483647", "FieldValueInvalid", "spec.n",
             "Invalid value: -1: must be greater than or equal to 0");
    cause_is("spec.n", "70000 is out of range, allowed are 1 to 65535", "FieldValueInvalid", "spec.n",
             "Invalid value: 70000: must be between 1 and 65535, inclusive");
    cause_is("spec.list[0].name", "\"a\" is not supported, allowed are b, c and d", "FieldValueNotSupported",
             "spec.list[0].name", "Unsupported value: \"a\": supported values: \"b\", \"c\", \"d\"");
    cause_is("spec.list[0].name", "\"a\" is given twice", "FieldValueDuplicate", "spec.list[0].name",
             "Duplicate value: \"a\"");
    cause_is("spec.strategy.type", "\"X\" is not supported, allowed are Recreate and RollingUpdate",
             "FieldValueNotSupported", "spec.strategy",
             "Unsupported value: {\"Type\":\"X\",\"RollingUpdate\":null}: supported values: \"Recreate\", "
             "\"RollingUpdate\"");
    cause_is("spec.volumes[0]", "only one volume type is allowed", "FieldValueForbidden",
             "spec.volumes[0].secret", "Forbidden: may not specify more than 1 volume type");
    cause_is("spec.n", "is odd", "FieldValueInvalid", "spec.n", "Invalid value: -1: is odd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_refused_in_the_words_of_go),
        cmocka_unit_test(members_given_twice_are_told_in_order),
        cmocka_unit_test(problems_have_the_words_of_an_apiserver),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
