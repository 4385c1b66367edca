/* SPDX-License-Identifier: Apache-2.0 */
/* Image references stand in manifests and archives: whatever comes, the result is a whole, stable name or one
 * clear error. */
#include "agent/image/image.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char once[IMG_NAME_MAX], twice[IMG_NAME_MAX], *text = malloc(size + 1);
    struct err e = { 0 };

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    memset(once, 'x', sizeof(once));
    if (img_normalise(text, once, &e) != ERR_OK) {
        assert(e.code == ERR_INVALID && e.text[0] != '\0');
        assert(once[0] == 'x' && once[IMG_NAME_MAX - 1] == 'x'); /* untouched */
    } else {
        size_t n = strnlen(once, sizeof(once));

        assert(n < sizeof(once) && strchr(once, '/') != NULL && strpbrk(once, ":@") != NULL);
        for (size_t i = 0; i < n; i++)
            assert(once[i] > ' ' && once[i] < 0x7f);
        /* Normal names stay as they are: they are compared and hashed. */
        assert(img_normalise(once, twice, &e) == ERR_OK && strcmp(once, twice) == 0);
    }
    free(text);
    return 0;
}
