/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "agent/pod/eviction/memory_level.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static const struct ev_settings settings = {
    .n = 3,
    .v = { { .signal = EV_MEMORY, .value = { .quantity = 100 * MIB } },
           { .signal = EV_MEMORY, .soft = true, .value = { .quantity = 500 * MIB } },
           { .signal = EV_ALLOCATABLE_MEMORY, .value = { .quantity = 100 * MIB } } },
};

/* ---- what is available ---- */

static void available_is_total_less_working_set(void **state)
{
    const struct memory_seen m = {
        .known = true, .total = 2 * GIB, .working_set = GIB, .kernel_available = 900 * MIB
    };

    (void)state;
    assert_int_equal(memory_available(&m), GIB);
}

static void the_kernels_estimate_is_taken_when_it_is_low_and_smaller(void **state)
{
    struct memory_seen m = { .known = true, .total = 2000 * MIB, .working_set = 1750 * MIB };

    (void)state;
    m.kernel_available = 100 * MIB; /* 5% */
    assert_int_equal(memory_available(&m), 250 * MIB);
    m.kernel_available = 99 * MIB;
    assert_int_equal(memory_available(&m), 99 * MIB);
    m.working_set = 1950 * MIB;
    assert_int_equal(memory_available(&m), 50 * MIB);
    m.working_set = 2001 * MIB;
    assert_int_equal(memory_available(&m), 0);
    m.kernel_available = UINT64_MAX; /* not known */
    m.working_set = 1990 * MIB;
    assert_int_equal(memory_available(&m), 10 * MIB);
}

static void the_floor_is_a_line_of_its_own(void **state)
{
    struct memory_seen m = { .known = true, .total = 2000 * MIB, .working_set = 1000 * MIB };

    (void)state;
    m.kernel_available = 800 * MIB;
    assert_int_equal(memory_floor_headroom(&m), 700 * MIB);
    m.kernel_available = 1200 * MIB; /* page cache that is in use: kubelet's figure is smaller anyway */
    assert_int_equal(memory_floor_headroom(&m), UINT64_MAX);
    m.kernel_available = 90 * MIB;
    assert_int_equal(memory_floor_headroom(&m), UINT64_MAX);
}

static void pods_without_a_limit_have_no_allocatable_memory(void **state)
{
    struct memory_seen m = { .pods_known = true, .pods_limit = UINT64_MAX, .pods_working_set = GIB };
    struct ev_value v = { 0 };

    (void)state;
    assert_false(memory_allocatable(&m, &v));
    m.pods_limit = 3 * GIB;
    assert_true(memory_allocatable(&m, &v));
    assert_true(v.known);
    assert_int_equal(v.available, 2 * GIB);
    assert_int_equal(v.capacity, 3 * GIB);
    m.pods_working_set = 4 * GIB;
    assert_true(memory_allocatable(&m, &v));
    assert_int_equal(v.available, 0);
    m.pods_known = false;
    assert_false(memory_allocatable(&m, &v));
}

/* ---- the next line ---- */

static uint64_t headroom(uint64_t available)
{
    const struct ev_value v = { .known = true, .available = available, .capacity = 4 * GIB };

    return memory_headroom(&settings, EV_MEMORY, &v);
}

static void lines_follow_each_other(void **state)
{
    (void)state;
    assert_int_equal(headroom(GIB), GIB - 500 * MIB);
    assert_int_equal(headroom(500 * MIB), 0); /* not crossed yet: kubelet's comparison is strict */
    assert_int_equal(headroom(400 * MIB), 300 * MIB);
    assert_int_equal(headroom(80 * MIB), 30 * MIB); /* half of the hard one */
    assert_int_equal(headroom(49 * MIB), 0);
}

static void a_signal_without_thresholds_has_no_line(void **state)
{
    const struct ev_value v = { .known = true, .available = 0, .capacity = 4 * GIB }, unknown = { 0 };

    (void)state;
    assert_int_equal(memory_headroom(&settings, EV_PID, &v), UINT64_MAX);
    assert_int_equal(memory_headroom(&settings, EV_MEMORY, &unknown), UINT64_MAX);
}

/* ---- levels ---- */

static void each_level_halves_what_is_left(void **state)
{
    uint64_t used = 200 * MIB, line = 1800 * MIB, steps = 0;

    (void)state;
    while (used < line) {
        struct memory_plan plan = memory_plan(used, used, line - used);
        assert_int_equal(plan.rest_ms, 0);
        assert_true(plan.level > used && plan.level <= line);
        assert_true(plan.level - used >= MEMORY_STEP_MIN || plan.level == line);
        used = plan.level;
        steps++;
    }
    assert_true(steps >= 5 && steps <= 10);
}

/* Growth takes the place of page cache while usage stands still: the level must not be beyond the line. */
static void no_level_is_beyond_the_line_whatever_page_cache_there_is(void **state)
{
    const uint64_t working_set = 500 * MIB, room = 300 * MIB;

    (void)state;
    for (uint64_t cache = 0; cache < 2 * GIB; cache += 7 * MIB)
        assert_true(memory_plan(working_set + cache, working_set, room).level <= working_set + room);
}

static void page_cache_at_the_level_lets_the_alarm_rest(void **state)
{
    struct memory_plan plan = memory_plan(1900 * MIB, 500 * MIB, 1024 * MIB);

    (void)state;
    assert_int_equal(plan.level, 1524 * MIB);
    assert_int_equal(plan.rest_ms, 1024 * MIB / (4 * GIB / 1000)); /* a quarter of a second */
    /* However fast it grows, most of the headroom is left after the rest. */
    assert_true(plan.rest_ms * (MEMORY_RATE_MAX / 1000) <= 1024 * MIB);
    assert_int_equal(memory_plan(1900 * MIB, 1850 * MIB, 10 * MIB).rest_ms, MEMORY_REST_MIN_MS);
    assert_int_equal(memory_plan(400 * GIB, GIB, 64 * GIB).rest_ms, MEMORY_REST_MAX_MS);
}

static void without_a_line_there_is_no_level(void **state)
{
    struct memory_plan plan = memory_plan(GIB, GIB, UINT64_MAX);

    (void)state;
    assert_int_equal(plan.level, UINT64_MAX);
    assert_int_equal(plan.rest_ms, 0);
}

static void beyond_the_last_line_nothing_may_grow(void **state)
{
    struct memory_plan plan = memory_plan(GIB, 900 * MIB, 0);

    (void)state;
    assert_int_equal(plan.level, GIB);
    assert_int_equal(plan.rest_ms, MEMORY_REST_MIN_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(available_is_total_less_working_set),
        cmocka_unit_test(the_kernels_estimate_is_taken_when_it_is_low_and_smaller),
        cmocka_unit_test(the_floor_is_a_line_of_its_own),
        cmocka_unit_test(pods_without_a_limit_have_no_allocatable_memory),
        cmocka_unit_test(lines_follow_each_other),
        cmocka_unit_test(a_signal_without_thresholds_has_no_line),
        cmocka_unit_test(each_level_halves_what_is_left),
        cmocka_unit_test(no_level_is_beyond_the_line_whatever_page_cache_there_is),
        cmocka_unit_test(page_cache_at_the_level_lets_the_alarm_rest),
        cmocka_unit_test(without_a_line_there_is_no_level),
        cmocka_unit_test(beyond_the_last_line_nothing_may_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
