/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of what a pod is doing against what can happen to it.  Each combination is tried: the pod is
 * brought there, it happens, and then everything that the agent asks for succeeds.  A combination without a
 * row fails.
 */
#include "tests/unit/agent_pod/script_parts.h"

#include "agent/pod/container/container.h"
#include "agent/pod/node/node.h"
#include "agent/pod/worker/shutdown.h"

#define S SCRIPT_SECOND

enum situation {
    IS_PENDING, /* admission waits for a host port of another pod */
    IS_STARTING,
    IS_RUNNING,
    IS_IN_BACK_OFF, /* its container crashed twice */
    IS_BEING_REMOVED,
    IS_FINISHING, /* its container is done */
    IS_DONE,
    IS_REFUSED,
    SITUATIONS
};

static const enum pod_state state_in[SITUATIONS] = {
    [IS_PENDING] = POD_PENDING,     [IS_STARTING] = POD_STARTING,         [IS_RUNNING] = POD_RUNNING,
    [IS_IN_BACK_OFF] = POD_RUNNING, [IS_BEING_REMOVED] = POD_TERMINATING, [IS_FINISHING] = POD_TERMINATING,
    [IS_DONE] = POD_TERMINATED,     [IS_REFUSED] = POD_TERMINATED,
};

enum happening {
    WOKEN, /* for no reason */
    SAME_MANIFEST,
    LABEL_EDITED,
    COMMAND_EDITED, /* needs a new pod */
    MANIFEST_GONE,
    CONTAINER_DONE,
    CONTAINER_CRASHED,
    CONTAINER_LOST,
    LOOKS_FAIL,
    OPERATION_FAILS,             /* the oldest one that is under way */
    REMOVED_AND_OPERATIONS_HANG, /* a cancel does not end them */
    DEADLINE_OVER,
    EVICTED,
    RESTART_ASKED,
    SHUTDOWN,
    SHUTDOWN_CALLED_OFF,
    DRAINED,
    NODE_CLOSES,
    CLOCK_SET_BACK,
    MACHINE_SLEEPS,
    EVENTS
};

static const char *const situation_names[SITUATIONS] = {
    "pending", "starting", "running", "in back-off", "being removed", "finishing", "done", "refused",
};
static const char *const event_names[EVENTS] = {
    "woken",
    "same manifest",
    "label edited",
    "command edited",
    "manifest gone",
    "container done",
    "container crashed",
    "container lost",
    "looks fail",
    "operation fails",
    "removed, operations hang",
    "deadline over",
    "evicted",
    "restart asked",
    "shutdown",
    "shutdown called off",
    "drained",
    "node closes",
    "clock set back",
    "machine sleeps",
};

enum result {
    NO_ROW,
    PENDING,
    STARTING,
    RUNNING,
    TERMINATING,
    DONE,
    FAILED,
    GONE,
    ANEW /* as another pod */
};
static const char *const result_names[] = { "no row", "PENDING", "STARTING", "RUNNING", "TERMINATING",
                                            "DONE",   "FAILED",  "GONE",     "ANEW" };

struct row {
    enum result then; /* when it has happened, and nothing was answered yet */
    enum result end;  /* when all was answered, and a minute has passed */
};

