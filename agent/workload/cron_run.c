/* SPDX-License-Identifier: Apache-2.0 */
/* cron_run - a CronJob of the folder: creates its Jobs and removes old ones. */
#include "agent/workload/cron_due.h"
#include "agent/workload/internal.h"
#include "agent/workload/zones.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static bool is_of(const struct workload *job, const struct workload *cron)
{
    return job->kind == API_KIND_JOB && !job->goes && strcmp(job->owner, cron->uid) == 0;
}

static bool is_active(const struct workload *job)
{
    return job->job->finished_ns == 0;
}

/* ---- a new Job ---- */

static json_t *member(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    if (json_is_object(v))
        return v;
    v = json_object();
    json_object_set_new(o, key, v);
    return v;
}

/* NULL: out of memory. */
static json_t *job_object(const struct workload *one, const struct zone *zone, const char *name, int64_t at)
{
    const struct api_meta *meta = &one->object->meta;
    json_auto_t *template_ = json_loads(one->object->workload->job->json, 0, NULL);
    json_t *o = json_pack("{s:s, s:s, s:O?, s:O?}", "apiVersion", "batch/v1", "kind", "Job", "metadata",
                          json_object_get(template_, "metadata"), "spec", json_object_get(template_, "spec")),
           *to = member(o, "metadata");
    int32_t offset = zone_offset(zone, at), minutes = (offset < 0 ? -offset : offset) / 60;
    char text[CLOCK_RFC3339_SIZE], stamp[CLOCK_RFC3339_SIZE + 8];

    clock_format_s((at + offset) * WORKLOAD_SECOND_NS, text);
    if (minutes == 0)
        snprintf(stamp, sizeof(stamp), "%s", text);
    else
        snprintf(stamp, sizeof(stamp), "%.19s%c%02d:%02d", text, offset < 0 ? '-' : '+', (int)(minutes / 60),
                 (int)(minutes % 60));
    json_put_str(to, "name", name);
    json_put_str(to, "namespace", meta->namespace);
    json_put_str(member(to, "annotations"), "batch.kubernetes.io/cronjob-scheduled-timestamp", stamp);
    json_object_set_new(to, "ownerReferences",
                        json_pack("[{s:s, s:s, s:s, s:s, s:b, s:b}]", "apiVersion", "batch/v1", "kind",
                                  "CronJob", "name", meta->name, "uid", one->uid, "controller", 1,
                                  "blockOwnerDeletion", 1));
    return o;
}

static void make_job(struct workloads *w, struct workload *one, const struct zone *zone, const char *name,
                     int64_t at)
{
    json_auto_t *o = job_object(one, zone, name, at);
    struct api_object job = { .kind = API_KIND_JOB, .document = 1 };
    char uid[WORKLOAD_UID_SIZE];
    struct err e = { 0 };

    workload_uid(API_KIND_JOB, one->object->meta.namespace, name, uid);
    if (o == NULL)
        err_nomem(&e);
    else if (src_store_generic(w->store, API_FROM_FOLDER, API_KIND_JOB, one->object->meta.namespace, name) !=
             NULL)
        err_set(&e, ERR_EXISTS, "another manifest has a Job of this name");
    else if (workload_record_made(w, uid, clock_wall_ns(), o, &e) ==
                 ERR_OK && /* recorded before it runs, so that it is known after a kill */
             api_make_generic(API_KIND_JOB, o, &job.generic, &e) == ERR_OK &&
             src_store_put(w->store, &job, &e) == ERR_OK) {
        log_info("a CronJob made a Job", F_STR("namespace", one->object->meta.namespace),
                 F_STR("name", one->object->meta.name), F_STR("job", name));
        workload_event(w, one, false, "SuccessfulCreate", "Created job %s", name);
    }
    if (e.code != ERR_OK) {
        log_error("cannot create a Job of a CronJob", F_STR("namespace", one->object->meta.namespace),
                  F_STR("name", one->object->meta.name), F_STR("job", name), F_ERR(&e));
        workload_event(w, one, true, "FailedCreate", "Error creating job: %s", e.text);
    }
    snprintf(one->problem, sizeof(one->problem), "%.299s", e.code != ERR_OK ? e.text : "");
    api_generic_unref(job.generic);
}

