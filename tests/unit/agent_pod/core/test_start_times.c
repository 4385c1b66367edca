/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/internal.h"
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/core/start_times.h"

static void only_what_was_measured_is_told(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "a", "containers: [{name: c, image: i}]");
    buf_auto text = BUF_INIT(512);

    start_times_end(p, START_ADMISSION);
    p->start_times.step[START_ADMISSION].begin_us = 0;
    p->start_times.step[START_ADMISSION].end_us = 1260;
    start_times_begin(p, START_NETWORK); /* has not ended */
    start_times_text(p, &text);
    assert_string_equal(text.p, "admission 0.0-1.2 ms after it was seen");
    assert_int_equal(core_node(&w->node)->start_sums.step[START_ADMISSION].count, 0);
}

static void the_first_begin_and_the_last_end_count_until_it_runs(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "a", "containers: [{name: c, image: i}]");
    struct start_times *t = &p->start_times;

    start_times_begin(p, START_CREATE);
    uint32_t begin = t->step[START_CREATE].begin_us;
    start_times_begin(p, START_CREATE);
    assert_int_equal(t->step[START_CREATE].begin_us, begin);
    start_times_end(p, START_CREATE);
    t->since_ns -= 5000000; /* 5 ms later */
    start_times_end(p, START_CREATE);
    uint32_t end = t->step[START_CREATE].end_us;
    assert_true(end >= begin + 5000);
    start_times_over(p);
    assert_true(t->whole_us >= end);
    t->step[START_CREATE].end_us = end;
    start_times_end(p, START_CREATE);
    start_times_over(p);
    assert_int_equal(t->step[START_CREATE].end_us, end);
    assert_int_equal(core_node(&w->node)->start_sums.step[START_CREATE].count, 1);
}

static void sums_are_a_histogram(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "a", "containers: [{name: c, image: i}]");
    buf_auto out = BUF_INIT(1 << 16);

    start_times_end(p, START_RUN);
    p->start_times.step[START_RUN].begin_us = 1000;
    p->start_times.step[START_RUN].end_us = 4000;
    start_times_over(p);
    start_times_metrics(&w->node, &out);
    assert_non_null(
        strstr(out.p, "coracle_pod_start_step_duration_seconds_bucket{step=\"start\",le=\"0.0025\"} 0\n"));
    assert_non_null(
        strstr(out.p, "coracle_pod_start_step_duration_seconds_bucket{step=\"start\",le=\"0.005\"} 1\n"));
    assert_non_null(
        strstr(out.p, "coracle_pod_start_step_duration_seconds_bucket{step=\"start\",le=\"+Inf\"} 1\n"));
    assert_non_null(strstr(out.p, "coracle_pod_start_step_duration_seconds_sum{step=\"start\"} 0.003"));
    assert_non_null(strstr(out.p, "coracle_pod_start_step_duration_seconds_count{step=\"network\"} 0\n"));
}

#define world_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(only_what_was_measured_is_told),
        world_test(the_first_begin_and_the_last_end_count_until_it_runs),
        world_test(sums_are_a_histogram),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
