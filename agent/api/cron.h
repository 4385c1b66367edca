/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cron - the schedule of a CronJob: five fields (minute, hour, day of the month, month, day of the week) with
 * lists, ranges, steps and names, a word such as @daily, or @every with a duration. Rules as in Kubernetes
 * (robfig/cron, standard parser): 0 to 6 are Sunday to Saturday, and where both kinds of days are restricted,
 * either suffices.
 */
#ifndef AGENT_API_CRON_H
#define AGENT_API_CRON_H
#include "base/error.h"
#include "base/zone.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct api_cron { /* one bit a value */
    uint64_t minutes;
    uint32_t hours, days, months, weekdays;
    bool any_day, any_weekday; /* "*" or "?" */
    int64_t every_s;           /* @every: so many seconds after the last moment; 0: by the fields */
};

/* ERR_INVALID: the error, in the words of robfig/cron. */
enum err_code api_cron_parse(const char *text, struct api_cron *ret, struct err *e) MUST_CHECK;
/* Whether its fields name this minute. */
bool api_cron_matches(const struct api_cron *c, const struct tm *at);
/* The first moment after `after` (seconds since 1970) on the clock of this zone; NULL: UTC. A time that a
 * clock change skips is not run; a time that occurs twice is run twice. -1: none within five years (the 30th
 * of February). */
int64_t api_cron_next(const struct api_cron *c, const struct zone *zone, int64_t after);
/* The last moment after `after` and up to `until`; -1: none. */
int64_t api_cron_last(const struct api_cron *c, const struct zone *zone, int64_t after, int64_t until);
#endif