/* ---- due moments ---- */

static struct workload *active_of(struct workloads *w, const struct workload *cron)
{
    struct workload *job, *tmp;

    HASH_ITER (hh, w->all, job, tmp)
        if (is_of(job, cron) && is_active(job))
            return job;
    return NULL;
}

static void end_job(struct workloads *w, const struct workload *cron, struct workload *job)
{
    job->goes = true;
    workload_event(w, cron, false, "SuccessfulDelete", "Deleted job %s", job->object->meta.name);
}

/* False: the moment is skipped for now. */
static bool make_room(struct workloads *w, struct workload *one, int64_t at)
{
    const enum api_concurrency rule = one->object->workload->concurrency;
    struct workload *job = rule != API_CONCURRENCY_ALLOW ? active_of(w, one) : NULL;

    if (job != NULL && rule == API_CONCURRENCY_FORBID) {
        if (one->cron->refused_s != at) {
            log_info("a CronJob makes no Job: the last one runs, and concurrencyPolicy is Forbid",
                     F_STR("namespace", one->object->meta.namespace), F_STR("name", one->object->meta.name),
                     F_STR("job", job->object->meta.name));
            workload_event(w, one, false, "JobAlreadyActive",
                           "Not starting job because prior execution is running and concurrency policy is "
                           "Forbid");
        }
        one->cron->refused_s = at;
        return false;
    }
    for (; job != NULL; job = active_of(w, one))
        end_job(w, one, job);
    return true;
}

static void run(struct workloads *w, struct workload *one, const struct zone *zone,
                const struct cron_due *due)
{
    char name[300], uid[WORKLOAD_UID_SIZE];
    struct workload *same;

    if (due->missed > CRON_MISSED_MAX) {
        workload_event(w, one, true, "TooManyMissedTimes",
                       "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
                       "clock skew");
        log_warn("a CronJob has missed more than 100 start times; only the latest one is run; decrease "
                 "startingDeadlineSeconds or check the clock",
                 F_STR("namespace", one->object->meta.namespace), F_STR("name", one->object->meta.name));
    }
    snprintf(name, sizeof(name), "%s-%lld", one->object->meta.name, (long long)(due->at / 60));
    workload_uid(API_KIND_JOB, one->object->meta.namespace, name, uid);
    same = workload_find(w, uid);
    if (same == NULL || !is_of(same, one)) { /* otherwise the agent was killed before it recorded this */
        if (!make_room(w, one, due->at))
            return;
        make_job(w, one, zone, name, due->at);
    }
    one->cron->since_s = one->cron->last_s = due->at;
    workload_record_save(w, one);
}

/* ---- old Jobs ---- */

static int by_age(const void *a, const void *b)
{
    const struct workload *const *x = a, *const *y = b;

    return ((*x)->created_ns > (*y)->created_ns) - ((*x)->created_ns < (*y)->created_ns);
}

static void keep_newest(struct workloads *w, struct workload *cron, bool failed, int32_t keep)
{
    const size_t all = HASH_COUNT(w->all);
    mem_auto struct workload **jobs = calloc(all > 0 ? all : 1, sizeof(struct workload *));
    struct workload *job, *tmp;
    size_t n = 0;

    if (jobs == NULL)
        return;
    HASH_ITER (hh, w->all, job, tmp)
        if (is_of(job, cron) && !is_active(job) && job_end_is_failure(job->job->end) == failed)
            jobs[n++] = job;
    qsort(jobs, n, sizeof(struct workload *), by_age);
    for (size_t i = 0; i + (size_t)keep < n; i++)
        end_job(w, cron, jobs[i]);
}

