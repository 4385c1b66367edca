/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/cron_due.h"

struct cron_due cron_due(const struct api_cron *c, const struct zone *zone, int64_t since, int64_t deadline_s,
                         int64_t now)
{
    struct cron_due d = { .at = -1, .since = since, .late = -1 };
    int64_t from;

    if (since > now && since - now > CRON_BACK_S)
        d.since = now;
    if (d.since > now) {
        d.next = api_cron_next(c, zone, d.since);
        return d;
    }
    from = deadline_s >= 0 && now - deadline_s > d.since ? now - deadline_s : d.since;
    if (from > d.since)
        d.late = api_cron_last(c, zone, d.since, from);
    if (d.late != -1)
        d.since = from;
    d.at = api_cron_last(c, zone, from, now);
    /* @every counts from the last moment, whenever that was */
    d.next = api_cron_next(c, zone, c->every_s == 0 ? now : d.at != -1 ? d.at : from);
    if (d.at == -1)
        return d;
    for (int64_t t = from; (t = api_cron_next(c, zone, t)) != -1 && t < d.at && d.missed <= CRON_MISSED_MAX;)
        d.missed++;
    return d;
}
