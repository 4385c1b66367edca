/* SPDX-License-Identifier: Apache-2.0 */
/* Moments of the boot clock, and timers for them. */
#include "base/boot_timer.h"
#include "base/scope.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/script_clock.h"

/* ---- the kernel's report ------------------------------------------------------------------------ */

/* In place of a timerfd: an eventfd that is readable, and whose read says what a set clock makes it say. */
static struct {
    int fd, flags;
    unsigned armed;
} timerfd = { .fd = -1 };

/* NOLINTBEGIN: glibc's names and parameters */
int timerfd_create(clockid_t clock, int flags)
{
    assert_int_equal(clock, CLOCK_REALTIME);
    assert_int_equal(flags, TFD_CLOEXEC | TFD_NONBLOCK);
    timerfd.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    timerfd.armed = 0;
    return timerfd.fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *was)
{
    assert_int_equal(fd, timerfd.fd);
    assert_true(to->it_value.tv_sec > INT32_MAX);
    assert_null(was);
    timerfd.flags = flags;
    timerfd.armed++;
    return 0;
}

ssize_t read(int fd, void *to, size_t n)
{
    ssize_t got = syscall(SYS_read, fd, to, n);

    if (fd != timerfd.fd || got < 0)
        return got;
    errno = ECANCELED;
    return -1;
}
/* NOLINTEND */

/* ---- timers ------------------------------------------------------------------------------------- */

struct counting {
    struct boot_timer timer;
    unsigned fired, closed;
};

struct fixture {
    uv_loop_t loop;
    struct boot_timers *set;
    struct counting one;
};

static void on_fired(struct boot_timer *t)
{
    container_of(t, struct counting, timer)->fired++;
}

static void on_closed(struct boot_timer *t)
{
    container_of(t, struct counting, timer)->closed++;
}

static int setup(void **state)
{
    static struct fixture f;

    script_clock_reset();
    f.one = (struct counting){ 0 };
    uv_loop_init(&f.loop);
    f.set = boot_timers_new(&f.loop);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    boot_timers_free(f->set);
    timerfd.fd = -1;
    uv_run(&f->loop, UV_RUN_DEFAULT);
    return uv_loop_close(&f->loop);
}

static void turn(struct fixture *f)
{
    boot_timers_count_anew(f->set);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void a_timer_fires_when_its_moment_has_come(void **state)
{
    struct fixture *f = *state;
    struct counting *c = &f->one;

    boot_timer_init(f->set, &c->timer);
    boot_timer_start(&c->timer, clock_boot_in_ms(5000), on_fired);
    script_clock_pass(5 * SCRIPT_SECOND - 1);
    turn(f);
    assert_int_equal(c->fired, 0);
    script_clock_pass(1);
    turn(f);
    assert_int_equal(c->fired, 1);
    script_clock_pass(10 * SCRIPT_SECOND);
    turn(f);
    assert_int_equal(c->fired, 1);
    boot_timer_close(&c->timer, on_closed);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(c->closed, 1);
}

static void a_moment_that_is_past_comes_on_the_next_turn(void **state)
{
    struct fixture *f = *state;
    struct counting *c = &f->one;

    boot_timer_init(f->set, &c->timer);
    boot_timer_start(&c->timer, (struct boot_time){ 0 }, on_fired);
    assert_int_equal(c->fired, 0);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(c->fired, 1);
    boot_timer_close(&c->timer, on_closed);
}

static void sleep_counts_and_a_set_wall_clock_does_not(void **state)
{
    struct fixture *f = *state;
    struct counting *c = &f->one;

    boot_timer_init(f->set, &c->timer);
    boot_timer_start(&c->timer, clock_boot_in_ms(5000), on_fired);
    script_clock_set(3600 * SCRIPT_SECOND);
    turn(f);
    script_clock_set(-7200 * SCRIPT_SECOND);
    turn(f);
    assert_int_equal(c->fired, 0);
    script_clock_sleep(5 * SCRIPT_SECOND);
    turn(f);
    assert_int_equal(c->fired, 1);
    boot_timer_close(&c->timer, on_closed);
}

static void a_timer_is_moved_and_stopped(void **state)
{
    struct fixture *f = *state;
    struct counting *c = &f->one;

    boot_timer_init(f->set, &c->timer);
    boot_timer_start(&c->timer, clock_boot_in_ms(1000), on_fired);
    boot_timer_start(&c->timer, clock_boot_in_ms(3000), on_fired);
    script_clock_pass(2 * SCRIPT_SECOND);
    turn(f);
    assert_int_equal(c->fired, 0);
    boot_timer_stop(&c->timer);
    boot_timer_stop(&c->timer);
    script_clock_pass(2 * SCRIPT_SECOND);
    turn(f);
    assert_int_equal(c->fired, 0);
    boot_timer_close(&c->timer, on_closed);
}

static int polls_to_fail;

/* libuv's own would make the descriptor non-blocking, which can fail. */
int uv_poll_init(uv_loop_t *loop, uv_poll_t *handle, int fd) /* NOLINT: its name */
{
    int (*real)(uv_loop_t *, uv_poll_t *, int) =
        (int (*)(uv_loop_t *, uv_poll_t *, int))dlsym(RTLD_NEXT, "uv_poll_init");

    return polls_to_fail > 0 ? (polls_to_fail--, UV_EIO) : real(loop, handle, fd);
}

static void ignore_set(void *arg)
{
    (void)arg;
}

static void a_set_clock_that_cannot_be_watched_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct counting *c = &f->one;
    struct err e = { 0 };

    polls_to_fail = 1;
    assert_int_not_equal(boot_timers_watch(f->set, ignore_set, NULL, &e), ERR_OK);
    assert_int_equal(e.sys, EIO);
    boot_timer_init(f->set, &c->timer); /* timers work as before */
    boot_timer_start(&c->timer, clock_boot_in_ms(1000), on_fired);
    script_clock_pass(1 * SCRIPT_SECOND);
    turn(f);
    assert_int_equal(c->fired, 1);
    boot_timer_close(&c->timer, on_closed);
}

