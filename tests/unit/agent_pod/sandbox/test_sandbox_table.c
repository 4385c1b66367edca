/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a sandbox's states against what can happen to it.  Each combination is tried: the sandbox is
 * brought there, it happens, and then everything that the agent asks for succeeds.  A combination without a
 * row fails.
 */
#include "agent/pod/sandbox/internal.h"
#include "tests/unit/agent_pod/script_parts.h"

#define S SCRIPT_SECOND

enum happening {
    OPERATION_SUCCEEDS, /* the one that the sandbox waits for */
    OPERATION_FAILS,
    OPERATION_HANGS, /* for a minute */
    POD_REMOVED,
    REMOVED_AND_OPERATION_LATE, /* a cancel does not end it; it succeeds after a minute */
    REMOVED_AND_DEL_FAILS,
    NAMESPACES_VANISH,
    PINS_UNSEEN, /* for a minute */
    NO_NETWORK,  /* for a minute */
    NODE_CLOSES,
    EVENTS
};

static const char *const event_names[EVENTS] = {
    "operation succeeds", "operation fails",   "operation hangs", "pod removed", "removed, operation late",
    "removed, DEL fails", "namespaces vanish", "pins unseen",     "no network",  "node closes",
};

#define STATES (NET_DELETED + 1)
enum result { NO_ROW, NONE, CREATING, PINNED, ADDING, READY, DELETING, DELETED, GONE };
static const char *const result_names[] = { "NO_ROW", "NONE",     "CREATING", "PINNED", "ADDING",
                                            "READY",  "DELETING", "DELETED",  "GONE" };

struct row {
    enum result then;    /* when it has happened, and nothing else was answered */
    enum result end;     /* when all was answered, and a minute has passed */
    unsigned adds, dels; /* begun until then */
};

