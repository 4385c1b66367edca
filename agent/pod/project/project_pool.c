/* SPDX-License-Identifier: Apache-2.0 */
/* The one queue of work on the table of ids: requests that wait when a job begins are carried out together
 * (project_job.c). */
#include "agent/pod/core/node_options.h"
#include "agent/pod/project/internal.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between checks of ids that are released, but still in use; doubled. */
#define AGAIN_MS 1000
#define AGAIN_MAX_MS 64000

/* ---- requests ---- */

struct request *request_new(enum request_kind kind, const char *owner, size_t max)
{
    struct request *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return NULL;
    r->kind = kind;
    snprintf(r->owner, sizeof(r->owner), "%s", owner);
    r->v = calloc(max + 1, sizeof(*r->v));
    if (r->v != NULL)
        return r;
    free(r);
    return NULL;
}

void request_free(struct request *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].path);
        free(r->v[i].volume);
    }
    free(r->v);
    free(r);
}

/* ---- the queue ---- */

static void pool_start(struct node *n);

void pool_stock(struct node *n)
{
    struct project_node *part = project_node(n);
    struct request *r;
    bool low = false;

    for (size_t i = 0; i < part->n_open; i++)
        low = low || part->stock[i].n < STOCK_LOW;
    if (!low || part->stocking || part->table == NULL || n->draining || n->closing)
        return;
    r = request_new(REQUEST_STOCK, "", 0);
    if (r == NULL)
        return;
    part->stocking = true;
    for (size_t i = 0; i < part->n_open; i++) /* read by the pool once the request is its own */
        part->stocked[i].n = STOCK_MAX - part->stock[i].n;
    request_add(n, r);
}

static void stock_came(struct node *n)
{
    struct project_node *part = project_node(n);

    part->stocking = false;
    for (size_t i = 0; i < part->n_open && !n->draining; i++) {
        struct stock *s = &part->stock[i], *more = &part->stocked[i];

        for (size_t k = 0; k < more->n && s->n < STOCK_MAX; k++)
            s->ids[s->n++] = more->ids[k];
    }
}

/* Said when it changes, because a full disk refuses every pod. */
static void note_problem(struct project_node *part, const struct request *r)
{
    if (r->e.code == ERR_OK) {
        if (r->kind == REQUEST_TAKE && r->n > 0)
            part->problem[0] = '\0';
        return;
    }
    if (strncmp(part->problem, r->e.text, sizeof(part->problem) - 1) == 0)
        return;
    snprintf(part->problem, sizeof(part->problem), "%.390s", r->e.text);
    log_warn(r->kind == REQUEST_TAKE ? "cannot set the projects of a pod's folders; scanning them instead"
                                     : "cannot release projects; will retry",
             F_STR("podUID", r->owner), F_ERR(&r->e));
}

/* The end of all pods waits until their projects are released. */
static bool removes(const struct request *r)
{
    return r->kind == REQUEST_GONE || r->kind == REQUEST_DROP || r->kind == REQUEST_SWEEP;
}

static void request_out(struct node *n, struct request *r)
{
    if (removes(r))
        n->sweeps--;
    request_free(r);
    node_check_idle(n);
}

static void request_over(struct node *n, struct request *r)
{
    struct project_node *part = project_node(n);

    note_problem(part, r);
    if (r->kind == REQUEST_TAKE)
        ask_done(n, r);
    if (r->kind == REQUEST_STOCK)
        stock_came(n);
    for (size_t i = 0; (r->kind == REQUEST_GONE || r->kind == REQUEST_DROP) && i < r->n; i++)
        if (r->v[i].over)
            index_remove(part, r->v[i].path);
    request_out(n, r);
}

static void pool_on_again(uv_timer_t *timer)
{
    struct node *n = timer->data;
    struct request *r = n->closing ? NULL : request_new(REQUEST_SWEEP, "", 0);

    if (r != NULL)
        request_add(n, r);
}

/*
 * XFS takes removed files apart later, and a process may still have one open; nothing reports that it is
 * over. After the last try the next event tries again.
 */
