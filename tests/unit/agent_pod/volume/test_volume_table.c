/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the states of a pod's volumes against what can happen to them.  Each combination is tried: the
 * volumes are brought there, it happens, and then everything that the agent asks for succeeds.  A combination
 * without a row fails.
 */
#include "agent/pod/volume/internal.h"
#include "tests/unit/agent_pod/script_parts.h"

#include "agent/pod/leftovers/mount_watch.h"

#define S SCRIPT_SECOND

enum happening {
    OPERATION_SUCCEEDS, /* the one that the volumes wait for */
    OPERATION_FAILS,
    OPERATION_HANGS, /* for a minute */
    HELD,            /* the operation finds a mount of another program */
    SET_UP_FAILS,    /* for a minute */
    POD_REMOVED,
    REMOVED_AND_OPERATION_LATE, /* a cancel does not end it; it succeeds after a minute */
    NODE_CLOSES,
    EVENTS
};

static const char *const event_names[EVENTS] = {
    "operation succeeds", "operation fails", "operation hangs",         "held",
    "set-up fails",       "pod removed",     "removed, operation late", "node closes",
};

#define STATES (VOLS_REMOVED + 1)
enum result { NO_ROW, NONE, CHECKING, READY, REMOVING, REMOVED, GONE };
static const char *const result_names[] = { "NO_ROW",   "NONE",    "CHECKING", "READY",
                                            "REMOVING", "REMOVED", "GONE" };

struct row {
    enum result then;          /* when it has happened, and nothing else was answered */
    enum result end;           /* when all was answered, and a minute has passed */
    unsigned checks, removals; /* begun until then */
};

static const struct row table[STATES][EVENTS] = {
    [VOLS_NONE] = {
        [OPERATION_SUCCEEDS] = { NONE, READY, 1, 0 },
        [OPERATION_FAILS] = { NONE, READY, 1, 0 },
        [OPERATION_HANGS] = { CHECKING, READY, 1, 0 },
        [HELD] = { NONE, READY, 1, 0 },
        [SET_UP_FAILS] = { CHECKING, READY, 1, 0 },
        [POD_REMOVED] = { REMOVING, GONE, 0, 1 },
        [REMOVED_AND_OPERATION_LATE] = { REMOVING, GONE, 0, 1 },
        [NODE_CLOSES] = { NONE, NONE, 0, 0 },
    },
    [VOLS_SETTING_UP] = {
        [OPERATION_SUCCEEDS] = { READY, READY, 0, 0 },
        [OPERATION_FAILS] = { NONE, READY, 1, 0 },
        [OPERATION_HANGS] = { CHECKING, READY, 0, 0 },
        [HELD] = { NONE, READY, 1, 0 },
        [SET_UP_FAILS] = { CHECKING, READY, 1, 0 },
        [POD_REMOVED] = { REMOVING, GONE, 0, 1 },
        [REMOVED_AND_OPERATION_LATE] = { CHECKING, GONE, 0, 1 },
        [NODE_CLOSES] = { CHECKING, READY, 0, 0 },
    },
    [VOLS_READY] = {
        [OPERATION_SUCCEEDS] = { READY, READY, 0, 0 },
        [OPERATION_FAILS] = { READY, READY, 0, 0 },
        [OPERATION_HANGS] = { READY, READY, 0, 0 },
        [HELD] = { READY, READY, 0, 0 },
        [SET_UP_FAILS] = { READY, READY, 0, 0 },
        [POD_REMOVED] = { REMOVING, GONE, 0, 1 },
        [REMOVED_AND_OPERATION_LATE] = { REMOVING, GONE, 0, 1 },
        [NODE_CLOSES] = { READY, READY, 0, 0 },
    },
    [VOLS_REMOVING] = {
        [OPERATION_SUCCEEDS] = { GONE, GONE, 0, 0 },
        [OPERATION_FAILS] = { READY, GONE, 0, 1 },
        [OPERATION_HANGS] = { REMOVING, GONE, 0, 0 },
        [HELD] = { READY, GONE, 0, 1 },
        [SET_UP_FAILS] = { GONE, GONE, 0, 0 },
        [POD_REMOVED] = { REMOVING, GONE, 0, 0 },
        [REMOVED_AND_OPERATION_LATE] = { REMOVING, GONE, 0, 0 },
        [NODE_CLOSES] = { REMOVING, REMOVED, 0, 0 },
    },
    [VOLS_REMOVED] = {
        [OPERATION_SUCCEEDS] = { REMOVED, GONE, 0, 0 },
        [OPERATION_FAILS] = { REMOVED, GONE, 0, 0 },
        [OPERATION_HANGS] = { REMOVED, GONE, 0, 0 },
        [HELD] = { REMOVED, GONE, 0, 0 },
        [SET_UP_FAILS] = { REMOVED, GONE, 0, 0 },
        [POD_REMOVED] = { REMOVED, GONE, 0, 0 },
        [REMOVED_AND_OPERATION_LATE] = { REMOVED, GONE, 0, 0 },
        [NODE_CLOSES] = { REMOVED, REMOVED, 0, 0 },
    },
};

#define SPEC                                                                                                 \
    "terminationGracePeriodSeconds: 0, volumes: [{name: h, hostPath: {path: /h, type: Directory}}, "         \
    "{name: e, emptyDir: {}}], containers: [{name: c, image: x, volumeMounts: [{name: h, mountPath: /h}, "   \
    "{name: e, mountPath: /e}]}]"

