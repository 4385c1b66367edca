/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: the number of jobs that work at once, in total and per registry, and which jobs wait. */
#include "agent/image/image_internal.h"

#include "base/clock.h"

#include <string.h>

static bool key_is_busy(const struct img_job *wanted)
{
    const struct img_job *j;

    TAILQ_FOREACH (j, &wanted->store->jobs, more) {
        if (j == wanted)
            return false;
        if (strcmp(j->key, wanted->key) == 0)
            return true; /* an older one */
    }
    return false;
}

/* A registry that hangs does not occupy all slots. */
static bool registry_is_busy(const struct img_job *wanted)
{
    const struct img_store *s = wanted->store;
    const struct img_job *j;
    unsigned n = 0;

    if (!wanted->is_registry)
        return false;
    TAILQ_FOREACH (j, &s->jobs, more)
        n += j->state != JOB_WAIT && j->is_registry && strcmp(j->host, wanted->host) == 0;
    return n >= s->max_per_registry;
}

/* Continues jobs whose credential providers have answered meanwhile. */
static void asked_go_on(struct img_store *s)
{
    struct img_job *j;

    TAILQ_FOREACH (j, &s->jobs, more)
        if (j->aside == IMG_ASKED && img_has_slot(s))
            img_auth_go_on(j);
}

void img_jobs_start(struct img_store *s)
{
    struct img_job *j, *next;

    asked_go_on(s);

    /* A job that fails immediately ends in this call and starts other jobs, so the list is read again after
     * each. */
    do {
        next = NULL;
        TAILQ_FOREACH (j, &s->jobs, more)
            if (j->state == JOB_WAIT && !key_is_busy(j) && !registry_is_busy(j)) {
                next = j;
                break;
            }
        if (next != NULL && img_has_slot(s) && !s->closing) {
            s->running++;
            s->jobs_begun++;
            next->begun_ms = clock_mono_ms();
            img_job_begin(next);
        } else {
            next = NULL;
        }
    } while (next != NULL);
}

/* ---- the same content under several names ---- */

bool img_job_has_elder(const struct img_job *wanted)
{
    const struct img_job *j;

    TAILQ_FOREACH (j, &wanted->store->jobs, more)
        if (j != wanted && !j->cancelled && j->state >= JOB_COPY && str_eq(j->digest, wanted->digest))
            return true;
    return false;
}

void img_twins_wake(struct img_store *s)
{
    struct img_job *j, *next;

    do {
        next = NULL;
        TAILQ_FOREACH (j, &s->jobs, more)
            if (j->state == JOB_TWIN && !img_job_has_elder(j)) {
                next = j;
                break;
            }
        if (next != NULL)
            img_job_decide(next);
    } while (next != NULL);
}
