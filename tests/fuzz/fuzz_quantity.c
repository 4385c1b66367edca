/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities: a canonical text reads back as the same amount, and as the same text where the format stayed:
 * 62.5Ki is written 64000 (no whole Ki), which as a decimal number is 64k, in Kubernetes too.
 */
#include "agent/api/quantity.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), first[QUANTITY_TEXT_SIZE], second[QUANTITY_TEXT_SIZE];
    struct quantity q = { 0 }, again = { 0 }, sum;
    struct err e = { 0 };

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (quantity_parse(text, &q, &e) == ERR_OK) {
        quantity_format(&q, first);
        assert(quantity_parse(first, &again, &e) == ERR_OK);
        assert(quantity_cmp(&q, &again) == 0);
        quantity_format(&again, second);
        assert(q.format != again.format || strcmp(first, second) == 0);
        sum = quantity_add(&q, &q);
        assert((q.nano < 0) == (sum.nano < 0));
        assert(quantity_value(&q) <= quantity_milli(&q) || q.nano < 0);
    } else {
        assert(e.code == ERR_INVALID && e.text[0] != '\0');
    }
    free(text);
    return 0;
}
