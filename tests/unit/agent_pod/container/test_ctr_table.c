/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a container's states against what can happen to it.  Each combination is tried: the container
 * is brought there, it happens, and then everything that the agent asks for succeeds.  A combination without
 * a row fails.
 */
#include "tests/unit/agent_pod/script_parts.h"

#include "agent/pod/container/hooks.h"
#include "agent/pod/worker/shutdown.h"

#define S SCRIPT_SECOND

enum happening {
    OPERATION_SUCCEEDS, /* the one that the container waits for */
    OPERATION_FAILS,
    OPERATION_HANGS, /* for a minute */
    CONTAINER_DONE,
    CONTAINER_CRASHED,
    CONTAINER_LOST,
    BUNDLE_VANISHED,
    LOOKS_FAIL, /* for a minute */
    IMAGE_EDITED,
    RESTART_ASKED,
    POD_REMOVED,
    REMOVED_AND_STUBBORN,       /* it lives until it is killed */
    REMOVED_AND_OPERATION_LATE, /* a cancel does not end it; it succeeds after a minute */
    NODE_CLOSES,
    EVENTS
};

static const char *const event_names[EVENTS] = {
    "operation succeeds",      "operation fails",   "operation hangs",
    "container done",          "container crashed", "container lost",
    "bundle vanished",         "looks fail",        "image edited",
    "restart asked",           "pod removed",       "removed, stubborn",
    "removed, operation late", "node closes",
};

#define STATES (CTR_KILLING + 1)
enum result {
    NO_ROW,
    NONE,
    MOUNTING,
    CREATING,
    CREATED,
    STARTING,
    RUNNING,
    PRESTOP,
    STOPPING,
    KILLING,
    GONE
};
static const char *const result_names[] = { "NO_ROW",   "NONE",     "MOUNTING", "CREATING",
                                            "CREATED",  "STARTING", "RUNNING",  "PRESTOP",
                                            "STOPPING", "KILLING",  "GONE" };

struct row {
    enum result then; /* when it has happened, and nothing else was answered */
    enum result end;  /* when all was answered, and a minute has passed */
    unsigned attempt; /* of the run that there is then */
};

