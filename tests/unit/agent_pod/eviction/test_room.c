/* SPDX-License-Identifier: Apache-2.0 */
/* The order of things, with values, figures of pods and disks of the test's. */
#include "tests/unit/agent_pod/script_parts.h"

#include "agent/pod/admit/admit.h"
#include "agent/pod/core/evict.h"
#include "agent/pod/eviction/internal.h"
#include "agent/pod/image/images.h"
#include "agent/pod/node/node.h"
#include "agent/pod/node/record_load.h"
#include "agent/pod/show/node_object.h"
#include "agent/pod/usage/usage.h"
#include "base/codec/json.h"

#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static struct {
    struct ev_value memory, nodefs;
    uint64_t used[8]; /* by the last character of a pod's name: 'a' is 0 */
    void (*fn)(const struct ev_observation *seen, void *arg);
    void *arg;
    unsigned n_looks, n_reclaims, helpless;
    bool settled;           /* the last look at disks */
    uint64_t frees;         /* what removed images free on nodefs */
    uint64_t exits_between; /* what a process releases after the node's memory was read, before the pods' */
    bool hold_count;        /* counting goes on until the test calls `counted` */
    void (*counted)(struct node *n, bool complete);
    char unreadable;    /* the memory of the pod with that name */
    unsigned uncounted; /* so many rounds of counting do not come to the layer of "a" */
} world;

/* ---- parts that are the test's ---- */

struct observe *observe_open(struct node *n)
{
    (void)n;
    return (struct observe *)&world;
}

void observe_quick(struct observe *o, unsigned signals, struct ev_observation *ret)
{
    (void)o;
    (void)signals;
    *ret = (struct ev_observation){ 0 };
    ret->v[EV_MEMORY] = world.memory;
}

void observe_start(struct observe *o, unsigned signals, bool settled,
                   void (*fn)(const struct ev_observation *seen, void *arg), void *arg)
{
    (void)o;
    (void)signals;
    world.n_looks++;
    world.settled = settled;
    world.fn = fn;
    world.arg = arg;
}

bool observe_busy(const struct observe *o)
{
    (void)o;
    return world.fn != NULL;
}

enum ev_layout observe_layout(const struct observe *o)
{
    (void)o;
    return EV_LAYOUT_ONE;
}

void observe_explain(const struct observe *o, json_t *steps)
{
    (void)o;
    (void)steps;
}

void observe_close(struct observe *o)
{
    (void)o;
}

struct eviction_watch *eviction_watch_open(struct node *n)
{
    (void)n;
    return (struct eviction_watch *)&world;
}

void eviction_watch_seen(struct eviction_watch *w, const struct ev_manager *m,
                         const struct ev_observation *seen, uint64_t now_ms)
{
    (void)w;
    (void)m;
    (void)seen;
    (void)now_ms;
}

void eviction_watch_helpless(struct eviction_watch *w)
{
    (void)w;
    world.helpless++;
}

void eviction_watch_woken(struct eviction_watch *w, enum ev_condition what, uint64_t now_ms)
{
    (void)w;
    (void)what;
    (void)now_ms;
}

void eviction_watch_explain(const struct eviction_watch *w, json_t *steps)
{
    (void)w;
    (void)steps;
}

void eviction_watch_close(struct eviction_watch *w)
{
    (void)w;
}

static uint64_t take_u64(uint64_t *v)
{
    uint64_t was = *v;

    *v = 0;
    return was;
}

static uint64_t used_by(const struct pod *p)
{
    return world.used[p->api->meta.name[strlen(p->api->meta.name) - 1] - 'a'];
}

bool usage_walk(struct node *n, struct usage_walk *w, unsigned parts, struct pod *p,
                void (*fn)(const struct usage_row *row, void *arg), void *arg)
{
    struct usage_row row = { .kind = USAGE_CONTAINER, .pod = p, .ctr = p->ctrs[0] };

    (void)n;
    (void)w;
    row.s.parts = parts;
    row.s.memory.working_set = used_by(p);
    fn(&row, arg);
    return true;
}