static const struct row table[STATES][EVENTS] = {
    [NET_NONE] = {
        [OPERATION_SUCCEEDS] = { NONE, READY, 1, 0 },
        [OPERATION_FAILS] = { NONE, READY, 1, 0 },
        [OPERATION_HANGS] = { CREATING, READY, 1, 0 },
        [POD_REMOVED] = { DELETING, GONE, 0, 1 },
        [REMOVED_AND_OPERATION_LATE] = { DELETING, GONE, 0, 1 },
        [REMOVED_AND_DEL_FAILS] = { PINNED, GONE, 0, 2 },
        [NAMESPACES_VANISH] = { CREATING, READY, 1, 0 },
        [PINS_UNSEEN] = { CREATING, READY, 1, 0 },
        [NO_NETWORK] = { CREATING, READY, 1, 0 },
        [NODE_CLOSES] = { NONE, NONE, 0, 0 },
    },
    [NET_CREATING] = {
        [OPERATION_SUCCEEDS] = { ADDING, READY, 1, 0 },
        [OPERATION_FAILS] = { NONE, READY, 1, 0 },
        [OPERATION_HANGS] = { CREATING, READY, 1, 0 },
        [POD_REMOVED] = { DELETING, GONE, 0, 1 },
        [REMOVED_AND_OPERATION_LATE] = { CREATING, GONE, 0, 1 },
        [REMOVED_AND_DEL_FAILS] = { PINNED, GONE, 0, 2 },
        [NAMESPACES_VANISH] = { CREATING, READY, 1, 0 },
        [PINS_UNSEEN] = { CREATING, READY, 1, 0 },
        [NO_NETWORK] = { CREATING, READY, 1, 0 },
        [NODE_CLOSES] = { CREATING, PINNED, 0, 0 },
    },
    [NET_PINNED] = {
        [OPERATION_SUCCEEDS] = { PINNED, READY, 1, 1 },
        [OPERATION_FAILS] = { PINNED, READY, 1, 1 },
        [OPERATION_HANGS] = { DELETING, READY, 1, 1 },
        [POD_REMOVED] = { DELETING, GONE, 0, 1 },
        [REMOVED_AND_OPERATION_LATE] = { DELETING, GONE, 0, 1 },
        [REMOVED_AND_DEL_FAILS] = { PINNED, GONE, 0, 2 },
        [NAMESPACES_VANISH] = { DELETING, READY, 1, 1 },
        [PINS_UNSEEN] = { DELETING, READY, 1, 1 },
        [NO_NETWORK] = { PINNED, READY, 1, 1 },
        [NODE_CLOSES] = { PINNED, PINNED, 0, 0 },
    },
    [NET_ADDING] = {
        [OPERATION_SUCCEEDS] = { READY, READY, 0, 0 },
        [OPERATION_FAILS] = { PINNED, READY, 1, 1 },
        [OPERATION_HANGS] = { ADDING, READY, 0, 0 },
        [POD_REMOVED] = { DELETING, GONE, 0, 1 },
        [REMOVED_AND_OPERATION_LATE] = { ADDING, GONE, 0, 1 },
        [REMOVED_AND_DEL_FAILS] = { PINNED, GONE, 0, 2 },
        [NAMESPACES_VANISH] = { ADDING, READY, 0, 0 },
        [PINS_UNSEEN] = { ADDING, READY, 0, 0 },
        [NO_NETWORK] = { ADDING, READY, 0, 0 },
        [NODE_CLOSES] = { ADDING, READY, 0, 0 },
    },
    [NET_READY] = {
        [OPERATION_SUCCEEDS] = { READY, READY, 0, 0 },
        [OPERATION_FAILS] = { READY, READY, 0, 0 },
        [OPERATION_HANGS] = { READY, READY, 0, 0 },
        [POD_REMOVED] = { DELETING, GONE, 0, 1 },
        [REMOVED_AND_OPERATION_LATE] = { DELETING, GONE, 0, 1 },
        [REMOVED_AND_DEL_FAILS] = { PINNED, GONE, 0, 2 },
        [NAMESPACES_VANISH] = { READY, READY, 0, 0 },
        [PINS_UNSEEN] = { READY, READY, 0, 0 },
        [NO_NETWORK] = { READY, READY, 0, 0 },
        [NODE_CLOSES] = { READY, READY, 0, 0 },
    },
    [NET_DELETING] = {
        [OPERATION_SUCCEEDS] = { DELETED, GONE, 0, 0 },
        [OPERATION_FAILS] = { PINNED, GONE, 0, 1 },
        [OPERATION_HANGS] = { DELETING, GONE, 0, 0 },
        [POD_REMOVED] = { DELETING, GONE, 0, 0 },
        [REMOVED_AND_OPERATION_LATE] = { DELETING, GONE, 0, 0 },
        [REMOVED_AND_DEL_FAILS] = { PINNED, GONE, 0, 1 },
        [NAMESPACES_VANISH] = { DELETING, GONE, 0, 0 },
        [PINS_UNSEEN] = { DELETING, GONE, 0, 0 },
        [NO_NETWORK] = { DELETING, GONE, 0, 0 },
        [NODE_CLOSES] = { DELETING, PINNED, 0, 0 },
    },
    [NET_DELETED] = {
        [OPERATION_SUCCEEDS] = { DELETED, GONE, 0, 0 },
        [OPERATION_FAILS] = { DELETED, GONE, 0, 0 },
        [OPERATION_HANGS] = { DELETED, GONE, 0, 0 },
        [POD_REMOVED] = { DELETED, GONE, 0, 0 },
        [REMOVED_AND_OPERATION_LATE] = { DELETED, GONE, 0, 0 },
        [REMOVED_AND_DEL_FAILS] = { DELETED, GONE, 0, 0 },
        [NAMESPACES_VANISH] = { DELETED, GONE, 0, 0 },
        [PINS_UNSEEN] = { DELETED, GONE, 0, 0 },
        [NO_NETWORK] = { DELETED, GONE, 0, 0 },
        [NODE_CLOSES] = { DELETED, DELETED, 0, 0 },
    },
};

/* ---- states ------------------------------------------------------------------------------------- */

static const char *operation_of(enum net_state s)
{
    switch (s) {
    case NET_CREATING:
        return "namespaces";
    case NET_ADDING:
        return "add";
    case NET_DELETING:
        return "del";
    case NET_NONE: /* in the pause after a failure */
    case NET_PINNED:
    case NET_READY:
    case NET_DELETED:
        break;
    }
    return NULL;
}

static struct pod *bring(struct world *w, enum net_state s)
{
    struct pod *p = script_pod(w, "a", "containers: [{name: c, image: x}]");

