/* SPDX-License-Identifier: Apache-2.0 */
#include "base/boot_timer.h"

#include "base/scope.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct boot_timers {
    uv_loop_t *loop;
    TAILQ_HEAD(, boot_timer) running;
    int fd; /* -1: not watching */
    uv_poll_t poll;
    void (*on_set)(void *arg);
    void *arg;
};

struct boot_timers *boot_timers_new(uv_loop_t *loop)
{
    struct boot_timers *set = calloc(1, sizeof(*set));

    if (set == NULL)
        return NULL;
    set->loop = loop;
    set->fd = -1;
    TAILQ_INIT(&set->running);
    return set;
}

static void boot_timer_on_uv(uv_timer_t *uv);

static void boot_timer_arm(struct boot_timer *t)
{
    int64_t left_ns = clock_boot_left_ns(t->at);
    /* libuv rounds down and starts from the loop's time, which may be old: boot_timer_on_uv() checks
     * again. */
    uint64_t left_ms = left_ns > 0 ? (uint64_t)left_ns / 1000000 + 1 : 0;

    uv_timer_start(&t->uv, boot_timer_on_uv, left_ms, 0);
}

static void boot_timer_on_uv(uv_timer_t *uv)
{
    struct boot_timer *t = container_of(uv, struct boot_timer, uv);

    if (!clock_boot_is_due(t->at)) {
        boot_timer_arm(t);
        return;
    }
    boot_timer_stop(t);
    t->fn(t);
}

void boot_timer_init(struct boot_timers *set, struct boot_timer *t)
{
    *t = (struct boot_timer){ .set = set };
    uv_timer_init(set->loop, &t->uv);
}

void boot_timer_start(struct boot_timer *t, struct boot_time at, void (*fn)(struct boot_timer *t))
{
    if (!clock_boot_is_set(at))
        at.ns = 1; /* boot time: long past */
    if (!clock_boot_is_set(t->at))
        TAILQ_INSERT_TAIL(&t->set->running, t, link);
    t->at = at;
    t->fn = fn;
    boot_timer_arm(t);
}

void boot_timer_stop(struct boot_timer *t)
{
    if (clock_boot_is_set(t->at))
        TAILQ_REMOVE(&t->set->running, t, link);
    t->at = (struct boot_time){ 0 };
    uv_timer_stop(&t->uv);
}

static void boot_timer_on_closed(uv_handle_t *handle)
{
    struct boot_timer *t = container_of(handle, struct boot_timer, uv);

    t->closed(t);
}

void boot_timer_close(struct boot_timer *t, void (*closed)(struct boot_timer *t))
{
    boot_timer_stop(t);
    t->closed = closed;
    uv_close((uv_handle_t *)&t->uv, boot_timer_on_closed);
}

/* ---- sleep, and changes of the wall clock ---- */

static int boot_timers_arm(int fd)
{
    const struct itimerspec never = { .it_value.tv_sec = INT64_MAX / 2000000000 };

    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

void boot_timers_count_anew(struct boot_timers *set)
{
    struct boot_timer *t;

    uv_update_time(set->loop);
    TAILQ_FOREACH (t, &set->running, link)
        boot_timer_arm(t);
}

static void boot_timers_on_report(uv_poll_t *poll, int status, int events)
{
    struct boot_timers *set = container_of(poll, struct boot_timers, poll);
    uint64_t ignored;

    (void)status;
    (void)events;
    if (read(set->fd, &ignored, sizeof(ignored)) >= 0 || errno != ECANCELED)
        return;
    boot_timers_arm(set->fd);
    boot_timers_count_anew(set);
    set->on_set(set->arg);
}

enum err_code boot_timers_watch(struct boot_timers *set, void (*on_set)(void *arg), void *arg, struct err *e)
{
    fd_auto fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    int status;

    if (fd < 0 || boot_timers_arm(fd) != 0)
        return err_sys(e, errno, "create a timerfd that detects clock changes");
    status = uv_poll_init(set->loop, &set->poll, fd);
    if (status != 0)
        return err_sys(e, -status, "wait for the timerfd that detects clock changes");
    set->fd = take_fd(&fd);
    set->on_set = on_set;
    set->arg = arg;
    uv_poll_start(&set->poll, UV_READABLE, boot_timers_on_report);
    uv_unref((uv_handle_t *)&set->poll);
    return ERR_OK;
}

static void boot_timers_on_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct boot_timers, poll));
}

void boot_timers_free(struct boot_timers *set)
{
    if (set == NULL)
        return;
    if (set->fd < 0) {
        free(set);
        return;
    }
    uv_close((uv_handle_t *)&set->poll, boot_timers_on_closed);
    close(set->fd);
}
