/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/decide.h"

#include "tests/unit/agent_api/helper.h"

#define PODS_MAX 64
#define TURNS_MAX 400

/* ---- a node in miniature: pods start, become available, and end, one thing a turn ---- */

struct pod_ {
    unsigned number;
    unsigned version;
    bool kept, available;
};

struct world {
    struct workload_want want;
    unsigned version;
    struct pod_ pods[PODS_MAX];
    size_t n;
    unsigned seed;
    unsigned most, least_available; /* kept ones, since the last settle() */
};

static unsigned chance(struct world *w, unsigned of)
{
    w->seed = w->seed * 1103515245u + 12345u;
    return (w->seed >> 16) % of;
}

static size_t step(struct world *w)
{
    struct workload_seen seen[PODS_MAX];
    struct workload_step steps[PODS_MAX];
    size_t n;

    for (size_t i = 0; i < w->n; i++)
        seen[i] = (struct workload_seen){ .number = w->pods[i].number,
                                          .current = w->want.kind == API_KIND_REPLICA_SET ||
                                                     w->pods[i].version == w->version,
                                          .kept = w->pods[i].kept,
                                          .available = w->pods[i].available };
    n = workload_decide(&w->want, seen, w->n, steps, PODS_MAX);
    for (size_t i = 0; i < n; i++)
        if (!steps[i].create)
            w->pods[steps[i].index].kept = false;
    for (size_t i = 0; i < n; i++) {
        if (!steps[i].create)
            continue;
        for (size_t k = 0; k < w->n; k++) /* a name is free before it is used again */
            assert_false(w->pods[k].number == steps[i].number &&
                         (w->pods[k].version == w->version || w->want.kind == API_KIND_STATEFUL_SET ||
                          w->want.kind == API_KIND_REPLICA_SET));
        assert_true(w->n < PODS_MAX);
        w->pods[w->n++] = (struct pod_){ .number = steps[i].number, .version = w->version, .kept = true };
    }
    return n;
}

static void measure(struct world *w)
{
    unsigned kept = 0, available = 0;

    for (size_t i = 0; i < w->n; i++) {
        kept += w->pods[i].kept;
        available += w->pods[i].kept && w->pods[i].available;
    }
    w->most = kept > w->most ? kept : w->most;
    w->least_available = available < w->least_available ? available : w->least_available;
}

/* One random thing happens. False: there is nothing left to happen. */
static bool happen(struct world *w)
{
    size_t from = w->n > 0 ? chance(w, (unsigned)w->n) : 0;

    for (size_t i = 0; i < w->n; i++) {
        size_t k = (from + i) % w->n;

        if (!w->pods[k].kept) {
            w->pods[k] = w->pods[--w->n];
            return true;
        }
        if (!w->pods[k].available) {
            w->pods[k].available = true;
            return true;
        }
    }
    return false;
}

static void settle(struct world *w)
{
    unsigned turns = 0;

    w->most = 0;
    w->least_available = UINT32_MAX;
    for (;;) {
        while (step(w) > 0)
            measure(w);
        measure(w);
        if (!happen(w))
            break;
        assert_true(++turns < TURNS_MAX);
    }
    assert_int_equal(step(w), 0); /* the same facts again, as after a restart of the agent */
}

static void has(const struct world *w, unsigned replicas, unsigned version)
{
    assert_int_equal(w->n, replicas);
    for (size_t i = 0; i < w->n; i++) {
        assert_true(w->pods[i].kept && w->pods[i].available);
        assert_int_equal(w->pods[i].version, version);
        assert_true(w->pods[i].number - w->want.first < replicas);
    }
}

static struct world world_of(enum api_kind kind, unsigned replicas)
{
    return (
        struct world){ .want = { .kind = kind, .replicas = replicas, .surge = 1 }, .version = 1, .seed = 7 };
}

/* ---- tests ---- */

static void a_rolling_update_stays_within_its_bounds(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 300; seed++) {
        struct world w = world_of(API_KIND_DEPLOYMENT, 1 + seed % 7);

        w.seed = seed;
        w.want.surge = seed / 7 % 3;
        w.want.unavailable = w.want.surge == 0 ? 1 + seed % 2 : seed % 3;
        settle(&w);
        has(&w, w.want.replicas, 1);
        assert_true(w.most <= w.want.replicas + w.want.surge);
        w.version = 2;
        settle(&w);
        has(&w, w.want.replicas, 2);
        assert_true(w.most <= w.want.replicas + w.want.surge);
        assert_true(w.least_available + w.want.unavailable >= w.want.replicas);
    }
}

static void an_update_that_never_becomes_ready_keeps_the_old_pods(void **state)
{
    struct world w = world_of(API_KIND_DEPLOYMENT, 3);
    unsigned available = 0;

    (void)state;
    settle(&w);
    w.version = 2;
    for (int i = 0; i < 10; i++)
        step(&w);
    for (size_t i = 0; i < w.n; i++)
        available += w.pods[i].kept && w.pods[i].available;
    assert_int_equal(available, 3);
    assert_int_equal(w.n, 4);
    w.version = 3; /* the repair replaces the broken one first */
    settle(&w);
    has(&w, 3, 3);
    assert_int_equal(w.least_available, 3);
}

