/* SPDX-License-Identifier: Apache-2.0 */
/* patch_case - one patch of a table: texts in, the result's text or the Status's message out. */
#ifndef TESTS_UNIT_AGENT_API_PATCH_PATCH_CASE_H
#define TESTS_UNIT_AGENT_API_PATCH_PATCH_CASE_H
#include "agent/api/patch/patch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct patch_case {
    const char *live, *patch;
    const char *result; /* JSON text; NULL: it fails */
    int code;           /* of the Status */
    const char *message;
};

static inline json_t *patch_load(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    if (v == NULL)
        fail_msg("no JSON: %s", text);
    return v;
}

static inline void patch_expect(const json_t *found, const char *text)
{
    json_t *expected = patch_load(text);
    char *shown = json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY);

    if (!json_equal(found, expected))
        fail_msg("%s\nand not\n%s", shown, text);
    free(shown);
    json_decref(expected);
}

static inline void patch_expect_status(const json_t *status, int code, const char *message)
{
    assert_non_null(status);
    assert_int_equal(json_integer_value(json_object_get(status, "code")), code);
    if (message != NULL)
        assert_string_equal(json_string_value(json_object_get(status, "message")), message);
}

typedef enum err_code (*patch_fn)(const json_t *live, const json_t *patch, json_t **ret, json_t **ret_status,
                                  struct err *e);

static inline void patch_run(const struct patch_case *c, patch_fn fn)
{
    json_t *live = patch_load(c->live), *before = json_deep_copy(live), *patch = patch_load(c->patch);
    json_t *result = NULL, *status = NULL;
    struct err e = { 0 };
    enum err_code code = fn(live, patch, &result, &status, &e);

    if (c->result != NULL) {
        if (code != ERR_OK)
            fail_msg("%s: %s", c->patch, e.text);
        patch_expect(result, c->result);
        assert_null(status);
    } else {
        if (code == ERR_OK)
            fail_msg("%s: applied", c->patch);
        assert_null(result);
        patch_expect_status(status, c->code, c->message);
    }
    assert_true(json_equal(live, before));
    json_decref(live);
    json_decref(before);
    json_decref(patch);
    json_decref(result);
    json_decref(status);
}
#endif