bool usage_read_pod(struct node *n, unsigned parts, const struct pod *p, struct cg_sample *ret,
                    bool *ret_absent)
{
    (void)n;
    *ret_absent = false;
    if (p->api->meta.name[0] == world.unreadable)
        return false;
    ret->parts = parts;
    world.memory.available += take_u64(&world.exits_between);
    ret->memory.working_set = used_by(p);
    return true;
}

struct storage_part storage_usage_layer(const struct pod *p, size_t ctr)
{
    (void)ctr;
    if (p->state == POD_TERMINATING) /* is not measured */
        return (struct storage_part){ 0 };
    return (struct storage_part){ .known = world.uncounted == 0 || p->api->meta.name[0] != 'a',
                                  .bytes = used_by(p) };
}

struct storage_part storage_usage_log(const struct pod *p, size_t ctr)
{
    (void)p;
    (void)ctr;
    return (struct storage_part){ .known = true };
}

struct storage_part storage_usage_volumes(const struct pod *p)
{
    (void)p;
    return (struct storage_part){ .known = true };
}

void storage_usage_on_growth(struct node *n, void (*fn)(struct node *n, const char *path))
{
    (void)n;
    (void)fn;
}

bool storage_usage_measure(struct node *n, uint64_t max_age_ms, uint64_t deadline_ms,
                           void (*done)(struct node *n, bool complete))
{
    (void)max_age_ms;
    (void)deadline_ms;
    if (world.hold_count) {
        world.counted = done;
        return true;
    }
    if (world.uncounted > 0)
        world.uncounted--;
    done(n, world.uncounted == 0);
    return true;
}

unsigned image_gc_reclaim(struct node *n, uint64_t wanted, uint64_t *ret_bytes)
{
    (void)n;
    (void)wanted;
    *ret_bytes = world.frees;
    world.nodefs.available += world.frees;
    world.n_reclaims++;
    world.frees = 0;
    return *ret_bytes > 0 ? 1 : 0;
}

/* ---- the test's side ---- */

static int room_setup(void **state)
{
    struct world *w;
    struct err e = { 0 };

    memset(&world, 0, sizeof(world));
    world.memory = (struct ev_value){ .known = true, .available = 4 * GIB, .capacity = 8 * GIB };
    world.nodefs = (struct ev_value){ .known = true, .available = 50 * GIB, .capacity = 100 * GIB };
    if (script_setup(state) != 0)
        return -1;
    w = *state;
    json_auto_t *hard = json_pack("{s:s, s:s}", "memory.available", "100Mi", "nodefs.available", "10Gi");
    if (ev_settings_parse(&w->node.o.eviction, hard, NULL, NULL, NULL, &e) != ERR_OK)
        return -1;
    w->node.o.eviction.transition_ms = 10000;
    eviction_begin(&w->node);
    return 0;
}

/* What the disks are now answers the look that is under way. */
static void disks_answer(struct world *w)
{
    void (*fn)(const struct ev_observation *seen, void *arg) = world.fn;
    struct ev_observation seen = { 0 };

    assert_non_null(fn);
    seen.v[EV_NODEFS] = world.nodefs;
    world.fn = NULL;
    fn(&seen, world.arg);
    script_turn(w);
    for (int i = 0; i < 100 && world.fn == NULL && reclaim_busy(eviction_of(&w->node)); i++)
        uv_run(&w->loop, UV_RUN_ONCE);
    script_turn(w);
}

static int room_teardown(void **state)
{
    struct world *w = *state;

    world.fn = NULL;
    eviction_room.node.cancel(&w->node); /* its next look is seconds away */
    return script_teardown(state);
}

static void memory_is(struct world *w, uint64_t available)
{
    world.memory.available = available;
    eviction_check(&w->node, SIGNALS_MEMORY, "test");
    script_turn(w);
}

static struct pod *using(struct world *w, const char *name, uint64_t bytes, const char *more)
{
    str_auto spec = str_printf("%s containers: [{name: c, image: x}]", more);

    world.used[name[0] - 'a'] = bytes;
    return script_running(w, name, spec);
}

static void dead(struct world *w, struct pod *p)
{
    script_exit(w, p->ctrs[0], 137);
    script_answer_all(w, NULL);
}

