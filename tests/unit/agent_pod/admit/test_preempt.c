/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to go for a critical pod; who comes first; who is tried again. */
#include "agent/pod/admit/admit.h"
#include "agent/pod/admit/preempt.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/worker/worker.h"
#include "tests/unit/agent_pod/world.h"

#define CTR(resources) "containers: [{name: a, image: x, resources: {" resources "}}]"
#define CRITICAL "priorityClassName: system-node-critical, "

static struct pod *running(struct world *w, const char *name, const char *spec)
{
    struct pod *p = world_pod(w, name, spec);

    p->admitted = true;
    p->state = POD_RUNNING;
    return p;
}

/* The names of those that would be ended, sorted. */
static void ends(const struct pod *p, const char *wanted)
{
    struct pod *victims[32];
    buf_auto names = BUF_INIT(4096);
    struct err e = { 0 };
    size_t n = 0;

    if (preempt_choose(p, victims, &n, &e) != ERR_OK)
        fail_msg("%s", e.text);
    for (char c = 'a'; c <= 'z'; c++)
        for (size_t i = 0; i < n; i++)
            if (victims[i]->api->meta.name[0] == c)
                buf_addf(&names, "%s%s", names.n > 0 ? " " : "", victims[i]->api->meta.name);
    assert_string_equal(names.n > 0 ? names.p : "", wanted);
}

static void only_high_priorities_are_critical(void **state)
{
    assert_true(preempt_is_critical(world_pod(*state, "a", CRITICAL CTR(""))));
    assert_true(
        preempt_is_critical(world_pod(*state, "b", "priorityClassName: system-cluster-critical, " CTR(""))));
    assert_false(preempt_is_critical(world_pod(*state, "c", "priority: 1000000000, " CTR(""))));
}

static void as_few_as_possible_of_the_better_classes_go(void **state)
{
    struct pod *p;

    running(*state, "best-effort", CTR(""));
    running(*state, "g", CTR("limits: {cpu: 1, memory: 1Gi}"));
    running(*state, "s", CTR("requests: {cpu: 500m}"));
    running(*state, "t", CTR("requests: {cpu: 1500m}"));
    p = world_pod(*state, "z", CRITICAL CTR("requests: {cpu: 1}")); /* 3000m of 4000m are in use */
    ends(p, "");
    p = world_pod(*state, "y", CRITICAL CTR("requests: {cpu: 1500m}"));
    ends(p, "s"); /* both Burstable pods have enough: the smaller one */
    p = world_pod(*state, "x", CRITICAL CTR("requests: {cpu: 2}"));
    ends(p, "t"); /* one instead of two: it is the nearest */
    p = world_pod(*state, "w", CRITICAL CTR("requests: {cpu: 3}"));
    ends(p, "s t");
    p = world_pod(*state, "v", CRITICAL CTR("requests: {cpu: 4}"));
    ends(p, "g s t"); /* the one that asks for nothing stays */
}

