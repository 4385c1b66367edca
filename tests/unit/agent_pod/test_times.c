/* SPDX-License-Identifier: Apache-2.0 */
/* What waits: deadlines, grace periods, back-offs and looks by a scripted clock, while somebody sets the
 * other. */
#include "tests/unit/agent_pod/script_parts.h"

#define S SCRIPT_SECOND
#define HOUR (3600 * S)
#define ONE "containers: [{name: c, image: x}]"

/* Whatever is done to the wall clock, nothing follows from it. */
static void set_clock(struct world *w, int64_t by_ns)
{
    script_clock_set(by_ns);
    run_queue_clock_set(&w->node);
    script_turn(w);
}

/* ---- activeDeadlineSeconds -------------------------------------------------------------------- */

#define JOB "activeDeadlineSeconds: 60, restartPolicy: Never, " ONE

static void a_deadline_passes_when_its_seconds_are_over(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "job", JOB);

    script_pass(w, 59 * S);
    assert_int_equal(p->state, POD_RUNNING);
    script_pass(w, 1 * S);
    assert_int_equal(p->state, POD_TERMINATING);
    assert_string_equal(p->reason, "DeadlineExceeded");
    assert_string_equal(p->phase, "Failed");
}

static void a_board_that_boots_in_1970_ends_no_job_when_its_clock_is_set(void **state)
{
    struct world *w = *state;
    struct pod *p;

    script_clock.wall_ns = 20 * S;
    p = script_running(w, "job", JOB);
    script_pass(w, 30 * S);
    set_clock(w, SCRIPT_WALL_NS);
    assert_int_equal(p->state, POD_RUNNING);
    script_pass(w, 29 * S);
    assert_int_equal(p->state, POD_RUNNING);
    script_pass(w, 1 * S);
    assert_int_equal(p->state, POD_TERMINATING);
}

static void a_clock_that_is_set_back_holds_no_deadline(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "job", JOB);

    set_clock(w, -HOUR);
    script_pass(w, 60 * S);
    assert_int_equal(p->state, POD_TERMINATING);
}

static void a_deadline_passes_while_the_machine_sleeps(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "job", JOB);

    script_clock_sleep(HOUR);
    run_queue_clock_set(&w->node);
    script_turn(w);
    assert_int_equal(p->state, POD_TERMINATING);
}

/* ---- grace ------------------------------------------------------------------------------------ */

static struct script_ctr *of(const struct ctr *c)
{
    struct script_ctr *s = script_ctr(c->cur.id);

    assert_non_null(s);
    return s;
}

/* Its manifest is gone. */
static struct pod *remove_pod(struct world *w, struct pod *p)
{
    pods_unwant(&w->node, p->api->meta.namespace, p->api->meta.name);
    script_turn(w);
    return p;
}

static void a_container_is_asked_to_end_and_killed_when_its_grace_is_over(void **state)
{
    struct world *w = *state;
    struct pod *p = remove_pod(w, script_running(w, "a", "terminationGracePeriodSeconds: 6, " ONE));
    const struct script_ctr *c = of(p->ctrs[0]);

    assert_int_equal(p->ctrs[0]->state, CTR_STOPPING);
    assert_int_equal(c->last_signal, SIGTERM);
    script_pass(w, 3 * S);
    set_clock(w, 2 * HOUR);
    set_clock(w, -4 * HOUR);
    script_pass(w, 3 * S - 1);
    assert_int_equal(c->kills, 0);
    script_pass(w, 1);
    assert_int_equal(c->kills, 1);
    assert_int_equal(c->signals, 1);
    assert_int_equal(p->ctrs[0]->state, CTR_KILLING);
}

static void no_grace_is_two_seconds(void **state)
{
    struct world *w = *state;
    struct pod *p = remove_pod(w, script_running(w, "a", "terminationGracePeriodSeconds: 0, " ONE));
    const struct script_ctr *c = of(p->ctrs[0]);

    script_pass(w, 2 * S - 1);
    assert_int_equal(c->kills, 0);
    script_pass(w, 1);
    assert_int_equal(c->kills, 1);
}