static void recreate_ends_all_before_it_begins(void **state)
{
    struct world w = world_of(API_KIND_DEPLOYMENT, 3);

    (void)state;
    w.want.update = API_UPDATE_RECREATE;
    settle(&w);
    w.version = 2;
    assert_int_equal(step(&w), 3);
    assert_int_equal(step(&w), 0);
    settle(&w);
    has(&w, 3, 2);
    assert_int_equal(w.most, 3);
}

static void a_paused_deployment_is_scaled_down_and_not_updated(void **state)
{
    struct world w = world_of(API_KIND_DEPLOYMENT, 3);

    (void)state;
    settle(&w);
    w.want.paused = true;
    w.version = 2;
    assert_int_equal(step(&w), 0);
    w.version = 1;
    w.want.replicas = 1;
    settle(&w);
    has(&w, 1, 1);
}

static void scaling_keeps_the_lowest_numbers(void **state)
{
    static const enum api_kind kinds[] = { API_KIND_DEPLOYMENT, API_KIND_REPLICA_SET, API_KIND_STATEFUL_SET };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world w = world_of(kinds[i], 2);

        settle(&w);
        w.want.replicas = 5;
        settle(&w);
        has(&w, 5, 1);
        w.want.replicas = 3;
        settle(&w);
        has(&w, 3, 1);
        w.want.replicas = 0;
        settle(&w);
        has(&w, 0, 1);
    }
}

static void a_daemon_set_has_one_pod_in_turn(void **state)
{
    struct world w = world_of(API_KIND_DAEMON_SET, 1);

    (void)state;
    w.want.surge = 0;
    w.want.unavailable = 1;
    settle(&w);
    w.version = 2;
    assert_int_equal(step(&w), 1);
    assert_int_equal(step(&w), 0); /* the old one is ending */
    settle(&w);
    has(&w, 1, 2);
    assert_int_equal(w.most, 1);
}

static void a_stateful_set_goes_one_by_one(void **state)
{
    struct world w = world_of(API_KIND_STATEFUL_SET, 3);

    (void)state;
    assert_int_equal(step(&w), 1);
    assert_int_equal(w.pods[0].number, 0);
    assert_int_equal(step(&w), 0);
    settle(&w);
    has(&w, 3, 1);
    w.version = 2;
    assert_int_equal(step(&w), 1);
    assert_false(w.pods[2].kept);
    assert_int_equal(w.pods[2].number, 2); /* the highest first */
    settle(&w);
    has(&w, 3, 2);
    assert_true(w.least_available >= 1);
    w.want.partition = 2;
    w.version = 3;
    settle(&w);
    for (size_t i = 0; i < w.n; i++)
        assert_int_equal(w.pods[i].version, w.pods[i].number == 2 ? 3 : 2);
    w.want.first = 2;
    settle(&w);
    w.want.partition = 1; /* it counts from the first number */
    w.version = 4;
    settle(&w);
    for (size_t i = 0; i < w.n; i++)
        assert_int_equal(w.pods[i].version, w.pods[i].number == 2 ? 3 : 4);
}

static void a_stateful_set_repairs_an_update_that_is_not_ready(void **state)
{
    struct world w = world_of(API_KIND_STATEFUL_SET, 2);

    (void)state;
    settle(&w);
    w.version = 2;
    w.pods[1].available = false;
    assert_int_equal(step(&w), 1);
    assert_false(w.pods[1].kept);
    settle(&w);
    has(&w, 2, 2);
}

static void on_delete_replaces_only_what_is_gone(void **state)
{
    struct world w = world_of(API_KIND_STATEFUL_SET, 2);

    (void)state;
    w.want.update = API_UPDATE_ON_DELETE;
    settle(&w);
    w.version = 2;
    settle(&w);
    has(&w, 2, 1);
    w.n = 1;
    settle(&w);
    assert_int_equal(w.n, 2);
}

static void shares_are_numbers_or_parts(void **state)
{
    (void)state;
    assert_int_equal(workload_share("25%", "0", 4, true), 1);
    assert_int_equal(workload_share("25%", "0", 5, true), 2);
    assert_int_equal(workload_share("25%", "0", 5, false), 1);
    assert_int_equal(workload_share("3", "0", 5, false), 3);
    assert_int_equal(workload_share(NULL, "25%", 3, false), 0);
    assert_int_equal(workload_share("99999999999", "0", 1, true), INT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rolling_update_stays_within_its_bounds),
        cmocka_unit_test(an_update_that_never_becomes_ready_keeps_the_old_pods),
        cmocka_unit_test(recreate_ends_all_before_it_begins),
        cmocka_unit_test(a_paused_deployment_is_scaled_down_and_not_updated),
        cmocka_unit_test(scaling_keeps_the_lowest_numbers),
        cmocka_unit_test(a_daemon_set_has_one_pod_in_turn),
        cmocka_unit_test(a_stateful_set_goes_one_by_one),
        cmocka_unit_test(a_stateful_set_repairs_an_update_that_is_not_ready),
        cmocka_unit_test(on_delete_replaces_only_what_is_gone),
        cmocka_unit_test(shares_are_numbers_or_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
