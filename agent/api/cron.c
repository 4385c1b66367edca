/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/cron.h"

#include "base/clock.h"
#include "base/scope.h"

#define HORIZON_S (INT64_C(5) * 366 * 86400) /* as robfig/cron: without a moment the search ends */

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

    if (c->every_s > 0)
        return after + c->every_s;
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

    if (c->every_s > 0)
        return until - after < c->every_s ? -1 : after + (until - after) / c->every_s * c->every_s;
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        int64_t from = until - windows[i] > after ? until - windows[i] : after, found = -1;

        for (int64_t t = from; (t = api_cron_next(c, zone, t)) != -1 && t <= until;)
            found = t;
        if (found != -1 || from == after)
            return found;
    }
    return -1;
}
