/* SPDX-License-Identifier: Apache-2.0 */
/* The steps: schedules reads and scans, and keeps the problems. */
#include "agent/declared/internal.h"

#include "base/clock.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* ---- steps ---- */

static void on_timer(uv_timer_t *timer)
{
    struct declared *d = timer->data;

    d->asked_ms = 0;
    declared_step(d);
}

void declared_ask(struct declared *d, bool read)
{
    uint64_t now = clock_mono_ms(), latest;

    if (d->cancelled)
        return;
    *(read ? &d->want_read : &d->want_look) = true;
    if (d->asked_ms == 0)
        d->asked_ms = now;
    latest = d->asked_ms + DECLARED_SETTLE_MAX_MS;
    uv_timer_start(&d->timer, on_timer,
                   now + DECLARED_SETTLE_MS <= latest ? DECLARED_SETTLE_MS
                   : now < latest                     ? latest - now
                                                      : 0,
                   0);
}

void declared_ask_later(struct declared *d, bool read)
{
    if (d->cancelled)
        return;
    *(read ? &d->want_read : &d->want_look) = true;
    d->retry_ms = d->retry_ms == 0 ? DECLARED_RETRY_MS : 2 * d->retry_ms;
    if (d->retry_ms > DECLARED_RETRY_MAX_MS)
        d->retry_ms = DECLARED_RETRY_MAX_MS;
    if (!uv_is_active((uv_handle_t *)&d->timer))
        uv_timer_start(&d->timer, on_timer, d->retry_ms, 0);
}

/* A due step waits for the running step and for the timer. */
void declared_step(struct declared *d)
{
    if (declared_busy(d) || d->cancelled || uv_is_active((uv_handle_t *)&d->timer))
        return;
    if (d->want_read) {
        d->want_read = false;
        declared_files_read_start(d);
    } else if (d->want_look) {
        d->want_look = false;
        declared_nodes_look_start(d);
    }
}

/* ---- problems ---- */

void declared_set_problems(struct declared *d, struct strs *at, struct strs *now, const char *what)
{
    for (size_t i = 0; i < now->n; i++)
        if (!strs_has(at, now->v[i]) && d->o.problem != NULL)
            d->o.problem(what, now->v[i], d->o.arg);
    strs_done(at);
    *at = *now;
    *now = (struct strs){ 0 };
}

void declared_problems(const struct declared *d, void (*fn)(const char *what, const char *text, void *arg),
                       void *arg)
{
    const struct strs *common[] = { &d->event_problems, &d->look_problems, &d->clashes };

    for (size_t i = 0; i < d->dir_problems.n; i++)
        fn(d->o.dir, d->dir_problems.v[i], arg);
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        for (size_t k = 0; k < common[i]->n; k++)
            fn("devices", common[i]->v[k], arg);
    for (size_t i = 0; i < d->n_files; i++)
        for (size_t k = 0; k < d->files[i].problems.n; k++)
            fn(d->files[i].name, d->files[i].problems.v[k], arg);
    for (size_t i = 0; i < d->n_resources; i++)
        for (size_t k = 0; k < d->resources[i]->problems.n; k++)
            fn(d->resources[i]->name, d->resources[i]->problems.v[k], arg);
}

/* ---- life ---- */

enum err_code declared_open(struct declared **ret, const struct declared_options *o, struct err *e)
{
    struct declared *d = calloc(1, sizeof(*d));

    if (d == NULL)
        return err_nomem(e);
    d->o = *o;
    d->dir_wd = d->parent_wd = -1;
    d->look_job.sys_dir = o->sys_dir != NULL ? o->sys_dir : "/sys";
    d->look_job.dev_dir = o->dev_dir != NULL ? o->dev_dir : "/dev";
    if (declared_files_open(d, e) != ERR_OK || declared_nodes_open(d, e) != ERR_OK) {
        watch_set_close(d->dir_watches);
        watch_set_close(d->node_watches);
        free(d);
        return e->code;
    }
    uv_timer_init(o->loop, &d->timer);
    d->timer.data = d;
    d->want_read = true;
    declared_step(d);
    *ret = d;
    return ERR_OK;
}

void declared_now_ready(struct declared *d)
{
    if (d->ready)
        return;
    d->ready = true;
    if (d->o.ready != NULL)
        d->o.ready(d->o.arg);
}

bool declared_ready(const struct declared *d)
{
    return d->ready;
}

bool declared_busy(const struct declared *d)
{
    return op_live(&d->read.op) || op_live(&d->look.op);
}

void declared_cancel(struct declared *d)
{
    d->cancelled = true;
    uv_timer_stop(&d->timer);
    if (op_live(&d->read.op))
        op_cancel(&d->read.op);
    if (op_live(&d->look.op))
        op_cancel(&d->look.op);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void declared_end(struct declared *d)
{
    declared_files_close(d);
    free((void *)d->look_job.v);
    free((void *)d->look_files);
    uv_close((uv_handle_t *)&d->timer, on_closed);
}

/* A child or the pool may still read the declarations. */
void declared_close(struct declared *d)
{
    if (d == NULL)
        return;
    declared_cancel(d);
    d->closing = true;
    declared_nodes_close(d);
    if (!declared_busy(d))
        declared_end(d);
}
