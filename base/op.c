/* SPDX-License-Identifier: Apache-2.0 */
#include "base/op.h"

#include "base/clock.h"
#include "base/internal.h"

#include <stdio.h>
#include <string.h>

TAILQ_HEAD(op_list, op);

/* Loop thread only. A global, so that a stuck node can be diagnosed from it. */
static struct op_list live_ops = TAILQ_HEAD_INITIALIZER(live_ops);
static size_t live_count;

/* The operation is over and every handle (the deadline's last) is closed: the memory returns to the
 * caller. */
static void complete(struct op *op)
{
    struct err result = err_kept_get(&op->result); /* a copy: done may free or reuse *op */
    op_done_fn done = op->done;
    struct log_context about = { 0 }, before;

    snprintf(about.operation, sizeof(about.operation), "%s", op->name);
    err_kept_drop_text(&op->result);
    err_kept_drop_text(&op->why);
    TAILQ_REMOVE(&live_ops, op, live);
    live_count--;
    op->loop = NULL;
    before = log_context_set(&about); /* done logs in the operation's context */
    done(op, &result);
    log_context_set(&before);
}

static void op_on_closed(uv_handle_t *handle)
{
    struct op *op = handle->data;

    op->open_handles--;
    if (op->finished && op->open_handles == 0 && uv_is_closing((uv_handle_t *)&op->deadline))
        complete(op);
}

void op_close_handle(struct op *op, uv_handle_t *handle)
{
    handle->data = op;
    op->open_handles++;
    uv_close(handle, op_on_closed);
}

/* The later turn requested by op_finish(). */
static void on_finished_turn(uv_timer_t *timer)
{
    op_close_handle(timer->data, (uv_handle_t *)timer);
}

static void op_stop(struct op *op)
{
    if (op->abort != NULL)
        op->abort(op);
}

static void on_deadline(uv_timer_t *timer)
{
    struct op *op = timer->data;
    uint64_t ms = clock_mono_ms() - op->started_ms;
    struct err why = { 0 };

    if (op->why.code != ERR_OK)
        return;
    err_set(&why, ERR_DEADLINE, "%s: not finished after %llu.%llu s", op->name,
            (unsigned long long)(ms / 1000), (unsigned long long)(ms % 1000 / 100));
    err_keep(&op->why, &why);
    op_stop(op);
}

void op_init(struct op *op, uv_loop_t *loop, const char *name, uint64_t deadline_ms, op_abort_fn abort,
             op_done_fn done, void *owner)
{
    *op = (struct op){
        .loop = loop,
        .done = done,
        .abort = abort,
        .owner = owner,
        .name = name,
        .started_ms = clock_mono_ms(),
    };
    uv_timer_init(loop, &op->deadline); /* cannot fail, like uv_timer_start() with a callback */
    op->deadline.data = op;
    if (deadline_ms > 0) {
        uv_update_time(loop); /* the deadline must not include the time of a long callback */
        uv_timer_start(&op->deadline, on_deadline, deadline_ms, 0);
    }
    TAILQ_INSERT_TAIL(&live_ops, op, live);
    live_count++;
}

void op_set_subject(struct op *op, const char *subject)
{
    size_t n = strnlen(subject, sizeof(op->subject));

    if (n == sizeof(op->subject))
        n = utf8_cut(subject, sizeof(op->subject) - 1);
    memcpy(op->subject, subject, n);
    op->subject[n] = '\0';
    text_printable(op->subject);
}

void op_finish(struct op *op, const struct err *result)
{
    if (!op_live(op) || op->finished)
        return;
    op->finished = true;
    if (op->why.code != ERR_OK) {
        op->result = op->why;
        op->why.text = NULL; /* moved; the code stays readable */
    } else if (result != NULL) {
        err_keep(&op->result, result);
    }
    uv_timer_stop(&op->deadline);
    uv_timer_start(&op->deadline, on_finished_turn, 0, 0);
}

void op_no_deadline(struct op *op)
{
    if (op_live(op) && !op->finished)
        uv_timer_stop(&op->deadline);
}

void op_deadline(struct op *op, uint64_t ms)
{
    if (!op_live(op) || op->finished)
        return;
    uv_update_time(op->loop);
    uv_timer_start(&op->deadline, on_deadline, ms, 0);
}

void op_cancel(struct op *op)
{
    struct err why = { 0 };

    if (!op_live(op) || op->finished || op->why.code != ERR_OK)
        return;
    err_set(&why, ERR_CANCELLED, "%s: cancelled", op->name);
    err_keep(&op->why, &why);
    op_stop(op);
}

void op_set_why(struct op *op, const struct err *why)
{
    err_keep(&op->why, why);
}

bool op_live(const struct op *op)
{
    return op->loop != NULL;
}

void op_each(void (*fn)(const struct op *op, void *arg), void *arg)
{
    const struct op *op;

    TAILQ_FOREACH (op, &live_ops, live)
        fn(op, arg);
}

size_t op_count(void)
{
    return live_count;
}
