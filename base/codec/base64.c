/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec/base64.h"

#include <string.h>

const char base64_digits[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_add(struct buf *out, const void *data, size_t n)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < n; i += 3) {
        unsigned v = 0;

        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < n ? p[i + k] : 0);
        buf_addc(out, base64_digits[v >> 18]);
        buf_addc(out, base64_digits[v >> 12 & 63]);
        buf_addc(out, i + 1 < n ? base64_digits[v >> 6 & 63] : '=');
        buf_addc(out, i + 2 < n ? base64_digits[v & 63] : '=');
    }
}

bool base64_decode(const char *text, size_t n, unsigned char *out, size_t *ret_n)
{
    size_t k = 0;
    unsigned v = 0;

    if (n % 4 == 0) /* padding is only valid at the end of a whole group */
        for (int i = 0; i < 2 && n > 0 && text[n - 1] == '='; i++)
            n--;
    if (n % 4 == 1)
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *digit = text[i] != '\0' ? strchr(base64_digits, text[i]) : NULL;
        if (digit == NULL)
            return false;
        v = v << 6 | (unsigned)(digit - base64_digits);
        if (i % 4 != 0)
            out[k++] = (unsigned char)(v >> (6 - 2 * (i % 4)));
    }
    *ret_n = k;
    return true;
}