static bool has_event(struct world *w, const char *reason)
{
    json_auto_t *events = events_json(&w->node);
    const json_t *v;
    size_t i;

    json_array_foreach (events, i, v)
        if (str_eq(json_str(v, "reason"), reason))
            return true;
    return false;
}

#define ROOM_TEST(name) cmocka_unit_test_setup_teardown(name, room_setup, room_teardown)

static void the_largest_goes_and_what_it_will_release_counts(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 100 * MIB, ""), *b = using(w, "b", 500 * MIB, "");

    memory_is(w, 90 * MIB);
    assert_int_equal(b->state, POD_TERMINATING);
    assert_string_equal(b->reason, "Evicted");
    assert_true(eviction_pressure(&w->node, EV_MEMORY_PRESSURE));
    assert_true(has_event(w, "EvictionThresholdMet"));
    assert_true(has_event(w, "NodeHasInsufficientMemory"));
    memory_is(w, 89 * MIB); /* it is still ending: nobody else has to go */
    assert_int_equal(a->state, POD_RUNNING);
    world.memory.available = 600 * MIB;
    dead(w, b);
    assert_int_equal(a->state, POD_RUNNING);
}

static void memory_that_is_released_during_the_look_costs_no_innocent(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 100 * MIB, ""), *b = using(w, "b", 500 * MIB, "");

    memory_is(w, 90 * MIB);
    assert_int_equal(b->state, POD_TERMINATING);
    world.used[1] = 0;
    world.exits_between = 500 * MIB;
    memory_is(w, 89 * MIB);
    assert_int_equal(a->state, POD_RUNNING);
    memory_is(w, 90 * MIB);
    assert_int_equal(a->state, POD_TERMINATING);
}

static void memory_that_cannot_be_read_for_a_moment_costs_nobody_its_life(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 100 * MIB, ""), *b = using(w, "b", 500 * MIB, "");

    world.unreadable = 'a';
    memory_is(w, 90 * MIB);
    assert_int_equal(b->state, POD_TERMINATING);
    assert_int_equal(a->state, POD_RUNNING);
}

static void memory_that_is_not_read_again_counts_as_it_did(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 100 * MIB, ""), *b = using(w, "b", 500 * MIB, ""),
               *c = using(w, "c", 50 * MIB, "");

    memory_is(w, 90 * MIB);
    assert_int_equal(b->state, POD_TERMINATING);
    dead(w, b);
    assert_int_equal(a->state, POD_TERMINATING); /* nothing was released */
    world.unreadable = 'a';
    memory_is(w, 20 * MIB); /* it has 100 MiB to release */
    assert_int_equal(c->state, POD_RUNNING);
}

static void a_pod_that_cannot_be_read_for_long_goes_first(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 10 * MIB, ""),
               *others[] = { using(w, "b", 700 * MIB, ""), using(w, "c", 600 * MIB, ""),
                             using(w, "d", 500 * MIB, "") };

    using(w, "e", 400 * MIB, "");
    world.unreadable = 'a';
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        memory_is(w, 90 * MIB);
        assert_int_equal(others[i]->state, POD_TERMINATING);
        world.memory.available = 600 * MIB;
        dead(w, others[i]);
    }
    assert_int_equal(a->state, POD_RUNNING);
    memory_is(w, 90 * MIB);
    assert_int_equal(a->state, POD_TERMINATING);
}

static void the_record_says_who_and_how_long(void **state)
{
    struct world *w = *state;
    struct pod *b;

    using(w, "a", 100 * MIB, "");
    b = using(w, "b", 500 * MIB, "");
    memory_is(w, 90 * MIB);
    world.memory.available = 600 * MIB;
    dead(w, b);
    json_auto_t *records = eviction_records(&w->node);
    const json_t *r = json_array_get(records, 0);
    assert_int_equal(json_array_size(records), 1);
    assert_string_equal(json_str(r, "signal"), "memory.available");
    assert_int_equal(json_array_size(json_object_get(r, "ranked")), 2);
    assert_string_equal(json_str(json_array_get(json_object_get(r, "victims"), 0), "pod"), "default/b");
    assert_non_null(json_str(r, "outcome"));
}

