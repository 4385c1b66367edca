/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as a real kubelet writes them, word for word, with the numbers of recorded evictions. */
#include "tests/unit/agent_eviction/helper.h"

#include "base/codec/json.h"

static struct quantity q(const char *text)
{
    struct quantity ret = { 0 };

    assert_int_equal(quantity_parse(text, &ret, ERR_IGNORED), ERR_OK);
    return ret;
}

static struct ev_crossing crossing(enum ev_signal s, const char *line, uint64_t available, uint64_t capacity)
{
    struct ev_crossing c = { .threshold.signal = s, .value = { true, available, capacity } };

    assert_int_equal(ev_amount_parse(line, false, &c.threshold.value, ERR_IGNORED), ERR_OK);
    c.line = ev_amount_of(&c.threshold.value, capacity);
    return c;
}

static void text_is(const struct ev_crossing *c, const struct ev_pod *p, const char *want)
{
    buf_auto text = BUF_INIT(4096);

    ev_message(c, p, &text);
    assert_string_equal(text.p, want);
}

static void annotation_is(const struct ev_crossing *c, const struct ev_pod *p, const char *name,
                          const char *want)
{
    json_auto_t *all = ev_annotations(c, p);

    assert_non_null(all);
    if (want == NULL)
        assert_null(json_object_get(all, name));
    else
        assert_string_equal(json_str(all, name), want);
}

static void memory_names_containers_over_their_requests(void **state)
{
    const struct ev_crossing c = crossing(EV_MEMORY, "23628Mi", 24138456ull << 10, 32ull << 30);
    const struct ev_container containers[] = {
        { .name = "c", .memory_known = true, .memory = 61776 << 10, .memory_request = q("10Mi") },
        { .name = "within", .memory_known = true, .memory = 100 << 20, .memory_request = q("100Mi") },
        { .name = "unknown", .memory = 100 << 20 },
    };
    const struct ev_pod p = {
        .key = "default/p", .memory_known = true, .containers = containers, .n_containers = 3
    };

    (void)state;
    text_is(
        &c, &p,
        "The node was low on resource: memory. Threshold quantity: 23628Mi, available: 24138456Ki. Container "
        "c was using 61776Ki, request is 10Mi, has larger consumption of memory. ");
    annotation_is(&c, &p, "offending_containers", "c");
    annotation_is(&c, &p, "offending_containers_usage", "61776Ki");
    annotation_is(&c, &p, "starved_resource", "memory");
    annotation_is(&c, &p, "offending_pod", NULL);
}

static void storage_counts_layers_and_logs(void **state)
{
    const struct ev_crossing c = crossing(EV_NODEFS, "1227Mi", 1216032 << 10, 2ull << 30);
    const struct ev_container containers[] = {
        { .name = "c2",
          .layer_known = true,
          .log_known = true,
          .layer = { 35840 << 10, 1 },
          .log = { 8 << 10, 1 },
          .storage_request = q("20Mi") },
        { .name = "c1", .layer_known = true, .log_known = true, .layer = { 86024 << 10, 1 } },
    };
    const struct ev_pod p = { .key = "default/p",
                              .layers_known = true,
                              .rest_known = true,
                              .volumes = { 1 << 30, 1 },
                              .containers = containers,
                              .n_containers = 2 };

    (void)state;
    text_is(
        &c, &p,
        "The node was low on resource: ephemeral-storage. Threshold quantity: 1227Mi, available: 1216032Ki. "
        "Container c2 was using 35848Ki, request is 20Mi, has larger consumption of ephemeral-storage. "
        "Container c1 was using 86024Ki, request is 0, has larger consumption of ephemeral-storage. ");
    annotation_is(&c, &p, "offending_containers", "c2,c1");
    annotation_is(&c, &p, "offending_containers_usage", "35848Ki,86024Ki");
}

static void inodes_and_processes_name_no_container(void **state)
{
    const struct ev_container one = {
        .name = "c", .layer_known = true, .log_known = true, .layer = { 5 << 20, 70000 }
    };
    const struct ev_pod p = {
        .key = "default/p", .layers_known = true, .rest_known = true, .containers = &one, .n_containers = 1
    };
    struct ev_crossing c = crossing(EV_NODEFS_INODES, "5%", 55354, 1119264);

    (void)state;
    text_is(&c, &p, "The node was low on resource: inodes. Threshold quantity: 55963, available: 55354. ");
    annotation_is(&c, &p, "offending_containers", "");
    annotation_is(&c, &p, "starved_resource", "inodes");
    c = crossing(EV_PID, "30351", 30350, 32768);
    text_is(&c, &p, "The node was low on resource: pids. Threshold quantity: 30351, available: 30350. ");
}

static void requests_of_the_pod_name_the_pod(void **state)
{
    const struct ev_crossing c = crossing(EV_MEMORY, "23674Mi", 24221192ull << 10, 32ull << 30);
    const struct ev_container one = { .name = "c", .memory_known = true, .memory = 256728 << 10 };
    const struct ev_pod p = { .key = "default/plr",
                              .memory_known = true,
                              .memory = 191288 << 10,
                              .memory_of_pod = true,
                              .pod_memory_request = q("100Mi"),
                              .containers = &one,
                              .n_containers = 1 };

    (void)state;
    text_is(
        &c, &p,
        "The node was low on resource: memory. Threshold quantity: 23674Mi, available: 24221192Ki. Pod plr "
        "was using 191288Ki, request is 100Mi, has larger consumption of memory. Container c was using "
        "256728Ki, request is 0, has larger consumption of memory. ");
    annotation_is(&c, &p, "offending_pod", "plr");
    annotation_is(&c, &p, "offending_pod_usage", "191288Ki");
}

static void without_figures_only_the_node_is_described(void **state)
{
    const struct ev_crossing c = crossing(EV_ALLOCATABLE_MEMORY, "100M", 0, 1 << 30);
    const struct ev_pod p = { .key = "default/p", .memory_of_pod = true };
    buf_auto attempt = BUF_INIT(100);

    (void)state;
    text_is(&c, &p, "The node was low on resource: memory. Threshold quantity: 100M, available: 0. ");
    ev_attempt_message(&c, &attempt);
    assert_string_equal(attempt.p, "Attempting to reclaim memory");
}

static void conditions_have_kubelets_words(void **state)
{
    (void)state;
    assert_string_equal(ev_condition_reason(EV_MEMORY_PRESSURE, true), "KubeletHasInsufficientMemory");
    assert_string_equal(ev_condition_message(EV_DISK_PRESSURE, true), "kubelet has disk pressure");
    assert_string_equal(ev_condition_reason(EV_DISK_PRESSURE, false), "KubeletHasNoDiskPressure");
    assert_string_equal(ev_condition_event(EV_PID_PRESSURE, true), "NodeHasInsufficientPID");
    assert_string_equal(ev_condition_message(EV_PID_PRESSURE, false), "kubelet has sufficient PID available");
    assert_string_equal(ev_condition_taint(EV_PID_PRESSURE), "node.kubernetes.io/pid-pressure");
    for (enum ev_signal s = 0; s < EV_SIGNALS; s++)
        assert_int_equal(ev_signal_parse(ev_signal_name(s)), s);
    assert_int_equal(ev_signal_parse("memory"), EV_SIGNALS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_names_containers_over_their_requests),
        cmocka_unit_test(storage_counts_layers_and_logs),
        cmocka_unit_test(inodes_and_processes_name_no_container),
        cmocka_unit_test(requests_of_the_pod_name_the_pod),
        cmocka_unit_test(without_figures_only_the_node_is_described),
        cmocka_unit_test(conditions_have_kubelets_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
