/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and their processors and memory: given at admission, with devices in one agreement, and released. */
#include "tests/unit/agent_pod/script_parts.h"

#include "tests/unit/agent_pod/device/provider.h"

#include "agent/pod/placement/internal.h"

#define CTR(name, cpu, more)                                                                                 \
    "{name: " name ", image: x, resources: {limits: {cpu: " cpu ", memory: 1Gi" more "}}}"
#define OWN(cpu) "containers: [" CTR("main", cpu, "") "]"

/* Two nodes of four processors, without sibling threads; processor 0 is reserved. */
static void begin(struct world *w, enum pl_policy policy, struct pl_cpu_options o)
{
    struct placement_node *part = placement_node(&w->node);
    struct pl_reserved reserved = { .type = "memory", .bytes = 1ull << 30 };
    struct cpus first = { .w = { 1 } };
    struct err e = { 0 };

    part->machine = calloc(1, sizeof(*part->machine));
    assert_non_null(part->machine);
    for (unsigned i = 0; i < 8; i++) {
        cpus_add(&part->machine->cpus, i);
        for (int level = 0; level < PL_LEVELS; level++)
            part->machine->cpu[i].in[level] = level == PL_CORE ? (int32_t)(i / 2 * 2) : (int32_t)(i / 4);
    }
    part->machine->n_nodes = 2;
    for (unsigned i = 0; i < 2; i++)
        part->machine->node[i] = (struct pl_node){ .id = i, .memory = 4ull << 30 };
    pl_machine_count(part->machine);
    part->topology = (struct pl_topology){ .policy = policy };
    part->cpu = part->memory = true;
    w->node.o.cpu_milli = 8000;
    device_node(&w->node)->machine.nodes = 3;
    assert_int_equal(pl_cpu_manager_init(&part->cpus, part->machine, &o, 1, &first, &e), ERR_OK);
    assert_int_equal(pl_memory_manager_init(&part->memories, part->machine, &reserved, 1, &e), ERR_OK);
    assert_int_equal(placement_read(&w->node, &e), ERR_OK);
}

static struct pod *find(struct world *w, const char *name)
{
    return pods_find(&w->node, "default", name);
}

static void expect(const struct pod *p, size_t i, const char *cpus, const char *mems)
{
    char got[CPUS_TEXT_SIZE], nodes[256];

    placement_lists(p->ctrs[i], got, nodes);
    assert_string_equal(got, cpus);
    assert_string_equal(nodes, mems);
}

static void a_guaranteed_container_gets_whole_processors_and_others_share_the_rest(void **state)
{
    struct world *w = *state;
    struct pod *a, *b;

    begin(w, PL_POLICY_NONE, (struct pl_cpu_options){ 0 });
    b = script_pod(w, "b", "containers: [{name: main, image: x}]");
    script_turn(w);
    expect(b, 0, "0-7", "");
    a = script_pod(w, "a", OWN("2"));
    script_turn(w);
    assert_int_equal(a->state, POD_STARTING);
    expect(a, 0, "2-3", "0");
    expect(b, 0, "0-1,4-7", "");
    assert_true(placement_is_exclusive(a->ctrs[0]));
    assert_false(placement_pod_is_exclusive(b));
    assert_non_null(placement_refuses_resize(a, b->api)); /* without its cpu request */
    assert_null(placement_refuses_resize(a, a->api));
    assert_null(placement_refuses_resize(b, a->api));
}

static void fractions_and_other_classes_share(void **state)
{
    struct world *w = *state;
    struct pod *a, *b;

    begin(w, PL_POLICY_NONE, (struct pl_cpu_options){ 0 });
    a = script_pod(w, "a", OWN("1500m"));
    b = script_pod(w, "b",
                   "containers: [{name: main, image: x, resources: {limits: {cpu: 2, memory: 1Gi}, requests: "
                   "{cpu: 1}}}]");
    script_turn(w);
    expect(a, 0, "0-7", "0");
    expect(b, 0, "0-7", "");
}

static void init_containers_give_theirs_to_later_ones_and_sidecars_keep_theirs(void **state)
{
    struct world *w = *state;
    struct pod *a;

    begin(w, PL_POLICY_NONE, (struct pl_cpu_options){ 0 });
    a = script_pod(
        w, "a",
        "initContainers: [{name: side, image: x, restartPolicy: Always, resources: {limits: {cpu: 1, "
        "memory: 1Gi}}}, " CTR("init", "2", "") "], containers: [" CTR("main", "2", "") "]");
    script_turn(w);
    assert_int_equal(a->state, POD_STARTING);
    expect(a, 0, "1", "0");
    expect(a, 1, "2-3", "0");
    expect(a, 2, "2-3", "0");
}