static void a_grace_only_ever_shrinks(void **state)
{
    struct world *w = *state;
    struct pod *p = remove_pod(w, script_running(w, "a", "terminationGracePeriodSeconds: 600, " ONE));
    const struct script_ctr *c = of(p->ctrs[0]);

    script_pass(w, 10 * S);
    pod_begin_termination(p, 1000, false, "test");
    assert_int_equal(p->grace_seconds, 600);
    pod_begin_termination(p, 0, false, "test");
    pod_wake(p, "test");
    script_turn(w);
    script_pass(w, 2 * S);
    assert_int_equal(c->kills, 1);
}

static void what_does_not_go_is_killed_again(void **state)
{
    struct world *w = *state;
    struct pod *p = remove_pod(w, script_running(w, "a", "terminationGracePeriodSeconds: 0, " ONE));
    const struct script_ctr *c = of(p->ctrs[0]);

    script_pass(w, 2 * S);
    set_clock(w, -HOUR);
    script_pass(w, 10 * S - 1);
    assert_int_equal(c->kills, 1);
    err_set(&script.kill_error, ERR_UNAVAILABLE, "scripted");
    script_pass(w, 1);
    assert_int_equal(c->kills, 2);
    script_pass(w, 1 * S); /* it could not be killed: soon again */
    assert_int_equal(c->kills, 3);
    script.kill_error = (struct err){ 0 };
    script_exit(w, p->ctrs[0], 137);
    script_answer_all(w, NULL);
    assert_null(pods_find(&w->node, "default", "a"));
}

static void sidecars_follow_and_share_the_grace(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a",
                                   "terminationGracePeriodSeconds: 20, "
                                   "initContainers: [{name: s, image: x, restartPolicy: Always}], " ONE);
    struct script_ctr *sidecar = of(p->ctrs[0]), *regular = of(p->ctrs[1]);

    remove_pod(w, p);
    assert_int_equal(regular->signals, 1);
    assert_int_equal(sidecar->signals, 0);
    script_pass(w, 5 * S);
    script_exit(w, p->ctrs[1], 0);
    assert_int_equal(sidecar->signals, 1);
    script_pass(w, 15 * S - 1);
    assert_int_equal(sidecar->kills, 0);
    script_pass(w, 1);
    assert_int_equal(sidecar->kills, 1);
}

static void a_start_that_hangs_is_cut_off(void **state)
{
    struct world *w = *state;
    struct pod *p = script_pod(w, "a", ONE);

    script_answer_all(w, "start");
    assert_int_equal(p->ctrs[0]->state, CTR_STARTING);
    set_clock(w, -HOUR);
    script_pass(w, 1 * S);
    remove_pod(w, p); /* in its second second: a start is short */
    assert_non_null(script_op("start"));
    script_pass(w, 1 * S);
    assert_null(script_op("start"));
    assert_int_equal(p->ctrs[0]->state, CTR_NONE);
}

/* ---- crashes ---------------------------------------------------------------------------------- */

/* It crashes, and runs again after `pause_s`; not before. */
static void crash(struct world *w, struct ctr *c, int64_t pause_s)
{
    unsigned restarts = c->restarts;

    script_exit(w, c, 1);
    script_answer_all(w, NULL);
    if (pause_s > 0) {
        assert_string_equal(c->waiting_reason, "CrashLoopBackOff");
        set_clock(w, 36000 * S);
        script_pass(w, pause_s * S - 1);
        script_answer_all(w, NULL);
        assert_int_equal(c->restarts, restarts);
        set_clock(w, -72000 * S);
        script_pass(w, 1);
        script_answer_all(w, NULL);
    }
    assert_int_equal(c->restarts, restarts + 1);
    assert_int_equal(c->state, CTR_RUNNING);
}

