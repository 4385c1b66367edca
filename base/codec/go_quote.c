/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec/go_quote.h"

#include "base/utf8.h"

#include <stdint.h>

/* Controls, formats, spaces and separators, private use: general categories Cc, Cf, Zs, Zl, Zp, Co. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    { 0x80, 0xa0 },        { 0xad, 0xad },       { 0x600, 0x605 },     { 0x61c, 0x61c },
    { 0x6dd, 0x6dd },      { 0x70f, 0x70f },     { 0x890, 0x891 },     { 0x8e2, 0x8e2 },
    { 0x1680, 0x1680 },    { 0x180e, 0x180e },   { 0x2000, 0x200f },   { 0x2028, 0x202f },
    { 0x205f, 0x206f },    { 0x3000, 0x3000 },   { 0xe000, 0xf8ff },   { 0xfdd0, 0xfdef },
    { 0xfeff, 0xfeff },    { 0xfff0, 0xfffb },   { 0x110bd, 0x110bd }, { 0x110cd, 0x110cd },
    { 0x13430, 0x1343f },  { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe00ff },
    { 0xf0000, 0x10ffff },
};

static bool is_printable(uint32_t c)
{
    if (c < 0x80)
        return c >= 0x20 && c != 0x7f;
    if ((c & 0xfffe) == 0xfffe) /* the two noncharacters of each plane */
        return false;
    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
        if (c >= hidden[i].first && c <= hidden[i].last)
            return false;
    return true;
}

void go_quote(struct buf *b, const char *text, size_t size)
{
    static const char named[] = "abtnvfr"; /* 7 to 13 */

    buf_addc(b, '"');
    while (size > 0) {
        uint32_t c = 0;
        size_t n = utf8_decode(text, size, &c);

        if (n == 0)
            buf_addf(b, "\\x%02x", (unsigned char)*text);
        else if (c == '"' || c == '\\')
            buf_addf(b, "\\%c", (int)c);
        else if (is_printable(c))
            buf_add(b, text, n);
        else if (c >= 7 && c <= 13)
            buf_addf(b, "\\%c", named[c - 7]);
        else if (c < 0x80)
            buf_addf(b, "\\x%02x", (unsigned)c);
        else
            buf_addf(b, c <= 0xffff ? "\\u%04x" : "\\U%08x", (unsigned)c);
        n = n > 0 ? n : 1;
        text += n;
        size -= n;
    }
    buf_addc(b, '"');
}
