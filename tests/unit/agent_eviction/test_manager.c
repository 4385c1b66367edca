/* SPDX-License-Identifier: Apache-2.0 */
/* The manager, as scripts of looks: a time and values, then what is decided. */
#include "tests/unit/agent_eviction/helper.h"

#define CAPACITY 10000

struct script {
    struct ev_settings s;
    struct ev_manager *m;
    struct ev_check look;
    struct ev_choice choice;
};

static struct script *begin(void **state, enum ev_layout layout, const char *hard, const char *soft,
                            const char *grace, const char *reclaim)
{
    struct script *t = *state;
    json_auto_t *h = json_loads(hard, 0, NULL), *s = json_loads(soft, 0, NULL),
                *g = json_loads(grace, 0, NULL), *r = json_loads(reclaim, 0, NULL);
    struct err e = { 0 };

    t->s = (struct ev_settings){ .transition_ms = 30000 };
    if (ev_settings_parse(&t->s, h, s, g, r, &e) != ERR_OK)
        fail_msg("%s", e.text);
    ev_settings_complete(&t->s, layout, false);
    t->m = ev_manager_new(&t->s, layout);
    assert_non_null(t->m);
    return t;
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct script));
    return *state == NULL;
}

static int teardown(void **state)
{
    struct script *t = *state;

    ev_choice_done(&t->choice);
    ev_manager_free(t->m);
    free(t);
    return 0;
}

static struct ev_observation sees(enum ev_signal s, uint64_t available)
{
    struct ev_observation o = { 0 };

    o.v[s] = (struct ev_value){ true, available, CAPACITY };
    return o;
}

/* A look at one signal; returns what is to be done. */
static enum ev_do at(struct script *t, uint64_t ms, enum ev_signal s, uint64_t available)
{
    const struct ev_observation o = sees(s, available);

    ev_manager_check(t->m, &o, ms, &t->look);
    return t->look.todo;
}

static void victims_are(struct script *t, const char *pods, const char *want)
{
    struct pods all;
    char got[200] = "";
    struct err e = { 0 };

    read_pods(pods, t->look.crossing.threshold.signal, &all);
    for (size_t i = 0; i < all.n; i++)
        all.v[i].kill_ms = t->look.now_ms;
    ev_choice_done(&t->choice);
    assert_int_equal(ev_manager_choose(t->m, &t->look, all.v, all.n, &t->choice, &e), ERR_OK);
    for (size_t i = 0; i < t->choice.n_victims; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i > 0 ? " " : "",
                 strchr(t->choice.ranked[t->choice.victims[i]]->key, '/') + 1);
    assert_string_equal(got, want);
}

static void a_hard_threshold_is_crossed_strictly(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{\"memory.available\": \"1000\"}", "{}", "{}", "{}");

    assert_int_equal(at(t, 1000, EV_MEMORY, 1000), EV_DO_NOTHING);
    assert_int_equal(t->look.again_ms, 0); /* a node at rest */
    assert_int_equal(t->look.changed, 0);
    assert_int_equal(at(t, 5000, EV_MEMORY, 999), EV_DO_EVICT);
    assert_int_equal(t->look.changed, 1u << EV_MEMORY_PRESSURE);
    assert_int_equal(t->look.crossing.line, 1000);
    assert_int_equal(t->look.again_ms, 5000 + EV_PROBE_MS); /* how fast is it? */
    victims_are(t, "a 0 50 0; b 0 60 0", "b");
    assert_int_equal(t->choice.grace_s, 1);
}

static void a_condition_ends_after_the_transition_period(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{\"memory.available\": \"1000\"}", "{}", "{}", "{}");
    uint64_t since;

    at(t, 1000, EV_MEMORY, 900);
    assert_true(ev_manager_pressure(t->m, EV_MEMORY_PRESSURE, &since));
    assert_int_equal(since, 1000);
    assert_false(ev_manager_pressure(t->m, EV_DISK_PRESSURE, &since));
    assert_int_equal(since, 0);
    assert_int_equal(at(t, 3000, EV_MEMORY, 1500), EV_DO_NOTHING);
    assert_int_equal(t->look.again_ms, 33000);
    at(t, 20000, EV_MEMORY, 900); /* again: the period begins anew */
    assert_int_equal(t->look.changed, 0);
    at(t, 21000, EV_MEMORY, 1500);
    at(t, 50999, EV_MEMORY, 1500);
    assert_true(ev_manager_pressure(t->m, EV_MEMORY_PRESSURE, NULL));
    at(t, 51000, EV_MEMORY, 1500);
    assert_int_equal(t->look.changed, 1u << EV_MEMORY_PRESSURE);
    assert_false(ev_manager_pressure(t->m, EV_MEMORY_PRESSURE, &since));
    assert_int_equal(since, 51000);
    assert_int_equal(t->look.again_ms, 0);
}

