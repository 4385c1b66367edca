/* SPDX-License-Identifier: Apache-2.0 */
/* Where Go's base64.StdEncoding stops: line ends are skipped, and padding is required. */
#include "agent/api/patch/go_text.h"

#include <ctype.h>

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '/';
}

/* The padding behind `digits` digits of four; text[at - 1] is the first '='. */
static bool padding(const char *text, size_t n, size_t at, unsigned digits, size_t *ret_at)
{
    *ret_at = at - 1;
    if (digits < 2)
        return false;
    if (digits == 2) {
        while (at < n && is_line_end(text[at]))
            at++;
        *ret_at = at == n ? n : at - 1;
        if (at == n || text[at] != '=')
            return false;
        at++;
    }
    while (at < n && is_line_end(text[at]))
        at++;
    *ret_at = at;
    return at == n;
}

bool go_base64(const char *text, size_t n, size_t *ret_at)
{
    unsigned digits = 0; /* of the present four */

    for (size_t at = 0; at < n; at++) {
        if (is_line_end(text[at]))
            continue;
        if (text[at] == '=')
            return padding(text, n, at + 1, digits, ret_at);
        *ret_at = at;
        if (!is_digit(text[at]))
            return false;
        digits = (digits + 1) % 4;
    }
    *ret_at = n - digits;
    return digits == 0;
}
