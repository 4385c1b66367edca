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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_of_either_name_of_the_type_is_accepted),
        cmocka_unit_test(a_file_without_a_checksum_is_accepted),
        cmocka_unit_test(another_checksum_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