static const struct row table[STATES][EVENTS] = {
    [CTR_NONE] = {
        [OPERATION_SUCCEEDS] = { NONE, RUNNING, 2 },
        [OPERATION_FAILS] = { NONE, RUNNING, 2 },
        [OPERATION_HANGS] = { MOUNTING, RUNNING, 2 },
        [CONTAINER_DONE] = { NONE, RUNNING, 2 },
        [CONTAINER_CRASHED] = { NONE, RUNNING, 2 },
        [CONTAINER_LOST] = { NONE, RUNNING, 2 },
        [BUNDLE_VANISHED] = { NONE, RUNNING, 2 },
        [LOOKS_FAIL] = { MOUNTING, RUNNING, 2 },
        [IMAGE_EDITED] = { NONE, RUNNING, 2 },
        [RESTART_ASKED] = { MOUNTING, RUNNING, 2 },
        [POD_REMOVED] = { NONE, GONE, 0 },
        [REMOVED_AND_STUBBORN] = { NONE, GONE, 0 },
        [REMOVED_AND_OPERATION_LATE] = { NONE, GONE, 0 },
        [NODE_CLOSES] = { NONE, NONE, 1 },
    },
    [CTR_MOUNTING] = {
        [OPERATION_SUCCEEDS] = { CREATING, RUNNING, 0 },
        [OPERATION_FAILS] = { NONE, RUNNING, 0 },
        [OPERATION_HANGS] = { MOUNTING, RUNNING, 0 },
        [CONTAINER_DONE] = { MOUNTING, RUNNING, 0 },
        [CONTAINER_CRASHED] = { MOUNTING, RUNNING, 0 },
        [CONTAINER_LOST] = { MOUNTING, RUNNING, 0 },
        [BUNDLE_VANISHED] = { MOUNTING, RUNNING, 0 },
        [LOOKS_FAIL] = { MOUNTING, RUNNING, 0 },
        [IMAGE_EDITED] = { MOUNTING, RUNNING, 1 },
        [RESTART_ASKED] = { MOUNTING, RUNNING, 0 },
        [POD_REMOVED] = { NONE, GONE, 0 },
        [REMOVED_AND_STUBBORN] = { NONE, GONE, 0 },
        [REMOVED_AND_OPERATION_LATE] = { MOUNTING, GONE, 0 },
        [NODE_CLOSES] = { MOUNTING, NONE, 0 },
    },
    [CTR_CREATING] = {
        [OPERATION_SUCCEEDS] = { STARTING, RUNNING, 0 },
        [OPERATION_FAILS] = { NONE, RUNNING, 0 },
        [OPERATION_HANGS] = { CREATING, RUNNING, 0 },
        [CONTAINER_DONE] = { CREATING, RUNNING, 0 },
        [CONTAINER_CRASHED] = { CREATING, RUNNING, 0 },
        [CONTAINER_LOST] = { CREATING, RUNNING, 0 },
        [BUNDLE_VANISHED] = { CREATING, RUNNING, 0 },
        [LOOKS_FAIL] = { CREATING, RUNNING, 0 },
        [IMAGE_EDITED] = { CREATING, RUNNING, 1 },
        [RESTART_ASKED] = { CREATING, RUNNING, 0 },
        [POD_REMOVED] = { NONE, GONE, 0 },
        [REMOVED_AND_STUBBORN] = { NONE, GONE, 0 },
        [REMOVED_AND_OPERATION_LATE] = { CREATING, GONE, 0 },
        [NODE_CLOSES] = { CREATING, CREATED, 0 },
    },
    [CTR_CREATED] = {
        [OPERATION_SUCCEEDS] = { STARTING, RUNNING, 0 },
        [OPERATION_FAILS] = { CREATED, RUNNING, 0 },
        [OPERATION_HANGS] = { CREATED, RUNNING, 0 },
        [CONTAINER_DONE] = { MOUNTING, RUNNING, 0 },
        [CONTAINER_CRASHED] = { MOUNTING, RUNNING, 0 },
        [CONTAINER_LOST] = { MOUNTING, RUNNING, 0 },
        [BUNDLE_VANISHED] = { MOUNTING, RUNNING, 0 },
        [LOOKS_FAIL] = { CREATED, RUNNING, 0 },
        [IMAGE_EDITED] = { CREATED, RUNNING, 1 },
        [RESTART_ASKED] = { CREATED, RUNNING, 0 },
        [POD_REMOVED] = { NONE, GONE, 0 },
        [REMOVED_AND_STUBBORN] = { NONE, GONE, 0 },
        [REMOVED_AND_OPERATION_LATE] = { NONE, GONE, 0 },
        [NODE_CLOSES] = { CREATED, CREATED, 0 },
    },
    [CTR_STARTING] = {
        [OPERATION_SUCCEEDS] = { RUNNING, RUNNING, 0 },
        [OPERATION_FAILS] = { MOUNTING, RUNNING, 1 },
        [OPERATION_HANGS] = { STARTING, RUNNING, 0 },
        [CONTAINER_DONE] = { STARTING, NONE, 0 },
        [CONTAINER_CRASHED] = { STARTING, RUNNING, 1 },
        [CONTAINER_LOST] = { STARTING, RUNNING, 1 },
        [BUNDLE_VANISHED] = { STARTING, RUNNING, 1 },
        [LOOKS_FAIL] = { STARTING, RUNNING, 0 },
        [IMAGE_EDITED] = { STARTING, RUNNING, 1 },
        [RESTART_ASKED] = { STARTING, RUNNING, 0 },
        [POD_REMOVED] = { STARTING, GONE, 0 },
        [REMOVED_AND_STUBBORN] = { STARTING, GONE, 0 },
        [REMOVED_AND_OPERATION_LATE] = { STARTING, GONE, 0 },
        [NODE_CLOSES] = { STARTING, RUNNING, 0 },
    },
    [CTR_RUNNING] = {
        [OPERATION_SUCCEEDS] = { RUNNING, RUNNING, 0 },
        [OPERATION_FAILS] = { RUNNING, RUNNING, 0 },
        [OPERATION_HANGS] = { RUNNING, RUNNING, 0 },
        [CONTAINER_DONE] = { NONE, NONE, 0 },
        [CONTAINER_CRASHED] = { MOUNTING, RUNNING, 1 },
        [CONTAINER_LOST] = { MOUNTING, RUNNING, 1 },
        [BUNDLE_VANISHED] = { MOUNTING, RUNNING, 1 },
        [LOOKS_FAIL] = { RUNNING, RUNNING, 0 },
        [IMAGE_EDITED] = { PRESTOP, RUNNING, 1 },
        [RESTART_ASKED] = { PRESTOP, RUNNING, 1 },
        [POD_REMOVED] = { PRESTOP, GONE, 0 },
        [REMOVED_AND_STUBBORN] = { PRESTOP, GONE, 0 },
        [REMOVED_AND_OPERATION_LATE] = { KILLING, GONE, 0 },
        [NODE_CLOSES] = { RUNNING, RUNNING, 0 },
    },
    [CTR_PRESTOP] = {
        [OPERATION_SUCCEEDS] = { PRESTOP, GONE, 0 },
        [OPERATION_FAILS] = { PRESTOP, GONE, 0 },
        [OPERATION_HANGS] = { KILLING, GONE, 0 },
        [CONTAINER_DONE] = { NONE, GONE, 0 },
        [CONTAINER_CRASHED] = { NONE, GONE, 0 },
        [CONTAINER_LOST] = { NONE, GONE, 0 },
        [BUNDLE_VANISHED] = { NONE, GONE, 0 },
        [LOOKS_FAIL] = { KILLING, GONE, 0 },
        [IMAGE_EDITED] = { PRESTOP, RUNNING, 0 },
        [RESTART_ASKED] = { PRESTOP, GONE, 0 },
        [POD_REMOVED] = { PRESTOP, GONE, 0 },
        [REMOVED_AND_STUBBORN] = { PRESTOP, GONE, 0 },
        [REMOVED_AND_OPERATION_LATE] = { KILLING, GONE, 0 },
        [NODE_CLOSES] = { PRESTOP, PRESTOP, 0 },
    },
    [CTR_STOPPING] = {
        [OPERATION_SUCCEEDS] = { STOPPING, GONE, 0 },
        [OPERATION_FAILS] = { STOPPING, GONE, 0 },
        [OPERATION_HANGS] = { KILLING, GONE, 0 },
        [CONTAINER_DONE] = { NONE, GONE, 0 },
        [CONTAINER_CRASHED] = { NONE, GONE, 0 },
        [CONTAINER_LOST] = { NONE, GONE, 0 },
        [BUNDLE_VANISHED] = { NONE, GONE, 0 },
        [LOOKS_FAIL] = { KILLING, GONE, 0 },
        [IMAGE_EDITED] = { STOPPING, RUNNING, 0 },
        [RESTART_ASKED] = { STOPPING, GONE, 0 },
        [POD_REMOVED] = { STOPPING, GONE, 0 },
        [REMOVED_AND_STUBBORN] = { STOPPING, GONE, 0 },
        [REMOVED_AND_OPERATION_LATE] = { KILLING, GONE, 0 },
        [NODE_CLOSES] = { STOPPING, STOPPING, 0 },
    },
    [CTR_KILLING] = {
        [OPERATION_SUCCEEDS] = { KILLING, GONE, 0 },
        [OPERATION_FAILS] = { KILLING, GONE, 0 },
        [OPERATION_HANGS] = { KILLING, GONE, 0 },
        [CONTAINER_DONE] = { NONE, GONE, 0 },
        [CONTAINER_CRASHED] = { NONE, GONE, 0 },
        [CONTAINER_LOST] = { NONE, GONE, 0 },
        [BUNDLE_VANISHED] = { NONE, GONE, 0 },
        [LOOKS_FAIL] = { KILLING, GONE, 0 },
        [IMAGE_EDITED] = { KILLING, RUNNING, 0 },
        [RESTART_ASKED] = { KILLING, GONE, 0 },
        [POD_REMOVED] = { KILLING, GONE, 0 },
        [REMOVED_AND_STUBBORN] = { KILLING, GONE, 0 },
        [REMOVED_AND_OPERATION_LATE] = { KILLING, GONE, 0 },
        [NODE_CLOSES] = { KILLING, KILLING, 0 },
    },
};