static const struct row table[SITUATIONS][EVENTS] = {
    [IS_PENDING] = {
        [WOKEN] = { PENDING, RUNNING },
        [SAME_MANIFEST] = { PENDING, RUNNING },
        [LABEL_EDITED] = { PENDING, RUNNING },
        [COMMAND_EDITED] = { TERMINATING, ANEW },
        [MANIFEST_GONE] = { TERMINATING, GONE },
        [CONTAINER_DONE] = { PENDING, RUNNING },
        [CONTAINER_CRASHED] = { PENDING, RUNNING },
        [CONTAINER_LOST] = { PENDING, RUNNING },
        [LOOKS_FAIL] = { PENDING, RUNNING },
        [OPERATION_FAILS] = { PENDING, RUNNING },
        [REMOVED_AND_OPERATIONS_HANG] = { TERMINATING, GONE },
        [DEADLINE_OVER] = { PENDING, RUNNING },
        [EVICTED] = { TERMINATING, FAILED },
        [RESTART_ASKED] = { PENDING, RUNNING },
        [SHUTDOWN] = { PENDING, FAILED },
        [SHUTDOWN_CALLED_OFF] = { PENDING, RUNNING },
        [DRAINED] = { TERMINATING, GONE },
        [NODE_CLOSES] = { PENDING, PENDING },
        [CLOCK_SET_BACK] = { PENDING, RUNNING },
        [MACHINE_SLEEPS] = { PENDING, RUNNING },
    },
    [IS_STARTING] = {
        [WOKEN] = { STARTING, RUNNING },
        [SAME_MANIFEST] = { STARTING, RUNNING },
        [LABEL_EDITED] = { STARTING, RUNNING },
        [COMMAND_EDITED] = { TERMINATING, ANEW },
        [MANIFEST_GONE] = { TERMINATING, GONE },
        [CONTAINER_DONE] = { STARTING, RUNNING },
        [CONTAINER_CRASHED] = { STARTING, RUNNING },
        [CONTAINER_LOST] = { STARTING, RUNNING },
        [LOOKS_FAIL] = { STARTING, RUNNING },
        [OPERATION_FAILS] = { STARTING, RUNNING },
        [REMOVED_AND_OPERATIONS_HANG] = { TERMINATING, GONE },
        [DEADLINE_OVER] = { TERMINATING, FAILED },
        [EVICTED] = { TERMINATING, FAILED },
        [RESTART_ASKED] = { STARTING, RUNNING },
        [SHUTDOWN] = { TERMINATING, FAILED },
        [SHUTDOWN_CALLED_OFF] = { TERMINATING, RUNNING },
        [DRAINED] = { TERMINATING, GONE },
        [NODE_CLOSES] = { STARTING, STARTING },
        [CLOCK_SET_BACK] = { STARTING, RUNNING },
        [MACHINE_SLEEPS] = { STARTING, RUNNING },
    },
    [IS_RUNNING] = {
        [WOKEN] = { RUNNING, RUNNING },
        [SAME_MANIFEST] = { RUNNING, RUNNING },
        [LABEL_EDITED] = { RUNNING, RUNNING },
        [COMMAND_EDITED] = { TERMINATING, ANEW },
        [MANIFEST_GONE] = { TERMINATING, GONE },
        [CONTAINER_DONE] = { TERMINATING, DONE },
        [CONTAINER_CRASHED] = { RUNNING, RUNNING },
        [CONTAINER_LOST] = { RUNNING, RUNNING },
        [LOOKS_FAIL] = { RUNNING, RUNNING },
        [OPERATION_FAILS] = { RUNNING, RUNNING },
        [REMOVED_AND_OPERATIONS_HANG] = { TERMINATING, GONE },
        [DEADLINE_OVER] = { TERMINATING, FAILED },
        [EVICTED] = { TERMINATING, FAILED },
        [RESTART_ASKED] = { RUNNING, RUNNING },
        [SHUTDOWN] = { TERMINATING, FAILED },
        [SHUTDOWN_CALLED_OFF] = { TERMINATING, RUNNING },
        [DRAINED] = { TERMINATING, GONE },
        [NODE_CLOSES] = { RUNNING, RUNNING },
        [CLOCK_SET_BACK] = { RUNNING, RUNNING },
        [MACHINE_SLEEPS] = { RUNNING, RUNNING },
    },
    [IS_IN_BACK_OFF] = {
        [WOKEN] = { RUNNING, RUNNING },
        [SAME_MANIFEST] = { RUNNING, RUNNING },
        [LABEL_EDITED] = { RUNNING, RUNNING },
        [COMMAND_EDITED] = { TERMINATING, ANEW },
        [MANIFEST_GONE] = { TERMINATING, GONE },
        [CONTAINER_DONE] = { RUNNING, RUNNING },
        [CONTAINER_CRASHED] = { RUNNING, RUNNING },
        [CONTAINER_LOST] = { RUNNING, RUNNING },
        [LOOKS_FAIL] = { RUNNING, RUNNING },
        [OPERATION_FAILS] = { RUNNING, RUNNING },
        [REMOVED_AND_OPERATIONS_HANG] = { TERMINATING, GONE },
        [DEADLINE_OVER] = { TERMINATING, FAILED },
        [EVICTED] = { TERMINATING, FAILED },
        [RESTART_ASKED] = { RUNNING, RUNNING },
        [SHUTDOWN] = { TERMINATING, FAILED },
        [SHUTDOWN_CALLED_OFF] = { TERMINATING, RUNNING },
        [DRAINED] = { TERMINATING, GONE },
        [NODE_CLOSES] = { RUNNING, RUNNING },
        [CLOCK_SET_BACK] = { RUNNING, RUNNING },
        [MACHINE_SLEEPS] = { RUNNING, RUNNING },
    },
    [IS_BEING_REMOVED] = {
        [WOKEN] = { TERMINATING, GONE },
        [SAME_MANIFEST] = { TERMINATING, ANEW },
        [LABEL_EDITED] = { TERMINATING, ANEW },
        [COMMAND_EDITED] = { TERMINATING, ANEW },
        [MANIFEST_GONE] = { TERMINATING, GONE },
        [CONTAINER_DONE] = { TERMINATING, GONE },
        [CONTAINER_CRASHED] = { TERMINATING, GONE },
        [CONTAINER_LOST] = { TERMINATING, GONE },
        [LOOKS_FAIL] = { TERMINATING, GONE },
        [OPERATION_FAILS] = { TERMINATING, GONE },
        [REMOVED_AND_OPERATIONS_HANG] = { TERMINATING, GONE },
        [DEADLINE_OVER] = { TERMINATING, GONE },
        [EVICTED] = { TERMINATING, GONE },
        [RESTART_ASKED] = { TERMINATING, GONE },
        [SHUTDOWN] = { TERMINATING, GONE },
        [SHUTDOWN_CALLED_OFF] = { TERMINATING, GONE },
        [DRAINED] = { TERMINATING, GONE },
        [NODE_CLOSES] = { TERMINATING, TERMINATING },
        [CLOCK_SET_BACK] = { TERMINATING, GONE },
        [MACHINE_SLEEPS] = { TERMINATING, GONE },
    },
    [IS_FINISHING] = {
        [WOKEN] = { TERMINATING, DONE },
        [SAME_MANIFEST] = { TERMINATING, DONE },
        [LABEL_EDITED] = { TERMINATING, DONE },
        [COMMAND_EDITED] = { TERMINATING, ANEW },
        [MANIFEST_GONE] = { TERMINATING, GONE },
        [CONTAINER_DONE] = { TERMINATING, DONE },
        [CONTAINER_CRASHED] = { TERMINATING, DONE },
        [CONTAINER_LOST] = { TERMINATING, DONE },
        [LOOKS_FAIL] = { TERMINATING, DONE },
        [OPERATION_FAILS] = { TERMINATING, DONE },
        [REMOVED_AND_OPERATIONS_HANG] = { TERMINATING, GONE },
        [DEADLINE_OVER] = { TERMINATING, DONE },
        [EVICTED] = { TERMINATING, DONE },
        [RESTART_ASKED] = { TERMINATING, DONE },
        [SHUTDOWN] = { TERMINATING, DONE },
        [SHUTDOWN_CALLED_OFF] = { TERMINATING, DONE },
        [DRAINED] = { TERMINATING, GONE },
        [NODE_CLOSES] = { TERMINATING, TERMINATING },
        [CLOCK_SET_BACK] = { TERMINATING, DONE },
        [MACHINE_SLEEPS] = { TERMINATING, DONE },
    },
    [IS_DONE] = {
        [WOKEN] = { DONE, DONE },
        [SAME_MANIFEST] = { DONE, DONE },
        [LABEL_EDITED] = { DONE, DONE },
        [COMMAND_EDITED] = { ANEW, ANEW },
        [MANIFEST_GONE] = { GONE, GONE },
        [CONTAINER_DONE] = { DONE, DONE },
        [CONTAINER_CRASHED] = { DONE, DONE },
        [CONTAINER_LOST] = { DONE, DONE },
        [LOOKS_FAIL] = { DONE, DONE },
        [OPERATION_FAILS] = { DONE, DONE },
        [REMOVED_AND_OPERATIONS_HANG] = { GONE, GONE },
        [DEADLINE_OVER] = { DONE, DONE },
        [EVICTED] = { DONE, DONE },
        [RESTART_ASKED] = { DONE, DONE },
        [SHUTDOWN] = { DONE, DONE },
        [SHUTDOWN_CALLED_OFF] = { DONE, DONE },
        [DRAINED] = { GONE, GONE },
        [NODE_CLOSES] = { DONE, DONE },
        [CLOCK_SET_BACK] = { DONE, DONE },
        [MACHINE_SLEEPS] = { DONE, DONE },
    },
    [IS_REFUSED] = {
        [WOKEN] = { FAILED, FAILED },
        [SAME_MANIFEST] = { FAILED, FAILED },
        [LABEL_EDITED] = { ANEW, ANEW },
        [COMMAND_EDITED] = { ANEW, ANEW },
        [MANIFEST_GONE] = { GONE, GONE },
        [CONTAINER_DONE] = { FAILED, FAILED },
        [CONTAINER_CRASHED] = { FAILED, FAILED },
        [CONTAINER_LOST] = { FAILED, FAILED },
        [LOOKS_FAIL] = { FAILED, FAILED },
        [OPERATION_FAILS] = { FAILED, FAILED },
        [REMOVED_AND_OPERATIONS_HANG] = { GONE, GONE },
        [DEADLINE_OVER] = { FAILED, ANEW },
        [EVICTED] = { FAILED, FAILED },
        [RESTART_ASKED] = { FAILED, FAILED },
        [SHUTDOWN] = { FAILED, FAILED },
        [SHUTDOWN_CALLED_OFF] = { FAILED, FAILED },
        [DRAINED] = { GONE, GONE },
        [NODE_CLOSES] = { FAILED, FAILED },
        [CLOCK_SET_BACK] = { FAILED, FAILED },
        [MACHINE_SLEEPS] = { FAILED, FAILED },
    },
};

