/* SPDX-License-Identifier: Apache-2.0 */
/* Label selectors: parsing and matching never crash, and say why they refuse. */
#include "agent/api/selector.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char key[] = "app", value[] = "web", other[] = "size", number[] = "12";
    struct api_kv pairs[] = { { key, value }, { other, number } };
    const struct api_kvs some = { pairs, 2 }, none = { NULL, 0 };
    struct api_selector *s = NULL;
    struct err e = { 0 };
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (api_selector_parse(text, &s, &e) == ERR_OK) {
        (void)api_selector_matches(s, &some);
        (void)api_selector_matches(s, &none);
    } else {
        assert(e.code == ERR_INVALID && s == NULL && e.text[0] != '\0');
    }
    api_selector_free(s);
    free(text);
    return 0;
}
