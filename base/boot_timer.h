/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot_timer - a timer for a moment of the boot clock (base/clock.h).
 *
 * libuv's timers stand still while the machine sleeps.  The kernel reports the end of a sleep, and each
 * setting of the wall clock, to a timer of the wall clock that is armed for the end of time
 * (TFD_TIMER_CANCEL_ON_SET); all timers of the set then count anew what is left.  Nothing wakes up in
 * between.
 *
 * Set and timers are embedded.  boot_timers_init(), boot_timer_init() on timers of the set, then
 * boot_timer_start() and boot_timer_stop() as often as needed; boot_timer_close() gives a timer's memory back
 * in its callback; boot_timers_close() when the last timer is closed.  Loop thread only.
 */
#ifndef BASE_BOOT_TIMER_H
#define BASE_BOOT_TIMER_H
#include "base/clock.h"
#include "base/list.h"

#include <uv.h>

struct boot_timer {
    struct boot_timers *set;
    uv_timer_t uv;
    struct boot_time at; /* none: not running */
    void (*fn)(struct boot_timer *t);
    void (*closed)(struct boot_timer *t);
    TAILQ_ENTRY(boot_timer) link;
};

struct boot_timers {
    uv_loop_t *loop;
    TAILQ_HEAD(, boot_timer) running;
    int fd; /* -1: not watching */
    uv_poll_t poll;
    void (*on_set)(void *arg);
    void *arg;
};

void boot_timers_init(struct boot_timers *set, uv_loop_t *loop);
/* on_set: the wall clock was set, or the machine slept.  An error: nobody reports either. */
enum err_code boot_timers_watch(struct boot_timers *set, void (*on_set)(void *arg), void *arg,
                                struct err *e) MUST_CHECK;
/* What the kernel's report does; a test that scripts the clock calls it after each step of time. */
void boot_timers_count_anew(struct boot_timers *set);
void boot_timers_close(struct boot_timers *set, uv_close_cb closed); /* `closed` gets &set->poll's handle */

void boot_timer_init(struct boot_timers *set, struct boot_timer *t);
/* Never early, and at once when the moment is past; a timer that runs is moved. */
void boot_timer_start(struct boot_timer *t, struct boot_time at, void (*fn)(struct boot_timer *t));
void boot_timer_stop(struct boot_timer *t);
void boot_timer_close(struct boot_timer *t, void (*closed)(struct boot_timer *t));
#endif
