/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot_timer - a timer for a moment of the boot clock (base/clock.h).
 *
 * libuv's timers stop while the machine sleeps. The kernel reports the end of a sleep, and each change of the
 * wall clock, to a wall clock timer that is armed for the end of time (TFD_TIMER_CANCEL_ON_SET); all timers
 * of the set are then adjusted. Nothing wakes up in between.
 *
 * A timer is embedded: boot_timer_init(), boot_timer_start() and boot_timer_stop() as often as needed,
 * boot_timer_close(), whose callback returns the memory. Call boot_timers_free() after the last
 * boot_timer_close(). Loop thread only.
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

struct boot_timers *boot_timers_new(uv_loop_t *loop); /* NULL when out of memory */
/* on_set: the wall clock was set, or the machine slept. An error: neither is reported. */
enum err_code boot_timers_watch(struct boot_timers *set, void (*on_set)(void *arg), void *arg,
                                struct err *e) MUST_CHECK;
/* Called on the kernel's report; a test that scripts the clock calls it after each step of time. */
void boot_timers_count_anew(struct boot_timers *set);
void boot_timers_free(struct boot_timers *set); /* NULL is fine */

void boot_timer_init(struct boot_timers *set, struct boot_timer *t);
/* Never early, and immediately if the moment has passed; restarts a running timer. */
void boot_timer_start(struct boot_timer *t, struct boot_time at, void (*fn)(struct boot_timer *t));
void boot_timer_stop(struct boot_timer *t);
void boot_timer_close(struct boot_timer *t, void (*closed)(struct boot_timer *t));
#endif
