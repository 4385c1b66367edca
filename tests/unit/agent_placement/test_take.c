/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations of tests/fixtures/placement, and what the results have in common. */
#include "tests/unit/agent_placement/helper.h"

static struct pl_machine *machine_in(const char *text, const char *offline)
{
    int sockets, nodes, caches, cores, threads;
    char numbering;
    struct pl_machine *m;
    struct cpus off = cpus_of(strcmp(offline, "-") == 0 ? "" : offline);

    assert_int_equal(
        sscanf(text, "%d %d %d %d %d %c", &sockets, &nodes, &caches, &cores, &threads, &numbering), 6);
    m = machine_of(sockets, nodes, caches, cores, threads, numbering == 'a');
    m->cpus = cpus_without(&m->cpus, &off);
    cpus_each(cpu, &m->cpus)
    {
        struct cpus core = pl_cpus_in(m, &m->cpus, PL_CORE, m->cpu[cpu].in[PL_CORE]);

        m->cpu[cpu].in[PL_CORE] = (int32_t)cpus_next(&core, 0);
    }
    pl_machine_count(m);
    return m;
}

static void run_case(char *line)
{
    char *column[6] = { line };
    struct cpus available, expected, got = { 0 };
    struct err e = { 0 };
    char text[CPUS_TEXT_SIZE];
    unsigned request;
    enum err_code code;

    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 1; i < 6; i++) {
        char *bar = strstr(column[i - 1], " | ");

        assert_non_null(bar);
        *bar = '\0';
        column[i] = bar + 3;
    }
    mem_auto struct pl_machine *m = machine_in(column[0], column[1]);
    struct pl_take t = { .m = m,
                         .spread = strcmp(column[2], "spread") == 0,
                         .uncore_first = strcmp(column[2], "caches") == 0,
                         .only_free = true };

    available = cpus_of(column[3]);
    request = (unsigned)strtoul(column[4], NULL, 10);
    expected = cpus_of(column[5]);
    if (strcmp(column[2], "distributed") == 0)
        code = pl_take_distributed(&t, &available, request, 1, &got, &e);
    else if (strcmp(column[2], "groups") == 0)
        code = pl_take_distributed(&t, &available, request, pl_cpus_per_core(m), &got, &e);
    else
        code = pl_take_packed(&t, &available, request, &got, &e);
    assert_int_equal(code, ERR_OK);
    cpus_print(&got, text);
    if (!cpus_equal(&got, &expected))
        fail_msg("%s | %s | %s | %s | %s: %s is expected, not %s", column[0], column[1], column[2], column[3],
                 column[4], column[5], text);
}

static int run_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[4096];
    int n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        if (line[0] == '#')
            continue;
        run_case(line);
        n++;
    }
    fclose(f);
    print_message("%d cases\n", n);
    return n;
}

static void expected_processors_are_taken(void **state)
{
    (void)state;
    assert_true(run_file("tests/fixtures/placement/cases.txt") >= 200);
}

static void five_nodes_and_more_share_a_request_as_in_kubelet(void **state)
{
    (void)state;
    assert_true(run_file("tests/fixtures/placement/many-nodes.txt") >= 60);
}

static void cores_of_different_sizes_are_taken_as_by_kubelet_or_only_if_they_are_free(void **state)
{
    mem_auto struct pl_machine *m = machine_in("1 1 1 4 2 a", "7");
    struct pl_take t = { .m = m };
    struct cpus available = cpus_of("0,2-3"), kubelets = cpus_of("0-1"), free = cpus_of("0,2"), got;
    struct err e = { 0 };

    (void)state;
    /* Seven processors and four cores: one processor makes a core, although core 0 has another one. */
    assert_int_equal(pl_take_packed(&t, &available, 2, &got, &e), ERR_OK);
    assert_true(cpus_equal(&got, &kubelets));
    t.only_free = true;
    assert_int_equal(pl_take_packed(&t, &available, 2, &got, &e), ERR_OK);
    assert_true(cpus_equal(&got, &free));
}

static void a_manager_never_assigns_a_processor_that_is_not_free(void **state)
{
    mem_auto struct pl_machine *m = machine_in("1 1 1 4 2 a", "7");
    const struct pl_cpu_options o = { .full_cores = false };
    const struct cpus reserved = cpus_of("1");
    const struct pl_cpu_want v[] = { { "a", "c", PL_REGULAR, 3 }, { "b", "c", PL_REGULAR, 2 } };
    struct pl_cpu_manager c;
    struct pl_cpu_state s = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(pl_cpu_manager_init(&c, m, &o, 1, &reserved, &e), ERR_OK);
    assert_int_equal(pl_cpu_manager_start(&c, &s, &e), ERR_OK);
    for (size_t i = 0; i < 2; i++) {
        struct cpus available = pl_cpu_available(&c);

        assert_int_equal(pl_cpu_allocate(&c, &v[i], 0, &e), ERR_OK);
        assert_int_equal(e.code, ERR_OK);
        assert_true(cpus_contain(&available, &pl_cpu_state_find(&c.state, v[i].pod, "c")->cpus));
        assert_int_equal(cpus_count(&pl_cpu_state_find(&c.state, v[i].pod, "c")->cpus), v[i].n);
    }
    pl_cpu_manager_done(&c);
}

static void too_large_requests_say_what_is_available(void **state)
{
    mem_auto struct pl_machine *m = machine_of(1, 1, 1, 4, 2, false);
    struct pl_take t = { .m = m };
    struct cpus available = cpus_of("1,5"), got;
    struct err e = { 0 }, other = { 0 };

    (void)state;
    assert_int_equal(pl_take_packed(&t, &available, 3, &got, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "not enough cpus available to satisfy request: requested=3, available=2");
    assert_int_equal(pl_take_distributed(&t, &available, 3, 1, &got, &other), ERR_EXHAUSTED);
}

static void a_request_of_nothing_gives_nothing(void **state)
{
    mem_auto struct pl_machine *m = machine_of(1, 1, 1, 4, 2, false);
    struct pl_take t = { .m = m };
    struct cpus none = { 0 }, got;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(pl_take_packed(&t, &none, 0, &got, &e), ERR_OK);
    assert_true(cpus_is_empty(&got));
    assert_int_equal(pl_take_distributed(&t, &none, 0, 2, &got, &e), ERR_OK);
    assert_true(cpus_is_empty(&got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_processors_are_taken),
        cmocka_unit_test(five_nodes_and_more_share_a_request_as_in_kubelet),
        cmocka_unit_test(cores_of_different_sizes_are_taken_as_by_kubelet_or_only_if_they_are_free),
        cmocka_unit_test(a_manager_never_assigns_a_processor_that_is_not_free),
        cmocka_unit_test(too_large_requests_say_what_is_available),
        cmocka_unit_test(a_request_of_nothing_gives_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
