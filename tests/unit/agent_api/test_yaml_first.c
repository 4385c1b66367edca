/* SPDX-License-Identifier: Apache-2.0 */
/* The loose reader: as Kubernetes' own, for files that were written for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/api/yaml/yaml.h"
#include "base/scope.h"

#include <string.h>

static void gives(const char *text, const char *json)
{
    json_auto_t *v = NULL;
    mem_auto char *found = NULL;
    struct err e = { 0 };

    if (yaml_first_to_json(text, strlen(text), &v, &e) != ERR_OK)
        fail_msg("%s: %s", text, e.text);
    found = v != NULL ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : strdup("none");
    assert_string_equal(found, json);
}

static void letters_are_booleans(void **state)
{
    (void)state;
    gives("[y, n, Y, N, yes, off, 'y', \"n\", !!str y, yy]",
          "[true,false,true,false,true,false,\"y\",\"n\",\"y\",\"yy\"]");
}

static void the_last_of_a_key_counts(void **state)
{
    (void)state;
    gives("{a: 1, b: 2, a: 3}", "{\"a\":3,\"b\":2}");
    gives("{x: &x {a: 1}, z: &z {a: 2, c: 3}, u: {<<: *x, <<: *z}}",
          "{\"u\":{\"a\":1,\"c\":3},\"x\":{\"a\":1},\"z\":{\"a\":2,\"c\":3}}");
}

static void odd_keys_become_texts(void **state)
{
    (void)state;
    gives("{n: a, yes: b, 1: c, 0x10: d, 1.5: e}",
          "{\"1\":\"c\",\"1.5\":\"e\",\"16\":\"d\",\"false\":\"a\",\"true\":\"b\"}");
}

static void only_the_first_document_is_looked_at(void **state)
{
    (void)state;
    gives("a: 1\n---\nb: [\n", "{\"a\":1}");
    gives("", "none");
    gives("# nothing\n", "none");
    gives("--- ~\n---\na: 1\n", "none");
    gives("{\"a\": \"x\\/y\",\t\"b\": [1]}", "{\"a\":\"x/y\",\"b\":[1]}");
    gives("\"it\\'s\"", "\"it's\"");
}

static void what_is_no_yaml_is_refused(void **state)
{
    json_t *v = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(yaml_first_to_json("a: [1", 5, &v, &e), ERR_INVALID);
    assert_null(v);
    e = (struct err){ 0 };
    assert_int_equal(yaml_first_to_json("{~: a}", 6, &v, &e), ERR_INVALID);
    assert_string_equal(e.text, "document 1: line 1 column 2: a key is null");
    e = (struct err){ 0 };
    assert_int_equal(yaml_first_to_json("a: \xff", 4, &v, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "a YAML file is UTF-8 text"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_are_booleans),       cmocka_unit_test(the_last_of_a_key_counts),
        cmocka_unit_test(odd_keys_become_texts),      cmocka_unit_test(only_the_first_document_is_looked_at),
        cmocka_unit_test(what_is_no_yaml_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