    switch (s) {
    case NET_NONE:
        script_answer_all(w, "namespaces");
        script_answer(w, "namespaces", ERR_UNAVAILABLE);
        break;
    case NET_CREATING:
        script_answer_all(w, "namespaces");
        break;
    case NET_PINNED:
        script_answer_all(w, "add");
        script_answer(w, "add", ERR_UNKNOWN);
        script_answer_all(w, NULL);
        break;
    case NET_ADDING:
        script_answer_all(w, "add");
        break;
    case NET_READY:
        script_answer_all(w, NULL);
        break;
    case NET_DELETING:
    case NET_DELETED:
        script_answer_all(w, NULL);
        pods_unwant(&w->node, "default", "a");
        script_turn(w);
        script_exit(w, p->ctrs[0], 143);
        script_answer_all(w, s == NET_DELETING ? "del" : "remove volumes");
        break;
    }
    return p;
}

/* ---- events ------------------------------------------------------------------------------------- */

/* ... and its container ends, and what is left of that is removed. */
static void remove_pod(struct world *w, struct pod *p)
{
    bool running = p->ctrs[0]->state == CTR_RUNNING;

    pods_unwant(&w->node, "default", "a");
    script_turn(w);
    if (running)
        script_exit(w, p->ctrs[0], 143);
    if (script_op("delete") != NULL)
        script_answer(w, "delete", ERR_OK);
}

static void happen(struct world *w, struct pod *p, enum happening v)
{
    const char *operation = operation_of(sandbox_of(p)->net);

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
    case REMOVED_AND_OPERATION_LATE:
        script.hang = true;
        remove_pod(w, p);
        script_pass(w, 60 * S);
        break;
    case POD_REMOVED:
        remove_pod(w, p);
        break;
    case REMOVED_AND_DEL_FAILS:
        remove_pod(w, p);
        if (script_op("del") != NULL)
            script_answer(w, "del", ERR_UNAVAILABLE);
        break;
    case NAMESPACES_VANISH:
        script.pinned = false;
        pod_wake(p, "test");
        script_pass(w, 60 * S);
        break;
    case PINS_UNSEEN:
        err_set(&script.pins_unseen, ERR_UNAVAILABLE, "scripted");
        pod_wake(p, "test");
        script_pass(w, 60 * S);
        break;
    case NO_NETWORK:
        script.no_network = true;
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

    return p == NULL ? GONE : (enum result)(NONE + sandbox_of(p)->net);
}

static void settle(struct world *w)
{
    struct pod *p = pods_find(&w->node, "default", "a");

    script.pins_unseen = (struct err){ 0 };
    script.no_network = false;
    if (p != NULL)
        pod_wake(p, "test"); /* as the watch of the networks' folder does */
    for (int i = 0; i < 60; i++) {
        script_answer_all(w, NULL);
        script_pass(w, 1 * S);
    }
    script_answer_all(w, NULL);
}

static bool try_one(enum net_state s, enum happening v)
{
    const struct row *row = &table[s][v];
    enum result then, end;
    void *state = NULL;
    struct world *w;
    struct pod *p;

    assert_int_equal(script_setup(&state), 0);
    w = state;
    p = bring(w, s);
    if (sandbox_of(p)->net != s)
        fail_msg("%s instead of %s", net_state_name(sandbox_of(p)->net), net_state_name(s));
    script.n_adds = script.n_dels = 0;
    happen(w, p, v);
    then = result_of(w);
    settle(w);
    end = result_of(w);
    assert_int_equal(script_teardown(&state), 0);
    if (then == row->then && end == row->end && script.n_adds == row->adds && script.n_dels == row->dels)
        return true;
    print_error("%s, %s: %s, %s, %u, %u; its row says %s, %s, %u, %u\n", net_state_name(s), event_names[v],
                result_names[then], result_names[end], script.n_adds, script.n_dels, result_names[row->then],
                result_names[row->end], row->adds, row->dels);
    return false;
}

static void each_combination_has_a_row_that_is_true(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (int s = 0; s < STATES; s++)
        for (int v = 0; v < EVENTS; v++)
            wrong += !try_one((enum net_state)s, (enum happening)v);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_combination_has_a_row_that_is_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
