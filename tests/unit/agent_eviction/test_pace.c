/* SPDX-License-Identifier: Apache-2.0 */
/* When disks and process ids are looked at again. */
#include "tests/unit/agent_eviction/helper.h"

#include "agent/eviction/pace.h"

#define GB 1000000000ull
#define CAPACITY (100 * GB)
#define LINE (10 * GB)

static uint64_t look_with(struct ev_pace *p, uint64_t available, bool running, uint64_t now_ms)
{
    const struct ev_value v = { true, available, CAPACITY };

    return ev_pace_next(p, EV_NODEFS, &v, available > LINE ? available - LINE : 0, running, now_ms);
}

static uint64_t look(struct ev_pace *p, uint64_t available, uint64_t now_ms)
{
    return look_with(p, available, false, now_ms);
}

/* Looks at something that rests until the wait does not grow any more; returns how many. */
static unsigned rest(struct ev_pace *p, uint64_t available, bool running, uint64_t *now_ms)
{
    uint64_t wait_ms = 0, before_ms;
    unsigned looks = 0;

    do {
        before_ms = wait_ms;
        wait_ms = look_with(p, available, running, *now_ms);
        assert_true(wait_ms >= before_ms);
        *now_ms += wait_ms;
    } while (wait_ms > before_ms && ++looks < 30);
    return looks;
}

static void what_rests_is_looked_at_every_five_minutes_in_the_end(void **state)
{
    struct ev_pace p = { 0 };
    uint64_t now_ms = 1000;

    (void)state;
    assert_true(rest(&p, 50 * GB, true, &now_ms) < 10);
    assert_int_equal(p.wait_ms, PACE_MAX_MS);
}

static void near_the_threshold_it_is_looked_at_as_often_as_by_kubelet(void **state)
{
    struct ev_pace p = { 0 }, idle = { 0 };
    uint64_t now_ms = 1000, idle_ms = 1000;

    (void)state;
    rest(&p, LINE + CAPACITY / PACE_NEAR_PART - 1, true, &now_ms);
    assert_int_equal(p.wait_ms, PACE_BEGIN_MS);
    rest(&idle, LINE + CAPACITY / PACE_NEAR_PART - 1, false, &idle_ms);
    assert_int_equal(idle.wait_ms, PACE_MAX_MS); /* nothing runs that could take it */
}

static void a_quarter_of_what_is_left_goes_until_the_next_look(void **state)
{
    struct ev_pace p = { 0 };

    (void)state;
    look(&p, 50 * GB, 1000);
    p.wait_ms = PACE_MAX_MS;                         /* the longest wait is not what is tested */
    assert_int_equal(look(&p, 49 * GB, 2000), 9750); /* 39 GB at 1 GB/s */
    assert_int_equal(look(&p, 30 * GB, 21000), 5000);
    assert_int_equal(look(&p, 30 * GB, 22000), 10000); /* it paused: half of the rate is remembered */
    assert_int_equal(look(&p, LINE + 1, 42000), PACE_MIN_MS);
    assert_int_equal(look(&p, 9 * GB, 43000), PACE_CROSSED_MS);
}

/* Fills at this rate from a wake on that comes `stalled_ms` after it began; returns how many ms after it was
 * crossed the threshold is seen. */
static uint64_t seen_after(uint64_t available, uint64_t per_ms, uint64_t stalled_ms, unsigned *ret_looks)
{
    struct ev_pace p = { 0 };
    uint64_t now_ms = 1000, begin_ms, crossed_ms;

    rest(&p, available, true, &now_ms);
    begin_ms = now_ms;
    crossed_ms = begin_ms + (available - LINE) / per_ms;
    now_ms += stalled_ms;
    now_ms += ev_pace_wake(&p, EV_NODEFS, now_ms);
    *ret_looks = 0;
    for (;;) {
        uint64_t used = (now_ms - begin_ms) * per_ms, left = used < available ? available - used : 0;

        ++*ret_looks;
        look_with(&p, left, true, now_ms);
        if (left <= LINE)
            return now_ms - crossed_ms;
        now_ms = p.due_ms;
    }
}

/* Whatever the rate: before it is full by far, and after few looks. */
static void a_disk_that_fills_is_seen_at_once_beyond_its_threshold(void **state)
{
    static const uint64_t mb_per_s[] = { 20, 130, 1000, 3500 };
    unsigned looks;

    (void)state;
    for (size_t i = 0; i < sizeof(mb_per_s) / sizeof(mb_per_s[0]); i++)
        for (uint64_t gb = 11; gb < 90; gb += 13) {
            const uint64_t late_ms = seen_after(gb * GB, mb_per_s[i] * 1000, 200, &looks);

            assert_true(late_ms <= PACE_MIN_MS);
            assert_true(looks < 80);
        }
}