static void on_set(void *arg)
{
    (*(unsigned *)arg)++;
}

static void a_sleep_or_a_set_clock_is_reported_each_time_and_timers_count_anew(void **state)
{
    struct fixture *f = *state;
    struct counting *c = &f->one;
    struct err e = { 0 };
    unsigned reports = 0;

    assert_int_equal(boot_timers_watch(f->set, on_set, &reports, &e), ERR_OK);
    assert_int_equal(timerfd.flags, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET);
    boot_timer_init(f->set, &c->timer);
    boot_timer_start(&c->timer, clock_boot_in_ms(3600 * 1000), on_fired);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(reports, 0);
    for (unsigned i = 1; i <= 2; i++) {
        script_clock_sleep(1800 * SCRIPT_SECOND);
        assert_int_equal(eventfd_write(timerfd.fd, 1), 0);
        uv_run(&f->loop, UV_RUN_NOWAIT);
        assert_int_equal(reports, i);
        assert_int_equal(timerfd.armed, 1 + i);
    }
    uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(c->fired, 1);
    boot_timer_close(&c->timer, on_closed);
}

static void moments_become_wall_times_for_people(void **state)
{
    (void)state;
    assert_int_equal(clock_boot_to_wall_ns((struct boot_time){ 0 }), 0);
    assert_int_equal(clock_boot_to_wall_ns(clock_boot_in_ms(1500)), SCRIPT_WALL_NS + 1500000000);
    script_clock_set(60 * SCRIPT_SECOND);
    assert_int_equal(clock_boot_to_wall_ns(clock_boot()), SCRIPT_WALL_NS + 60 * SCRIPT_SECOND);
}

static void wall_times_become_moments_of_this_boot(void **state)
{
    (void)state;
    assert_int_equal(clock_boot_of_wall(SCRIPT_WALL_NS - 7).ns, SCRIPT_BOOT_NS - 7);
    assert_int_equal(clock_boot_of_wall(SCRIPT_WALL_NS + 7).ns,
                     SCRIPT_BOOT_NS); /* nothing is in the future */
    assert_int_equal(clock_boot_of_wall(SCRIPT_WALL_NS - 2 * SCRIPT_BOOT_NS).ns, 1);
    assert_int_equal(clock_boot_of_wall(0).ns, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_timer_fires_when_its_moment_has_come),
        TEST(a_moment_that_is_past_comes_on_the_next_turn),
        TEST(sleep_counts_and_a_set_wall_clock_does_not),
        TEST(a_set_clock_that_cannot_be_watched_is_an_error),
        TEST(a_timer_is_moved_and_stopped),
        TEST(a_sleep_or_a_set_clock_is_reported_each_time_and_timers_count_anew),
        TEST(moments_become_wall_times_for_people),
        TEST(wall_times_become_moments_of_this_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