static void crashes_wait_ever_longer(void **state)
{
    static const int64_t pauses_s[] = { 0, 10, 20, 40, 80, 160, 300, 300 };
    struct world *w = *state;
    struct pod *p = script_running(w, "a", ONE);

    for (size_t i = 0; i < ARRAY_LEN(pauses_s); i++)
        crash(w, p->ctrs[0], pauses_s[i]);
}

static void ten_minutes_without_a_crash_are_a_new_beginning(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a", ONE);

    crash(w, p->ctrs[0], 0);
    crash(w, p->ctrs[0], 10);
    script_clock_pass(600 * S);
    crash(w, p->ctrs[0], 20);
    script_clock_pass(600 * S + 1);
    crash(w, p->ctrs[0], 0);
    crash(w, p->ctrs[0], 10);
}

static void a_back_off_ends_while_the_machine_sleeps(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a", ONE);

    crash(w, p->ctrs[0], 0);
    script_exit(w, p->ctrs[0], 1);
    script_answer_all(w, NULL);
    script_clock_sleep(10 * S);
    run_queue_clock_set(&w->node);
    script_answer_all(w, NULL);
    assert_int_equal(p->ctrs[0]->state, CTR_RUNNING);
}

static void a_create_that_fails_is_tried_again_after_ten_seconds(void **state)
{
    struct world *w = *state;
    struct pod *p = script_pod(w, "a", ONE);

    script_answer_all(w, "create");
    script_answer(w, "create", ERR_INVALID);
    script_answer_all(w, "create");
    assert_string_equal(p->ctrs[0]->waiting_reason, "CreateContainerConfigError");
    set_clock(w, HOUR);
    script_pass(w, 10 * S - 1);
    assert_null(script_op("create"));
    set_clock(w, -2 * HOUR);
    script_pass(w, 1);
    assert_non_null(script_op("create"));
}

/* ---- looks, removals, network, images --------------------------------------------------------- */

static void a_look_that_fails_decides_nothing_and_is_repeated_ever_less_often(void **state)
{
    static const int64_t pauses_ms[] = { 50, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000 };
    struct world *w = *state;
    struct pod *p = script_running(w, "a", "hostNetwork: true, " ONE); /* no check of its network wakes it */

    err_set(&script.unseen, ERR_UNAVAILABLE, "scripted");
    pod_wake(p, "test");
    script_turn(w);
    for (size_t i = 0; i < ARRAY_LEN(pauses_ms); i++) {
        const struct boot_time due = p->look.retry_at;

        assert_int_equal(clock_boot_left_ns(due), pauses_ms[i] * 1000000);
        script_clock_set(i % 2 == 0 ? HOUR : -HOUR);
        script_pass(w, pauses_ms[i] * 1000000 - 1);
        assert_int_equal(p->look.retry_at.ns, due.ns); /* it did not look */
        script_pass(w, 1);
    }
    assert_int_equal(p->state, POD_RUNNING);
    assert_int_equal(p->ctrs[0]->state, CTR_RUNNING);
    script.unseen = (struct err){ 0 };
    script_pass(w, 10 * S);
    assert_int_equal(p->look.wait_ms, 0);
}

static void what_a_container_left_is_removed_again_up_to_once_a_minute(void **state)
{
    static const int64_t pauses_s[] = { 1, 2, 4, 8, 16, 32, 60, 60 };
    struct world *w = *state;
    struct pod *p = script_running(w, "a", "restartPolicy: Never, " ONE);

    script_exit(w, p->ctrs[0], 0);
    for (size_t i = 0; i < ARRAY_LEN(pauses_s); i++) {
        script_answer(w, "delete", ERR_UNAVAILABLE);
        set_clock(w, i % 2 == 0 ? HOUR : -HOUR);
        script_pass(w, pauses_s[i] * S - 1);
        assert_null(script_op("delete"));
        script_pass(w, 1);
        assert_non_null(script_op("delete"));
    }
    assert_int_equal(p->state, POD_TERMINATING); /* it waits for that */
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_TERMINATED);
}

