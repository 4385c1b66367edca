/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/cpus.h"

#include <stdio.h>
#include <stdlib.h>

bool cpus_is_empty(const struct cpus *s)
{
    return cpus_next(s, 0) == CPUS_MAX;
}

bool cpus_overlap(const struct cpus *a, const struct cpus *b)
{
    struct cpus both = cpus_and(a, b);

    return !cpus_is_empty(&both);
}

bool cpus_contain(const struct cpus *s, const struct cpus *part)
{
    struct cpus missing = cpus_without(part, s);

    return cpus_is_empty(&missing);
}

struct cpus cpus_or(const struct cpus *a, const struct cpus *b)
{
    struct cpus ret;

    for (size_t i = 0; i < CPUS_WORDS; i++)
        ret.w[i] = a->w[i] | b->w[i];
    return ret;
}

struct cpus cpus_and(const struct cpus *a, const struct cpus *b)
{
    struct cpus ret;

    for (size_t i = 0; i < CPUS_WORDS; i++)
        ret.w[i] = a->w[i] & b->w[i];
    return ret;
}

struct cpus cpus_without(const struct cpus *a, const struct cpus *b)
{
    struct cpus ret;

    for (size_t i = 0; i < CPUS_WORDS; i++)
        ret.w[i] = a->w[i] & ~b->w[i];
    return ret;
}

unsigned cpus_next(const struct cpus *s, unsigned from)
{
    for (unsigned i = from / 64; i < CPUS_WORDS; i++) {
        uint64_t w = s->w[i];

        if (i == from / 64)
            w &= ~0ull << (from % 64);
        if (w != 0)
            return i * 64 + (unsigned)__builtin_ctzll(w);
    }
    return CPUS_MAX;
}

/* ---- text ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *after_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n')
        p++;
    return p;
}

/* Reads one number at *p; CPUS_MAX for one that is too great. False: there is none. */
static bool number(const char **p, unsigned *ret)
{
    unsigned n = 0;

    if (!is_digit(**p))
        return false;
    for (; is_digit(**p); (*p)++)
        n = n >= CPUS_MAX ? CPUS_MAX : n * 10 + (unsigned)(**p - '0');
    *ret = n < CPUS_MAX ? n : CPUS_MAX;
    return true;
}

static enum err_code bad_list(struct err *e, const char *what, const char *text)
{
    return err_set(e, ERR_INVALID, "%s: \"%.100s\" is not a list of processors like 0-3,8", what, text);
}

enum err_code cpus_parse(struct cpus *ret, const char *text, const char *what, struct err *e)
{
    struct cpus s = { 0 };
    const char *p = after_blanks(text);

    while (*p != '\0') {
        unsigned first, last;

        if (!number(&p, &first))
            return bad_list(e, what, text);
        last = first;
        if (*p == '-' && (p++, !number(&p, &last) || last < first))
            return bad_list(e, what, text);
        if (last >= CPUS_MAX)
            return err_set(e, ERR_RANGE, "%s: \"%.100s\" has a processor above %d", what, text, CPUS_MAX - 1);
        for (; first <= last; first++)
            cpus_add(&s, first);
        if (*p != ',' && *after_blanks(p) != '\0')
            return bad_list(e, what, text);
        p = *p == ',' ? p + 1 : after_blanks(p);
        if (*p == '\0' && p[-1] == ',')
            return bad_list(e, what, text);
    }
    *ret = s;
    return ERR_OK;
}

void cpus_print(const struct cpus *s, char ret[CPUS_TEXT_SIZE])
{
    size_t n = 0;

    ret[0] = '\0';
    for (unsigned first = cpus_next(s, 0); first < CPUS_MAX;) {
        unsigned end = first + 1;

        while (cpus_has(s, end))
            end++;
        n += (size_t)snprintf(ret + n, CPUS_TEXT_SIZE - n, "%s%u", n > 0 ? "," : "", first);
        if (end - 1 > first)
            n += (size_t)snprintf(ret + n, CPUS_TEXT_SIZE - n, "-%u", end - 1);
        first = cpus_next(s, end);
    }
}
