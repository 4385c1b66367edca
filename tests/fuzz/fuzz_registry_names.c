/* SPDX-License-Identifier: Apache-2.0 */
/* registries.conf, and short names with it: whatever stands there, a candidate is a whole name. */
#include "agent/image/registry_names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const references[] = { "web", "team/web:1", "q.io/web" };
    char *text = malloc(size + 1), name[IMG_NAME_MAX], again[IMG_NAME_MAX];
    struct reg_names r = { 0 };
    struct err e = { 0 };

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    assert(reg_names_parse(&r, text, &e) == ERR_OK ||
           e.text[0] != '\0'); /* what was read until then counts */
    for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++)
        for (size_t k = 0; reg_names_candidate(&r, references[i], k, name); k++) {
            assert(k < REG_SEARCH_MAX);
            e = (struct err){ 0 };
            assert(img_normalise(name, again, &e) == ERR_OK && strcmp(name, again) == 0);
        }
    reg_names_done(&r);
    free(text);
    return 0;
}