static void a_soft_threshold_waits_for_its_grace_period_but_reports_at_once(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{}", "{\"memory.available\": \"20%\"}",
                             "{\"memory.available\": \"20s\"}", "{}");

    assert_int_equal(at(t, 1000, EV_MEMORY, 1999), EV_DO_NOTHING);
    assert_true(ev_manager_pressure(t->m, EV_MEMORY_PRESSURE, NULL));
    assert_int_equal(t->look.again_ms, 11000); /* a round */
    assert_int_equal(at(t, 11000, EV_MEMORY, 1800), EV_DO_NOTHING);
    assert_int_equal(t->look.again_ms, 21000);
    assert_int_equal(at(t, 15000, EV_MEMORY, 2500), EV_DO_NOTHING); /* not held */
    assert_int_equal(at(t, 16000, EV_MEMORY, 1800), EV_DO_NOTHING);
    assert_int_equal(at(t, 35999, EV_MEMORY, 1800), EV_DO_NOTHING);
    assert_int_equal(at(t, 36000, EV_MEMORY, 1800), EV_DO_EVICT);
    assert_true(t->look.crossing.threshold.soft);
    victims_are(t, "a 0 500 0", "a");
    assert_int_equal(t->choice.grace_s, 1);
}

static void the_grace_of_soft_evictions_is_configured(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{}", "{\"memory.available\": \"2000\"}",
                             "{\"memory.available\": \"0s\"}", "{}");

    t->s.max_pod_grace_s = 8;
    ev_manager_change(t->m, &t->s, EV_LAYOUT_ONE);
    assert_int_equal(at(t, 1000, EV_MEMORY, 1000), EV_DO_EVICT);
    victims_are(t, "a 0 5000 0", "a");
    assert_int_equal(t->choice.grace_s, 8);
    t->s.max_pod_grace_s = -1;
    ev_manager_change(t->m, &t->s, EV_LAYOUT_ONE);
    victims_are(t, "a 0 5000 0", "a");
    assert_int_equal(t->choice.grace_s, -1);
}

static void the_hard_one_of_two_is_acted_on_first(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{\"memory.available\": \"1000\"}",
                             "{\"memory.available\": \"2000\"}", "{\"memory.available\": \"1m\"}", "{}");

    assert_int_equal(at(t, 1000, EV_MEMORY, 1500), EV_DO_NOTHING);
    assert_int_equal(at(t, 90000, EV_MEMORY, 900), EV_DO_EVICT);
    assert_false(t->look.crossing.threshold.soft);
    ev_check_next(&t->look);
    assert_int_equal(t->look.todo, EV_DO_EVICT);
    assert_true(t->look.crossing.threshold.soft);
    ev_check_next(&t->look);
    assert_int_equal(t->look.todo, EV_DO_NOTHING);
}

static void evictions_go_on_until_the_minimum_is_reclaimed(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{\"memory.available\": \"1000\"}", "{}", "{}",
                             "{\"memory.available\": \"500\"}");

    assert_int_equal(at(t, 1000, EV_MEMORY, 1200), EV_DO_NOTHING);
    assert_int_equal(at(t, 2000, EV_MEMORY, 990), EV_DO_EVICT);
    assert_int_equal(t->look.crossing.goal, 1500);
    assert_int_equal(at(t, 3000, EV_MEMORY, 1499), EV_DO_EVICT);
    assert_int_equal(at(t, 4000, EV_MEMORY, 1500), EV_DO_NOTHING);
    assert_int_equal(at(t, 5000, EV_MEMORY, 1200), EV_DO_NOTHING);
}