#define SPEC(command)                                                                                        \
    "activeDeadlineSeconds: 3000, terminationGracePeriodSeconds: 20, restartPolicy: OnFailure, containers: " \
    "[{name: c, image: x, " command "ports: [{containerPort: 80, hostPort: 80}]}]"
#define PLAIN SPEC("")

/* ---- situations --------------------------------------------------------------------------------- */

static struct pod *bring(struct world *w, enum situation s)
{
    struct pod *p, *other;

    switch (s) {
    case IS_PENDING:
        other = script_running(w, "other", PLAIN);
        pods_unwant(&w->node, "default", "other");
        script_turn(w);
        assert_int_equal(other->state, POD_TERMINATING);
        p = script_pod(w, "a", PLAIN);
        script_turn(w);
        return p;
    case IS_STARTING:
        p = script_pod(w, "a", PLAIN);
        script_answer_all(w, "add");
        return p;
    case IS_RUNNING:
        return script_running(w, "a", PLAIN);
    case IS_IN_BACK_OFF:
        p = script_running(w, "a", PLAIN);
        for (int i = 0; i < 2; i++) {
            script_exit(w, p->ctrs[0], 1);
            script_answer_all(w, NULL);
        }
        return p;
    case IS_BEING_REMOVED:
        p = script_running(w, "a", PLAIN);
        pods_unwant(&w->node, "default", "a");
        script_turn(w);
        return p;
    case IS_FINISHING:
        p = script_running(w, "a", PLAIN);
        script_exit(w, p->ctrs[0], 0);
        return p;
    case IS_DONE:
        p = script_running(w, "a", PLAIN);
        script_exit(w, p->ctrs[0], 0);
        script_answer_all(w, NULL);
        return p;
    case IS_REFUSED:
        script_running(w, "other", PLAIN);
        p = script_pod(w, "a", PLAIN);
        script_turn(w);
        return p;
    case SITUATIONS:
        break;
    }
    return NULL;
}