static void write_state(const struct world *w, const char *text)
{
    str_auto path = str_printf("%s/evictions.json", w->dir);
    struct err e = { 0 };

    assert_int_equal(fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, false, &e), ERR_OK);
}

static bool state_exists(const struct world *w)
{
    str_auto path = str_printf("%s/evictions.json", w->dir);

    return access(path, F_OK) == 0;
}

static void records_survive_the_agent(void **state)
{
    struct world *w = *state;
    struct eviction *r = eviction_of(&w->node);
    json_auto_t *before = NULL, *after = NULL;
    struct pod *b = using(w, "b", 500 * MIB, "");

    memory_is(w, 90 * MIB);
    world.memory.available = 600 * MIB;
    dead(w, b);
    while (decisions_busy(r))
        uv_run(&w->loop, UV_RUN_ONCE);
    before = eviction_records(&w->node);
    ev_records_free(r->records); /* as another agent begins */
    r->records = ev_records_new();
    decisions_open(r);
    after = eviction_records(&w->node);
    assert_int_equal(json_array_size(after), 1);
    assert_true(json_equal(before, after));
}

static void a_damaged_file_of_records_is_set_aside(void **state)
{
    struct world *w = *state;

    write_state(w, "{\"next\": 3, \"rec");
    decisions_open(eviction_of(&w->node));
    assert_false(state_exists(w));
    using(w, "b", 500 * MIB, "");
    memory_is(w, 90 * MIB);
    while (decisions_busy(eviction_of(&w->node)))
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_true(state_exists(w));
}

static void nobody_to_evict_is_said_and_pods_are_not_slowed_down(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 500 * MIB, "priorityClassName: system-node-critical,");

    memory_is(w, 90 * MIB);
    assert_int_equal(a->state, POD_RUNNING);
    assert_int_equal(world.helpless, 1);
    assert_true(eviction_pressure(&w->node, EV_MEMORY_PRESSURE));
}

static enum err_code admits(struct world *w, const char *name, const char *spec, char reason[64])
{
    struct pod *p = world_pod(w, name, spec);
    struct err e = { 0 };
    enum err_code code;

    reason[0] = '\0';
    code = admit_pod(p, reason, &e);
    if (code != ERR_OK && strcmp(reason, "Evicted") == 0)
        assert_true(str_starts(e.text, "The node had condition: ["));
    return code;
}

#define BURSTABLE "containers: [{name: c, image: x, resources: {requests: {cpu: 10m}}}]"
#define EFFORT "containers: [{name: c, image: x}]"

static void under_pressure_kubelets_rules_admit(void **state)
{
    struct world *w = *state;
    char reason[64];

    using(w, "a", 500 * MIB, "");
    memory_is(w, 90 * MIB);
    assert_int_equal(admits(w, "b", BURSTABLE, reason), ERR_OK);
    assert_int_equal(admits(w, "c", EFFORT, reason), ERR_PRECONDITION);
    assert_string_equal(reason, "Evicted");
    assert_int_equal(admits(w, "d", "tolerations: [{operator: Exists}], " EFFORT, reason), ERR_OK);
    assert_int_equal(admits(w, "e", "priorityClassName: system-node-critical, " EFFORT, reason), ERR_OK);
    world.nodefs.available = 9 * GIB;
    disks_answer(w); /* the look at the start */
    assert_true(eviction_pressure(&w->node, EV_DISK_PRESSURE));
    assert_int_equal(admits(w, "f", BURSTABLE, reason), ERR_PRECONDITION);
    assert_int_equal(admits(w, "g", "priorityClassName: system-node-critical, " EFFORT, reason), ERR_OK);
}

static void images_go_before_pods_and_may_be_enough(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 5 * GIB, "");

    world.nodefs.available = 9 * GIB;
    world.frees = 3 * GIB;
    disks_answer(w);
    assert_int_equal(world.n_reclaims, 1);
    assert_true(world.settled);
    disks_answer(w);
    assert_int_equal(a->state, POD_RUNNING);
    json_auto_t *records = eviction_records(&w->node);
    assert_int_equal(json_array_size(records), 1);
    assert_int_equal(json_array_size(json_object_get(json_array_get(records, 0), "reclaimed")), 1);
}

