/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

/* The text in a form fit for messages: short and printable. */
static void quote(char ret[80], const char *text)
{
    snprintf(ret, 80, "%.64s", text == NULL ? "" : text);
    text_printable(ret);
}

static bool parse_digits(const char *p, uint64_t *ret)
{
    uint64_t v = 0;

    if (p == NULL || *p == '\0')
        return false;
    for (; *p != '\0'; p++)
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    *ret = v;
    return true;
}

enum err_code parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret, const char *what,
                        struct err *e)
{
    uint64_t v;
    char q[80];

    if (!parse_digits(text, &v) || v < min || v > max) {
        quote(q, text);
        return err_set(e, ERR_INVALID, "%s: \"%s\" is not a whole number between %" PRIu64 " and %" PRIu64,
                       what, q, min, max);
    }
    *ret = v;
    return ERR_OK;
}

enum err_code parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret, const char *what,
                        struct err *e)
{
    bool negative = text != NULL && *text == '-';
    const char *p = text != NULL && (*text == '-' || *text == '+') ? text + 1 : text;
    uint64_t v = 0;
    int64_t i = 0;
    bool ok = parse_digits(p, &v);
    char q[80];

    if (ok && negative) {
        ok = v <= (uint64_t)INT64_MAX + 1;
        i = ok ? (int64_t)(0 - v) : 0;
    } else if (ok) {
        ok = v <= INT64_MAX;
        i = ok ? (int64_t)v : 0;
    }
    if (!ok || i < min || i > max) {
        quote(q, text);
        return err_set(e, ERR_INVALID, "%s: \"%s\" is not a whole number between %" PRId64 " and %" PRId64,
                       what, q, min, max);
    }
    *ret = i;
    return ERR_OK;
}
