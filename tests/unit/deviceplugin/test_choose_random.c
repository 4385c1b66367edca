/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random pods on a node whose devices come, go and sicken, with a plugin that answers at random, against an
 * oracle that knows for each device its pod and containers: no device has two pods, none is lost, and each
 * choice is one that kubelet could have made.  RANDOM_SEED and RANDOM_STEPS repeat and prolong a run.
 */
#include "tests/unit/deviceplugin/scene.h"

#include <time.h>

enum { IDS = 48, PODS = 10, CONTAINERS = 4 }; /* of a pod: init, sidecar, init, app */

static const struct dp_predecessor containers[CONTAINERS] = {
    { "init-one", true }, { "sidecar", false }, { "init-two", true }, { "main", false }
};

struct oracle {
    bool listed[IDS], healthy[IDS];
    int64_t node[IDS]; /* -1: none */
    bool holds[PODS][CONTAINERS][IDS];
    bool entry[PODS][CONTAINERS];
};

static struct oracle o;
static struct scene s;
static char ids[IDS][16], pods[PODS][16];
static uint64_t seed;

static unsigned chance(unsigned n) /* xorshift64 */
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

static int owner(int id)
{
    int found = -1;

    for (int p = 0; p < PODS; p++)
        for (int c = 0; c < CONTAINERS; c++)
            if (o.holds[p][c][id]) {
                assert_true(found == -1 || found == p);
                found = p;
            }
    return found;
}

static bool is_reusable(int pod, int ctr, int id)
{
    bool ret = false;

    for (int c = 0; c < ctr; c++)
        if (o.holds[pod][c][id])
            ret = containers[c].reusable;
    return ret;
}

static int number_of(const char *id)
{
    return atoi(id + 1);
}

static void list_devices(void)
{
    size_t n = 0;

    s.r.devices = s.list;
    s.r.n_healthy = 0;
    for (int i = 0; i < IDS; i++)
        if (o.listed[i]) {
            s.list[n++] = (struct dp_device){ ids[i], o.healthy[i], &o.node[i], o.node[i] >= 0 };
            s.r.n_healthy += o.healthy[i];
        }
    s.r.n_devices = n;
}

static void change_list(void)
{
    for (unsigned n = chance(8); n > 0; n--) {
        unsigned i = chance(IDS);

        o.listed[i] = chance(8) != 0;
        o.healthy[i] = o.listed[i] && chance(5) != 0;
        o.node[i] = (int64_t)chance(4) - 1;
    }
    list_devices();
}

static void drop(void)
{
    unsigned pod = chance(PODS), ctr = chance(CONTAINERS * 2);

    dp_holdings_drop(s.h, pods[pod], ctr < CONTAINERS ? containers[ctr].container : NULL, NULL);
    for (unsigned c = 0; c < CONTAINERS; c++)
        if (c == ctr || ctr >= CONTAINERS) {
            memset(o.holds[pod][c], 0, sizeof(o.holds[pod][c]));
            o.entry[pod][c] = false;
        }
}

/* What was chosen is what kubelet's order allows. */
static void check_choice(const struct dp_choice *c, const struct dp_wish *w, int pod, int ctr)
{
    size_t reused = 0, reusable = 0, aligned = 0, aligned_free = 0, floating = 0, unaligned_free = 0,
           unaligned = 0;

    assert_int_equal(c->n, w->count);
    for (int i = 0; i < IDS; i++) {
        bool is_free = o.listed[i] && o.healthy[i] && owner(i) == -1;
        bool hit = w->has_hint && o.node[i] >= 0 && (w->numa >> o.node[i] & 1) != 0;
        bool chosen = false;

        for (size_t k = 0; k < c->n; k++)
            chosen = chosen || number_of(c->ids[k]) == i;
        reusable += is_reusable(pod, ctr, i);
        aligned_free += is_free && hit;
        unaligned_free += is_free && w->has_hint && !hit && o.node[i] >= 0;
        if (!chosen)
            continue;
        assert_true(is_free || is_reusable(pod, ctr, i));
        reused += is_reusable(pod, ctr, i);
        aligned += is_free && hit;
        unaligned += is_free && w->has_hint && !hit && o.node[i] >= 0;
        floating += is_free && w->has_hint && o.node[i] < 0;
    }
    assert_int_equal(reused, reusable < c->n ? reusable : c->n);
    if (w->has_hint && aligned < c->n - reused)
        assert_int_equal(aligned, aligned_free);
    if (floating > 0 && !s.r.options.preferred)
        assert_int_equal(unaligned, unaligned_free);
    for (size_t k = 1; k < c->n; k++)
        assert_true(dp_id_compare(c->ids[k - 1], c->ids[k]) < 0);
}

static void check_question(const struct dp_choice *c, const struct dp_wish *w, int pod, int ctr)
{
    assert_true(c->n_must < (size_t)w->count && c->n_available >= (size_t)w->count);
    for (size_t k = 0; k < c->n_available; k++) {
        int i = number_of(c->available[k]);

        assert_true(is_reusable(pod, ctr, i) || (o.listed[i] && o.healthy[i] && owner(i) == -1));
        assert_true(k == 0 || dp_id_compare(c->available[k - 1], c->available[k]) < 0);
    }
}

