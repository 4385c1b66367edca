/* SPDX-License-Identifier: Apache-2.0 */
/* A machine is written as the kernel shows it, and read back. */
#include "tests/unit/agent_placement/helper.h"

#include "base/files/fs.h"

#include <fcntl.h>

static char top[64];

static void put(const char *text, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void put(const char *text, const char *fmt, ...)
{
    char path[256], folder[256];
    struct err e = { 0 };
    va_list ap;
    FILE *f;
    int n = snprintf(path, sizeof(path), "%s/devices/system/", top);

    va_start(ap, fmt);
    vsnprintf(path + n, sizeof(path) - (size_t)n, fmt, ap);
    va_end(ap);
    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(fs_mkdirs(folder, 0755, &e), ERR_OK);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", text);
    fclose(f);
}

static int open_top(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/coracle-test-XXXXXX");
    return mkdtemp(top) != NULL ? 0 : -1;
}

static int close_top(void **state)
{
    (void)state;
    fs_remove_quietly(AT_FDCWD, top);
    return 0;
}

static void write_cpu(const struct pl_machine *m, unsigned cpu, bool caches)
{
    const int32_t *in = m->cpu[cpu].in;
    struct cpus core = pl_cpus_in(m, &m->cpus, PL_CORE, in[PL_CORE]);
    char text[CPUS_TEXT_SIZE];

    cpus_print(&core, text);
    put(text, "cpu/cpu%u/topology/thread_siblings_list", cpu);
    snprintf(text, sizeof(text), "%d", in[PL_SOCKET]);
    put(text, "cpu/cpu%u/topology/physical_package_id", cpu);
    for (int i = 0; caches && i < 3; i++) {
        snprintf(text, sizeof(text), "%d", i + 1);
        put(text, "cpu/cpu%u/cache/index%d/level", cpu, i);
        snprintf(text, sizeof(text), "%d", in[PL_UNCORE]);
        put(text, "cpu/cpu%u/cache/index%d/id", cpu, i);
    }
}

static void write_machine(const struct pl_machine *m, bool caches)
{
    char text[CPUS_TEXT_SIZE];

    cpus_print(&m->cpus, text);
    put(text, "cpu/online");
    cpus_each(cpu, &m->cpus) write_cpu(m, cpu, caches);
    for (size_t i = 0; i < m->n_nodes; i++) {
        const struct pl_node *node = &m->node[i];
        struct cpus on = pl_cpus_in(m, &m->cpus, PL_NODE, (int32_t)node->id);
        size_t n = 0;

        cpus_print(&on, text);
        put(text, "node/node%u/cpulist", node->id);
        snprintf(text, sizeof(text), "Node %u MemTotal:       %llu kB\nNode %u MemFree: 1 kB", node->id,
                 (unsigned long long)node->memory / 1024, node->id);
        put(text, "node/node%u/meminfo", node->id);
        for (size_t k = 0; k < m->n_nodes; k++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u", k > 0 ? " " : "", node->distance[k]);
        put(text, "node/node%u/distance", node->id);
        put("4", "node/node%u/hugepages/hugepages-2048kB/nr_hugepages", node->id);
        put("1", "node/node%u/hugepages/hugepages-1048576kB/nr_hugepages", node->id);
    }
}

static void read_back(struct pl_machine *m, bool caches)
{
    mem_auto struct pl_machine *got = calloc(1, sizeof(*got));
    struct err e = { 0 };

    assert_non_null(got);
    write_machine(m, caches);
    if (pl_machine_read(got, top, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_true(cpus_equal(&m->cpus, &got->cpus));
    cpus_each(cpu, &m->cpus)
    {
        if (!caches)
            m->cpu[cpu].in[PL_UNCORE] = m->cpu[cpu].in[PL_SOCKET];
        assert_memory_equal(&m->cpu[cpu], &got->cpu[cpu], sizeof(m->cpu[cpu]));
    }
    assert_int_equal(got->n_nodes, m->n_nodes);
    assert_true(got->distances_known);
    for (size_t i = 0; i < m->n_nodes; i++) {
        assert_int_equal(got->node[i].id, m->node[i].id);
        assert_int_equal(got->node[i].memory, m->node[i].memory);
        assert_memory_equal(got->node[i].distance, m->node[i].distance, sizeof(m->node[i].distance));
        assert_int_equal(got->node[i].n_pages, 2);
        assert_int_equal(got->node[i].pages[0].size_kib, 1048576);
        assert_int_equal(got->node[i].pages[1].n, 4);
    }
    assert_int_equal(got->nodes, m->nodes);
    free(m);
}

static void machines_are_read_as_the_kernel_shows_them(void **state)
{
    (void)state;
    read_back(machine_of(2, 2, 2, 2, 2, false), true);
}

static void without_caches_a_socket_is_one(void **state)
{
    (void)state;
    read_back(machine_of(2, 1, 1, 4, 1, true), false);
}

static void a_machine_without_nodes_has_node_0(void **state)
{
    mem_auto struct pl_machine *m = calloc(1, sizeof(*m));
    struct err e = { 0 };

    (void)state;
    assert_non_null(m);
    put("0-1", "cpu/online");
    if (pl_machine_read(m, top, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(m->n_cpus, 2);
    assert_int_equal(m->n[PL_CORE], 2);
    assert_int_equal(m->nodes, 1);
    assert_false(m->distances_known);
}

static void too_many_nodes_are_out_of_range(void **state)
{
    mem_auto struct pl_machine *m = calloc(1, sizeof(*m));
    struct err e = { 0 };

    (void)state;
    assert_non_null(m);
    put("0-1", "cpu/online");
    put("", "node/node64/cpulist");
    assert_int_equal(pl_machine_read(m, top, &e), ERR_RANGE);
}

static void this_machine_can_be_read(void **state)
{
    mem_auto struct pl_machine *m = calloc(1, sizeof(*m));
    struct err e = { 0 };

    (void)state;
    assert_non_null(m);
    if (pl_machine_read(m, "/sys", &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_true(m->n_cpus >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(machines_are_read_as_the_kernel_shows_them, open_top, close_top),
        cmocka_unit_test_setup_teardown(without_caches_a_socket_is_one, open_top, close_top),
        cmocka_unit_test_setup_teardown(a_machine_without_nodes_has_node_0, open_top, close_top),
        cmocka_unit_test_setup_teardown(too_many_nodes_are_out_of_range, open_top, close_top),
        cmocka_unit_test(this_machine_can_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
