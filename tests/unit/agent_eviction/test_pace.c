/* SPDX-License-Identifier: Apache-2.0 */
/* When disks and process ids are looked at again. */
#include "tests/unit/agent_eviction/helper.h"

#include "agent/eviction/pace.h"

#define GB 1000000000ull

static uint64_t look(struct ev_pace *p, uint64_t available, uint64_t now_ms)
{
    const struct ev_value v = { true, available, 100 * GB };

    return ev_pace_next(p, &v, available > 10 * GB ? available - 10 * GB : 0, now_ms);
}

static void what_rests_is_looked_at_every_five_minutes_in_the_end(void **state)
{
    struct ev_pace p = { 0 };
    uint64_t now_ms = 1000, wait_ms = 0;
    unsigned looks = 0;

    (void)state;
    do {
        uint64_t next_ms = look(&p, 50 * GB, now_ms);

        assert_true(next_ms >= wait_ms);
        wait_ms = next_ms;
        now_ms += wait_ms;
    } while (wait_ms < PACE_MAX_MS && ++looks < 20);
    assert_int_equal(wait_ms, PACE_MAX_MS);
    assert_true(looks < 8);
}

static void half_of_the_time_left_passes_at_most(void **state)
{
    struct ev_pace p = { 0 };

    (void)state;
    look(&p, 50 * GB, 1000);
    assert_int_equal(look(&p, 49 * GB, 2000), 19500); /* 39 GB at 1 GB/s */
    assert_int_equal(look(&p, 20 * GB, 31000), 5000);
    assert_int_equal(look(&p, 20 * GB, 36000), 10000); /* it paused: half of the rate is remembered */
    assert_int_equal(look(&p, 10 * GB + 1, 46000), PACE_MIN_MS);
    assert_int_equal(look(&p, 9 * GB, 47000), PACE_CROSSED_MS);
}

/* Whoever writes at a steady rate is seen before the threshold, and far less often than ten times a second.
 */
static void a_disk_that_fills_is_seen_in_time(void **state)
{
    struct ev_pace p = { 0 };
    uint64_t now_ms = 1000, available = 60 * GB;
    unsigned looks = 0;

    (void)state;
    look(&p, available, now_ms);
    ev_pace_wake(&p, now_ms);
    while (available > 10 * GB) {
        uint64_t wait_ms = p.due_ms - now_ms;

        assert_true(++looks < 60);
        now_ms = p.due_ms;
        available -= wait_ms * GB / 1000 < available ? wait_ms * GB / 1000 : available;
        look(&p, available, now_ms);
    }
    assert_true(available > 9 * GB + GB / 2); /* at most half a second late, at 1 GB/s */
}

static void a_wake_brings_the_look_forward_and_never_delays_it(void **state)
{
    struct ev_pace p = { 0 };

    (void)state;
    assert_int_equal(ev_pace_wake(&p, 500), 0); /* nothing is known yet */
    look(&p, 50 * GB, 1000);
    assert_int_equal(p.due_ms, 1000 + PACE_BEGIN_MS);
    assert_int_equal(ev_pace_wake(&p, 10500), 500);
    look(&p, 50 * GB, 11000);
    assert_true(ev_pace_wake(&p, 11000) <= PACE_BEGIN_MS);
    p.headroom = GB; /* 1/64 of the capacity in a second: a third of a second, of which the half */
    assert_int_equal(ev_pace_wake(&p, 12000), 320);
    assert_int_equal(ev_pace_wake(&p, 12100), 220);
    assert_int_equal(ev_pace_wake(&p, 20000), 0);
}

static void what_cannot_be_read_is_tried_less_and_less_often(void **state)
{
    const struct ev_value unknown = { 0 };
    struct ev_pace p = { 0 };

    (void)state;
    assert_int_equal(ev_pace_next(&p, &unknown, UINT64_MAX, 0), PACE_BEGIN_MS);
    assert_int_equal(ev_pace_next(&p, &unknown, UINT64_MAX, 0), 2 * PACE_BEGIN_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_rests_is_looked_at_every_five_minutes_in_the_end),
        cmocka_unit_test(half_of_the_time_left_passes_at_most),
        cmocka_unit_test(a_disk_that_fills_is_seen_in_time),
        cmocka_unit_test(a_wake_brings_the_look_forward_and_never_delays_it),
        cmocka_unit_test(what_cannot_be_read_is_tried_less_and_less_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