static void where_images_are_not_enough_a_pod_goes(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 1 * GIB, ""), *b = using(w, "b", 5 * GIB, "");

    world.nodefs.available = 7 * GIB;
    world.frees = 1 * GIB;
    disks_answer(w);
    disks_answer(w);
    assert_int_equal(b->state, POD_TERMINATING);
    assert_int_equal(a->state, POD_RUNNING);
    eviction_check(&w->node, SIGNALS_DISK, "test"); /* it is ending: nobody else has to go */
    disks_answer(w);
    disks_answer(w);
    assert_int_equal(a->state, POD_RUNNING);
    world.nodefs.available = 13 * GIB;
    world.settled = false;
    dead(w, b);
    assert_true(world.settled);
    disks_answer(w); /* its end caused a look */
    assert_int_equal(a->state, POD_RUNNING);
}

static void a_victim_that_writes_on_until_it_is_killed_is_still_the_only_one(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 1 * GIB, ""), *b = using(w, "b", 2 * GIB, "");

    world.nodefs.available = 9 * GIB;
    disks_answer(w);
    disks_answer(w); /* after reclaim, which found nothing */
    assert_int_equal(b->state, POD_TERMINATING);
    for (uint64_t gib = 8; gib > 4; gib--) { /* more is missing by now than it used */
        world.nodefs.available = gib * GIB;
        eviction_check(&w->node, SIGNALS_DISK, "test");
        disks_answer(w);
        disks_answer(w);
        assert_int_equal(a->state, POD_RUNNING);
    }
    dead(w, b); /* and nothing of that comes back: another one has to go, too */
    disks_answer(w);
    disks_answer(w);
    assert_int_equal(a->state, POD_TERMINATING);
}

static void pods_that_are_not_counted_yet_are_waited_for_while_the_disk_lasts(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 1 * GIB, ""), *b = using(w, "b", 2 * GIB, "");

    world.uncounted = 4;
    world.nodefs.available = 9 * GIB;
    disks_answer(w);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(b->state, POD_RUNNING);
        disks_answer(w); /* after reclaim, which found nothing; then after each round */
    }
    assert_int_equal(b->state, POD_RUNNING);
    disks_answer(w);
    assert_int_equal(b->state, POD_TERMINATING);
    assert_int_equal(a->state, POD_RUNNING);
}

/* "b" goes; while pods are counted for the next look, it has ended. */
static struct pod *victim_ends_during_a_count(struct world *w, uint64_t available, uint64_t frees)
{
    struct pod *a = using(w, "a", 1 * GIB, ""), *b = using(w, "b", 5 * GIB, "");

    world.nodefs.available = 7 * GIB;
    disks_answer(w);
    disks_answer(w); /* after reclaim, which found nothing */
    assert_int_equal(b->state, POD_TERMINATING);
    world.hold_count = true;
    eviction_check(&w->node, SIGNALS_DISK, "test");
    disks_answer(w);
    disks_answer(w);
    assert_non_null(world.counted);
    world.nodefs.available = available;
    world.frees = frees;
    dead(w, b);
    world.counted(&w->node, true);
    script_turn(w);
    assert_int_equal(a->state, POD_RUNNING);
    disks_answer(w); /* it looks again */
    assert_int_equal(a->state, POD_RUNNING);
    return a;
}

static void disk_that_is_released_during_a_count_costs_no_innocent(void **state)
{
    struct world *w = *state;

    victim_ends_during_a_count(w, 12 * GIB, 0);
    assert_int_equal(eviction_of(&w->node)->n_evicted[EV_NODEFS], 1);
}

static void what_a_victim_left_is_removed_before_an_innocent_goes(void **state)
{
    struct world *w = *state;
    const struct pod *a = victim_ends_during_a_count(w, 9 * GIB, 2 * GIB);

    disks_answer(w); /* after reclaim */
    assert_int_equal(a->state, POD_RUNNING);
    assert_int_equal(eviction_of(&w->node)->n_evicted[EV_NODEFS], 1);
}

