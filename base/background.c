/* SPDX-License-Identifier: Apache-2.0 */
#include "base/background.h"

#include "base/op.h"

static void base_turns_on_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void base_turns_on_check(uv_check_t *check);

/* Keeps the loop awake exactly while a piece can run. */
static void update(struct background *ts)
{
    const bool wanted = !TAILQ_EMPTY(&ts->first) || (!TAILQ_EMPTY(&ts->others) && !ts->pausing);

    if (ts->closed)
        return;
    if (wanted) {
        uv_idle_start(&ts->idle, base_turns_on_idle);
        uv_check_start(&ts->check, base_turns_on_check);
    } else {
        uv_idle_stop(&ts->idle);
        uv_check_stop(&ts->check);
    }
}

static void base_turns_on_pause_over(uv_timer_t *timer)
{
    struct background *ts = timer->data;

    ts->pausing = false;
    update(ts);
}

static void owe_pause(struct background *ts, uint64_t took_ns)
{
    uint64_t ms;

    if (op_count() == 0) {
        ts->debt_ns = 0;
        return;
    }
    ts->debt_ns += took_ns * (TURNS_SHARE - 1);
    ms = ts->debt_ns / 1000000;
    if (ms == 0)
        return;
    ts->debt_ns %= 1000000;
    ts->pausing = true;
    uv_update_time(ts->pause.loop);
    uv_timer_start(&ts->pause, base_turns_on_pause_over, ms < TURNS_PAUSE_MAX_MS ? ms : TURNS_PAUSE_MAX_MS,
                   0);
}

static void base_turns_on_check(uv_check_t *check)
{
    struct background *ts = check->data;
    struct background_client *t = TAILQ_FIRST(&ts->first);
    uint64_t began;

    if (t == NULL && !ts->pausing)
        t = TAILQ_FIRST(&ts->others);
    if (t != NULL) {
        const bool first = t->first; /* `t` may be freed after its piece */

        began = uv_hrtime();
        background_withdraw(ts, t);
        t->run(t);
        if (!first && !ts->closed)
            owe_pause(ts, uv_hrtime() - began);
    }
    update(ts);
}

void background_ask(struct background *ts, struct background_client *t)
{
    if (t->waits || ts->closed)
        return;
    t->waits = true;
    if (t->first)
        TAILQ_INSERT_TAIL(&ts->first, t, link);
    else
        TAILQ_INSERT_TAIL(&ts->others, t, link);
    update(ts);
}

void background_withdraw(struct background *ts, struct background_client *t)
{
    if (!t->waits)
        return;
    t->waits = false;
    if (t->first)
        TAILQ_REMOVE(&ts->first, t, link);
    else
        TAILQ_REMOVE(&ts->others, t, link);
    update(ts);
}

void background_init(struct background *ts, uv_loop_t *loop)
{
    *ts = (struct background){ .open_handles = 3 };
    TAILQ_INIT(&ts->first);
    TAILQ_INIT(&ts->others);
    uv_idle_init(loop, &ts->idle);
    uv_check_init(loop, &ts->check);
    uv_timer_init(loop, &ts->pause);
    ts->idle.data = ts->check.data = ts->pause.data = ts;
}

static void base_turns_on_closed(uv_handle_t *handle)
{
    struct background *ts = handle->data;

    if (--ts->open_handles == 0 && ts->on_closed != NULL)
        ts->on_closed(ts->owner);
}

void background_close(struct background *ts, void (*closed)(void *owner), void *owner)
{
    struct background_client *t;

    while ((t = TAILQ_FIRST(&ts->first)) != NULL || (t = TAILQ_FIRST(&ts->others)) != NULL)
        background_withdraw(ts, t);
    ts->closed = true;
    ts->on_closed = closed;
    ts->owner = owner;
    uv_close((uv_handle_t *)&ts->idle, base_turns_on_closed);
    uv_close((uv_handle_t *)&ts->check, base_turns_on_closed);
    uv_close((uv_handle_t *)&ts->pause, base_turns_on_closed);
}
