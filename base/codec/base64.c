/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec/base64.h"

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
