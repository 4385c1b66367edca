/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/cron.h"

#include "base/clock.h"
#include "base/scope.h"

#include <string.h>
#include <strings.h>

#define HORIZON_S (INT64_C(5) * 366 * 86400) /* as robfig/cron: without a moment the search ends */

static const char *const month_names[] = { "jan", "feb", "mar", "apr", "may", "jun",
                                           "jul", "aug", "sep", "oct", "nov", "dec" };
static const char *const weekday_names[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" };

static const struct field {
    const char *name;
    unsigned min, max;
    const char *const *names;
    size_t n_names;
} fields[] = {
    { "minute", 0, 59, NULL, 0 },
    { "hour", 0, 23, NULL, 0 },
    { "day of the month", 1, 31, NULL, 0 },
    { "month", 1, 12, month_names, ARRAY_LEN(month_names) },
    { "day of the week", 0, 6, weekday_names, ARRAY_LEN(weekday_names) },
};

static const struct {
    const char *word, *fields;
} words[] = {
    { "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" },
    { "@weekly", "0 0 * * 0" }, { "@daily", "0 0 * * *" },    { "@midnight", "0 0 * * *" },
    { "@hourly", "0 * * * *" },
};

struct text { /* the rest of a field */
    const char *p, *end;
};

static enum err_code bad(const struct field *f, const struct text *t, const char *what, struct err *e)
{
    int n = t->end - t->p > 40 ? 40 : (int)(t->end - t->p);

    return err_set(e, ERR_INVALID, "the %s: %s at \"%.*s\", allowed are %u to %u", f->name, what, n, t->p,
                   f->min, f->max);
}

static enum err_code number(const struct field *f, struct text *t, bool named, unsigned *ret, struct err *e)
{
    unsigned v = 0;
    const char *p = t->p;

    for (size_t i = 0; named && i < f->n_names; i++)
        if (t->end - p >= 3 && strncasecmp(p, f->names[i], 3) == 0) {
            *ret = (unsigned)i + f->min;
            t->p += 3;
            return ERR_OK;
        }
    for (; p < t->end && *p >= '0' && *p <= '9' && p - t->p < 4; p++)
        v = v * 10 + (unsigned)(*p - '0');
    if (p == t->p)
        return bad(f, t, "expected a number", e);
    t->p = p;
    *ret = v;
    return ERR_OK;
}

/* "5", "1-5", "*", each perhaps with "/2". */
static enum err_code range(const struct field *f, struct text *t, uint64_t *bits, bool *any, struct err *e)
{
    const struct text whole = *t;
    unsigned from = f->min, to = f->max, step = 1;
    bool star = t->p < t->end && (*t->p == '*' || *t->p == '?'), single = false;

    if (star) {
        t->p++;
    } else {
        if (number(f, t, true, &from, e) != ERR_OK)
            return e->code;
        to = from;
        single = true;
        if (t->p < t->end && *t->p == '-') {
            t->p++;
            single = false;
            if (number(f, t, true, &to, e) != ERR_OK)
                return e->code;
        }
    }
    if (t->p < t->end && *t->p == '/') {
        t->p++;
        if (number(f, t, false, &step, e) != ERR_OK)
            return e->code;
        if (step == 0)
            return bad(f, &whole, "a step of 0", e);
        if (single)
            to = f->max;
    }
    if (from < f->min || to > f->max || from > to)
        return bad(f, &whole, "out of range", e);
    *any = *any || (star && step == 1);
    for (unsigned v = from; v <= to; v += step)
        *bits |= UINT64_C(1) << v;
    return ERR_OK;
}

static enum err_code field(const struct field *f, struct text t, uint64_t *bits, bool *any, struct err *e)
{
    *bits = 0;
    *any = false;
    for (;;) {
        if (range(f, &t, bits, any, e) != ERR_OK)
            return e->code;
        if (t.p == t.end)
            return ERR_OK;
        if (*t.p != ',')
            return bad(f, &t, "expected a comma", e);
        t.p++;
    }
}

static bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t';
}