static bool note_success(struct workloads *w, struct workload *cron)
{
    const int64_t before = cron->cron->success_ns;
    struct workload *job, *tmp;

    HASH_ITER (hh, w->all, job, tmp)
        if (is_of(job, cron) && !is_active(job) && !job_end_is_failure(job->job->end) &&
            job->job->finished_ns > cron->cron->success_ns)
            cron->cron->success_ns = job->job->finished_ns;
    return cron->cron->success_ns != before;
}

/* ---- a step ---- */

char *cron_clock(const struct api_workload *spec)
{
    return str_printf("%s %s", spec->time_zone != NULL ? spec->time_zone : "local", spec->schedule);
}

/* After a change of the schedule, moments count from now on. */
static bool take_clock(struct workload *one, int64_t now)
{
    struct cron_facts *f = one->cron;
    char *clock = cron_clock(one->object->workload);

    if (clock == NULL || str_eq(clock, f->clock)) {
        free(clock);
        return false;
    }
    free(f->clock);
    f->clock = clock;
    f->since_s = now;
    return true;
}

static void look_again(struct workloads *w, int64_t next_s)
{
    const int64_t most = INT64_C(366) * 86400 * 1000;
    int64_t ms;

    if (next_s < 0)
        return;
    ms = (next_s * WORKLOAD_SECOND_NS - clock_wall_ns()) / WORKLOAD_MS + 1;
    workloads_look_again(w, ms < 0 ? 0 : ms > most ? most : ms);
}

static void tell_late(struct workloads *w, const struct workload *one, int64_t at)
{
    char text[CLOCK_RFC3339_SIZE];

    clock_format_s(at * WORKLOAD_SECOND_NS, text);
    workload_event(w, one, true, "MissSchedule", "Missed scheduled time to start a job: %s", text);
}

/* Its schedule makes no moments: an object that was accepted by rules, or by a tz database, of before. */
static void tell_useless(struct workloads *w, struct workload *one, const struct err *why, const char *reason,
                         const char *what)
{
    if (strncmp(one->problem, why->text, sizeof(one->problem) - 1) != 0) {
        log_error("a CronJob cannot create Jobs", F_STR("namespace", one->object->meta.namespace),
                  F_STR("name", one->object->meta.name), F_ERR(why));
        workload_event(w, one, true, reason, "%s: %s", what, why->text);
    }
    snprintf(one->problem, sizeof(one->problem), "%.299s", why->text);
}

void cron_step(struct workloads *w, struct workload *one)
{
    const struct api_workload *spec = one->object->workload;
    const int64_t now = clock_wall_ns() / WORKLOAD_SECOND_NS;
    struct zone *zone = NULL;
    struct cron_due due;
    struct api_cron cron;
    struct err e = { 0 };
    bool changed = take_clock(one, now);

    if (note_success(w, one) || changed)
        workload_record_save(w, one);
    keep_newest(w, one, false, spec->keep_successful);
    keep_newest(w, one, true, spec->keep_failed);
    if (spec->suspend)
        return;
    if (api_cron_parse(spec->schedule, &cron, &e) != ERR_OK) {
        tell_useless(w, one, &e, "UnparseableSchedule", "unparseable schedule");
        return;
    }
    if (zones_get(&zone, spec->time_zone, &e) != ERR_OK) {
        tell_useless(w, one, &e, "UnknownTimeZone", "invalid timeZone");
        return;
    }
    due = cron_due(&cron, zone, one->cron->since_s,
                   spec->has_starting_deadline ? spec->starting_deadline_seconds : -1, now);
    one->cron->since_s = due.since;
    if (due.late != -1)
        tell_late(w, one, due.late);
    if (due.at >= 0)
        run(w, one, zone, &due);
    look_again(w, due.next);
    zone_free(zone);
}