/* ---- events ------------------------------------------------------------------------------------- */

static void on_shut_down(void *arg)
{
    (void)arg;
}

static void apply(struct world *w, const char *labels, const char *spec)
{
    str_auto text =
        str_printf("{apiVersion: v1, kind: Pod, metadata: {name: a%s}, spec: {%s}}", labels, spec);
    struct api_problems problems = { 0 };
    struct api_objects found = { 0 };
    struct err e = { 0 };

    assert_int_equal(api_decode_file("a.yaml", text, strlen(text), &found, &problems, &e), ERR_OK);
    assert_int_equal(problems.n, 0);
    pods_want(&w->node, found.v[0].pod);
    api_objects_done(&found);
    api_problems_done(&problems);
}

static void end_container(struct pod *p, enum rt_phase phase, int exit_code)
{
    struct script_ctr *c = script_ctr(p->ctrs[0]->cur.id);

    if (c == NULL || c->s.phase != RT_RUNNING) {
        pod_wake(p, "test");
        return;
    }
    c->s.phase = phase;
    c->s.exit_code = exit_code;
    c->s.finished_ns = phase == RT_EXITED ? clock_wall_ns() : 0;
    pod_wake(p, "test");
}

static void happen(struct world *w, struct pod *p, enum happening v)
{
    struct op *op;
    struct err e = { 0 };

    switch (v) {
    case WOKEN:
        pod_wake(p, "test");
        break;
    case SAME_MANIFEST:
        apply(w, "", PLAIN);
        break;
    case LABEL_EDITED:
        apply(w, ", labels: {a: b}", PLAIN);
        break;
    case COMMAND_EDITED:
        apply(w, "", SPEC("command: [other], "));
        break;
    case MANIFEST_GONE:
        pods_unwant(&w->node, "default", "a");
        break;
    case CONTAINER_DONE:
        end_container(p, RT_EXITED, 0);
        break;
    case CONTAINER_CRASHED:
        end_container(p, RT_EXITED, 1);
        break;
    case CONTAINER_LOST:
        end_container(p, RT_LOST, 0);
        break;
    case LOOKS_FAIL:
        err_set(&script.unseen, ERR_UNAVAILABLE, "scripted");
        pod_wake(p, "test");
        break;
    case OPERATION_FAILS:
        op = script_op(NULL);
        err_set(&e, ERR_UNAVAILABLE, "scripted");
        if (op != NULL)
            op_finish(op, &e);
        break;
    case REMOVED_AND_OPERATIONS_HANG:
        script.hang = true;
        pods_unwant(&w->node, "default", "a");
        break;
    case DEADLINE_OVER:
        script_clock_pass(3000 * S);
        break;
    case EVICTED:
        pod_ask_end(p, 1, "evicted");
        pod_wake(p, "test");
        break;
    case RESTART_ASKED:
        json_decref(restart_ask(p, NULL, &e));
        break;
    case SHUTDOWN:
        node_shutdown_begin(&w->node, on_shut_down, NULL);
        break;
    case SHUTDOWN_CALLED_OFF:
        node_shutdown_begin(&w->node, on_shut_down, NULL);
        script_turn(w);
        node_shutdown_cancel(&w->node);
        break;
    case DRAINED:
        node_drain(&w->node, on_shut_down, NULL);
        break;
    case NODE_CLOSES:
        w->node.closing = true;
        pod_wake(p, "test");
        break;
    case CLOCK_SET_BACK:
        script_clock_set(-7200 * S);
        run_queue_clock_set(&w->node);
        break;
    case MACHINE_SLEEPS:
        script_clock_sleep(300 * S);
        run_queue_clock_set(&w->node);
        break;
    case EVENTS:
        break;
    }
    script_turn(w);
}

