/* SPDX-License-Identifier: Apache-2.0 */
/* When probes check and what their verdicts do, by a scripted clock, while somebody sets the other. */
#include "tests/unit/agent_pod/script_parts.h"

#include "agent/pod/container/container.h"
#include "agent/pod/container/probes.h"
#include "base/codec/json.h"

#define S SCRIPT_SECOND
#define HOUR (3600 * S)
#define WITH(kind, settings)                                                                                 \
    "containers: [{name: c, image: x, " kind ": {tcpSocket: {port: 80}, " settings "}}]"

static struct ctr *running(struct world *w, const char *spec)
{
    return script_running(w, "a", spec)->ctrs[0];
}

static unsigned unhealthy(struct world *w)
{
    json_t *events = events_json(&w->node);
    const json_t *v;
    unsigned n = 0;
    size_t i;

    json_array_foreach (events, i, v)
        if (str_eq(json_str(v, "reason"), "Unhealthy"))
            n += (unsigned)json_int(v, "count", 0);
    json_decref(events);
    return n;
}

/* No check until `ns` from now have passed, and then one. */
static void checked_in(struct world *w, int64_t ns)
{
    const unsigned before = script.n_checks;
    const struct boot_time at = clock_boot_in_ns(ns);

    script_pass(w, ns - 1);
    assert_int_equal(script.n_checks, before);
    script_pass(w, 1);
    assert_int_equal(script.n_checks, before + 1);
    assert_int_equal(script.checked_at.ns, at.ns);
}

static void checks_are_counted_and_successes_measured(void **state)
{
    struct world *w = *state;
    struct ctr *c = running(w, WITH("readinessProbe", "periodSeconds: 10"));
    struct probe_tally t = { 0 };
    struct buf text = BUF_INIT(64 * 1024);

    assert_null(probes_tally_of(c, PROBE_LIVENESS));
    script_turn(w);
    assert_int_equal(probes_tally_of(c, PROBE_READINESS)->successful, 1);
    probes_metrics(&w->node, &text);
    assert_non_null(
        strstr(text.p, "prober_probe_total{container=\"c\",namespace=\"default\",pod=\"a\",pod_uid=\""));
    assert_non_null(strstr(text.p, "\",probe_type=\"Readiness\",result=\"successful\"} 1\n"));
    assert_non_null(
        strstr(text.p, "prober_probe_duration_seconds_count{container=\"c\",namespace=\"default\",pod=\"a\","
                       "probe_type=\"Readiness\"} 1\n"));
    assert_null(strstr(text.p, "failed"));
    buf_done(&text);

    probes_tally_add(&t, true, 5000000);
    probes_tally_add(&t, true, 11 * S);
    probes_tally_add(&t, false, 1);
    assert_int_equal(t.successful, 2);
    assert_int_equal(t.failed, 1);
    assert_int_equal(t.buckets[0], 1); /* a bound is within its bucket */
    assert_int_equal(t.buckets[PROBE_BUCKETS - 1], 1);
    assert_int_equal(t.sum_ns, 11 * S + 5000000);
}

static void readiness_is_checked_at_once_and_then_each_period(void **state)
{
    struct world *w = *state;
    struct ctr *c = running(w, WITH("readinessProbe", "periodSeconds: 10"));

    script_turn(w);
    assert_int_equal(script.n_checks, 1);
    assert_true(ctr_ready(c));
    checked_in(w, 10 * S);
    script_clock_set(HOUR);
    checked_in(w, 10 * S);
    script_clock_set(-2 * HOUR);
    checked_in(w, 10 * S);
}

static void a_failure_of_the_first_second_is_not_told_and_tried_again_at_once(void **state)
{
    struct world *w = *state;
    struct ctr *c;

    script.probes = PROBE_FAILURE;
    c = running(w, WITH("readinessProbe", "periodSeconds: 10, failureThreshold: 1"));
    script_turn(w);
    for (int i = 0; i < 9; i++)
        checked_in(w, S / 10);
    assert_int_equal(unhealthy(w), 0);
    checked_in(w, S / 10); /* a second after its start: it counts */
    assert_int_equal(unhealthy(w), 1);
    assert_false(ctr_ready(c));
}

/* The first second is over when a second has passed, whatever the clock of the wall says. */
static void a_clock_that_is_set_back_switches_no_failure_off(void **state)
{
    struct world *w = *state;
    struct ctr *c = running(w, WITH("readinessProbe", "periodSeconds: 10, failureThreshold: 2"));

    script_pass(w, 5 * S);
    assert_true(ctr_ready(c));
    script_clock_set(-HOUR);
    script.probes = PROBE_FAILURE;
    checked_in(w, 5 * S);
    assert_int_equal(unhealthy(w), 1);
    assert_true(ctr_ready(c));
    checked_in(w, 10 * S);
    assert_int_equal(unhealthy(w), 2);
    assert_false(ctr_ready(c));
}

