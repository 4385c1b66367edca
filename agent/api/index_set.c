/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/index_set.h"

#include <string.h>

unsigned api_index_set_count(const struct api_index_set *s)
{
    return api_index_set_common(s, s);
}

unsigned api_index_set_common(const struct api_index_set *a, const struct api_index_set *b)
{
    unsigned n = 0;

    for (size_t i = 0; i < API_INDEXES_MAX / 64; i++)
        n += (unsigned)__builtin_popcountll(a->bits[i] & b->bits[i]);
    return n;
}

/* The number that these bytes are. */
static enum err_code number(const char *text, size_t n, int32_t limit, int32_t *ret, struct err *e)
{
    size_t i = n > 0 && (text[0] == '-' || text[0] == '+');
    const bool negative = i > 0 && text[0] == '-', digits = i < n;
    int64_t v = 0;

    for (; i < n && text[i] >= '0' && text[i] <= '9' && v < INT32_MAX; i++)
        v = v * 10 + (text[i] - '0');
    if (!digits || i < n)
        return err_set(e, ERR_INVALID, "cannot convert string to integer for index: \"%.*s\"",
                       (int)(n < 60 ? n : 60), text);
    if (!negative && v >= limit)
        return err_set(e, ERR_INVALID, "too large index: \"%.*s\"", (int)(n < 60 ? n : 60), text);
    *ret = negative ? -(int32_t)v : (int32_t)v;
    return ERR_OK;
}

static enum err_code decreases(int32_t before, int32_t now, struct err *e)
{
    return err_set(e, ERR_INVALID, "non-increasing order, previous: %d, current: %d", (int)before, (int)now);
}

/* "3", or "3-5", the `n` bytes of the text. *last is the last number before, and becomes that of this part.
 */
static enum err_code part(const char *text, size_t n, int32_t limit, int32_t *last, struct api_index_set *ret,
                          struct err *e)
{
    const char *dash = memchr(text, '-', n);
    const size_t first = dash != NULL ? (size_t)(dash - text) : n;
    int32_t from = 0, to;

    if (dash != NULL && memchr(dash + 1, '-', n - first - 1) != NULL)
        return err_set(e, ERR_INVALID,
                       "the fragment \"%.*s\" violates the requirement that an index interval can have at "
                       "most two parts separated by '-'",
                       (int)(n < 60 ? n : 60), text);
    if (number(text, first, limit, &from, e) != ERR_OK)
        return e->code;
    if (from <= *last)
        return decreases(*last, from, e);
    to = from;
    if (dash != NULL && number(dash + 1, n - first - 1, limit, &to, e) != ERR_OK)
        return e->code;
    if (dash != NULL && to <= from)
        return decreases(from, to, e);
    for (int32_t i = from; i <= to && i < API_INDEXES_MAX; i++)
        api_index_set_add(ret, (unsigned)i);
    *last = to;
    return ERR_OK;
}

enum err_code api_index_set_parse(const char *text, int32_t limit, struct api_index_set *ret, struct err *e)
{
    int32_t last = -1;

    *ret = (struct api_index_set){ 0 };
    for (const char *at = text; text[0] != '\0';) {
        size_t n = strcspn(at, ",");

        if (part(at, n, limit, &last, ret, e) != ERR_OK)
            return e->code;
        if (at[n] == '\0')
            break;
        at += n + 1;
    }
    return ERR_OK;
}

void api_index_set_format(const struct api_index_set *s, struct buf *out)
{
    const char *comma = "";

    for (unsigned i = 0; i < API_INDEXES_MAX; i++) {
        unsigned to = i;

        if (!api_index_set_has(s, i))
            continue;
        while (api_index_set_has(s, to + 1))
            to++;
        buf_addf(out, "%s%u", comma, i);
        if (to > i) /* two are a range only from three on */
            buf_addf(out, to == i + 1 ? ",%u" : "-%u", to);
        comma = ",";
        i = to;
    }
}