enum err_code api_cron_parse(const char *text, struct api_cron *ret, struct err *e)
{
    uint64_t bits[ARRAY_LEN(fields)];
    bool any[ARRAY_LEN(fields)];
    const char *p = text;

    if (strncmp(text, "TZ=", 3) == 0 || strncmp(text, "CRON_TZ=", 8) == 0)
        return err_set(e, ERR_INVALID, "TZ= and CRON_TZ= are not allowed, timeZone has the zone");
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(text, words[i].word) == 0)
            p = words[i].fields;
    if (*p == '@')
        return err_set(e, ERR_INVALID,
                       "\"%.40s\" is not supported, allowed are @yearly, @annually, @monthly, @weekly, "
                       "@daily, @midnight and @hourly",
                       text);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        struct text t;

        while (is_blank(*p))
            p++;
        t.p = p;
        while (*p != '\0' && !is_blank(*p))
            p++;
        t.end = p;
        if (t.p == t.end)
            return err_set(e, ERR_INVALID, "expected five fields, found %zu: %.60s", i, text);
        if (field(&fields[i], t, &bits[i], &any[i], e) != ERR_OK)
            return e->code;
    }
    while (is_blank(*p))
        p++;
    if (*p != '\0')
        return err_set(e, ERR_INVALID, "expected five fields, found more: %.60s", text);
    *ret = (struct api_cron){ .minutes = bits[0],
                              .hours = (uint32_t)bits[1],
                              .days = (uint32_t)bits[2],
                              .months = (uint32_t)bits[3],
                              .weekdays = (uint32_t)bits[4],
                              .any_day = any[2],
                              .any_weekday = any[4] };
    return ERR_OK;
}

static bool day_matches(const struct api_cron *c, const struct tm *at)
{
    bool day = c->days >> at->tm_mday & 1, weekday = c->weekdays >> at->tm_wday & 1;

    if (!(c->months >> (at->tm_mon + 1) & 1))
        return false;
    return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

bool api_cron_matches(const struct api_cron *c, const struct tm *at)
{
    return day_matches(c, at) && c->hours >> at->tm_hour & 1 && c->minutes >> at->tm_min & 1;
}

static void civil(const struct zone *zone, int64_t at, struct tm *ret)
{
    int64_t local = at + zone_offset(zone, at), days = local / 86400 - (local % 86400 < 0);

    clock_utc(local, ret);
    ret->tm_wday = (int)(((days + 4) % 7 + 7) % 7); /* 1 January 1970 was a Thursday */
}

int64_t api_cron_next(const struct api_cron *c, const struct zone *zone, int64_t after)
{
    int64_t t = after - ((after % 60) + 60) % 60 + 60;

    while (t <= after + HORIZON_S) {
        struct tm tm;

        civil(zone, t, &tm);
        if (api_cron_matches(c, &tm))
            return t;
        if (tm.tm_sec != 0) /* offsets of the 19th century have seconds */
            t += 60 - tm.tm_sec;
        else if (day_matches(c, &tm) && c->hours >> tm.tm_hour & 1)
            t += 60;
        else if (!day_matches(c, &tm) && tm.tm_hour < 22) /* days differ in length where the clock changes */
            t += (22 - tm.tm_hour) * INT64_C(3600) - tm.tm_min * INT64_C(60);
        else
            t += 3600 - tm.tm_min * INT64_C(60);
    }
    return -1;
}

int64_t api_cron_last(const struct api_cron *c, const struct zone *zone, int64_t after, int64_t until)
{
    static const int64_t windows[] = { 3600, 86400, 32 * 86400, 366 * 86400, HORIZON_S };

    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        int64_t from = until - windows[i] > after ? until - windows[i] : after, found = -1;

        for (int64_t t = from; (t = api_cron_next(c, zone, t)) != -1 && t <= until;)
            found = t;
        if (found != -1 || from == after)
            return found;
    }
    return -1;
}
