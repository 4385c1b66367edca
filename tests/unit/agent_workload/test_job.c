/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/job.h"

#include "agent/workload/job_policy.h"
#include "tests/unit/agent_api/helper.h"

#define STEPS 16
#define SECOND INT64_C(1000000000)
#define NOW (1000 * SECOND)

static struct job_step steps[STEPS];
static struct job_plan plan;

static const struct job_plan *decide(const struct api_workload *spec, struct job_seen *seen, size_t n,
                                     int64_t left_ns, enum job_end known)
{
    const struct job_want w = { .spec = spec, .now_ns = NOW, .deadline_left_ns = left_ns };

    for (size_t i = 0; i < n; i++) {
        seen[i].number = (unsigned)i;
        seen[i].current = true;
    }
    plan = (struct job_plan){ .steps = steps, .max_steps = STEPS };
    job_decide(&w, seen, n, known, &plan);
    return &plan;
}

static const struct job_plan *of(const struct api_workload *spec, struct job_seen *seen, size_t n)
{
    return decide(spec, seen, n, INT64_MAX, JOB_RUNS);
}

static struct api_workload counted(int32_t completions, int32_t parallelism)
{
    return (struct api_workload){
        .has_completions = true, .completions = completions, .parallelism = parallelism, .backoff_limit = 6
    };
}

#define ACTIVE                                                                                               \
    {                                                                                                        \
        .kept = true                                                                                         \
    }
#define DONE(i)                                                                                              \
    {                                                                                                        \
        .kept = true, .state = JOB_POD_SUCCEEDED, .index = (i)                                               \
    }
#define FAILED(i, ago_s)                                                                                     \
    {                                                                                                        \
        .kept = true, .state = JOB_POD_FAILED, .index = (i), .ended_ns = NOW - (ago_s)*SECOND                \
    }

static void a_job_runs_until_its_completions_have_succeeded(void **state)
{
    struct api_workload spec = counted(3, 2);
    struct job_seen seen[] = { ACTIVE, ACTIVE, ACTIVE, ACTIVE };

    (void)state;
    assert_int_equal(of(&spec, seen, 0)->n_steps, 2);
    assert_int_equal(steps[1].number, 1);
    assert_int_equal(of(&spec, seen, 2)->n_steps, 0);
    seen[0].state = JOB_POD_SUCCEEDED;
    assert_int_equal(of(&spec, seen, 2)->n_steps, 1);
    assert_int_equal(steps[0].number, 2);
    seen[1].state = seen[2].state = JOB_POD_SUCCEEDED;
    assert_int_equal(of(&spec, seen, 4)->end, JOB_COMPLETE);
    assert_int_equal(plan.n_steps, 1); /* the fourth is not needed */
    assert_int_equal(steps[0].at, 3);
}

static void failures_make_it_wait_and_then_fail(void **state)
{
    struct api_workload spec = counted(1, 1);
    struct job_seen seen[] = { FAILED(0, 25), FAILED(0, 5), DONE(0) };

    (void)state;
    assert_int_equal(of(&spec, seen, 1)->n_steps, 1); /* ten seconds have passed */
    assert_int_equal(of(&spec, seen, 2)->n_steps, 0);
    assert_int_equal(plan.again_ns, 15 * SECOND); /* twenty after the second */
    assert_int_equal(plan.failed, 2);
    spec.backoff_limit = 1;
    assert_int_equal(of(&spec, seen, 2)->end, JOB_BACKOFF_LIMIT);
    seen[0].action = API_FAILURE_IGNORE;
    assert_int_equal(of(&spec, seen, 2)->end, JOB_RUNS);
    seen[0].action = API_FAILURE_FAIL_JOB;
    assert_int_equal(of(&spec, seen, 2)->end, JOB_FAILURE_POLICY);
    assert_int_equal(plan.culprit, 0);
    assert_int_equal(of(&spec, seen, 3)->end, JOB_COMPLETE);
}

static void the_pause_has_an_end(void **state)
{
    struct api_workload spec = counted(1, 1);
    struct job_seen seen[12];

    (void)state;
    spec.backoff_limit = 100;
    for (size_t i = 0; i < 12; i++)
        seen[i] = (struct job_seen)FAILED(0, 0);
    of(&spec, seen, 12);
    assert_int_equal(plan.again_ns, 360 * SECOND);
    for (size_t i = 0; i < 12; i++)
        seen[i].ended_ns = NOW + 3600 * SECOND; /* the clock was set back */
    assert_int_equal(of(&spec, seen, 12)->n_steps, 1);
}

