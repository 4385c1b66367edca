/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

void base64_add(struct buf *out, const void *data, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = data;

    for (size_t i = 0; i < n; i += 3) {
        unsigned v = 0;

        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < n ? p[i + k] : 0);
        buf_addc(out, digits[v >> 18]);
        buf_addc(out, digits[v >> 12 & 63]);
        buf_addc(out, i + 1 < n ? digits[v >> 6 & 63] : '=');
        buf_addc(out, i + 2 < n ? digits[v & 63] : '=');
    }
}
