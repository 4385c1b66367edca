/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cron_due - whether a CronJob's next Job is due. Pure: no clock of its own.
 *
 * As in Kubernetes' controller, after a time without an agent only the newest moment is run, the others are
 * missed, and a moment older than startingDeadlineSeconds is skipped. If the clock was set back by up to
 * three hours, past moments are not run again (cron's rule); if by more, moments count from now on.
 */
#ifndef AGENT_WORKLOAD_CRON_DUE_H
#define AGENT_WORKLOAD_CRON_DUE_H
#include "agent/api/cron.h"

#define CRON_MISSED_MAX 100 /* more cause a warning, because the clock may be wrong */
#define CRON_BACK_S (3 * 3600)

struct cron_due {
    int64_t at;      /* seconds since 1970: the moment that is due; -1: none */
    int64_t since;   /* moments up to this one are done; stored by the caller */
    int64_t next;    /* the moment after now; -1: never */
    int64_t late;    /* the last moment for which the deadline has passed; -1: none */
    unsigned missed; /* skipped moments before `at`, up to CRON_MISSED_MAX + 1 */
};

/* `since`: moments up to this one are ignored. `deadline_s` below 0: none. */
struct cron_due cron_due(const struct api_cron *c, const struct zone *zone, int64_t since, int64_t deadline_s,
                         int64_t now);
#endif