static void without_completions_the_first_success_ends_it(void **state)
{
    struct api_workload spec = { .parallelism = 2, .backoff_limit = 6 };
    struct job_seen seen[] = { ACTIVE, ACTIVE };

    (void)state;
    assert_int_equal(of(&spec, seen, 0)->n_steps, 2);
    seen[0].state = JOB_POD_SUCCEEDED;
    assert_int_equal(of(&spec, seen, 2)->n_steps, 0); /* the other one goes on */
    assert_int_equal(plan.end, JOB_RUNS);
    seen[1].state = JOB_POD_FAILED;
    assert_int_equal(of(&spec, seen, 2)->end, JOB_COMPLETE);
}

static void each_index_has_to_succeed_once(void **state)
{
    struct api_workload spec = counted(4, 3);
    struct job_seen seen[] = { DONE(1), FAILED(0, 60), ACTIVE, DONE(1) };

    (void)state;
    spec.indexed = true;
    seen[2].index = 2;
    of(&spec, seen, 3);
    assert_int_equal(plan.succeeded, 1);
    assert_int_equal(plan.n_steps, 2);
    assert_int_equal(steps[0].index, 0);
    assert_int_equal(steps[1].index, 3);
    assert_int_equal(steps[1].number, 4);
    assert_int_equal(of(&spec, seen, 4)->succeeded, 1);
}

static void an_index_may_fail_alone(void **state)
{
    struct api_workload spec = counted(3, 3);
    struct job_seen seen[] = { DONE(1), FAILED(0, 60), FAILED(0, 60), ACTIVE };

    (void)state;
    spec.indexed = spec.has_index_backoff = true;
    spec.index_backoff_limit = 1;
    spec.backoff_limit = INT32_MAX;
    seen[3].index = 2;
    assert_int_equal(of(&spec, seen, 4)->end, JOB_RUNS);
    assert_true(api_index_set_has(&plan.failed_indexes, 0));
    assert_int_equal(plan.n_steps, 0);
    seen[3].state = JOB_POD_SUCCEEDED;
    assert_int_equal(of(&spec, seen, 4)->end, JOB_FAILED_INDEXES);
    spec.has_max_failed_indexes = true;
    seen[3].state = JOB_POD_ACTIVE;
    assert_int_equal(of(&spec, seen, 4)->end, JOB_MAX_FAILED_INDEXES);
    assert_int_equal(plan.n_steps, 1);
    spec.has_max_failed_indexes = false;
    spec.index_backoff_limit = 5;
    seen[1].action = API_FAILURE_FAIL_INDEX;
    of(&spec, seen, 4);
    assert_true(api_index_set_has(&plan.failed_indexes, 0));
}

static void rules_of_success(void **state)
{
    char some[] = "0,2-3";
    struct api_success_rule rules[] = { { .indexes = some }, { .has_count = true, .count = 3 } };
    struct api_workload spec = counted(6, 6);
    struct job_seen seen[] = { DONE(0), DONE(2), DONE(5), DONE(3) };

    (void)state;
    spec.indexed = true;
    spec.success_rules = rules;
    spec.n_success_rules = 1;
    assert_int_equal(of(&spec, seen, 3)->end, JOB_RUNS);
    assert_int_equal(of(&spec, seen, 4)->end, JOB_SUCCESS_POLICY);
    spec.n_success_rules = 2;
    assert_int_equal(of(&spec, seen, 3)->end, JOB_SUCCESS_POLICY);
    assert_int_equal(plan.culprit, 1);
    rules[0].has_count = true;
    rules[0].count = 1;
    assert_int_equal(of(&spec, seen, 1)->end, JOB_SUCCESS_POLICY);
}

static void a_deadline_and_a_suspension_end_pods(void **state)
{
    struct api_workload spec = counted(1, 1);
    struct job_seen seen[] = { ACTIVE };

    (void)state;
    decide(&spec, seen, 1, 5 * SECOND, JOB_RUNS);
    assert_int_equal(plan.again_ns, 5 * SECOND);
    assert_int_equal(decide(&spec, seen, 1, 0, JOB_RUNS)->end, JOB_DEADLINE);
    assert_int_equal(plan.n_steps, 1);
    spec.suspend = true;
    assert_int_equal(of(&spec, seen, 1)->n_steps, 1);
    assert_int_equal(plan.end, JOB_RUNS);
    spec.suspend = false;
    assert_int_equal(decide(&spec, seen, 0, INT64_MAX, JOB_COMPLETE)->n_steps,
                     0); /* it is over, without its pods */
}