/* ---- parts ---------------------------------------------------------------------------------------- */

bool vol_host_path_known(const char *path, const char *type)
{
    (void)path;
    (void)type;
    return false;
}

enum err_code mount_watch_begin(struct node *n, bool *ret_new, struct err *e)
{
    (void)n;
    (void)ret_new;
    return err_set(e, ERR_EXHAUSTED, "scripted");
}

unsigned mount_watch_rounds(const struct node *n)
{
    (void)n;
    return 0;
}

void mount_watch_end(struct node *n)
{
    (void)n;
}

/* ---- states ------------------------------------------------------------------------------------- */

static const char *const state_names[STATES] = { "none", "checking", "ready", "removing", "removed" };

static const char *operation_of(int s)
{
    return s == VOLS_SETTING_UP ? "check host paths" : s == VOLS_REMOVING ? "remove volumes" : NULL;
}

/* Its container ends at once, its network goes. */
static void remove_pod(struct world *w, struct pod *p)
{
    bool running = p->ctrs[0]->state == CTR_RUNNING;

    pods_unwant(&w->node, "default", "a");
    script_turn(w);
    if (running)
        script_exit(w, p->ctrs[0], 143);
    if (script_op("delete") != NULL)
        script_answer(w, "delete", ERR_OK);
    if (script_op("del") != NULL)
        script_answer(w, "del", ERR_OK);
}

static struct pod *bring(struct world *w, int s)
{
    struct pod *p = script_pod(w, "a", SPEC);

    switch (s) {
    case VOLS_NONE: /* in the pause after a failure */
        err_set(&script.volumes_error, ERR_INTERNAL, "scripted");
        script_answer_all(w, NULL);
        script.volumes_error = (struct err){ 0 };
        break;
    case VOLS_SETTING_UP:
        script_answer_all(w, "check host paths");
        break;
    case VOLS_READY:
        script_answer_all(w, NULL);
        break;
    case VOLS_REMOVING:
    case VOLS_REMOVED:
        script_answer_all(w, NULL);
        remove_pod(w, p);
        if (s == VOLS_REMOVED) {
            err_set(&script.cgroup_error, ERR_UNAVAILABLE, "scripted"); /* the step after it waits */
            script_answer(w, "remove volumes", ERR_OK);
        }
        break;
    default:
        break;
    }
    return p;
}

/* ---- events ------------------------------------------------------------------------------------- */

static void happen(struct world *w, struct pod *p, enum happening v)
{
    const char *operation = operation_of((int)volumes_of(p)->vols);

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
    case HELD:
        if (operation != NULL)
            script_answer(w, operation, ERR_PRECONDITION);
        break;
    case SET_UP_FAILS:
        err_set(&script.volumes_error, ERR_INTERNAL, "scripted");
        if (operation != NULL)
            script_answer(w, operation, ERR_OK);
        script_pass(w, 60 * S);
        break;
    case POD_REMOVED:
        remove_pod(w, p);
        break;
    case REMOVED_AND_OPERATION_LATE:
        script.hang = true;
        remove_pod(w, p);
        script_pass(w, 60 * S);
        break;
    case NODE_CLOSES:
        w->node.closing = true;
        pod_wake(p, "test");
        break;
    case EVENTS:
        break;
    }
    script_turn(w);
}

/* ---- results ------------------------------------------------------------------------------------ */

static enum result result_of(struct world *w)
{
    const struct pod *p = pods_find(&w->node, "default", "a");

    return p == NULL ? GONE : (enum result)(NONE + (int)volumes_of(p)->vols);
}

static void settle(struct world *w)
{
    script.volumes_error = script.cgroup_error = (struct err){ 0 };
    for (int i = 0; i < 60; i++) {
        script_answer_all(w, NULL);
        script_pass(w, 1 * S);
    }
    script_answer_all(w, NULL);
}

static bool try_one(int s, enum happening v)
{
    const struct row *row = &table[s][v];
    enum result then, end;
    void *state = NULL;
    struct world *w;
    struct pod *p;

    assert_int_equal(script_setup(&state), 0);
    w = state;
    p = bring(w, s);
    if ((int)volumes_of(p)->vols != s)
        fail_msg("%s instead of %s", state_names[volumes_of(p)->vols], state_names[s]);
    script.n_host_checks = script.n_removals = 0;
    happen(w, p, v);
    then = result_of(w);
    settle(w);
    end = result_of(w);
    assert_int_equal(script_teardown(&state), 0);
    if (then == row->then && end == row->end && script.n_host_checks == row->checks &&
        script.n_removals == row->removals)
        return true;
    print_error("%s, %s: %s, %s, %u, %u; its row says %s, %s, %u, %u\n", state_names[s], event_names[v],
                result_names[then], result_names[end], script.n_host_checks, script.n_removals,
                result_names[row->then], result_names[row->end], row->checks, row->removals);
    return false;
}

static void each_combination_has_a_row_that_is_true(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (int s = 0; s < STATES; s++)
        for (int v = 0; v < EVENTS; v++)
            wrong += !try_one(s, (enum happening)v);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_combination_has_a_row_that_is_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