static void what_falls_fast_leaves_no_grace(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{\"memory.available\": \"1000\"}", "{}", "{}", "{}");

    at(t, 1000, EV_MEMORY, 990);
    assert_false(t->look.crossing.urgent);
    at(t, 1020, EV_MEMORY, 970); /* 1000 a second */
    assert_true(t->look.crossing.urgent);
    victims_are(t, "a 0 500 0", "a");
    assert_int_equal(t->choice.grace_s, 0);
    at(t, 1520, EV_MEMORY, 870); /* 200 a second: more than four seconds */
    assert_false(t->look.crossing.urgent);
    assert_int_equal(t->look.again_ms, 1520 + 870 * 5 / 4);
    at(t, 9000, EV_MEMORY, 0);
    assert_true(t->look.crossing.urgent);
}

static void a_pod_that_ends_is_killed_sooner_if_that_is_urgent(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{\"memory.available\": \"1000\"}", "{}", "{}", "{}");
    struct ev_pod p = {
        .key = "a/b", .memory_known = true, .memory = 500, .ending = true, .kill_ms = 2000, .grace_s = 30
    };
    struct err e = { 0 };

    at(t, 1000, EV_MEMORY, 900);
    assert_int_equal(ev_manager_choose(t->m, &t->look, &p, 1, &t->choice, &e), ERR_OK);
    assert_int_equal(t->choice.n_victims, 0); /* it is evicted that way already */
    assert_true(t->choice.enough);
    ev_choice_done(&t->choice);
    at(t, 1020, EV_MEMORY, 800);
    assert_int_equal(ev_manager_choose(t->m, &t->look, &p, 1, &t->choice, &e), ERR_OK);
    assert_int_equal(t->choice.n_victims, 1);
    ev_choice_done(&t->choice);
    p.kill_ms = 1020; /* done */
    at(t, 1040, EV_MEMORY, 700);
    assert_int_equal(ev_manager_choose(t->m, &t->look, &p, 1, &t->choice, &e), ERR_OK);
    assert_true(t->choice.enough && t->choice.n_victims == 0);
    ev_choice_done(&t->choice);
    at(t, 1020 + EV_RELEASE_MS, EV_MEMORY, 700); /* it does not go: nothing is expected of it any more */
    assert_int_equal(ev_manager_choose(t->m, &t->look, &p, 1, &t->choice, &e), ERR_OK);
    assert_false(t->choice.enough);
    assert_int_equal(t->choice.n_victims, 0);
}

/* It has no time of its own, and gets that of an eviction: chosen again, it would not end sooner. */
static void a_pod_without_grace_is_evicted_once(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{\"memory.available\": \"1000\"}", "{}", "{}", "{}");
    struct ev_pod p = {
        .key = "a/b", .memory_known = true, .memory = 50, .ending = true, .kill_ms = 3000, .grace_s = 0
    };
    struct err e = { 0 };

    at(t, 1000, EV_MEMORY, 900);
    assert_int_equal(ev_manager_choose(t->m, &t->look, &p, 1, &t->choice, &e), ERR_OK);
    assert_int_equal(t->choice.n_victims, 0);
    ev_choice_done(&t->choice);
    p.kill_ms = 30000; /* its own end began earlier, with more time */
    assert_int_equal(ev_manager_choose(t->m, &t->look, &p, 1, &t->choice, &e), ERR_OK);
    assert_int_equal(t->choice.n_victims, 1);
}

static const struct choose_row {
    const char *about, *pods, *victims;
    bool enough;
} choose_rows[] = {
    /* 200 are missing */
    { "one is enough", "a 0 300 0; b 0 250 0", "a", false },
    { "one cannot be enough", "a 0 120 0; b 0 110 0; c 0 90 0", "a b", false },
    { "what goes already counts", "a 0 150 0 e; b 0 60 0; c 0 55 0", "b", false },
    { "enough goes already", "a 0 300 0 e; b 0 60 0", "", true },
    { "critical ones stay", "a 2000000000 900 0 c; b 0 20 50", "b", false },
    { "nobody is left", "a 2000000000 900 0 c", "", false },
    { "nobody at all", "", "", false },
    { "one within its request goes alone", "a 0 100 100; b 0 90 100", "a", false },
    { "none within its request goes beside another", "a 0 60 0; b 0 90 100", "a", false },
    { "unknown usage goes alone", "a 0 0 0 u; b 0 90 0", "a", false },
    { "never more than eight",
      "a 0 9 0; b 0 9 0; c 0 9 0; d 0 9 0; e 0 9 0; f 0 9 0; g 0 9 0; h 0 9 0; i 0 9 0; j 0 9 0",
      "a b c d e f g h", false },
};