/* ---- results ------------------------------------------------------------------------------------ */

static enum result result_of(struct world *w, const char *uid)
{
    const struct pod *p = pods_find(&w->node, "default", "a");

    if (p == NULL)
        return GONE;
    if (strcmp(p->uid, uid) != 0)
        return ANEW;
    switch (p->state) {
    case POD_PENDING:
        return PENDING;
    case POD_STARTING:
        return STARTING;
    case POD_RUNNING:
        return RUNNING;
    case POD_TERMINATING:
        return TERMINATING;
    case POD_TERMINATED:
        return strcmp(p->phase, "Succeeded") == 0 ? DONE : FAILED;
    }
    return NO_ROW;
}

/* Containers end when they are asked to. */
static void obey(struct world *w)
{
    struct pod *p, *tmp;

    HASH_ITER (hh, w->node.pods, p, tmp) {
        struct script_ctr *c = script_ctr(p->ctrs[0]->cur.id);
        if (c != NULL && c->s.phase == RT_RUNNING && c->signals + (int)c->kills > 0) {
            script_exit(w, p->ctrs[0], c->kills > 0 ? 137 : 143);
            return;
        }
    }
}

static void settle(struct world *w)
{
    script.unseen = (struct err){ 0 };
    for (int i = 0; i < 60; i++) {
        script_answer_all(w, NULL);
        obey(w);
        script_pass(w, 1 * S);
    }
    script_answer_all(w, NULL);
}

