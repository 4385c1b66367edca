/* SPDX-License-Identifier: Apache-2.0 */
/* job_run - a Job of the folder, or of a CronJob: manages its pods by the rules of job.h, and its status. */
#include "agent/pod/container/container.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/status/status.h"
#include "agent/workload/internal.h"
#include "agent/workload/job_policy.h"
#include "base/array.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 64 /* steps in one turn of the loop; the rest follows in the next */
#define EXITS_MAX 64
#define CONDITIONS_MAX 16

/* ---- why a pod failed ---- */

struct failure_memory {
    struct job_exit exits[EXITS_MAX];
    struct api_failure_condition conditions[CONDITIONS_MAX];
    json_t *pod;
};

static struct job_failure failure_of(const struct pod *p, const struct api_workload *spec,
                                     struct failure_memory *m)
{
    struct job_failure f = { .exits = m->exits, .conditions = m->conditions };
    bool asks = false;
    json_t *one;
    size_t k;

    m->pod = NULL;
    for (size_t i = 0; i < p->n_ctrs && f.n_exits < EXITS_MAX; i++)
        if (p->ctrs[i]->cur.ended && p->ctrs[i]->kind != CTR_EPHEMERAL)
            m->exits[f.n_exits++] = (struct job_exit){ p->ctrs[i]->spec->name, p->ctrs[i]->cur.exit_code };
    for (size_t i = 0; i < spec->n_failure_rules; i++)
        asks = asks || spec->failure_rules[i].n_conditions > 0;
    if (!asks)
        return f;
    m->pod = pod_status_json((struct pod *)(uintptr_t)p);
    json_array_foreach (json_at(m->pod, "status.conditions"), k, one) {
        const char *type = json_str(one, "type"), *status = json_str(one, "status");

        if (type != NULL && status != NULL && f.n_conditions < CONDITIONS_MAX)
            m->conditions[f.n_conditions++] =
                (struct api_failure_condition){ (char *)(uintptr_t)type, (char *)(uintptr_t)status };
    }
    return f;
}

static enum api_failure_action judge(const struct pod *p, const struct api_workload *spec)
{
    struct failure_memory m = { 0 };
    struct job_failure f;
    enum api_failure_action action;

    if (spec->n_failure_rules == 0)
        return API_FAILURE_COUNT;
    f = failure_of(p, spec, &m);
    action = job_policy_judge(spec, &f).action;
    json_decref(m.pod);
    return action;
}

/* Kubernetes' text. NULL: out of memory. */
static char *failure_message(const struct pod *p, const struct api_workload *spec)
{
    struct failure_memory m = { 0 };
    struct job_failure f = failure_of(p, spec, &m);
    struct job_verdict v = job_policy_judge(spec, &f);
    char *text;

    if (v.exit != NULL)
        text =
            str_printf("Container %s for pod %s failed with exit code %d matching FailJob rule at index %zu",
                       v.exit->container, p->key, v.exit->code, v.rule);
    else
        text = str_printf("Pod %s has condition %s matching FailJob rule at index %zu", p->key,
                          v.condition != NULL ? v.condition : "", v.rule);
    json_decref(m.pod);
    return text;
}

/* ---- the present pods ---- */

static int64_t ended_ns(const struct pod *p)
{
    int64_t last = 0;

    for (size_t i = 0; i < p->n_ctrs; i++)
        last = p->ctrs[i]->cur.finished_ns > last ? p->ctrs[i]->cur.finished_ns : last;
    return last != 0 ? last : p->state_since_ns;
}