static void a_pod_that_ends_is_replaced_at_once_or_later(void **state)
{
    struct api_workload spec = counted(1, 1);
    struct job_seen seen[] = { { .kept = false } };

    (void)state;
    assert_int_equal(of(&spec, seen, 1)->n_steps, 1);
    assert_int_equal(plan.terminating, 1);
    spec.replace_failed = true;
    assert_int_equal(of(&spec, seen, 1)->n_steps, 0);
    spec.indexed = true;
    assert_int_equal(of(&spec, seen, 1)->n_steps, 0);
}

static void the_first_rule_of_a_policy_that_matches_decides(void **state)
{
    int64_t codes[] = { 1, 42 };
    char disrupted[] = "DisruptionTarget", yes[] = "True", main_[] = "main";
    struct api_failure_condition wanted = { disrupted, yes };
    struct api_failure_rule rules[] = {
        { .action = API_FAILURE_IGNORE, .conditions = &wanted, .n_conditions = 1 },
        { .action = API_FAILURE_FAIL_JOB,
          .by_exit = true,
          .container = main_,
          .exit_codes = codes,
          .n_exit_codes = 2 },
        { .action = API_FAILURE_COUNT,
          .by_exit = true,
          .not_in = true,
          .exit_codes = codes,
          .n_exit_codes = 2 },
    };
    const struct api_workload spec = { .failure_rules = rules, .n_failure_rules = 3 };
    const struct job_exit exits[] = { { "side", 42 }, { "main", 0 } },
                          bad[] = { { "side", 0 }, { "main", 42 } }, other[] = { { "main", 3 } };
    struct job_verdict v;

    (void)state;
    v = job_policy_judge(&spec, &(struct job_failure){ .exits = exits, .n_exits = 2 });
    assert_int_equal(v.rule, SIZE_MAX);
    v = job_policy_judge(&spec, &(struct job_failure){ .exits = bad, .n_exits = 2 });
    assert_int_equal(v.action, API_FAILURE_FAIL_JOB);
    assert_string_equal(v.exit->container, "main");
    v = job_policy_judge(&spec, &(struct job_failure){ .exits = other, .n_exits = 1 });
    assert_int_equal(v.rule, 2);
    v = job_policy_judge(
        &spec, &(struct job_failure){ .exits = bad, .n_exits = 2, .conditions = &wanted, .n_conditions = 1 });
    assert_int_equal(v.action, API_FAILURE_IGNORE);
    assert_string_equal(v.condition, "DisruptionTarget");
}

static void sets_of_indexes_have_a_text(void **state)
{
    static const struct {
        const char *text, *again;
    } good[] = { { "0", "0" },       { "0,1", "0,1" }, { "0-1", "0,1" }, { "1,3-5,7", "1,3-5,7" },
                 { "3,4,5", "3-5" }, { "", "" } };
    static const char *const bad[] = { ",", "1,", "1-", "-1", "3-1", "5,3", "1-3,3", "9", "a", "1 2", "1-9" };
    struct api_index_set set;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        buf_auto b = BUF_INIT(100);

        assert_int_equal(api_index_set_parse(good[i].text, 9, &set, ERR_IGNORED), ERR_OK);
        api_index_set_format(&set, &b);
        assert_string_equal(b.p, good[i].again);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(api_index_set_parse(bad[i], 9, &set, ERR_IGNORED), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_until_its_completions_have_succeeded),
        cmocka_unit_test(failures_make_it_wait_and_then_fail),
        cmocka_unit_test(the_pause_has_an_end),
        cmocka_unit_test(without_completions_the_first_success_ends_it),
        cmocka_unit_test(each_index_has_to_succeed_once),
        cmocka_unit_test(an_index_may_fail_alone),
        cmocka_unit_test(rules_of_success),
        cmocka_unit_test(a_deadline_and_a_suspension_end_pods),
        cmocka_unit_test(a_pod_that_ends_is_replaced_at_once_or_later),
        cmocka_unit_test(the_first_rule_of_a_policy_that_matches_decides),
        cmocka_unit_test(sets_of_indexes_have_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
