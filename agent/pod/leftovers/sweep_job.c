/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/leftovers/sweep_job.h"

#include "agent/pod/leftovers/internal.h"
#include "agent/pod/leftovers/mount_watch.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/project/project.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

/* Between tries, doubled: a cgroup needs a moment after its processes were killed. */
#define PAUSE_FIRST_MS 50
#define PAUSE_MAX_MS 60000
#define DRAIN_PAUSE_MAX_MS 1600 /* when everything is being removed: given up after 3 s */
#define SAID_AFTER_MS 3000      /* longer removals are logged */

static void sweep_on_closed(uv_handle_t *handle)
{
    struct sweep_job *j = handle->data;
    struct node *n = j->node;

    TAILQ_REMOVE(&leftovers_node(n)->jobs, j, link);
    free(j);
    n->sweeps--;
    node_check_idle(n);
}

void sweep_job_finish(struct sweep_job *j)
{
    if (j->over)
        return;
    j->over = true;
    j->waiting = false;
    uv_close((uv_handle_t *)&j->retry, sweep_on_closed);
}

static void sweep_on_retry(uv_timer_t *timer)
{
    struct sweep_job *j = timer->data;

    j->waiting = false;
    j->begin(j);
}

void sweep_job_tried(struct sweep_job *j, const struct err *result)
{
    struct node *n = j->node;
    const char *trouble = j->list != NULL ? "cannot list leftovers, so none are removed; will retry"
                                          : "cannot remove a leftover; will retry";

    if (result->code == ERR_OK && j->list == NULL) {
        log_info("removed a leftover", F_STR("what", j->what), F_STR("id", j->id));
        project_gone(n, NULL);
    }

    if (result->code == ERR_OK || result->code == ERR_CANCELLED || n->closing ||
        (n->draining && j->pause_ms >= DRAIN_PAUSE_MAX_MS)) {
        if (result->code != ERR_OK && result->code != ERR_CANCELLED)
            log_warn("cannot remove a leftover; the next start will retry", F_STR("what", j->what),
                     F_STR("id", j->id), F_ERR(result));
        sweep_job_finish(j);
        return;
    }
    j->held = result->code == ERR_PRECONDITION;
    if (strcmp(j->error, result->text) != 0 && (j->held || clock_mono_ms() - j->since_ms > SAID_AFTER_MS)) {
        log_warn(trouble, F_STR("what", j->what), F_STR("id", j->id), F_ERR(result));
        snprintf(j->error, sizeof(j->error), "%s", result->text);
    }
    j->pause_ms = backoff_next_ms(j->pause_ms, PAUSE_FIRST_MS, PAUSE_MAX_MS);
    if (j->held) { /* a mount that disappeared before the watch began is noticed by the next try */
        struct err e = { 0 };
        bool new;
        if (mount_watch_begin(n, &new, &e) != ERR_OK)
            log_debug("cannot watch mounts", F_ERR(&e));
    }
    j->waiting = true;
    uv_timer_start(&j->retry, sweep_on_retry, j->pause_ms, 0);
}

void sweep_job_on_done(struct op *op, const struct err *result)
{
    sweep_job_tried(op->owner, result);
}

static struct sweep_job *make_job(struct node *n, const char *id, const char *what,
                                  void (*begin)(struct sweep_job *j))
{
    struct sweep_job *j = strlen(id) < sizeof(j->id) ? calloc(1, sizeof(*j)) : NULL;

    if (j == NULL) {
        log_error("no memory to remove a leftover; the next start will remove it", F_STR("what", what),
                  F_STR("id", id));
        return NULL;
    }
    j->node = n;
    j->what = what;
    j->begin = begin;
    j->since_ms = clock_mono_ms();
    snprintf(j->id, sizeof(j->id), "%s", id);
    uv_timer_init(n->o.loop, &j->retry);
    j->retry.data = j;
    n->sweeps++;
    TAILQ_INSERT_TAIL(&leftovers_node(n)->jobs, j, link);
    return j;
}

void sweep_job_new(struct node *n, const char *id, const char *what, void (*begin)(struct sweep_job *j))
{
    struct sweep_job *j = make_job(n, id, what, begin);

    if (j == NULL)
        return;
    log_info("removing a leftover", F_STR("what", what), F_STR("id", id));
    j->begin(j);
}

static void list_again(struct sweep_job *j)
{
    struct err e = { 0 };

    ERR_IGNORE(j->list(j->node, &e));
    sweep_job_tried(j, &e);
}

void sweep_list(struct node *n, const char *what, enum err_code (*fn)(struct node *n, struct err *e))
{
    struct err e = { 0 };
    struct sweep_job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link)
        if (j->list == fn && !j->over)
            return; /* already being repeated */
    if (fn(n, &e) == ERR_OK)
        return;
    log_warn("cannot list leftovers, so none are removed; will retry", F_STR("what", what), F_ERR(&e));
    j = make_job(n, "", what, list_again);
    if (j == NULL)
        return;
    j->list = fn;
    snprintf(j->error, sizeof(j->error), "%s", e.text);
    sweep_job_tried(j, &e);
}

void sweep_cancel(struct node *n)
{
    struct sweep_job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link) {
        op_cancel(&j->action.op);
        op_cancel(&j->cni.op);
        op_cancel(&j->call.op);
        op_cancel(&j->csi.op);
        if (j->waiting)
            sweep_job_finish(j);
    }
}

void sweep_hurry(struct node *n)
{
    struct sweep_job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link)
        if (j->waiting) {
            j->pause_ms = 0;
            uv_timer_start(&j->retry, sweep_on_retry, 0, 0);
        }
}

bool sweep_mounts_changed(struct node *n)
{
    bool some = false;
    struct sweep_job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link) {
        some = some || (j->held && !j->over);
        if (j->held && j->waiting)
            uv_timer_start(&j->retry, sweep_on_retry, 0, 0);
    }
    return some;
}

void sweep_each(struct node *n, void (*fn)(const char *what, const char *id, const char *error, void *arg),
                void *arg)
{
    const struct sweep_job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link)
        if (!j->over)
            fn(j->what, j->id, j->error, arg);
}

bool sweep_has_job(struct node *n, const char *id, void (*begin)(struct sweep_job *j))
{
    const struct sweep_job *j;

    TAILQ_FOREACH (j, &leftovers_node(n)->jobs, link)
        if (!j->over && j->begin == begin && strcmp(j->id, id) == 0)
            return true;
    return false;
}

/* The first try is silent, because it is not a leftover yet. */
void sweep_job_retry(struct node *n, const char *id, const char *what, void (*begin)(struct sweep_job *j),
                     const struct err *e)
{
    struct sweep_job *j;

    log_warn("cannot remove leftovers of a pod; will retry", F_STR("what", what), F_STR("id", id), F_ERR(e));
    if (n->closing || sweep_has_job(n, id, begin))
        return; /* the next start finds it */
    j = make_job(n, id, what, begin);
    if (j != NULL)
        sweep_job_tried(j, e);
}