#define SPEC(image)                                                                                          \
    "terminationGracePeriodSeconds: 20, restartPolicy: OnFailure, volumes: [{name: v, emptyDir: {}}], "      \
    "containers: [{name: c, image: " image ", volumeMounts: [{name: v, mountPath: /v, subPath: s}], "        \
    "lifecycle: {preStop: {sleep: {seconds: 5}}}}]"

/* ---- states ------------------------------------------------------------------------------------- */

/* What a container in this state waits for; NULL: nothing. */
static const char *operation_of(enum ctr_state s)
{
    switch (s) {
    case CTR_MOUNTING:
        return "mount volumes";
    case CTR_CREATING:
        return "create";
    case CTR_CREATED:
        return "add"; /* the network */
    case CTR_STARTING:
        return "start";
    case CTR_NONE: /* in its back-off: what its last run left is being removed */
        return "delete";
    case CTR_RUNNING:
    case CTR_PRESTOP:
    case CTR_STOPPING:
    case CTR_KILLING:
        break;
    }
    return NULL;
}

static struct ctr *bring(struct world *w, enum ctr_state s)
{
    struct pod *p;
    struct ctr *c;

    if (s >= CTR_MOUNTING && s <= CTR_STARTING) {
        p = script_pod(w, "a", SPEC("x"));
        script_answer_all(w, operation_of(s));
        return p->ctrs[0];
    }
    p = script_running(w, "a", SPEC("x"));
    c = p->ctrs[0];
    switch (s) {
    case CTR_NONE:
        script_exit(w, c, 1);
        script_answer_all(w, NULL);
        script_exit(w, c, 1);
        break;
    case CTR_PRESTOP:
        pods_unwant(&w->node, "default", "a");
        break;
    case CTR_STOPPING:
        pods_unwant(&w->node, "default", "a");
        script_turn(w);
        hook_cancel(c);
        break;
    case CTR_KILLING:
        pods_unwant(&w->node, "default", "a");
        script_turn(w);
        hook_cancel(c);
        script_pass(w, 20 * S);
        break;
    default:
        break;
    }
    script_turn(w);
    return c;
}