static void hold(const struct dp_choice *c, int pod, int ctr)
{
    struct dp_holding x = { .pod_uid = pods[pod], .container = containers[ctr].container, .resource = DEV };
    struct err e = { 0 };

    x.devices = c->devices;
    x.n_devices = c->n;
    if (dp_holdings_put(s.h, &x, &e) != ERR_OK)
        fail_msg("%s", e.text);
    memset(o.holds[pod][ctr], 0, sizeof(o.holds[pod][ctr]));
    for (size_t k = 0; k < c->n; k++)
        o.holds[pod][ctr][number_of(c->ids[k])] = true;
    o.entry[pod][ctr] = true;
}

static size_t free_and_reusable(int pod, int ctr, size_t *ret_reusable)
{
    size_t n = 0;

    *ret_reusable = 0;
    for (int i = 0; i < IDS; i++) {
        n += o.listed[i] && o.healthy[i] && owner(i) == -1;
        *ret_reusable += is_reusable(pod, ctr, i);
    }
    return n;
}

static void check_error(const struct err *e, const struct dp_wish *w, int pod, int ctr)
{
    size_t reusable, n_free = free_and_reusable(pod, ctr, &reusable), held = 0;

    for (int i = 0; i < IDS; i++)
        held += o.holds[pod][ctr][i];
    if (o.entry[pod][ctr] && (int64_t)held != w->count)
        assert_int_equal(e->code, ERR_PRECONDITION);
    else if (s.r.n_healthy == 0 || o.entry[pod][ctr])
        assert_int_equal(e->code, ERR_UNAVAILABLE);
    else
        assert_true(e->code == ERR_EXHAUSTED && n_free + reusable < (size_t)w->count);
}

static void ask(void)
{
    int pod = (int)chance(PODS), ctr = (int)chance(CONTAINERS);
    struct dp_wish w = { .pod_uid = pods[pod], .container = containers[ctr].container };
    struct strs reusable = { 0 };
    struct dp_choice c = { 0 };
    struct err e = { 0 };
    const char *answer[8];
    enum err_code code;

    s.r.options.preferred = chance(2) != 0;
    w.count = 1 + chance(6);
    w.has_hint = chance(2) != 0;
    w.numa = chance(8);
    assert_int_equal(dp_reusable(s.h, pods[pod], DEV, containers, (size_t)ctr, &reusable, &e), ERR_OK);
    w.reusable = strs_list(&reusable);
    w.n_reusable = reusable.n;
    code = dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e);
    if (code == ERR_OK && c.ask) {
        check_question(&c, &w, pod, ctr);
        for (size_t i = 0; i < ARRAY_LEN(answer); i++)
            answer[i] = chance(4) == 0 ? "nobody's" : ids[chance(IDS)];
        if (chance(4) == 0)
            change_list();
        code = dp_choose_end(&s.r, DEV, s.h, &w, answer, chance(ARRAY_LEN(answer) + 1), &c, &e);
    }
    if (code != ERR_OK) {
        check_error(&e, &w, pod, ctr);
    } else if (c.kept) {
        assert_true(o.entry[pod][ctr]);
    } else {
        assert_false(o.entry[pod][ctr]);
        check_choice(&c, &w, pod, ctr);
        hold(&c, pod, ctr);
    }
    dp_choice_done(&c);
    strs_done(&reusable);
}

/* Nothing is held by two pods (owner() checks that), nothing lost, nothing else is held. */
static void check_all(void)
{
    size_t entries = 0, expected = 0, owned = 0;

    for (int i = 0; i < IDS; i++) {
        const char *held = dp_holdings_owner(s.h, DEV, ids[i]);

        assert_true(owner(i) == -1 ? held == NULL : held != NULL && strcmp(held, pods[owner(i)]) == 0);
        owned += owner(i) != -1;
    }
    for (const struct dp_owned *x = dp_holdings_owned_next(s.h, DEV, NULL); x != NULL;
         x = dp_holdings_owned_next(s.h, DEV, x))
        owned--;
    assert_int_equal(owned, 0);
    for (const struct dp_holding *x = dp_holdings_next(s.h, NULL); x != NULL; x = dp_holdings_next(s.h, x))
        entries++;
    for (int p = 0; p < PODS; p++)
        for (int c = 0; c < CONTAINERS; c++)
            expected += o.entry[p][c];
    assert_int_equal(entries, expected);
}

static void a_random_node_gives_no_device_twice_and_loses_none(void **state)
{
    const char *given = getenv("RANDOM_SEED"), *steps = getenv("RANDOM_STEPS");
    long n = steps != NULL ? atol(steps) : 100000;

    (void)state;
    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + 1;
    print_message("RANDOM_SEED=%llu\n", (unsigned long long)seed);
    for (int i = 0; i < IDS; i++)
        snprintf(ids[i], sizeof(ids[i]), "d%d", i);
    for (int p = 0; p < PODS; p++)
        snprintf(pods[p], sizeof(pods[p]), "p%d", p);
    scene_open(&s, "", false);
    for (long i = 0; i < n; i++) {
        unsigned what = chance(10);

        if (what == 0)
            change_list();
        else if (what < 4)
            drop();
        else
            ask();
        check_all();
    }
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        a_random_node_gives_no_device_twice_and_loses_none) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