static void each_combination_has_a_row_that_is_true(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (int s = 0; s < SITUATIONS; s++)
        for (int v = 0; v < EVENTS; v++) {
            const struct row *row = &table[s][v];
            static const struct node_shutdown_group group = { .priority = 0, .grace_ms = 20000 };
            char uid[sizeof(((struct pod *)0)->uid)];
            enum result then, end;
            struct world *w;
            struct pod *p;
            void *one = NULL;

            assert_int_equal(script_setup(&one), 0);
            w = one;
            w->node.o.shutdown_groups = &group;
            w->node.o.n_shutdown_groups = 1;
            node_shutdown_cancel(&w->node);
            p = bring(w, (enum situation)s);
            assert_int_equal(p->state, state_in[s]);
            snprintf(uid, sizeof(uid), "%s", p->uid);
            happen(w, p, (enum happening)v);
            then = result_of(w, uid);
            settle(w);
            end = result_of(w, uid);
            if (then != row->then || end != row->end) {
                print_error("%s, %s: %s, %s; its row says %s, %s\n", situation_names[s], event_names[v],
                            result_names[then], result_names[end], result_names[row->then],
                            result_names[row->end]);
                wrong++;
            }
            assert_int_equal(script_teardown(&one), 0);
        }
    assert_int_equal(wrong, 0);
}

/* The agent was killed between the end of a removed pod and the removal of its record. */
static void a_removed_pod_whose_manifest_returns_is_a_new_one(void **state)
{
    void *one = NULL;
    char uid[sizeof(((struct pod *)0)->uid)];
    struct world *w;
    struct pod *p;

    (void)state;
    assert_int_equal(script_setup(&one), 0);
    w = one;
    p = bring(w, IS_DONE);
    assert_int_equal(p->state, POD_TERMINATED);
    snprintf(uid, sizeof(uid), "%s", p->uid);
    p->finishing = false;
    p->deletion_ns = 1;
    apply(w, "", PLAIN);
    settle(w);
    p = pods_find(&w->node, "default", "a");
    assert_non_null(p);
    assert_string_not_equal(p->uid, uid);
    assert_int_equal(p->state, POD_RUNNING);
    assert_int_equal(script_teardown(&one), 0);
}

/* Each state of a pod is in the table. */
static void each_state_is_a_situation(void **state)
{
    (void)state;
    for (int s = POD_PENDING; s <= POD_TERMINATED; s++) {
        bool found = false;
        for (size_t i = 0; i < SITUATIONS; i++)
            found = found || state_in[i] == (enum pod_state)s;
        assert_true(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_combination_has_a_row_that_is_true),
        cmocka_unit_test(a_removed_pod_whose_manifest_returns_is_a_new_one),
        cmocka_unit_test(each_state_is_a_situation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
