/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"

#include "base/scope.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t ns;
} units[] = {
    { "ns", 1 },       { "us", 1000 },      { "\xc2\xb5s", 1000 },      { "\xce\xbcs", 1000 },
    { "ms", 1000000 }, { "s", 1000000000 }, { "m", 60 * 1000000000LL }, { "h", 3600 * 1000000000LL }
};

/* Parses one "12.5ms" at *text and advances *text. */
static bool take_part(const char **text, __int128 *ret_ns)
{
    const char *p = *text, *unit;
    __int128 whole = 0, part = 0, scale = 1;
    bool digits = false;
    size_t length;

    for (; *p >= '0' && *p <= '9'; p++, digits = true)
        if ((whole = whole * 10 + (*p - '0')) > INT64_MAX)
            return false;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, digits = true)
            if (scale < 1000000000000000) { /* finer digits are lost in any unit */
                part = part * 10 + (*p - '0');
                scale *= 10;
            }
    unit = p;
    while (*p != '\0' && *p != '.' && (*p < '0' || *p > '9'))
        p++;
    length = (size_t)(p - unit);
    for (size_t i = 0; digits && i < ARRAY_LEN(units); i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, unit, length) == 0) {
            *ret_ns = whole * units[i].ns + part * units[i].ns / scale;
            *text = p;
            return true;
        }
    return false;
}

bool duration_parse(const char *text, int64_t *ret_ns)
{
    bool negative = text[0] == '-';
    __int128 sum = 0, part;

    if (text[0] == '-' || text[0] == '+')
        text++;
    if (strcmp(text, "0") == 0) {
        *ret_ns = 0;
        return true;
    }
    if (text[0] == '\0')
        return false;
    while (text[0] != '\0') {
        if (!take_part(&text, &part) || (sum += part) > INT64_MAX)
            return false;
    }
    *ret_ns = (int64_t)(negative ? -sum : sum);
    return true;
}

/* `value` is in units of 1/`scale`: "1.5". */
static int fraction(char *ret, size_t size, uint64_t value, uint64_t scale)
{
    int n = snprintf(ret, size, "%" PRIu64, value / scale);

    if (value % scale != 0) {
        int digits = scale == 1000000000 ? 9 : scale == 1000000 ? 6 : 3;
        n += snprintf(ret + n, size - (size_t)n, ".%0*" PRIu64, digits, value % scale);
        while (ret[n - 1] == '0')
            ret[--n] = '\0';
    }
    return n;
}

struct duration_text duration_format(int64_t ns)
{
    struct duration_text ret = { "" };
    uint64_t left = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    char *p = ret.s, *end = ret.s + sizeof(ret.s);

    if (ns < 0)
        *p++ = '-';
    if (left == 0) {
        snprintf(p, (size_t)(end - p), "0s");
    } else if (left < 1000) {
        snprintf(p, (size_t)(end - p), "%" PRIu64 "ns", left);
    } else if (left < 1000000000) {
        bool ms = left >= 1000000;
        p += fraction(p, (size_t)(end - p), left, ms ? 1000000 : 1000);
        snprintf(p, (size_t)(end - p), "%s", ms ? "ms" : "\xc2\xb5s");
    } else {
        uint64_t h = left / 3600000000000, m = left / 60000000000 % 60;
        if (h > 0)
            p += snprintf(p, (size_t)(end - p), "%" PRIu64 "h", h);
        if (h > 0 || m > 0)
            p += snprintf(p, (size_t)(end - p), "%" PRIu64 "m", m);
        p += fraction(p, (size_t)(end - p), left % 60000000000, 1000000000);
        snprintf(p, (size_t)(end - p), "s");
    }
    return ret;
}

struct duration_text duration_format_ms(uint64_t ms)
{
    return duration_format((int64_t)ms * 1000000);
}

/* "3d", "3d4h": the smaller unit only if not zero. */
static struct duration_text two_units(int64_t big, char big_unit, int64_t small, char small_unit)
{
    struct duration_text ret;

    if (small == 0)
        snprintf(ret.s, sizeof(ret.s), "%" PRId64 "%c", big, big_unit);
    else
        snprintf(ret.s, sizeof(ret.s), "%" PRId64 "%c%" PRId64 "%c", big, big_unit, small, small_unit);
    return ret;
}

struct duration_text duration_human(int64_t ns)
{
    const int64_t seconds = ns / 1000000000, minutes = seconds / 60, hours = minutes / 60, days = hours / 24;

    if (seconds < -1)
        return (struct duration_text){ "<invalid>" };
    if (seconds < 2 * 60)
        return two_units(seconds < 0 ? 0 : seconds, 's', 0, 0);
    if (minutes < 10)
        return two_units(minutes, 'm', seconds % 60, 's');
    if (minutes < 3 * 60)
        return two_units(minutes, 'm', 0, 0);
    if (hours < 8)
        return two_units(hours, 'h', minutes % 60, 'm');
    if (hours < 2 * 24)
        return two_units(hours, 'h', 0, 0);
    if (days < 8)
        return two_units(days, 'd', hours % 24, 'h');
    if (days < 2 * 365)
        return two_units(days, 'd', 0, 0);
    return two_units(days / 365, 'y', days < 8 * 365 ? days % 365 : 0, 'd');
}
