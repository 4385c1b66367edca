/* SPDX-License-Identifier: Apache-2.0 */
/* A file of the manifest folder in which one document is replaced: every byte outside of that document stays.
 */
#include "agent/source/rewrite.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NEW "kind: ConfigMap\nmetadata: {name: a}\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void rewrite(const char *text, size_t n, const char *replacement)
{
    const struct src_key key = { .kind = API_KIND_CONFIG_MAP, .namespace_ = "default", .name = "a" };
    struct buf b = BUF_INIT(16 << 20);
    struct err e = { 0 };

    if (src_rewrite(text, n, &key, replacement, &b, &e) == ERR_OK) {
        const char *at = replacement != NULL ? memmem(b.p, b.n, replacement, strlen(replacement)) : NULL;

        assert(replacement == NULL ? b.n <= n + 8 : at != NULL);
    } else {
        assert(e.text[0] != '\0');
    }
    buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    rewrite(text, size, NEW);
    rewrite(text, size, NULL);
    free(text);
    return 0;
}
