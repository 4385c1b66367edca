/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

/* No overlong form, no surrogate, at most U+10FFFF. */
size_t utf8_char(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char low = 0x80, high = 0xbf;
    size_t len, i;

    if (n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        len = 2;
    else if (p[0] >= 0xe0 && p[0] <= 0xef)
        len = 3;
    else if (p[0] >= 0xf0 && p[0] <= 0xf4)
        len = 4;
    else
        return 0;

    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;

    if (n < len || p[1] < low || p[1] > high)
        return 0;
    for (i = 2; i < len; i++)
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    return len;
}

bool utf8_is_valid(const char *text, size_t n)
{
    size_t len = 1;

    for (size_t i = 0; i < n && len > 0; i += len)
        len = utf8_char(text + i, n - i);
    return len > 0;
}

size_t utf8_decode(const char *text, size_t n, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t len = utf8_char(text, n);
    uint32_t c;

    if (len == 0)
        return 0;
    c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3f);
    *ret = c;
    return len;
}

size_t utf8_cut(const char *text, size_t max)
{
    size_t n = max;

    /* Go back over at most three continuation bytes to the start of the last character. */
    while (n > 0 && max - n < 3 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    if (((unsigned char)text[n] & 0xc0) == 0x80)
        return max; /* not UTF-8 anyway */
    return n;
}

bool utf8_is_drawn(uint32_t c)
{
    return c >= 0x20 && (c < 0x7f || c >= 0xa0) && c != 0x061c && c != 0x200e && c != 0x200f &&
           (c < 0x2028 || c > 0x202e) && (c < 0x2066 || c > 0x2069);
}

void text_printable(char *text)
{
    size_t n = __builtin_strlen(text), i = 0, out = 0;

    while (i < n) {
        uint32_t c = 0;
        size_t len = utf8_decode(text + i, n - i, &c);

        if (len == 0 || !utf8_is_drawn(c)) {
            text[out++] = '?';
            i += len == 0 ? 1 : len;
            continue;
        }
        while (len-- > 0)
            text[out++] = text[i++];
    }
    text[out] = '\0';
}
