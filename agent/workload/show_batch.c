/* SPDX-License-Identifier: Apache-2.0 */
/* show_batch - the status of Jobs and CronJobs, with the texts of Kubernetes' controllers. */
#include "agent/workload/internal.h"
#include "base/codec/json.h"

#include <string.h>

const char *job_end_reason(enum job_end end)
{
    static const char *const reasons[] = {
        [JOB_RUNS] = "",
        [JOB_COMPLETE] = "CompletionsReached",
        [JOB_SUCCESS_POLICY] = "SuccessPolicy",
        [JOB_FAILURE_POLICY] = "PodFailurePolicy",
        [JOB_BACKOFF_LIMIT] = "BackoffLimitExceeded",
        [JOB_DEADLINE] = "DeadlineExceeded",
        [JOB_FAILED_INDEXES] = "FailedIndexes",
        [JOB_MAX_FAILED_INDEXES] = "MaxFailedIndexesExceeded",
    };

    return reasons[end];
}

static void put_indexes(json_t *s, const char *key, const struct api_index_set *set, bool also_none)
{
    buf_auto b = BUF_INIT(4096);

    api_index_set_format(set, &b);
    if (also_none || b.n > 0)
        json_put_str(s, key, b.p);
}

static void condition(json_t *list, int64_t since_ns, const char *type, bool is_true, const char *reason,
                      const char *message)
{
    show_condition(list, since_ns, type, is_true, reason, message);
    show_time(json_array_get(list, json_array_size(list) - 1), "lastProbeTime", since_ns);
}

/* Adds the condition of the decided end and, once the last pod has ended, the final condition. */
static void put_end(json_t *s, json_t *conditions, const struct workload *one)
{
    const struct job_facts *f = one->job;
    const bool failed = job_end_is_failure(f->end);
    const char *reason = job_end_reason(f->end);

    condition(conditions, f->ended_ns, failed ? "FailureTarget" : "SuccessCriteriaMet", true, reason,
              f->message);
    if (f->finished_ns == 0)
        return;
    condition(conditions, f->finished_ns, failed ? "Failed" : "Complete", true, reason, f->message);
    if (!failed)
        show_time(s, "completionTime", f->finished_ns);
}

static void put_suspended(json_t *conditions, const struct workload *one)
{
    const struct job_facts *f = one->job;
    const bool suspended = one->object->workload->suspend;

    if (!f->was_suspended)
        return;
    condition(conditions, f->turned_ns, "Suspended", suspended, suspended ? "JobSuspended" : "JobResumed",
              suspended ? "Job suspended" : "Job resumed");
}

void show_job(json_t *s, json_t *conditions, const struct workload *one)
{
    const struct api_workload *spec = one->object->workload;
    const struct job_facts *f = one->job;
    const struct job_plan *p = &f->plan;
    const char *key;
    json_t *v;
    size_t i;

    if (f->status != NULL) { /* the Job is over, and its pods may have been removed */
        json_object_foreach (f->status, key, v)
            if (strcmp(key, "conditions") != 0)
                json_object_set(s, key, v);
        json_array_foreach (json_object_get(f->status, "conditions"), i, v)
            json_array_append(conditions, v);
        return;
    }
    if (p->active > 0)
        show_number(s, "active", p->active);
    if (p->succeeded > 0)
        show_number(s, "succeeded", p->succeeded);
    if (p->failed > 0)
        show_number(s, "failed", p->failed);
    show_number(s, "ready", p->ready);
    show_number(s, "terminating", p->terminating);
    json_object_set_new(s, "uncountedTerminatedPods", json_object());
    if (spec->indexed)
        put_indexes(s, "completedIndexes", &p->completed, false);
    if (spec->has_index_backoff)
        put_indexes(s, "failedIndexes", &p->failed_indexes, true);
    if (f->started_ns != 0)
        show_time(s, "startTime", f->started_ns);
    put_suspended(conditions, one);
    if (f->end != JOB_RUNS)
        put_end(s, conditions, one);
}

void show_cron_job(json_t *s, struct workloads *w, const struct workload *one)
{
    const struct cron_facts *f = one->cron;
    json_t *active = json_array();
    struct workload *job, *tmp;

    HASH_ITER (hh, w->all, job, tmp)
        if (job->kind == API_KIND_JOB && job->job->finished_ns == 0 && strcmp(job->owner, one->uid) == 0)
            json_array_append_new(active,
                                  json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion", "batch/v1", "kind",
                                            "Job", "name", job->object->meta.name, "namespace",
                                            job->object->meta.namespace, "uid", job->uid));
    if (json_array_size(active) > 0)
        json_object_set(s, "active", active);
    json_decref(active);
    if (f->last_s != 0)
        show_time(s, "lastScheduleTime", f->last_s * WORKLOAD_SECOND_NS);
    if (f->success_ns != 0)
        show_time(s, "lastSuccessfulTime", f->success_ns);
}