static bool see(struct workloads *w, struct workload *one, const struct pod *p)
{
    const struct api_workload *spec = one->object->workload;
    const struct api_meta *meta = &p->api->meta;
    const struct api_pod *kept = src_store_pod(w->store, API_FROM_FOLDER, meta->namespace, meta->name);
    const char *dash = strrchr(meta->name, '-'), *index = api_kvs_get(&meta->labels, workload_index_label),
               *phase = pod_phase(p);
    size_t n = one->n_seen;
    int64_t since_ns;
    struct job_seen *s;

    if (!array_room(one->job->seen, n))
        return false;
    n = one->n_seen;
    if (!array_room(one->pods, n))
        return false;
    s = &one->job->seen[one->n_seen];
    one->pods[one->n_seen++] = p;
    *s = (struct job_seen){
        .number = dash != NULL ? (unsigned)strtoul(dash + 1, NULL, 10) : 0,
        .index = index != NULL ? (unsigned)strtoul(index, NULL, 10) : 0,
        .current = str_eq(api_kvs_get(&meta->labels, workload_hash_label(one->kind)), spec->pods.hash) &&
                   spec->indexed == (index != NULL),
        .kept = kept != NULL && str_eq(kept->owner_uid, one->uid),
        .ready = pod_is_ready(p, &since_ns) && p->state == POD_RUNNING,
    };
    if (strcmp(phase, "Succeeded") == 0)
        s->state = JOB_POD_SUCCEEDED;
    else if (strcmp(phase, "Failed") == 0)
        s->state = JOB_POD_FAILED;
    if (s->state == JOB_POD_FAILED && s->kept)
        s->action = judge(p, spec);
    if (s->state != JOB_POD_ACTIVE)
        s->ended_ns = ended_ns(p);
    for (size_t i = 0; i < p->n_ctrs; i++)
        s->restarts += p->ctrs[i]->restarts;
    one->counts.pods += s->kept;
    return true;
}

/* ---- life of a Job ---- */

/* Starts the Job again, because its template has changed. */
static void begin(struct workload *one)
{
    struct job_facts *f = one->job;

    free(f->message);
    json_decref(f->status);
    *f = (struct job_facts){ .seen = f->seen };
    snprintf(f->hash, sizeof(f->hash), "%s", one->object->workload->pods.hash);
}

static bool turn(struct workloads *w, struct workload *one)
{
    struct job_facts *f = one->job;
    const bool suspended = one->object->workload->suspend;
    const int64_t now_ns = clock_wall_ns();
    bool changed = false;

    if (strcmp(f->hash, one->object->workload->pods.hash) != 0) {
        begin(one);
        changed = true;
    }
    if (f->end != JOB_RUNS)
        return changed;
    if (suspended && (f->started_ns != 0 || !f->was_suspended)) {
        f->started_ns = 0;
        f->was_suspended = true;
        f->turned_ns = now_ns;
        workload_event(w, one, false, "Suspended", "Job suspended");
        changed = true;
    } else if (!suspended && f->started_ns == 0) {
        f->started_ns = now_ns;
        f->began = clock_boot();
        f->turned_ns = f->was_suspended ? now_ns : 0;
        if (f->was_suspended)
            workload_event(w, one, false, "Resumed", "Job resumed");
        changed = true;
    }
    return changed;
}

static int64_t deadline_left(const struct workload *one)
{
    const struct api_workload *spec = one->object->workload;

    if (!spec->has_deadline || one->job->started_ns == 0)
        return INT64_MAX;
    if (spec->deadline_seconds > INT32_MAX) /* longer than any node runs */
        return INT64_MAX;
    return spec->deadline_seconds * WORKLOAD_SECOND_NS - clock_boot_since_ns(one->job->began);
}

static char *end_message(const struct workload *one, const struct job_plan *plan)
{
    switch (plan->end) {
    case JOB_RUNS:
    case JOB_COMPLETE:
        return strdup("Reached expected number of succeeded pods");
    case JOB_SUCCESS_POLICY:
        return str_printf("Matched rules at index %zu", plan->culprit);
    case JOB_FAILURE_POLICY:
        return failure_message(one->pods[plan->culprit], one->object->workload);
    case JOB_BACKOFF_LIMIT:
        return strdup("Job has reached the specified backoff limit");
    case JOB_DEADLINE:
        return strdup("Job was active longer than specified deadline");
    case JOB_FAILED_INDEXES:
        return strdup("Job has failed indexes");
    case JOB_MAX_FAILED_INDEXES:
        return strdup("Job has exceeded the specified maximal number of failed indexes");
    }
    return NULL;
}