static void a_disk_that_fills_quickly_waits_for_no_count(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 1 * GIB, ""), *b = using(w, "b", 2 * GIB, "");

    world.uncounted = 100;
    world.nodefs.available = 9 * GIB;
    disks_answer(w);
    disks_answer(w);
    world.nodefs.available = 8 * GIB;
    disks_answer(w);
    assert_int_equal(a->state, POD_RUNNING);
    world.nodefs.available = 5 * GIB; /* another round like this leaves less than the half */
    disks_answer(w);
    assert_int_equal(a->state, POD_TERMINATING);
    assert_int_equal(b->state, POD_RUNNING);
}

static void no_count_is_waited_for_longer_than_a_minute(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 1 * GIB, "");

    using(w, "b", 2 * GIB, "");
    world.uncounted = 100;
    world.nodefs.available = 9 * GIB;
    disks_answer(w);
    disks_answer(w);
    script_clock_pass(59 * SCRIPT_SECOND);
    disks_answer(w);
    assert_int_equal(a->state, POD_RUNNING);
    script_clock_pass(2 * SCRIPT_SECOND);
    disks_answer(w);
    assert_int_equal(a->state, POD_TERMINATING);
}

static void the_condition_stays_for_the_transition_period_and_wakes_who_waits(void **state)
{
    struct world *w = *state;
    struct pod *a = using(w, "a", 500 * MIB, ""), *c;

    memory_is(w, 90 * MIB);
    world.memory.available = 600 * MIB;
    dead(w, a);
    c = script_pod(w, "c", EFFORT);
    script_turn(w);
    assert_true(c->rejected);
    eviction_check(&w->node, SIGNALS_MEMORY, "test");
    script_clock_pass(9 * SCRIPT_SECOND);
    eviction_check(&w->node, SIGNALS_MEMORY, "test");
    assert_true(eviction_pressure(&w->node, EV_MEMORY_PRESSURE));
    script_clock_pass(2 * SCRIPT_SECOND);
    eviction_check(&w->node, SIGNALS_MEMORY, "test");
    assert_false(eviction_pressure(&w->node, EV_MEMORY_PRESSURE));
    assert_true(has_event(w, "NodeHasSufficientMemory"));
    script_answer_all(w, NULL);
    assert_int_equal(pods_find(&w->node, "default", "c")->state, POD_RUNNING);
}

/* The agent is killed, and the next one takes its pods over. */
static void restart(struct world *w)
{
    struct err e = { 0 };

    while (decisions_busy(eviction_of(&w->node)))
        uv_run(&w->loop, UV_RUN_ONCE);
    world.fn = NULL;
    eviction_room.node.cancel(&w->node);
    eviction_room.node.free(&w->node);
    world_forget(w);
    assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
    pods_each (&w->node, p) {
        node_recover_pod(p);
        p->recovered = false;
    }
    eviction_begin(&w->node);
    script_turn(w);
}

static struct pod *pod_named(struct world *w, const char *name)
{
    struct pod *p = pods_find(&w->node, "default", name);

    assert_non_null(p);
    return p;
}

static void the_next_agent_waits_for_the_victim_of_the_one_before(void **state)
{
    struct world *w = *state;

    using(w, "a", 100 * MIB, "");
    using(w, "b", 500 * MIB, "");
    memory_is(w, 90 * MIB);
    assert_int_equal(pod_named(w, "b")->state, POD_TERMINATING);
    restart(w);
    assert_int_equal(pod_named(w, "b")->state, POD_TERMINATING);
    assert_int_equal(pod_named(w, "a")->state, POD_RUNNING);
    memory_is(w, 89 * MIB);
    assert_int_equal(pod_named(w, "a")->state, POD_RUNNING);
    world.memory.available = 600 * MIB;
    dead(w, pod_named(w, "b"));
    assert_int_equal(pod_named(w, "a")->state, POD_RUNNING);
    json_auto_t *records = eviction_records(&w->node);
    assert_int_equal(json_array_size(records), 1);
    assert_string_equal(json_str(json_array_get(records, 0), "outcome"), "its pods ended");
}