static void too_few_processors_reject_the_pod_in_kubelets_words(void **state)
{
    struct world *w = *state;

    begin(w, PL_POLICY_NONE, (struct pl_cpu_options){ 0 });
    script_pod(w, "a", OWN("8"));
    script_turn(w);
    assert_string_equal(find(w, "a")->reason, "UnexpectedAdmissionError");
    assert_string_equal(
        find(w, "a")->message,
        "Pod was rejected: Allocate failed due to not enough cpus available to satisfy request: "
        "requested=8, available=7, which is unexpected");
    assert_int_equal(placement_cpus(&w->node)->state.n, 0);
}

static void half_a_core_is_an_alignment_error(void **state)
{
    struct world *w = *state;

    begin(w, PL_POLICY_NONE, (struct pl_cpu_options){ .full_cores = true });
    script_pod(w, "a", OWN("3"));
    script_turn(w);
    assert_string_equal(find(w, "a")->reason, "SMTAlignmentError");
    assert_string_equal(
        find(w, "a")->message,
        "Pod was rejected: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
}

static void what_no_node_has_alone_is_a_topology_error(void **state)
{
    struct world *w = *state;

    begin(w, PL_POLICY_SINGLE_NODE, (struct pl_cpu_options){ 0 });
    script_pod(w, "a", "containers: [" CTR("one", "2", "") ", " CTR("two", "5", "") "]");
    script_turn(w);
    assert_string_equal(find(w, "a")->reason, "TopologyAffinityError");
    assert_int_equal(placement_cpus(&w->node)->state.n, 0);
    assert_int_equal(placement_memory(&w->node)->state.n, 0);
}

static void processors_and_memory_follow_the_device(void **state)
{
    struct world *w = *state;
    struct pod *a;

    begin(w, PL_POLICY_SINGLE_NODE, (struct pl_cpu_options){ 0 });
    provider_comes(w, &provider_one, DEV, "dev-1@1", (struct dp_options){ 0 });
    a = script_pod(w, "a", "containers: [" CTR("main", "2", ", " DEV ": 1") "]");
    script_turn(w);
    assert_string_equal(provider.ids, "dev-1");
    provider_allocates(w, NULL);
    assert_int_equal(a->state, POD_STARTING);
    expect(a, 0, "4-5", "1");
}

static void what_a_pod_had_is_free_when_it_has_ended(void **state)
{
    struct world *w = *state;

    begin(w, PL_POLICY_NONE, (struct pl_cpu_options){ 0 });
    script_pod(w, "a", OWN("2"));
    script_turn(w);
    assert_int_equal(placement_cpus(&w->node)->state.n, 1);
    devices_release(find(w, "a"));
    assert_int_equal(placement_cpus(&w->node)->state.n, 0);
    assert_int_equal(placement_memory(&w->node)->state.n, 0);
    assert_int_equal(cpus_count(&placement_cpus(&w->node)->state.shared), 8);
}

static void containers_wait_until_the_state_is_written(void **state)
{
    struct world *w = *state;
    struct pl_cpu_state s = { 0 };
    struct pod *a;
    struct err e = { 0 };
    str_auto text = NULL, *policy = NULL;
    char path[512];
    size_t n;

    begin(w, PL_POLICY_NONE, (struct pl_cpu_options){ 0 });
    a = script_pod(w, "a", OWN("2"));
    script_turn(w);
    while (!placement_durable(a))
        uv_run(&w->loop, UV_RUN_ONCE);
    snprintf(path, sizeof(path), "%s/cpu_manager_state", w->dir);
    assert_int_equal(fs_read_at(AT_FDCWD, path, PL_STATE_MAX, &text, &n, &e), ERR_OK);
    assert_int_equal(pl_cpu_state_read(text, n, &s, &policy, &e), ERR_OK);
    assert_non_null(pl_cpu_state_find(&s, a->uid, "main"));
    pl_cpu_state_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROVIDER_TEST(a_guaranteed_container_gets_whole_processors_and_others_share_the_rest),
        PROVIDER_TEST(fractions_and_other_classes_share),
        PROVIDER_TEST(init_containers_give_theirs_to_later_ones_and_sidecars_keep_theirs),
        PROVIDER_TEST(too_few_processors_reject_the_pod_in_kubelets_words),
        PROVIDER_TEST(half_a_core_is_an_alignment_error),
        PROVIDER_TEST(what_no_node_has_alone_is_a_topology_error),
        PROVIDER_TEST(processors_and_memory_follow_the_device),
        PROVIDER_TEST(what_a_pod_had_is_free_when_it_has_ended),
        PROVIDER_TEST(containers_wait_until_the_state_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
