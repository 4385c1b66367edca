/* SPDX-License-Identifier: Apache-2.0 */
/* A body of the local API: what it has twice, and why it cannot be read. */
#include "agent/kube/apiserver/json_look.h"

#include "agent/api/serve/words.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *twice = json_array(), *v = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
    char *text = malloc(size + 1), why[160];

    json_look((const char *)data, size, why, sizeof(why), twice);
    assert(json_array_size(twice) <= JSON_LOOK_TWICE_MAX);
    /* What can be read has nothing wrong with it; jansson reads a zero byte as the end. */
    assert(v == NULL || why[0] == '\0' || memchr(data, 0, size) != NULL);
    if (text != NULL) { /* the same bytes as a path and a message */
        json_t *causes = json_array();

        memcpy(text, data, size);
        text[size] = '\0';
        words_add(causes, v, text, text);
        json_decref(causes);
    }
    free(text);
    json_decref(twice);
    json_decref(v);
    return 0;
}