static void equals_and_those_that_end_already_stay(void **state)
{
    struct world *w = *state;
    struct pod *old = running(w, "a", CTR("requests: {cpu: 2}")), *p, *victims[8];
    struct err e = { 0 };
    size_t n = 0;

    running(w, "b", CRITICAL CTR("requests: {cpu: 2}"));
    p = world_pod(w, "c", CRITICAL CTR("requests: {cpu: 2}"));
    ends(p, "a");
    old->state = POD_TERMINATING;
    ends(p, ""); /* it is waited for */
    old->state = POD_RUNNING;
    p = world_pod(w, "d", CRITICAL CTR("requests: {cpu: 3, memory: 1Gi}"));
    assert_int_equal(preempt_choose(p, victims, &n, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "preemption: error finding a set of pods to preempt: no set of running pods "
                                "found to reclaim resources: [(res: cpu, q: 1000), ]");
}

static void places_are_resources_too(void **state)
{
    struct world *w = *state;

    w->node.o.max_pods = 2;
    running(w, "a", CTR("requests: {cpu: 1}"));
    running(w, "b", CTR(""));
    ends(world_pod(w, "c", CRITICAL CTR("")), "b");
}

static void who_goes_is_told_and_what_it_had_is_held(void **state)
{
    struct world *w = *state;
    struct pod *old = running(w, "a", CTR("requests: {cpu: 3}")), *p, *other;
    char reason[64] = "";
    struct err e = { 0 };

    worker_node(&w->node)->runner_active = true; /* nothing runs by itself here */
    p = world_pod(w, "b", CRITICAL CTR("requests: {cpu: 3}"));
    assert_int_equal(admit_pod(p, reason, &e), ERR_EXHAUSTED);
    assert_int_equal(preempt_for(p, reason, &e), ERR_UNAVAILABLE);
    assert_string_equal(e.text, "waits for 1 pods that are ending to make room for it");
    assert_int_equal(old->state, POD_TERMINATING);
    assert_string_equal(old->phase, "Failed");
    assert_string_equal(old->reason, "Preempting");
    assert_string_equal(old->message, "Preempted in order to admit critical pod");
    other = world_pod(w, "c", CTR("requests: {cpu: 1500m}"));
    e = (struct err){ 0 };
    assert_int_equal(admit_pod(other, reason, &e), ERR_EXHAUSTED);
    e = (struct err){ 0 };
    assert_int_equal(admit_pod(p, reason, &e), ERR_UNAVAILABLE);
    assert_string_equal(e.text, "waits for cpu: 1 pods are ending");
    old->state = POD_TERMINATED;
    assert_int_equal(admit_pod(p, reason, &(struct err){ 0 }), ERR_OK);
    assert_int_equal(admit_pod(other, reason, &e), ERR_EXHAUSTED);
}

static void nobody_is_ended_for_who_is_refused_all_the_same(void **state)
{
    struct world *w = *state;
    char reason[64] = "";
    struct err e = { 0 };

    running(w, "a", CTR("requests: {cpu: 3}"));
    assert_int_equal(
        admit_pod(world_pod(w, "b", CRITICAL "nodeSelector: {disk: ssd}, " CTR("requests: {cpu: 3}")), reason,
                  &e),
        ERR_PRECONDITION);
    assert_string_equal(reason, "NodeAffinity");
}

static void the_higher_priority_is_judged_first_then_the_older(void **state)
{
    struct world *w = *state;
    struct pod *a = world_pod(w, "a", CTR("")), *b = world_pod(w, "b", "priority: 5, " CTR("")),
               *c = world_pod(w, "c", CTR(""));

    worker_node(&w->node)->runner_active = true; /* nothing runs by itself here */
    a->created_ns = c->created_ns = 7;
    b->created_ns = 9;
    assert_true(readmit_before(b, a));
    assert_true(readmit_before(a, c));
    c->created_ns = 3;
    assert_true(readmit_before(c, a));
    pod_wake(a, "test");
    pod_wake(b, "test");
    pod_wake(c, "test");
    assert_ptr_equal(TAILQ_FIRST(&worker_node(&w->node)->dirty), b);
    assert_ptr_equal(TAILQ_NEXT(b, dirty_link), c);
    assert_ptr_equal(TAILQ_NEXT(c, dirty_link), a);
}

static void a_refused_pod_follows_itself_when_there_is_room(void **state)
{
    struct world *w = *state;
    struct pod *old = running(w, "a", CTR("requests: {cpu: 3}")), *p;

    w->node.sources_ready = worker_node(&w->node)->runner_active = true;
    p = world_pod(w, "b", CTR("requests: {cpu: 2}"));
    pod_reconcile(p);
    assert_int_equal(p->state, POD_TERMINATED);
    assert_true(p->rejected);
    assert_string_equal(p->reason, "OutOfcpu");
    assert_null(p->successor);
    readmit_step(p);
    assert_null(p->successor);
    old->state = POD_TERMINATED;
    readmit_step(p);
    assert_non_null(p->successor);
}

static void what_is_said_of_a_refused_pod_stays_true(void **state)
{
    struct world *w = *state;
    struct pod *p;

    w->node.sources_ready = worker_node(&w->node)->runner_active = true;
    running(w, "a", CTR("requests: {cpu: 3}"));
    p = world_pod(w, "b", CTR("requests: {cpu: 2}"));
    pod_reconcile(p);
    running(w, "c", CTR("requests: {cpu: 500m}"));
    readmit_step(p);
    assert_string_equal(p->message,
                        "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, "
                        "used: 3500, capacity: 4000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(only_high_priorities_are_critical),
        WORLD_TEST(as_few_as_possible_of_the_better_classes_go),
        WORLD_TEST(equals_and_those_that_end_already_stay),
        WORLD_TEST(places_are_resources_too),
        WORLD_TEST(who_goes_is_told_and_what_it_had_is_held),
        WORLD_TEST(nobody_is_ended_for_who_is_refused_all_the_same),
        WORLD_TEST(the_higher_priority_is_judged_first_then_the_older),
        WORLD_TEST(a_refused_pod_follows_itself_when_there_is_room),
        WORLD_TEST(what_is_said_of_a_refused_pod_stays_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
