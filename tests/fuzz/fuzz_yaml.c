/* SPDX-License-Identifier: Apache-2.0 */
/* The YAML reader and writer: what is read can be printed, and what is printed reads as the same value. */
#include "agent/api/yaml/yaml.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_real(const json_t *v)
{
    const json_t *child;
    const char *key;
    size_t i;

    if (json_is_object(v)) {
        json_object_foreach ((json_t *)v, key, child) {
            if (has_real(child))
                return true;
        }
    }
    json_array_foreach (v, i, child) {
        if (has_real(child))
            return true;
    }
    return json_is_real(v);
}

static void check_value(const json_t *v)
{
    char *text = yaml_from_json(v);
    json_t *docs = NULL;
    int *numbers = NULL;
    struct err e = { 0 };

    assert(text != NULL);
    if (!has_real(v)) { /* printed with 15 digits */
        assert(yaml_to_json(text, strlen(text), &docs, &numbers, NULL, &e) == ERR_OK);
        assert(json_array_size(docs) == 1);
        assert(json_equal((json_t *)v, json_array_get(docs, 0)));
    }
    json_decref(docs);
    free(numbers);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *docs = NULL;
    int *numbers = NULL;
    struct err e = { 0 };
    enum err_code code = yaml_to_json((const char *)data, size, &docs, &numbers, NULL, &e);

    assert(code == ERR_OK || code == ERR_INVALID);
    assert(code == e.code);
    assert(code == ERR_OK || strncmp(e.text, "document ", 9) == 0);
    for (size_t i = 0; i < json_array_size(docs); i++) {
        assert(numbers[i] >= 1 && numbers[i] <= YAML_DOCS_MAX);
        check_value(json_array_get(docs, i));
    }
    json_decref(docs);
    free(numbers);
    return 0;
}
