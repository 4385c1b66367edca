/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/job.h"

#include <string.h>

#define SECOND_NS INT64_C(1000000000)
#define RETRY_S 10 /* Kubernetes' controller: DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff */
#define RETRY_MAX_S 360

struct decision {
    const struct job_want *w;
    const struct job_seen *seen;
    size_t n;
    struct job_plan *plan;
    unsigned next; /* number of the next pod */
    unsigned restarts;
};

static bool counts(const struct job_seen *s)
{
    return s->kept && s->current;
}

/* ---- the present pods ---- */

static void tally(struct decision *d)
{
    struct job_plan *p = d->plan;

    for (size_t i = 0; i < d->n; i++) {
        const struct job_seen *s = &d->seen[i];

        if (s->number >= d->next)
            d->next = s->number + 1;
        p->terminating += !s->kept && s->state == JOB_POD_ACTIVE;
        if (!counts(s))
            continue;
        p->active += s->state == JOB_POD_ACTIVE;
        p->ready += s->state == JOB_POD_ACTIVE && s->ready;
        d->restarts += s->state == JOB_POD_ACTIVE ? s->restarts : 0;
        p->failed += s->state == JOB_POD_FAILED && s->action != API_FAILURE_IGNORE;
        p->succeeded += s->state == JOB_POD_SUCCEEDED;
        if (s->state == JOB_POD_SUCCEEDED && s->index < (unsigned)d->w->spec->completions)
            api_index_set_add(&p->completed, s->index);
    }
    if (d->w->spec->indexed)
        p->succeeded = api_index_set_count(&p->completed);
}

/* Failures of one index, and the end of the newest. */
static unsigned failures_of(const struct decision *d, unsigned index, bool *ret_fails)
{
    unsigned n = 0;

    *ret_fails = false;
    for (size_t i = 0; i < d->n; i++) {
        const struct job_seen *s = &d->seen[i];

        if (!counts(s) || s->state != JOB_POD_FAILED || s->index != index)
            continue;
        n += s->action != API_FAILURE_IGNORE;
        *ret_fails = *ret_fails || s->action == API_FAILURE_FAIL_INDEX;
    }
    return n;
}

static void tally_indexes(struct decision *d)
{
    const struct api_workload *spec = d->w->spec;

    if (!spec->indexed || !spec->has_index_backoff)
        return;
    for (unsigned i = 0; i < (unsigned)spec->completions; i++) {
        bool fails;
        unsigned n = failures_of(d, i, &fails);

        if ((fails || n > (unsigned)spec->index_backoff_limit) && !api_index_set_has(&d->plan->completed, i))
            api_index_set_add(&d->plan->failed_indexes, i);
    }
}

/* ---- completion ---- */

static bool meets(const struct decision *d, const struct api_success_rule *r)
{
    struct api_index_set set;
    unsigned n;

    if (d->plan->succeeded == 0) /* whatever the rule asks for */
        return false;
    if (r->indexes == NULL)
        return r->has_count && d->plan->succeeded >= (unsigned)r->count;
    if (api_index_set_parse(r->indexes, d->w->spec->completions, &set, ERR_IGNORED) != ERR_OK)
        return false;
    n = api_index_set_common(&set, &d->plan->completed);
    return n >= (r->has_count ? (unsigned)r->count : api_index_set_count(&set));
}

static bool is_complete(const struct decision *d)
{
    const struct api_workload *spec = d->w->spec;
    const struct job_plan *p = d->plan;

    if (spec->has_completions)
        return p->succeeded >= (unsigned)spec->completions;
    return p->succeeded > 0 && p->active == 0;
}

static bool is_past_backoff(const struct decision *d)
{
    const struct api_workload *spec = d->w->spec;
    const unsigned limit = (unsigned)spec->backoff_limit;

    if (d->plan->failed > limit)
        return true;
    /* Restarts of containers within their pod count as failures, too. */
    return d->w->restarts_in_place && d->restarts > 0 && d->restarts >= (limit > 0 ? limit : 1);
}

static enum job_end end_of(struct decision *d)
{
    const struct api_workload *spec = d->w->spec;
    const unsigned failed_indexes = api_index_set_count(&d->plan->failed_indexes);

    if (is_complete(d))
        return JOB_COMPLETE;
    for (size_t i = 0; i < d->n; i++)
        if (counts(&d->seen[i]) && d->seen[i].state == JOB_POD_FAILED &&
            d->seen[i].action == API_FAILURE_FAIL_JOB) {
            d->plan->culprit = i;
            return JOB_FAILURE_POLICY;
        }
    if (is_past_backoff(d))
        return JOB_BACKOFF_LIMIT;
    if (d->w->deadline_left_ns <= 0)
        return JOB_DEADLINE;
    if (spec->has_max_failed_indexes && failed_indexes > (unsigned)spec->max_failed_indexes)
        return JOB_MAX_FAILED_INDEXES;
    for (size_t i = 0; i < spec->n_success_rules; i++)
        if (meets(d, &spec->success_rules[i])) {
            d->plan->culprit = i;
            return JOB_SUCCESS_POLICY;
        }
    if (failed_indexes > 0 && failed_indexes + d->plan->succeeded >= (unsigned)spec->completions)
        return JOB_FAILED_INDEXES;
    return JOB_RUNS;
}