static void as_many_go_as_are_needed(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{\"memory.available\": \"1000\"}", "{}", "{}", "{}");

    at(t, 1000, EV_MEMORY, 800);
    for (size_t i = 0; i < ARRAY_LEN(choose_rows); i++) {
        print_message("%s\n", choose_rows[i].about);
        victims_are(t, choose_rows[i].pods, choose_rows[i].victims);
        assert_int_equal(t->choice.enough, choose_rows[i].enough);
    }
}

static void reserves_of_the_node_go_before_pods(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{\"nodefs.available\": \"10%\"}", "{}", "{}", "{}");
    struct ev_observation o = sees(EV_NODEFS, 900);

    o.v[EV_CONTAINERFS] = o.v[EV_NODEFS];
    ev_manager_check(t->m, &o, 1000, &t->look);
    assert_int_equal(t->look.todo, EV_DO_RECLAIM);
    assert_int_equal(t->look.reclaim, EV_RECLAIM_CONTAINERS | EV_RECLAIM_IMAGES);
    o.v[EV_NODEFS].available = o.v[EV_CONTAINERFS].available = 950;
    ev_manager_reclaimed(t->m, t->look.reclaim, &o, 1500, &t->look);
    assert_int_equal(t->look.todo, EV_DO_EVICT);
    o.v[EV_NODEFS].available = o.v[EV_CONTAINERFS].available = 1500;
    ev_manager_reclaimed(t->m, t->look.reclaim, &o, 2000, &t->look);
    assert_int_equal(t->look.todo, EV_DO_NOTHING);
    assert_true(ev_manager_pressure(t->m, EV_DISK_PRESSURE, NULL));
}

static void what_can_be_reclaimed_depends_on_the_file_systems(void **state)
{
    (void)state;
    assert_int_equal(ev_signal_reclaim(EV_NODEFS, EV_LAYOUT_IMAGEFS), EV_RECLAIM_CONTAINERS);
    assert_int_equal(ev_signal_reclaim(EV_NODEFS_INODES, EV_LAYOUT_SPLIT), EV_RECLAIM_CONTAINERS);
    assert_int_equal(ev_signal_reclaim(EV_IMAGEFS, EV_LAYOUT_SPLIT), EV_RECLAIM_IMAGES);
    assert_int_equal(ev_signal_reclaim(EV_CONTAINERFS, EV_LAYOUT_SPLIT), EV_RECLAIM_CONTAINERS);
    assert_int_equal(ev_signal_reclaim(EV_CONTAINERFS, EV_LAYOUT_IMAGEFS),
                     EV_RECLAIM_CONTAINERS | EV_RECLAIM_IMAGES);
    assert_int_equal(ev_signal_reclaim(EV_MEMORY, EV_LAYOUT_ONE), 0);
    assert_int_equal(ev_signal_reclaim(EV_PID, EV_LAYOUT_ONE), 0);
}

static void memory_goes_before_disks_and_a_disk_is_not_forgotten(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_SPLIT,
                             "{\"memory.available\": \"1000\", \"nodefs.available\": \"1000\", "
                             "\"imagefs.available\": \"1000\"}",
                             "{}", "{}", "{}");
    struct ev_observation o = sees(EV_MEMORY, 900);

    o.v[EV_NODEFS] = o.v[EV_IMAGEFS] = o.v[EV_CONTAINERFS] = o.v[EV_MEMORY];
    ev_manager_check(t->m, &o, 1000, &t->look);
    assert_int_equal(t->look.todo, EV_DO_EVICT);
    assert_int_equal(t->look.crossing.threshold.signal, EV_MEMORY);
    assert_int_equal(t->look.changed, 1u << EV_MEMORY_PRESSURE | 1u << EV_DISK_PRESSURE);
    ev_check_next(&t->look);
    assert_int_equal(t->look.todo, EV_DO_RECLAIM); /* for nodefs, and for imagefs with it */
    assert_int_equal(t->look.reclaim, EV_RECLAIM_CONTAINERS | EV_RECLAIM_IMAGES);
    assert_int_equal(t->look.crossing.threshold.signal, EV_NODEFS);
}

