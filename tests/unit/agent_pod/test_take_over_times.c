/* SPDX-License-Identifier: Apache-2.0 */
/* What waits goes on under the next agent: after a kill of this one, and after a reboot. */
#include "tests/unit/agent_pod/script_parts.h"

#include "agent/pod/node/node.h"
#include "agent/pod/node/record_load.h"

#define S SCRIPT_SECOND
#define ONE "terminationGracePeriodSeconds: 60, containers: [{name: c, image: x}]"
#define JOB "activeDeadlineSeconds: 300, " ONE

/* The agent is killed when nothing is under way. */
static void kill_agent(struct world *w)
{
    script_answer_all(w, NULL);
    assert_int_equal(op_count(), 0);
    world_forget(w);
}

/* The table anew, from the records; the manifest is still there, or not. */
static struct pod *take_over(struct world *w, bool wanted)
{
    struct err e = { 0 };
    struct pod *p;

    assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
    p = pods_find(&w->node, "default", "a");
    assert_non_null(p);
    node_recover_pod(p);
    p->recovered = false;
    p->wanted = wanted;
    script_turn(w);
    return p;
}

/* The machine is off for so long by the clock of the world; containers and namespaces are gone. */
static struct pod *reboot(struct world *w, int64_t off_s, bool wanted)
{
    kill_agent(w);
    script_clock_set(off_s * S);
    script_clock.boot_ns = script_clock.mono_ns = 0;
    script_clock_pass(30 * S);
    for (size_t i = 0; i < script.n_ctrs; i++)
        script.ctrs[i].s = (struct rt_state){ .phase = RT_ABSENT };
    script.pinned = false;
    snprintf(w->node.boot_id, sizeof(w->node.boot_id), "boot-2");
    return take_over(w, wanted);
}

/* Between its second crash and its third run. */
static struct pod *in_back_off(struct world *w)
{
    struct pod *p = script_running(w, "a", ONE);

    for (int i = 0; i < 2; i++) {
        script_exit(w, p->ctrs[0], 1);
        script_answer_all(w, NULL);
    }
    assert_string_equal(p->ctrs[0]->waiting_reason, "CrashLoopBackOff");
    return p;
}

static void a_back_off_goes_on(void **state)
{
    struct world *w = *state;
    struct pod *p = in_back_off(w);

    script_pass(w, 4 * S);
    kill_agent(w);
    script_clock_set(-7200 * S);
    p = take_over(w, true);
    script_answer_all(w, NULL); /* its image is asked for again */
    script_pass(w, 6 * S - 1);
    assert_null(script_op("create"));
    script_pass(w, 1);
    assert_non_null(script_op("create"));
    assert_int_equal(p->ctrs[0]->restarts, 1);
    script_answer_all(w, NULL);
    assert_int_equal(p->ctrs[0]->restarts, 2);
}

static void a_grace_period_goes_on(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a", ONE);
    const struct script_ctr *c = script_ctr(p->ctrs[0]->cur.id);

    pods_unwant(&w->node, "default", "a");
    script_turn(w);
    script_pass(w, 20 * S);
    kill_agent(w);
    script_clock_set(7200 * S);
    p = take_over(w, false);
    assert_int_equal(p->ctrs[0]->state, CTR_STOPPING);
    script_pass(w, 40 * S - 1);
    assert_int_equal(c->kills, 0);
    script_pass(w, 1);
    assert_int_equal(c->kills, 1);
}

static void a_deadline_goes_on(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a", JOB);

    script_pass(w, 100 * S);
    kill_agent(w);
    script_clock_set(7200 * S);
    p = take_over(w, true);
    script_pass(w, 200 * S - 1);
    assert_int_equal(p->state, POD_RUNNING);
    script_pass(w, 1);
    assert_int_equal(p->state, POD_TERMINATING);
    assert_string_equal(p->reason, "DeadlineExceeded");
}

static void a_deadline_counts_the_time_off(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a", JOB);

    script_pass(w, 100 * S);
    p = reboot(w, 120, true); /* and up for 30 s */
    script_answer_all(w, NULL);
    script_pass(w, 50 * S - 1);
    assert_int_equal(p->state, POD_RUNNING);
    script_pass(w, 1);
    assert_int_equal(p->state, POD_TERMINATING);
}

/* ... but for what the record's last write had counted: it was written when the pod ran. */
static void a_board_that_boots_in_1970_again_counts_from_the_boot(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a", JOB);

    script_pass(w, 100 * S);
    p = reboot(w, -SCRIPT_WALL_NS / S, true);
    script_answer_all(w, NULL);
    script_clock_set(SCRIPT_WALL_NS + 3600 * S);
    script_pass(w, 270 * S - 2);
    assert_int_equal(p->state, POD_RUNNING);
    script_pass(w, 2);
    assert_int_equal(p->state, POD_TERMINATING);
}

static void time_off_by_a_clock_that_was_not_synchronised_does_not_count(void **state)
{
    struct world *w = *state;
    struct pod *p;

    script_clock.unsynchronised = true;
    p = script_running(w, "a", JOB);
    script_pass(w, 100 * S);
    p = reboot(w, 3 * 86400, true);
    script_answer_all(w, NULL);
    script_pass(w, 270 * S - 2);
    assert_int_equal(p->state, POD_RUNNING);
    script_pass(w, 2);
    assert_int_equal(p->state, POD_TERMINATING);
}

static void a_back_off_ends_while_the_machine_is_off(void **state)
{
    struct world *w = *state;
    struct pod *p = in_back_off(w);

    p = reboot(w, 600, true);
    script_answer_all(w, NULL);
    assert_int_equal(p->ctrs[0]->state, CTR_RUNNING);
    script_exit(w, p->ctrs[0], 1); /* it counts as it did: the run was short */
    script_answer_all(w, NULL);
    assert_string_equal(p->ctrs[0]->waiting_reason, "CrashLoopBackOff");
}

static void a_pod_that_was_ending_ends(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a", ONE);

    pods_unwant(&w->node, "default", "a");
    script_turn(w);
    p = reboot(w, 600, false);
    assert_int_equal(p->state, POD_TERMINATING);
    script_answer_all(w, NULL);
    assert_null(pods_find(&w->node, "default", "a"));
}

/* A board without a battery: after the reboot its clock says what it said at the start of the pod. */
static void a_probe_and_its_container_are_of_this_boot(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "a", ONE);

    script_pass(w, 100 * S);
    p = reboot(w, -100, true);
    script_answer_all(w, NULL);
    assert_int_equal(p->ctrs[0]->state, CTR_RUNNING);
    assert_int_equal(p->ctrs[0]->cur.started_at.ns, clock_boot().ns);
    assert_true(p->ctrs[0]->last.ended_at.ns <= clock_boot().ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(a_back_off_goes_on),
        SCRIPT_TEST(a_grace_period_goes_on),
        SCRIPT_TEST(a_deadline_goes_on),
        SCRIPT_TEST(a_deadline_counts_the_time_off),
        SCRIPT_TEST(a_board_that_boots_in_1970_again_counts_from_the_boot),
        SCRIPT_TEST(time_off_by_a_clock_that_was_not_synchronised_does_not_count),
        SCRIPT_TEST(a_back_off_ends_while_the_machine_is_off),
        SCRIPT_TEST(a_pod_that_was_ending_ends),
        SCRIPT_TEST(a_probe_and_its_container_are_of_this_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