static void sweep_again(struct project_node *part)
{
    if (part->waiting == 0) {
        part->again_ms = 0;
        uv_timer_stop(&part->again);
        return;
    }
    if (uv_is_active((uv_handle_t *)&part->again) || part->again_ms >= AGAIN_MAX_MS)
        return;
    part->again_ms = part->again_ms == 0 ? AGAIN_MS : 2 * part->again_ms;
    uv_timer_start(&part->again, pool_on_again, part->again_ms, 0);
}

static void pool_on_done(struct op *op, const struct err *result)
{
    struct node *n = op->owner;
    struct project_node *part = project_node(n);
    struct requests over = TAILQ_HEAD_INITIALIZER(over);
    struct project_tasks tasks = TAILQ_HEAD_INITIALIZER(tasks);
    struct project_task *t;
    struct request *r;

    (void)result; /* each request has its own */
    part->busy = false;
    TAILQ_CONCAT(&over, &part->job, link);
    TAILQ_CONCAT(&tasks, &part->job_tasks, link);
    while ((r = TAILQ_FIRST(&over)) != NULL) {
        TAILQ_REMOVE(&over, r, link);
        request_over(n, r);
    }
    while ((t = TAILQ_FIRST(&tasks)) != NULL) {
        TAILQ_REMOVE(&tasks, t, link);
        t->done(t, t->ran);
    }
    if (n->closing) {
        pool_cancel(n);
        return;
    }
    sweep_again(part);
    pool_start(n);
}

static void pool_start(struct node *n)
{
    struct project_node *part = project_node(n);

    if (part->busy || (TAILQ_EMPTY(&part->queue) && TAILQ_EMPTY(&part->tasks)))
        return;
    TAILQ_CONCAT(&part->job, &part->queue, link);
    TAILQ_CONCAT(&part->job_tasks, &part->tasks, link);
    part->busy = true;
    work_start(&part->work, "projects", "", job_run, part, n->o.loop, pool_on_done, n);
}

void request_add(struct node *n, struct request *r)
{
    if (removes(r))
        n->sweeps++;
    if (r->kind == REQUEST_GONE || r->kind == REQUEST_DROP)
        project_node(n)->again_ms = 0;
    if (n->draining && removes(r)) {
        r->last = true;
        memset(project_node(n)->stock, 0, sizeof(project_node(n)->stock));
    }
    TAILQ_INSERT_TAIL(&project_node(n)->queue, r, link);
    pool_start(n);
}

void project_do(struct node *n, struct project_task *t)
{
    t->ran = false;
    TAILQ_INSERT_TAIL(&project_node(n)->tasks, t, link);
    pool_start(n);
}

/* A request in progress runs to its end: node_close() waits for it. */
void pool_cancel(struct node *n)
{
    struct project_node *part = project_node(n);
    struct project_task *t;
    struct request *r;

    uv_timer_stop(&part->again);
    while ((r = TAILQ_FIRST(&part->queue)) != NULL) {
        struct pod *p = pods_by_uid(n, r->owner);

        TAILQ_REMOVE(&part->queue, r, link);
        if (p != NULL && r->kind == REQUEST_TAKE)
            project_pod(p)->pending = false;
        request_out(n, r);
    }
    while ((t = TAILQ_FIRST(&part->tasks)) != NULL) {
        TAILQ_REMOVE(&part->tasks, t, link);
        t->done(t, false);
    }
}

void pool_open(struct node *n)
{
    struct project_node *part = project_node(n);

    TAILQ_INIT(&part->queue);
    TAILQ_INIT(&part->job);
    TAILQ_INIT(&part->tasks);
    TAILQ_INIT(&part->job_tasks);
    uv_timer_init(n->o.loop, &part->again);
    part->again.data = n;
}

void pool_close(struct node *n)
{
    struct project_node *part = project_node(n);

    pool_cancel(n);
    rooms_close_handle(n, (uv_handle_t *)&part->again);
    quota_warn_close(take_ptr(&part->warn), NULL, NULL);
}