/* A look at memory alone says nothing of the disk, which stays as it was. */
static void an_unknown_value_is_no_relief_and_no_reason_to_act(void **state)
{
    struct script *t =
        begin(state, EV_LAYOUT_ONE, "{\"memory.available\": \"1000\", \"pid.available\": \"1000\"}", "{}",
              "{}", "{}");

    assert_int_equal(at(t, 1000, EV_PID, 500), EV_DO_EVICT);
    for (uint64_t ms = 2000; ms < 100000; ms += 10000) {
        assert_int_equal(at(t, ms, EV_MEMORY, 5000), EV_DO_NOTHING);
        assert_true(ev_manager_pressure(t->m, EV_PID_PRESSURE, NULL));
        assert_int_equal(t->look.again_ms, ms + EV_ROUND_MS);
    }
}

static void new_settings_keep_what_was_seen_of_the_same_threshold(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{}", "{\"memory.available\": \"2000\"}",
                             "{\"memory.available\": \"20s\"}", "{}");

    at(t, 1000, EV_MEMORY, 1000);
    ev_manager_change(t->m, &t->s, EV_LAYOUT_SPLIT);
    assert_int_equal(ev_manager_layout(t->m), EV_LAYOUT_SPLIT);
    assert_int_equal(at(t, 21000, EV_MEMORY, 1000), EV_DO_EVICT);
    t->s.v[0].grace_ms = 30000; /* another one: it begins anew */
    ev_manager_change(t->m, &t->s, EV_LAYOUT_SPLIT);
    assert_int_equal(at(t, 22000, EV_MEMORY, 1000), EV_DO_NOTHING);
    t->s.n = 0;
    ev_manager_change(t->m, &t->s, EV_LAYOUT_SPLIT);
    at(t, 23000, EV_MEMORY, 1000);
    at(t, 53000, EV_MEMORY, 1000);
    assert_false(ev_manager_pressure(t->m, EV_MEMORY_PRESSURE, NULL));
}

static void headroom_is_up_to_the_next_threshold(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE, "{\"memory.available\": \"1000\"}",
                             "{\"memory.available\": \"2000\"}", "{\"memory.available\": \"1m\"}", "{}");
    struct ev_value v = { true, 5000, CAPACITY };

    assert_int_equal(ev_manager_headroom(t->m, EV_MEMORY, &v), 3000);
    v.available = 1500;
    assert_int_equal(ev_manager_headroom(t->m, EV_MEMORY, &v), 500);
    v.available = 900;
    assert_int_equal(ev_manager_headroom(t->m, EV_MEMORY, &v), 0);
    assert_true(ev_manager_headroom(t->m, EV_PID, &v) == UINT64_MAX);
    v.known = false;
    assert_true(ev_manager_headroom(t->m, EV_MEMORY, &v) == UINT64_MAX);
}

static void implied_thresholds_follow_the_layout(void **state)
{
    struct script *t = begin(state, EV_LAYOUT_ONE,
                             "{\"nodefs.available\": \"1000\", \"imagefs.available\": "
                             "\"15%\", \"containerfs.available\": \"7\"}",
                             "{}", "{}", "{}");
    struct ev_value v = { true, 5000, CAPACITY };

    assert_int_equal(ev_manager_headroom(t->m, EV_CONTAINERFS, &v), 4000);
    ev_settings_complete(&t->s, EV_LAYOUT_IMAGEFS, true);
    ev_manager_change(t->m, &t->s, EV_LAYOUT_IMAGEFS);
    assert_int_equal(ev_manager_headroom(t->m, EV_CONTAINERFS, &v), 3500);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_hard_threshold_is_crossed_strictly),
        T(a_condition_ends_after_the_transition_period),
        T(a_soft_threshold_waits_for_its_grace_period_but_reports_at_once),
        T(the_grace_of_soft_evictions_is_configured),
        T(the_hard_one_of_two_is_acted_on_first),
        T(evictions_go_on_until_the_minimum_is_reclaimed),
        T(what_falls_fast_leaves_no_grace),
        T(a_pod_that_ends_is_killed_sooner_if_that_is_urgent),
        T(a_pod_without_grace_is_evicted_once),
        T(as_many_go_as_are_needed),
        T(reserves_of_the_node_go_before_pods),
        T(what_can_be_reclaimed_depends_on_the_file_systems),
        T(memory_goes_before_disks_and_a_disk_is_not_forgotten),
        T(an_unknown_value_is_no_relief_and_no_reason_to_act),
        T(new_settings_keep_what_was_seen_of_the_same_threshold),
        T(headroom_is_up_to_the_next_threshold),
        T(implied_thresholds_follow_the_layout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