static void what_it_had_on_disk_is_known_to_the_next_agent(void **state)
{
    struct world *w = *state;

    using(w, "a", 1 * GIB, "");
    using(w, "b", 5 * GIB, "");
    world.nodefs.available = 7 * GIB;
    disks_answer(w);
    disks_answer(w);
    assert_int_equal(pod_named(w, "b")->state, POD_TERMINATING);
    restart(w);
    assert_true(world.settled); /* its files may just have been removed */
    disks_answer(w);
    disks_answer(w);
    assert_int_equal(pod_named(w, "a")->state, POD_RUNNING);
    world.nodefs.available = 12 * GIB;
    dead(w, pod_named(w, "b"));
    disks_answer(w); /* its end caused a look */
    assert_int_equal(pod_named(w, "a")->state, POD_RUNNING);
}

static void what_the_agent_did_not_come_to_is_no_end_of_a_pod(void **state)
{
    struct world *w = *state;
    struct pod *b = using(w, "b", 500 * MIB, "");
    str_auto path = str_printf("%s/evictions.json", w->dir);
    str_auto text = NULL;
    struct err e = { 0 };

    memory_is(w, 90 * MIB);
    while (decisions_busy(eviction_of(&w->node)))
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(fs_read_at(AT_FDCWD, path, MIB, &text, NULL, &e), ERR_OK);
    b->state = POD_RUNNING; /* as its record has it, if the agent ended before */
    world.memory.available = 600 * MIB;
    ev_records_free(eviction_of(&w->node)->records);
    eviction_of(&w->node)->records = ev_records_new();
    decisions_open(eviction_of(&w->node));
    json_auto_t *records = eviction_records(&w->node);
    assert_string_equal(json_str(json_array_get(records, 0), "outcome"),
                        "the agent ended before its pods were asked to end");
}

static void decisions_that_nobody_finished_are_closed(void **state)
{
    struct world *w = *state;

    using(w, "b", 5 * GIB, "");
    memory_is(w, 90 * MIB);
    world.nodefs.available = 9 * GIB;
    world.frees = 3 * GIB;
    disks_answer(w); /* reclaimed; the look that says whether that was enough is under way */
    restart(w);
    json_auto_t *records = eviction_records(&w->node);
    assert_int_equal(json_array_size(records), 2);
    assert_null(json_str(json_array_get(records, 0), "outcome"));
    assert_string_equal(json_str(json_array_get(records, 1), "outcome"), "the agent ended meanwhile");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOM_TEST(the_largest_goes_and_what_it_will_release_counts),
        ROOM_TEST(memory_that_is_released_during_the_look_costs_no_innocent),
        ROOM_TEST(memory_that_cannot_be_read_for_a_moment_costs_nobody_its_life),
        ROOM_TEST(memory_that_is_not_read_again_counts_as_it_did),
        ROOM_TEST(a_pod_that_cannot_be_read_for_long_goes_first),
        ROOM_TEST(the_record_says_who_and_how_long),
        ROOM_TEST(records_survive_the_agent),
        ROOM_TEST(a_damaged_file_of_records_is_set_aside),
        ROOM_TEST(nobody_to_evict_is_said_and_pods_are_not_slowed_down),
        ROOM_TEST(under_pressure_kubelets_rules_admit),
        ROOM_TEST(images_go_before_pods_and_may_be_enough),
        ROOM_TEST(where_images_are_not_enough_a_pod_goes),
        ROOM_TEST(a_victim_that_writes_on_until_it_is_killed_is_still_the_only_one),
        ROOM_TEST(pods_that_are_not_counted_yet_are_waited_for_while_the_disk_lasts),
        ROOM_TEST(disk_that_is_released_during_a_count_costs_no_innocent),
        ROOM_TEST(what_a_victim_left_is_removed_before_an_innocent_goes),
        ROOM_TEST(a_disk_that_fills_quickly_waits_for_no_count),
        ROOM_TEST(no_count_is_waited_for_longer_than_a_minute),
        ROOM_TEST(the_condition_stays_for_the_transition_period_and_wakes_who_waits),
        ROOM_TEST(the_next_agent_waits_for_the_victim_of_the_one_before),
        ROOM_TEST(what_it_had_on_disk_is_known_to_the_next_agent),
        ROOM_TEST(what_the_agent_did_not_come_to_is_no_end_of_a_pod),
        ROOM_TEST(decisions_that_nobody_finished_are_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