/* ---- steps ---- */

static struct job_step *step(struct decision *d)
{
    struct job_plan *p = d->plan;

    return p->n_steps < p->max_steps ? &p->steps[p->n_steps++] : NULL;
}

static void again(struct decision *d, int64_t ns)
{
    if (d->plan->again_ns < 0 || ns < d->plan->again_ns)
        d->plan->again_ns = ns;
}

/* Whether a back-off applies after failures of this index, or (index < 0) of all. Only failures after the
 * last success count. */
static bool pauses(struct decision *d, int64_t index)
{
    int64_t success_ns = 0, last_ns = 0, wait_s = RETRY_S, rest_ns;
    unsigned n = 0;

    for (size_t i = 0; index < 0 && i < d->n; i++)
        if (counts(&d->seen[i]) && d->seen[i].state == JOB_POD_SUCCEEDED && d->seen[i].ended_ns > success_ns)
            success_ns = d->seen[i].ended_ns;
    for (size_t i = 0; i < d->n; i++) {
        const struct job_seen *s = &d->seen[i];

        if (!counts(s) || s->state != JOB_POD_FAILED || (index >= 0 && s->index != (unsigned)index) ||
            s->ended_ns <= success_ns)
            continue;
        n++;
        last_ns = s->ended_ns > last_ns ? s->ended_ns : last_ns;
    }
    if (n == 0)
        return false;
    for (unsigned i = 1; i < n && wait_s < RETRY_MAX_S; i++)
        wait_s *= 2;
    wait_s = wait_s > RETRY_MAX_S ? RETRY_MAX_S : wait_s;
    rest_ns = last_ns + wait_s * SECOND_NS - d->w->now_ns;
    if (rest_ns <= 0 || rest_ns > wait_s * SECOND_NS) /* the clock was set back */
        return false;
    again(d, rest_ns);
    return true;
}

static bool is_taken(const struct decision *d, unsigned index)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct job_seen *s = &d->seen[i];

        if (s->index == index && s->state == JOB_POD_ACTIVE &&
            (counts(s) || (!s->kept && d->w->spec->replace_failed)))
            return true;
    }
    return false;
}

static unsigned wanted(const struct decision *d)
{
    const struct api_workload *spec = d->w->spec;
    const struct job_plan *p = d->plan;
    const unsigned at_a_time = (unsigned)spec->parallelism;
    unsigned rest;

    if (p->end != JOB_RUNS || spec->suspend)
        return 0;
    if (!spec->has_completions) /* no pod is created after the first success */
        return p->succeeded > 0 && p->active < at_a_time ? p->active : at_a_time;
    rest = (unsigned)spec->completions - p->succeeded - api_index_set_count(&p->failed_indexes);
    return rest < at_a_time ? rest : at_a_time;
}

static void remove_pods(struct decision *d, unsigned want)
{
    unsigned active = d->plan->active;

    for (size_t i = d->n; i-- > 0;) {
        const struct job_seen *s = &d->seen[i];
        bool runs = s->current && s->state == JOB_POD_ACTIVE, excess;
        struct job_step *one;

        excess =
            runs && (active > want || (d->w->spec->indexed && s->index >= (unsigned)d->w->spec->completions));
        if (!s->kept || (s->current && !excess))
            continue;
        one = step(d);
        if (one != NULL)
            *one = (struct job_step){ .at = i };
        active -= runs;
    }
}

static void create(struct decision *d, unsigned index)
{
    struct job_step *one = step(d);

    if (one != NULL)
        *one = (struct job_step){ .create = true, .number = d->next++, .index = index };
}

static void create_indexes(struct decision *d, unsigned room)
{
    const struct api_workload *spec = d->w->spec;

    if (!spec->has_index_backoff && pauses(d, -1))
        return;
    for (unsigned i = 0; i < (unsigned)spec->completions && room > 0; i++) {
        if (api_index_set_has(&d->plan->completed, i) || api_index_set_has(&d->plan->failed_indexes, i) ||
            is_taken(d, i) || (spec->has_index_backoff && pauses(d, i)))
            continue;
        create(d, i);
        room--;
    }
}

void job_decide(const struct job_want *w, const struct job_seen *seen, size_t n, enum job_end known_end,
                struct job_plan *plan)
{
    struct decision d = { .w = w, .seen = seen, .n = n, .plan = plan };
    unsigned want, room;

    *plan = (struct job_plan){ .steps = plan->steps, .max_steps = plan->max_steps, .again_ns = -1 };
    tally(&d);
    tally_indexes(&d);
    plan->end = known_end != JOB_RUNS ? known_end : end_of(&d);
    want = wanted(&d);
    remove_pods(&d, want);
    if (plan->end == JOB_RUNS && !w->spec->suspend && w->deadline_left_ns < INT64_MAX)
        again(&d, w->deadline_left_ns);
    room = plan->active + (w->spec->replace_failed ? plan->terminating : 0);
    room = want > room ? want - room : 0;
    if (room == 0)
        return;
    if (w->spec->indexed)
        create_indexes(&d, room);
    else if (!pauses(&d, -1))
        for (; room > 0 && plan->n_steps < plan->max_steps; room--)
            create(&d, 0);
}