/* What went in the minutes before a wake says nothing about the moment. */
static void a_slow_average_hides_no_burst(void **state)
{
    struct ev_pace p = { 0 };
    uint64_t now_ms = 1000;

    (void)state;
    rest(&p, 50 * GB, true, &now_ms);
    assert_int_equal(ev_pace_wake(&p, EV_NODEFS, now_ms - 200000), 0);
    assert_true(look(&p, 49 * GB, now_ms - 200000) <= PACE_PAIR_MS); /* 1 GB in 100 s, or just now */
    assert_true(look(&p, 48 * GB, now_ms - 199000) <= 10000);        /* just now: 1 GB/s */
}

static void a_wake_brings_the_look_forward_and_never_delays_it(void **state)
{
    struct ev_pace p = { 0 };
    uint64_t now_ms = 1000, due_ms;

    (void)state;
    assert_int_equal(ev_pace_wake(&p, EV_NODEFS, 500), 0); /* nothing is known yet */
    rest(&p, 50 * GB, true, &now_ms);
    due_ms = p.due_ms;
    assert_int_equal(ev_pace_wake(&p, EV_NODEFS, due_ms - 500), 0);
    look(&p, 50 * GB, due_ms - 500);
    due_ms = p.due_ms;
    assert_true(ev_pace_wake(&p, EV_NODEFS, due_ms - 100) == 100);
    assert_int_equal(p.due_ms, due_ms);
    assert_int_equal(ev_pace_wake(&p, EV_NODEFS, due_ms + 5), 0);
}

/* Events that come all the time, without anything being used up, are worth two looks a second at most. */
static void wakes_without_growth_cost_little(void **state)
{
    struct ev_pace p = { 0 };
    uint64_t now_ms = 1000;
    unsigned looks = 0;

    (void)state;
    rest(&p, 50 * GB, true, &now_ms);
    p.due_ms = now_ms + PACE_MAX_MS;
    for (uint64_t end_ms = now_ms + 60000; now_ms < end_ms; now_ms += 50) {
        ev_pace_wake(&p, EV_NODEFS, now_ms);
        if (p.due_ms > now_ms)
            continue;
        look(&p, 50 * GB, now_ms);
        looks++;
    }
    assert_true(looks <= 2 * 60);
}

static void what_cannot_be_read_is_tried_less_and_less_often(void **state)
{
    const struct ev_value unknown = { 0 };
    struct ev_pace p = { 0 };

    (void)state;
    assert_int_equal(ev_pace_next(&p, EV_NODEFS, &unknown, UINT64_MAX, true, 0), PACE_BEGIN_MS);
    assert_int_equal(ev_pace_next(&p, EV_NODEFS, &unknown, UINT64_MAX, true, 0), 2 * PACE_BEGIN_MS);
}

/* fallocate(2) causes no event: a pod that does that is found by the looks after its start. */
static void what_a_young_pod_takes_silently_is_seen_soon(void **state)
{
    struct ev_pace p = { 0 };
    uint64_t began_ms = 1000, now_ms;

    (void)state;
    rest(&p, 50 * GB, true, &began_ms);
    began_ms -= PACE_MAX_MS / 2;
    look(&p, 50 * GB, began_ms - 500); /* another one began just before */
    now_ms = began_ms + ev_pace_wake(&p, EV_NODEFS, began_ms);
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t age_ms = now_ms - began_ms, wait_ms = look(&p, 50 * GB, now_ms);

        assert_true(wait_ms <= 4 * age_ms || wait_ms <= 4 * PACE_PAIR_MS);
        now_ms += wait_ms;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_rests_is_looked_at_every_five_minutes_in_the_end),
        cmocka_unit_test(near_the_threshold_it_is_looked_at_as_often_as_by_kubelet),
        cmocka_unit_test(a_quarter_of_what_is_left_goes_until_the_next_look),
        cmocka_unit_test(a_disk_that_fills_is_seen_at_once_beyond_its_threshold),
        cmocka_unit_test(a_slow_average_hides_no_burst),
        cmocka_unit_test(a_wake_brings_the_look_forward_and_never_delays_it),
        cmocka_unit_test(wakes_without_growth_cost_little),
        cmocka_unit_test(what_a_young_pod_takes_silently_is_seen_soon),
        cmocka_unit_test(what_cannot_be_read_is_tried_less_and_less_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