/* ---- events ------------------------------------------------------------------------------------- */

static void apply_image(struct world *w)
{
    static const char text[] = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {" SPEC("y") "}}";
    struct api_problems problems = { 0 };
    struct api_objects found = { 0 };
    struct err e = { 0 };

    assert_int_equal(api_decode_file("a.yaml", text, strlen(text), &found, &problems, &e), ERR_OK);
    pods_want(&w->node, found.v[0].pod);
    api_objects_done(&found);
    api_problems_done(&problems);
}

/* The answer names the run that ends, also one that the status does not show while its hook runs. */
static void ask_restart(struct ctr *c)
{
    str_auto id = str_printf("coracle://%s", c->cur.id);
    struct err e = { 0 };
    json_auto_t *runs = restart_ask(c->pod, NULL, &e);
    const char *run = json_string_value(json_object_get(json_array_get(runs, 0), "containerID"));

    if (runs == NULL)
        assert_int_equal(e.code, ERR_PRECONDITION);
    else if (c->state == CTR_RUNNING)
        assert_string_equal(run, id);
    else if (c->state >= CTR_MOUNTING && c->state <= CTR_STARTING)
        assert_null(run);
}

static void end_container(struct ctr *c, enum rt_phase phase, int exit_code)
{
    struct script_ctr *s = script_ctr(c->cur.id);

    if (s != NULL && s->s.phase != RT_ABSENT) {
        s->s.phase = phase;
        s->s.exit_code = exit_code;
        s->s.finished_ns = phase == RT_EXITED ? clock_wall_ns() : 0;
    }
    pod_wake(c->pod, "test");
}