static void tell_end(struct workloads *w, const struct workload *one)
{
    const struct job_facts *f = one->job;
    const bool failed = job_end_is_failure(f->end);
    const struct workload *cron = one->owner[0] != '\0' ? workload_find(w, one->owner) : NULL;

    if (failed)
        workload_event(w, one, true, job_end_reason(f->end), "%s", f->message != NULL ? f->message : "");
    else
        workload_event(w, one, false, "Completed", "Job completed");
    if (cron != NULL)
        workload_event(w, cron, false, "SawCompletedJob", "Saw completed job: %s, condition: %s",
                       one->object->meta.name, failed ? "Failed" : "Complete");
}

/* True: a change has to be recorded. */
static bool settle(struct workloads *w, struct workload *one)
{
    struct job_facts *f = one->job;
    const struct job_plan *plan = &f->plan;
    const int64_t now_ns = clock_wall_ns();
    json_t *status, *conditions;
    bool changed = false;

    if (f->end == JOB_RUNS && plan->end != JOB_RUNS) {
        f->end = plan->end;
        f->message = end_message(one, plan);
        f->ended_ns = now_ns;
        log_info(job_end_is_failure(f->end) ? "a Job has failed" : "a Job is complete",
                 F_STR("namespace", one->object->meta.namespace), F_STR("name", one->object->meta.name),
                 F_STR("reason", job_end_reason(f->end)), F_STR("message", f->message));
        changed = true;
    }
    if (f->end == JOB_RUNS || f->finished_ns != 0 || plan->active > 0 || plan->terminating > 0)
        return changed;
    f->finished_ns = now_ns;
    f->finished = clock_boot();
    status = json_object();
    conditions = json_array();
    show_job(status, conditions, one);
    json_object_set_new(status, "conditions", conditions);
    f->status = status;
    tell_end(w, one);
    return true;
}

static void expire(struct workloads *w, struct workload *one)
{
    const struct api_workload *spec = one->object->workload;
    int64_t left;

    if (one->job->finished_ns == 0 || !spec->has_ttl || one->asked || one->goes)
        return;
    left = spec->ttl_seconds * WORKLOAD_SECOND_NS - clock_boot_since_ns(one->job->finished);
    if (left > 0) {
        workloads_look_again(w, left / WORKLOAD_MS + 1);
        return;
    }
    log_info("a Job is deleted: ttlSecondsAfterFinished", F_STR("namespace", one->object->meta.namespace),
             F_STR("name", one->object->meta.name));
    one->goes = one->owner[0] != '\0';
    one->asked = true; /* an object whose file cannot be written stays */
    if (!one->goes)
        w->o.remove(w->o.arg, one->kind, one->object->meta.namespace, one->object->meta.name);
}

void job_step(struct workloads *w, struct workload *one)
{
    const struct api_generic *g = one->object;
    struct job_facts *f = one->job;
    struct job_step steps[STEPS_MAX];
    struct job_want want = { .spec = g->workload, .now_ns = clock_wall_ns() };
    bool changed = turn(w, one);

    want.restarts_in_place = g->workload->pods.pod->spec.restart_policy == API_RESTART_ON_FAILURE;
    pods_each (w->o.node, p)
        if (str_eq(p->api->owner_uid, one->uid) && !see(w, one, p))
            return; /* out of memory: the next change retries */
    want.deadline_left_ns = deadline_left(one);
    f->plan = (struct job_plan){ .steps = steps, .max_steps = STEPS_MAX };
    job_decide(&want, f->seen, one->n_seen, f->end, &f->plan);
    changed = settle(w, one) || changed;
    if (changed && one->owner[0] != '\0') /* its CronJob may have been processed already */
        workloads_look_again(w, 0);
    if (changed) /* recorded before pods are created or removed, so that the same is decided after a kill */
        workload_record_save(w, one);
    for (size_t i = 0; i < f->plan.n_steps; i++) {
        const struct pod *p = steps[i].create ? NULL : one->pods[steps[i].at];

        if (p == NULL)
            workload_make(w, one, steps[i].number, steps[i].index);
        else
            workload_remove(w, one, p);
    }
    f->plan.steps = NULL;
    if (f->plan.n_steps == STEPS_MAX)
        workloads_look_again(w, 0);
    if (f->plan.again_ns >= 0)
        workloads_look_again(w, f->plan.again_ns / WORKLOAD_MS + 1);
    expire(w, one);
}
