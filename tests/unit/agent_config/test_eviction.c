/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of eviction as numbers, and what is refused. */
#include "helper.h"

#include "base/scope.h"

static const struct ev_settings *of(struct scratch *s, const char *text, const char *flags)
{
    str_auto file = str_printf("%s%s", KUBELET, text);

    put(s, "config.yaml", file);
    parses(s, flags);
    return &s->c.eviction;
}

static const struct ev_threshold *one(const struct ev_settings *s, enum ev_signal signal, bool soft)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].signal == signal && s->v[i].soft == soft)
            return &s->v[i];
    return NULL;
}

static void defaults_are_kubelets(void **state)
{
    const struct ev_settings *s = of(*state, "", "");

    assert_int_equal(s->n, 5);
    assert_int_equal(one(s, EV_MEMORY, false)->value.quantity, 100 << 20);
    assert_true(one(s, EV_NODEFS, false)->value.share == 10.0f / 100);
    assert_true(one(s, EV_NODEFS_INODES, false)->value.share == 5.0f / 100);
    assert_true(one(s, EV_IMAGEFS, false)->value.share == 15.0f / 100);
    assert_true(one(s, EV_IMAGEFS_INODES, false)->value.share == 5.0f / 100);
    assert_int_equal(s->transition_ms, 300000);
    assert_int_equal(s->max_pod_grace_s, 0);
}

static void settings_of_both_kinds_are_numbers(void **state)
{
    const struct ev_settings *s =
        of(*state,
           "evictionHard: {memory.available: 200Mi}\n"
           "evictionSoft: {memory.available: 10%, pid.available: '500'}\n"
           "evictionSoftGracePeriod: {memory.available: 1m30s, pid.available: 5s, nodefs.available: 1s}\n"
           "evictionMinimumReclaim: {memory.available: '0', pid.available: 1%}\n"
           "evictionPressureTransitionPeriod: 30s\nevictionMaxPodGracePeriod: -1\n",
           "");

    assert_int_equal(s->n, 3);
    assert_int_equal(one(s, EV_MEMORY, false)->value.quantity, 200 << 20);
    assert_int_equal(one(s, EV_MEMORY, true)->grace_ms, 90000);
    assert_int_equal(one(s, EV_PID, true)->value.quantity, 500);
    assert_true(one(s, EV_PID, true)->reclaim.share == 1.0f / 100);
    assert_int_equal(s->transition_ms, 30000);
    assert_int_equal(s->max_pod_grace_s, -1);
}

static void own_thresholds_replace_the_defaults_unless_merged(void **state)
{
    assert_int_equal(of(*state, "evictionHard: {pid.available: 1%}\n", "")->n, 1);
    assert_int_equal(of(*state, "evictionHard: {}\n", "")->n, 0);
    assert_int_equal(
        of(*state, "evictionHard: {pid.available: 1%}\nmergeDefaultEvictionSettings: true\n", "")->n, 6);
    assert_int_equal(of(*state, "", "--eviction-hard=memory.available<1Gi,nodefs.available<0%")->n, 1);
}

static void what_is_no_threshold_is_refused(void **state)
{
    struct scratch *s = *state;

    refused(s, "evictionHard: {memory.available: '0'}\n", "",
            "memory.available: \"0\" is not above 0; 0% sets no threshold");
    refused(s, "evictionHard: {memory.available: -1Gi}\n", "", "memory.available: \"-1Gi\" is negative");
    refused(s, "evictionHard: {memory.available: -1%}\n", "",
            "memory.available: \"-1%\" is not a percentage from 0% to 100%");
    refused(s, "evictionMinimumReclaim: {memory.available: nan%}\n", "",
            "memory.available: \"nan%\" is not a percentage from 0% to 100%");
    refused(s, "evictionSoftGracePeriod: {memory.available: 1x}\n", "",
            "memory.available: \"1x\" is not a duration like \"90s\"");
}

static void ignore(const char *setting, bool live, void *arg)
{
    (void)setting;
    *(bool *)arg = *(bool *)arg && live;
}

static void all_of_them_may_change_at_run_time(void **state)
{
    struct scratch *s = *state, next = { 0 };
    bool live = true;

    of(s, "", "");
    next = *s;
    next.c = (struct agent_config){ 0 };
    of(&next,
       "evictionHard: {memory.available: 1Gi}\nevictionSoft: {pid.available: '9'}\n"
       "evictionSoftGracePeriod: {pid.available: 1s}\nevictionPressureTransitionPeriod: 1s\n"
       "evictionMaxPodGracePeriod: 3\nevictionMinimumReclaim: {pid.available: '1'}\n"
       "mergeDefaultEvictionSettings: true\n",
       "");
    config_take(&s->c, &next.c, ignore, &live);
    assert_true(live);
    assert_int_equal(s->c.eviction.n, 6);
    assert_int_equal(s->c.eviction.transition_ms, 1000);
    assert_int_equal(s->c.eviction.max_pod_grace_s, 3);
    assert_int_equal(s->c.resources.evict_memory.bytes, 1 << 30);
    config_done(&next.c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(defaults_are_kubelets),
        T(settings_of_both_kinds_are_numbers),
        T(own_thresholds_replace_the_defaults_unless_merged),
        T(what_is_no_threshold_is_refused),
        T(all_of_them_may_change_at_run_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