static void happen(struct world *w, struct ctr *c, enum happening v)
{
    const char *operation = operation_of(c->state);

    switch (v) {
    case OPERATION_SUCCEEDS:
        if (operation != NULL)
            script_answer(w, operation, ERR_OK);
        break;
    case OPERATION_FAILS:
        if (operation != NULL)
            script_answer(w, operation, ERR_UNAVAILABLE);
        break;
    case OPERATION_HANGS:
        script_pass(w, 60 * S);
        break;
    case CONTAINER_DONE:
        end_container(c, RT_EXITED, 0);
        break;
    case CONTAINER_CRASHED:
        end_container(c, RT_EXITED, 1);
        break;
    case CONTAINER_LOST:
        end_container(c, RT_LOST, 0);
        break;
    case BUNDLE_VANISHED:
        end_container(c, RT_ABSENT, 0);
        break;
    case LOOKS_FAIL:
        err_set(&script.unseen, ERR_UNAVAILABLE, "scripted");
        pod_wake(c->pod, "test");
        script_pass(w, 60 * S);
        break;
    case IMAGE_EDITED:
        apply_image(w);
        break;
    case RESTART_ASKED:
        ask_restart(c);
        break;
    case REMOVED_AND_STUBBORN:
        script.stubborn = true;
        pods_unwant(&w->node, "default", "a");
        break;
    case REMOVED_AND_OPERATION_LATE:
        script.hang = true;
        pods_unwant(&w->node, "default", "a");
        script_pass(w, 60 * S);
        break;
    case POD_REMOVED:
        pods_unwant(&w->node, "default", "a");
        break;
    case NODE_CLOSES:
        w->node.closing = true;
        pod_wake(c->pod, "test");
        break;
    case EVENTS:
        break;
    }
    script_turn(w);
}

/* ---- results ------------------------------------------------------------------------------------ */

static enum result result_of(struct world *w, unsigned *ret_attempt)
{
    const struct pod *p = pods_find(&w->node, "default", "a");

    *ret_attempt = 0;
    if (p == NULL)
        return GONE;
    *ret_attempt = p->ctrs[0]->cur.attempt;
    return (enum result)(NONE + p->ctrs[0]->state);
}

/* It ends when it is asked to, or when it is killed. */
static void obey(struct world *w)
{
    struct pod *p = pods_find(&w->node, "default", "a");
    struct script_ctr *s = p != NULL ? script_ctr(p->ctrs[0]->cur.id) : NULL;

    if (s != NULL && s->s.phase == RT_RUNNING && (s->kills > 0 || (s->signals > 0 && !script.stubborn)))
        script_exit(w, p->ctrs[0], s->kills > 0 ? 137 : 143);
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

static bool try_one(enum ctr_state s, enum happening v)
{
    const struct row *row = &table[s][v];
    unsigned attempt, ignored;
    enum result then, end;
    void *state = NULL;
    struct world *w;
    struct ctr *c;

    assert_int_equal(script_setup(&state), 0);
    w = state;
    c = bring(w, s);
    assert_int_equal(c->state, s);
    happen(w, c, v);
    then = result_of(w, &ignored);
    settle(w);
    end = result_of(w, &attempt);
    assert_int_equal(script_teardown(&state), 0);
    if (then == row->then && end == row->end && attempt == row->attempt)
        return true;
    print_error("%s, %s: %s, %s, %u; its row says %s, %s, %u\n", ctr_state_name(s), event_names[v],
                result_names[then], result_names[end], attempt, result_names[row->then],
                result_names[row->end], row->attempt);
    return false;
}

static void each_combination_has_a_row_that_is_true(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (int s = 0; s < STATES; s++)
        for (int v = 0; v < EVENTS; v++)
            wrong += !try_one((enum ctr_state)s, (enum happening)v);
    assert_int_equal(wrong, 0);
}

/* The agent itself was short of something: the runtime was never asked, and the container still waits. */
static void a_start_that_was_not_asked_for_is_no_end(void **state)
{
    static const int shortages[] = { EMFILE, ENFILE, ENOMEM, EIO };

    for (size_t i = 0; i < ARRAY_LEN(shortages); i++) {
        struct err e = { 0 };
        struct world *w;
        struct pod *p;

        assert_int_equal(script_setup(state), 0);
        w = *state;
        p = script_pod(w, "a",
                       "restartPolicy: Never, containers: [{name: c, image: x, imagePullPolicy: Never}]");
        script_answer_all(w, "start");
        err_sys(&e, shortages[i], "start: scripted");
        script_answer_with(w, "start", &e);
        for (int k = 0; k < 20 && p->ctrs[0]->state != CTR_RUNNING; k++) {
            assert_false(p->ctrs[0]->cur.ended);
            script_pass(w, 1 * S);
            script_answer_all(w, NULL);
        }
        assert_int_equal(p->ctrs[0]->state, CTR_RUNNING);
        assert_int_equal(p->ctrs[0]->cur.attempt, 0);
        assert_int_equal(script_teardown(state), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_combination_has_a_row_that_is_true),
        cmocka_unit_test(a_start_that_was_not_asked_for_is_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
