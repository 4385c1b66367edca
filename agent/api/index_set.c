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

static bool number(const char **p, unsigned limit, unsigned *ret)
{
    const char *from = *p;
    unsigned v = 0;

    for (; **p >= '0' && **p <= '9' && *p - from < 7; ++*p)
        v = v * 10 + (unsigned)(**p - '0');
    *ret = v;
    return *p > from && (**p < '0' || **p > '9') && v < limit;
}

bool api_index_set_parse(const char *text, unsigned limit, struct api_index_set *ret)
{
    const char *p = text;
    unsigned least = 0;

    *ret = (struct api_index_set){ 0 };
    for (;;) {
        unsigned from, to;

        if (!number(&p, limit, &from) || from < least)
            return false;
        to = from;
        if (*p == '-') {
            p++;
            if (!number(&p, limit, &to) || to <= from)
                return false;
        }
        for (unsigned i = from; i <= to; i++)
            api_index_set_add(ret, i);
        if (*p == '\0')
            return true;
        if (*p++ != ',')
            return false;
        least = to + 1;
    }
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
