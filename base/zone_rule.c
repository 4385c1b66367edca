/* SPDX-License-Identifier: Apache-2.0 */
#include "base/zone_rule.h"

#include "base/clock.h"

#include <string.h>

#define DAY_S INT64_C(86400)

/* ---- parsing ---- */

static bool name(const char **p)
{
    const char *from = *p;

    if (*from == '<') {
        const char *end = strchr(from, '>');

        *p = end != NULL ? end + 1 : from;
        return end != NULL && end - from > 3;
    }
    while ((**p >= 'A' && **p <= 'Z') || (**p >= 'a' && **p <= 'z'))
        ++*p;
    return *p - from >= 3;
}

static bool number(const char **p, int min, int max, int *ret)
{
    const char *from = *p;
    int v = 0;

    for (; **p >= '0' && **p <= '9' && *p - from < 4; ++*p)
        v = v * 10 + (**p - '0');
    *ret = v;
    return *p > from && v >= min && v <= max;
}

static bool part(const char **p, int *ret)
{
    *ret = 0;
    if (**p != ':')
        return true;
    ++*p;
    return number(p, 0, 59, ret);
}

/* "[+-]hh[:mm[:ss]]" */
static bool seconds(const char **p, int max_hours, int32_t *ret)
{
    bool minus = **p == '-';
    int h, m, s;

    if (minus || **p == '+')
        ++*p;
    if (!number(p, 0, max_hours, &h) || !part(p, &m) || !part(p, &s))
        return false;
    *ret = h * 3600 + m * 60 + s;
    *ret = minus ? -*ret : *ret;
    return true;
}

static bool day(const char **p, struct zone_day *ret)
{
    *ret = (struct zone_day){ .kind = ZONE_DAY_NUMBER, .seconds = 2 * 3600 };
    if (**p != ',')
        return false;
    ++*p;
    if (**p == 'M') {
        ret->kind = ZONE_DAY_WEEK;
        ++*p;
        if (!number(p, 1, 12, &ret->month) || *(*p)++ != '.' || !number(p, 1, 5, &ret->week) ||
            *(*p)++ != '.' || !number(p, 0, 6, &ret->day))
            return false;
    } else if (**p == 'J') {
        ret->kind = ZONE_DAY_JULIAN;
        ++*p;
        if (!number(p, 1, 365, &ret->day))
            return false;
    } else if (!number(p, 0, 365, &ret->day)) {
        return false;
    }
    if (**p != '/')
        return true;
    ++*p;
    return seconds(p, 167, &ret->seconds);
}

bool zone_rule_parse(const char *text, struct zone_rule *ret)
{
    const char *p = text;
    int32_t west;

    *ret = (struct zone_rule){ 0 };
    if (strlen(text) >= ZONE_RULE_TEXT_MAX || !name(&p) || !seconds(&p, 24, &west))
        return false;
    ret->standard = -west;
    if (*p == '\0')
        return true;
    ret->has_summer = true;
    ret->summer = ret->standard + 3600;
    if (!name(&p))
        return false;
    if (*p != '\0' && *p != ',') {
        if (!seconds(&p, 24, &west))
            return false;
        ret->summer = -west;
    }
    if (*p == '\0')
        p = ",M3.2.0,M11.1.0"; /* as libc: the rule of the United States */
    return day(&p, &ret->begins) && day(&p, &ret->ends) && *p == '\0';
}

/* ---- moments ---- */

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* From 1 January 1970 to 1 January of the year. */
static int64_t days_to_year(int64_t year)
{
    int64_t y = year - 1;

    return y * 365 + y / 4 - y / 100 + y / 400 - (INT64_C(1969) * 365 + 1969 / 4 - 1969 / 100 + 1969 / 400);
}

/* From 1 January to the day. */
static int64_t day_of_year(const struct zone_day *d, int64_t year)
{
    static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365 };
    int64_t first, length, weekday, n;

    if (d->kind == ZONE_DAY_NUMBER)
        return d->day;
    if (d->kind == ZONE_DAY_JULIAN)
        return d->day - 1 + (d->day > 59 && is_leap(year));
    first = before[d->month - 1] + (d->month > 2 && is_leap(year));
    length = before[d->month] + (d->month > 1 && is_leap(year)) - first;
    weekday = (((days_to_year(year) + first + 4) % 7) + 7) % 7; /* 1 January 1970 was a Thursday */
    n = (d->day - weekday + 7) % 7 + (d->week - 1) * 7;
    while (n >= length)
        n -= 7;
    return first + n;
}

static int64_t moment(const struct zone_day *d, int64_t year, int32_t offset)
{
    return (days_to_year(year) + day_of_year(d, year)) * DAY_S + d->seconds - offset;
}

int32_t zone_rule_offset(const struct zone_rule *r, int64_t at)
{
    int64_t year, begins, ends;
    struct tm tm;
    bool summer;

    if (!r->has_summer)
        return r->standard;
    if (at < -INT64_C(62135596800) + 2 * DAY_S || at > INT64_C(253402300799) - 2 * DAY_S)
        return r->standard; /* years 1 to 9999 have rules */
    clock_utc(at + r->standard, &tm);
    year = tm.tm_year + INT64_C(1900);
    begins = moment(&r->begins, year, r->standard);
    ends = moment(&r->ends, year, r->summer);
    summer = begins < ends ? at >= begins && at < ends : at >= begins || at < ends;
    return summer ? r->summer : r->standard;
}
