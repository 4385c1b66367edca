/* SPDX-License-Identifier: Apache-2.0 */
/* The order of pods, by tables. */
#include "tests/unit/agent_eviction/helper.h"

#include "tests/unit/agent_eviction/rank_cases.h"

static void names_are(const char *about, const struct ev_pod **v, size_t n, const char *want)
{
    char got[512] = "";

    for (size_t i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i > 0 ? " " : "",
                 strchr(v[i]->key, '/') + 1);
    if (strcmp(got, want) != 0)
        fail_msg("%s: %s, not %s", about, got, want);
}

static void every_row_of_the_table_holds(void **state)
{
    const struct ev_pod *order[PODS_MAX];
    struct pods pods;

    (void)state;
    assert_true(ARRAY_LEN(rank_cases) >= 100);
    for (size_t i = 0; i < ARRAY_LEN(rank_cases); i++) {
        const struct rank_case *c = &rank_cases[i];

        read_pods(c->pods, c->signal, &pods);
        for (size_t k = 0; k < pods.n; k++)
            order[k] = &pods.v[k];
        ev_rank(c->signal, EV_LAYOUT_ONE, order, pods.n);
        names_are(c->about, order, pods.n, c->order);
    }
}

/* What each signal measures of a pod whose layer, log and volume have 1, 10 and 100 bytes, and 1000, 10000,
 * 100000 inodes. */
static const struct measured {
    enum ev_signal signal;
    uint64_t one, imagefs, split;
} measured[] = {
    { EV_NODEFS, 111, 110, 111 },
    { EV_IMAGEFS, 111, 1, 0 },
    { EV_CONTAINERFS, 111, 1, 111 },
    { EV_NODEFS_INODES, 111000, 110000, 111000 },
    { EV_IMAGEFS_INODES, 111000, 1000, 0 },
    { EV_CONTAINERFS_INODES, 111000, 1000, 111000 },
    { EV_MEMORY, 7, 7, 7 },
    { EV_ALLOCATABLE_MEMORY, 7, 7, 7 },
    { EV_PID, 3, 3, 3 },
};

static uint64_t usage(enum ev_signal s, enum ev_layout layout, const struct ev_pod *p)
{
    uint64_t ret, request;

    assert_true(ev_usage(s, layout, p, &ret, &request));
    return ret;
}

static void a_signal_measures_what_is_on_its_file_system(void **state)
{
    const struct ev_container containers[] = {
        { .name = "c", .layer_known = true, .log_known = true, .layer = { 1, 1000 }, .log = { 10, 10000 } },
        { .name = "unknown", .layer = { 5, 5 }, .log = { 5, 5 } },
    };
    const struct ev_pod p = { .memory_known = true,
                              .layers_known = true,
                              .rest_known = true,
                              .processes_known = true,
                              .memory = 7,
                              .processes = 3,
                              .volumes = { 100, 100000 },
                              .containers = containers,
                              .n_containers = 2 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(measured); i++) {
        assert_int_equal(usage(measured[i].signal, EV_LAYOUT_ONE, &p), measured[i].one);
        assert_int_equal(usage(measured[i].signal, EV_LAYOUT_IMAGEFS, &p), measured[i].imagefs);
        assert_int_equal(usage(measured[i].signal, EV_LAYOUT_SPLIT, &p), measured[i].split);
    }
}

static void what_is_not_known_decides_nothing_about_another_file_system(void **state)
{
    const struct ev_container c = { .layer_known = true, .layer = { 7, 70 } };
    const struct ev_pod p = { .layers_known = true, .containers = &c, .n_containers = 1 };
    uint64_t used, request;

    (void)state;
    assert_true(ev_usage(EV_IMAGEFS, EV_LAYOUT_IMAGEFS, &p, &used, &request));
    assert_int_equal(used, 7);
    assert_false(ev_usage(EV_NODEFS, EV_LAYOUT_IMAGEFS, &p, &used, &request));
    assert_false(ev_usage(EV_NODEFS, EV_LAYOUT_ONE, &p, &used, &request));
}

static void sums_that_are_too_large_stay_at_the_largest_number(void **state)
{
    const struct ev_container c = {
        .layer_known = true, .log_known = true, .layer = { UINT64_MAX, UINT64_MAX }, .log = { 9, 9 }
    };
    const struct ev_pod p = {
        .layers_known = true, .rest_known = true, .volumes = { 5, 5 }, .containers = &c, .n_containers = 1
    };

    (void)state;
    assert_true(usage(EV_NODEFS, EV_LAYOUT_ONE, &p) == UINT64_MAX);
    assert_true(usage(EV_NODEFS_INODES, EV_LAYOUT_ONE, &p) == UINT64_MAX);
}

static void a_thousand_pods_are_sorted(void **state)
{
    static struct ev_pod pods[1000];
    static const struct ev_pod *order[1000];

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        pods[i] =
            (struct ev_pod){ .memory_known = true, .memory = i * 7919 % 1000, .priority = (int32_t)(i % 3) };
        order[i] = &pods[i];
    }
    ev_rank(EV_MEMORY, EV_LAYOUT_ONE, order, 1000);
    for (size_t i = 1; i + 1 < 1000; i++) /* the one without usage is last */
        assert_true(
            order[i - 1]->priority < order[i]->priority ||
            (order[i - 1]->priority == order[i]->priority && order[i - 1]->memory >= order[i]->memory));
    assert_int_equal(order[999]->memory, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table_holds),
        cmocka_unit_test(a_signal_measures_what_is_on_its_file_system),
        cmocka_unit_test(what_is_not_known_decides_nothing_about_another_file_system),
        cmocka_unit_test(sums_that_are_too_large_stay_at_the_largest_number),
        cmocka_unit_test(a_thousand_pods_are_sorted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