static void a_startup_probe_fails_though_the_clock_was_set_back(void **state)
{
    struct world *w = *state;
    struct ctr *c;

    script.probes = PROBE_FAILURE;
    c = running(w, WITH("startupProbe", "periodSeconds: 5, failureThreshold: 3"));
    script_clock_set(-HOUR);
    script_pass(w, 4 * S);
    for (int i = 0; i < 3 && c->state == CTR_RUNNING; i++)
        script_pass(w, 5 * S);
    assert_int_equal(c->state, CTR_STOPPING);
}

static void liveness_leaves_the_first_second_out_and_ends_its_container(void **state)
{
    struct world *w = *state;
    struct ctr *c = running(w, WITH("livenessProbe", "periodSeconds: 10, failureThreshold: 2"));

    script_turn(w);
    assert_int_equal(script.n_checks, 0);
    checked_in(w, 10 * S);
    script.probes = PROBE_FAILURE;
    checked_in(w, 10 * S);
    assert_int_equal(c->state, CTR_RUNNING);
    checked_in(w, 10 * S);
    assert_int_equal(c->state, CTR_STOPPING);
    script_pass(w, 20 * S);
    assert_int_equal(script.n_checks, 3); /* nothing more until there is a new container */
}

/* It is over after 6.75 s, and the next tick of its period after 7 s. */
static void the_initial_delay_counts_from_the_start_cut_to_seconds(void **state)
{
    struct world *w = *state;

    script_clock_pass(S / 4); /* as people see it, it started a quarter of a second before it did */
    running(w, WITH("readinessProbe", "initialDelaySeconds: 7, periodSeconds: 1"));
    script_clock_set(HOUR);
    checked_in(w, 7 * S);
    script_clock_set(-2 * HOUR);
    checked_in(w, 1 * S);
}

static void a_clock_that_is_set_during_the_initial_delay_does_not_change_it(void **state)
{
    struct world *w = *state;

    running(w, WITH("readinessProbe", "initialDelaySeconds: 30, periodSeconds: 10"));
    script_pass(w, 10 * S);
    script_clock_set(-HOUR);
    run_queue_clock_set(&w->node);
    checked_in(w, 20 * S);
}

static void after_a_sleep_of_the_machine_one_check_makes_up_for_all(void **state)
{
    struct world *w = *state;

    running(w, WITH("readinessProbe", "periodSeconds: 10"));
    script_pass(w, 15 * S);
    assert_int_equal(script.n_checks, 2);
    script_clock_sleep(HOUR + 2 * S);
    script_turn(w);
    assert_int_equal(script.n_checks, 3);
    checked_in(w, 3 * S); /* on the old ticks */
    checked_in(w, 10 * S);
}

static void a_new_run_begins_anew(void **state)
{
    struct world *w = *state;
    struct ctr *c = running(w, WITH("readinessProbe", "periodSeconds: 10"));

    script_pass(w, 3 * S);
    assert_true(ctr_ready(c));
    script_exit(w, c, 1);
    assert_false(ctr_ready(c));
    script.probes = PROBE_FAILURE;
    script_answer_all(w, NULL);
    assert_int_equal(c->state, CTR_RUNNING);
    assert_false(ctr_ready(c));
    assert_int_equal(unhealthy(w), 0); /* its first second */
    script.probes = PROBE_SUCCESS;
    script_pass(w, S / 10);
    assert_true(ctr_ready(c));
}

static void readiness_is_checked_to_the_very_end_and_liveness_is_not(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a",
                                   "terminationGracePeriodSeconds: 60, containers: [{name: c, image: x, "
                                   "readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 10}, "
                                   "livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 10}}]");

    script_pass(w, 15 * S);
    script.n_checks = 0;
    pods_unwant(&w->node, "default", "a");
    script_pass(w, 30 * S);
    assert_int_equal(p->state, POD_TERMINATING);
    assert_int_equal(script.n_checks, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(checks_are_counted_and_successes_measured),
        SCRIPT_TEST(readiness_is_checked_at_once_and_then_each_period),
        SCRIPT_TEST(a_failure_of_the_first_second_is_not_told_and_tried_again_at_once),
        SCRIPT_TEST(a_clock_that_is_set_back_switches_no_failure_off),
        SCRIPT_TEST(a_startup_probe_fails_though_the_clock_was_set_back),
        SCRIPT_TEST(liveness_leaves_the_first_second_out_and_ends_its_container),
        SCRIPT_TEST(the_initial_delay_counts_from_the_start_cut_to_seconds),
        SCRIPT_TEST(a_clock_that_is_set_during_the_initial_delay_does_not_change_it),
        SCRIPT_TEST(after_a_sleep_of_the_machine_one_check_makes_up_for_all),
        SCRIPT_TEST(a_new_run_begins_anew),
        SCRIPT_TEST(readiness_is_checked_to_the_very_end_and_liveness_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