static void an_attachment_that_fails_is_undone_and_made_again(void **state)
{
    static const int64_t pauses_ms[] = { 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000 };
    struct world *w = *state;
    struct pod *p = script_pod(w, "a", ONE);

    script_answer_all(w, "add");
    for (size_t i = 0; i < ARRAY_LEN(pauses_ms); i++) {
        script_answer(w, "add", ERR_UNKNOWN);
        if (script_op("del") != NULL)
            script_answer(w, "del", ERR_OK);
        set_clock(w, i % 2 == 0 ? HOUR : -HOUR);
        script_pass(w, pauses_ms[i] * 1000000 - 1);
        assert_null(script_op("add"));
        script_pass(w, 1);
        if (script_op("del") != NULL)
            script_answer(w, "del", ERR_OK);
        assert_non_null(script_op("add"));
    }
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
}

static void a_pull_that_fails_is_repeated_after_ten_seconds_to_five_minutes(void **state)
{
    static const int64_t pauses_s[] = { 10, 20, 40, 80, 160, 300, 300 };
    struct world *w = *state;
    struct pod *p;

    script.images_absent = true;
    p = script_pod(w, "a", ONE);
    script_answer_all(w, "pull");
    for (size_t i = 0; i < ARRAY_LEN(pauses_s); i++) {
        script_answer(w, "pull", ERR_UNAVAILABLE);
        set_clock(w, i % 2 == 0 ? HOUR : -HOUR);
        script_pass(w, pauses_s[i] * S - 1);
        assert_null(script_op("pull"));
        script_pass(w, 1);
        assert_non_null(script_op("pull"));
    }
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
}

static void a_cgroup_that_does_not_go_holds_the_end(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a", "restartPolicy: Never, " ONE);

    script_exit(w, p->ctrs[0], 0);
    err_set(&script.cgroup_error, ERR_UNAVAILABLE, "scripted");
    script_answer_all(w, NULL);
    set_clock(w, -HOUR);
    script_pass(w, 30 * S);
    assert_int_equal(p->state, POD_TERMINATING);
    script.cgroup_error = (struct err){ 0 };
    script_pass(w, 5 * S);
    assert_int_equal(p->state, POD_TERMINATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(a_deadline_passes_when_its_seconds_are_over),
        SCRIPT_TEST(a_board_that_boots_in_1970_ends_no_job_when_its_clock_is_set),
        SCRIPT_TEST(a_clock_that_is_set_back_holds_no_deadline),
        SCRIPT_TEST(a_deadline_passes_while_the_machine_sleeps),
        SCRIPT_TEST(a_container_is_asked_to_end_and_killed_when_its_grace_is_over),
        SCRIPT_TEST(no_grace_is_two_seconds),
        SCRIPT_TEST(a_grace_only_ever_shrinks),
        SCRIPT_TEST(what_does_not_go_is_killed_again),
        SCRIPT_TEST(sidecars_follow_and_share_the_grace),
        SCRIPT_TEST(a_start_that_hangs_is_cut_off),
        SCRIPT_TEST(crashes_wait_ever_longer),
        SCRIPT_TEST(ten_minutes_without_a_crash_are_a_new_beginning),
        SCRIPT_TEST(a_back_off_ends_while_the_machine_sleeps),
        SCRIPT_TEST(a_create_that_fails_is_tried_again_after_ten_seconds),
        SCRIPT_TEST(a_look_that_fails_decides_nothing_and_is_repeated_ever_less_often),
        SCRIPT_TEST(what_a_container_left_is_removed_again_up_to_once_a_minute),
        SCRIPT_TEST(an_attachment_that_fails_is_undone_and_made_again),
        SCRIPT_TEST(a_pull_that_fails_is_repeated_after_ten_seconds_to_five_minutes),
        SCRIPT_TEST(a_cgroup_that_does_not_go_holds_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
