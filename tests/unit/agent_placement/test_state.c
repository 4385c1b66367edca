/* SPDX-License-Identifier: Apache-2.0 */
/* The state files, as kubelet 1.36 accepts and refuses them. */
#include "tests/unit/agent_placement/helper.h"

#define CPUS_BODY                                                                                            \
    "{\"policyName\":\"static\",\"defaultCpuSet\":\"0,2-3\",\"entries\":{\"0f3a-17\":{\"main\":\"1\","       \
    "\"side\":\"4-5\"}}"
#define MEMORY_BODY                                                                                          \
    "{\"policyName\":\"Static\",\"machineState\":{\"0\":{\"numberOfAssignments\":1,\"memoryMap\":{"          \
    "\"memory\":{"                                                                                           \
    "\"total\":4096,\"systemReserved\":96,\"allocatable\":4000,\"reserved\":1000,\"free\":3000}},\"cells\":" \
    "[0]}},"                                                                                                 \
    "\"entries\":{\"0f3a-17\":{\"main\":[{\"numaAffinity\":[0],\"type\":\"memory\",\"size\":1000}]}}"

static enum err_code read_cpus(const char *text)
{
    struct pl_cpu_state s = { 0 };
    struct err e = { 0 };
    str_auto policy = NULL;

    if (pl_cpu_state_read(text, strlen(text), &s, &policy, &e) == ERR_OK) {
        assert_int_equal(s.n, 2);
        assert_true(cpus_has(&pl_cpu_state_find(&s, "0f3a-17", "side")->cpus, 5));
    }
    pl_cpu_state_done(&s);
    return e.code;
}

static enum err_code read_memory(const char *text)
{
    struct pl_memory_state s = { 0 };
    struct err e = { 0 };
    str_auto policy = NULL;

    if (pl_memory_state_read(text, strlen(text), &s, &policy, &e) == ERR_OK)
        assert_int_equal(pl_memory_state_find(&s, "0f3a-17", "main")->v[0].size, 1000);
    pl_memory_state_done(&s);
    return e.code;
}

static void the_checksum_of_either_name_of_the_type_is_accepted(void **state)
{
    (void)state;
    assert_int_equal(read_cpus(CPUS_BODY ",\"checksum\":451776106}"), ERR_OK);
    assert_int_equal(read_cpus(CPUS_BODY ",\"checksum\":4058240750}"), ERR_OK);
    assert_int_equal(read_memory(MEMORY_BODY ",\"checksum\":1881057116}"), ERR_OK);
    assert_int_equal(read_memory(MEMORY_BODY ",\"checksum\":278055921}"), ERR_OK);
}

static void a_file_without_a_checksum_is_accepted(void **state)
{
    (void)state;
    assert_int_equal(read_cpus(CPUS_BODY "}"), ERR_OK);
    assert_int_equal(read_cpus(CPUS_BODY ",\"checksum\":0}"), ERR_OK);
    assert_int_equal(read_memory(MEMORY_BODY "}"), ERR_OK);
    assert_int_equal(read_memory(MEMORY_BODY ",\"checksum\":0}"), ERR_OK);
}

static void another_checksum_is_refused(void **state)
{
    (void)state;
    assert_int_equal(read_cpus(CPUS_BODY ",\"checksum\":451776107}"), ERR_DATA_LOSS);
    assert_int_equal(read_cpus(CPUS_BODY ",\"checksum\":986125677}"), ERR_DATA_LOSS); /* of another version */
    assert_int_equal(read_cpus(CPUS_BODY ",\"checksum\":\"451776106\"}"), ERR_DATA_LOSS);
    assert_int_equal(read_memory(MEMORY_BODY ",\"checksum\":1881057117}"), ERR_DATA_LOSS);
    assert_int_equal(read_memory(MEMORY_BODY ",\"checksum\":1507531519}"), ERR_DATA_LOSS);
}

/* Pod `first` has memory of both nodes together, then `second` is given node 1 alone. */
static void a_group_is_left(const char *first, const char *second)
{
    const struct pl_reserved reserved = { .node = 0, .type = "memory", .bytes = 1 << 20 };
    const struct pl_memory_want v[] = {
        { .pod = first, .container = "c", .v = { { "memory", 10ull << 30 } }, .n = 1 },
        { .pod = second, .container = "c", .v = { { "memory", 1 << 20 } }, .n = 1 },
    };
    const struct pl_hint any = { .preferred = false }, one = { .nodes = 2 };
    mem_auto struct pl_machine *m = machine_of(1, 2, 1, 1, 1, false);
    mem_auto struct pl_memory_manager *g = calloc(1, sizeof(*g));
    struct pl_memory_state s = { 0 };
    struct err e = { 0 };

    assert_non_null(g);
    assert_int_equal(pl_memory_manager_init(g, m, &reserved, 1, &e), ERR_OK);
    assert_int_equal(pl_memory_manager_start(g, &s, &e), ERR_OK);
    assert_int_equal(pl_memory_allocate(g, &v[0], 0, &any, &e), ERR_OK);
    assert_int_equal(pl_memory_allocate(g, &v[1], 0, &one, &e), ERR_OK);
    assert_int_equal(pl_memory_cell(&g->state, 0)->group, 3);
    assert_int_equal(pl_memory_cell(&g->state, 1)->group, 2);
    s = g->state;
    g->state = (struct pl_memory_state){ 0 };
    assert_int_equal(pl_memory_manager_start(g, &s, &e), ERR_OK);
    assert_int_equal(pl_memory_cell(&g->state, 1)->group, 2);
    /* Of no block. */
    s = g->state;
    g->state = (struct pl_memory_state){ 0 };
    pl_memory_cell(&s, 0)->group = 1;
    assert_int_equal(pl_memory_manager_start(g, &s, &e), ERR_PRECONDITION);
    pl_memory_state_done(&s);
    pl_memory_manager_done(g);
}

static void a_node_that_left_its_group_is_accepted_in_each_order_of_pods(void **state)
{
    (void)state;
    a_group_is_left("a", "b");
    a_group_is_left("b", "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_of_either_name_of_the_type_is_accepted),
        cmocka_unit_test(a_file_without_a_checksum_is_accepted),
        cmocka_unit_test(another_checksum_is_refused),
        cmocka_unit_test(a_node_that_left_its_group_is_accepted_in_each_order_of_pods),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
