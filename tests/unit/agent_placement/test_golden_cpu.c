/* SPDX-License-Identifier: Apache-2.0 */
/* Processors: allocations, hints and states, compared with those that kubelet computed. */
#include "tests/unit/agent_placement/golden.h"

static struct pl_machine *machine_in(const json_t *x)
{
    const json_t *t = json_object_get(json_object_get(golden, "topologies"), text_of(x, "topology")), *cpu;
    struct pl_machine *m = calloc(1, sizeof(*m));
    size_t i;

    assert_non_null(t);
    assert_non_null(m);
    json_array_foreach (json_object_get(t, "cpus"), i, cpu) {
        unsigned id = (unsigned)number_of(cpu, "cpu");

        cpus_add(&m->cpus, id);
        m->cpu[id].in[PL_CORE] = (int32_t)number_of(cpu, "core");
        m->cpu[id].in[PL_SOCKET] = (int32_t)number_of(cpu, "socket");
        m->cpu[id].in[PL_NODE] = (int32_t)number_of(cpu, "numa");
        m->cpu[id].in[PL_UNCORE] = (int32_t)number_of(cpu, "uncore");
    }
    pl_machine_count(m);
    assert_int_equal(m->n_cpus, number_of(t, "numCPUs"));
    assert_int_equal(m->n[PL_CORE], number_of(t, "numCores"));
    assert_int_equal(m->n[PL_SOCKET], number_of(t, "numSockets"));
    assert_int_equal(m->n[PL_NODE], number_of(t, "numNUMANodes"));
    assert_int_equal(m->n[PL_UNCORE], number_of(t, "numUncoreCaches"));
    assert_int_equal(pl_cpus_per_core(m), number_of(t, "cpusPerCore"));
    for (int n = 0; n < (int)m->n[PL_NODE]; n++)
        m->node[n].id = (unsigned)n;
    m->n_nodes = m->n[PL_NODE];
    return m;
}

static void print_result(enum err_code code, const struct cpus *s, const struct err *e, char *ret)
{
    if (code == ERR_OK)
        cpus_print(s, ret);
    else
        snprintf(ret, CPUS_TEXT_SIZE, "error: %s", e->text);
}

static size_t argued;

/* kubelet gave a processor that is not available (take.h says when). Ours must give as many of those that
 * are. */
static bool is_given_twice(const struct cpus *want, const struct cpus *available, const struct cpus *got)
{
    if (cpus_contain(available, want))
        return false;
    assert_true(cpus_contain(available, got));
    assert_true(cpus_count(got) >= 1);
    argued++;
    return true;
}

/* `result` is a list of numbers, or there is an error. */
static void expect_result(const json_t *x, const char *where, const char *got)
{
    char want[CPUS_TEXT_SIZE];
    struct cpus s = { 0 };
    size_t i;
    json_t *cpu;

    json_array_foreach (json_object_get(x, "result"), i, cpu)
        cpus_add(&s, (unsigned)json_integer_value(cpu));
    cpus_print(&s, want);
    if (json_object_get(x, "error") != NULL)
        snprintf(want, sizeof(want), "error: %s", text_of(x, "error"));
    expect_text(x, where, want, got);
}

static void replay_packed(const json_t *x)
{
    mem_auto struct pl_machine *m = machine_in(x);
    struct pl_take t = { .m = m,
                         .spread = strcmp(text_of(x, "sorting"), "spread") == 0,
                         .uncore_first = flag_of(x, "preferAlignByUncoreCache") };
    struct cpus available = cpus_of(text_of(x, "available")), got = { 0 };
    struct err e = { 0 };
    char text[CPUS_TEXT_SIZE];

    print_result(pl_take_packed(&t, &available, (unsigned)number_of(x, "request"), &got, &e), &got, &e, text);
    expect_result(x, "packed", text);
}

static void replay_distributed(const json_t *x)
{
    mem_auto struct pl_machine *m = machine_in(x);
    struct pl_take t = { .m = m, .spread = strcmp(text_of(x, "sorting"), "spread") == 0 };
    struct cpus available = cpus_of(text_of(x, "available")), got = { 0 };
    struct err e = { 0 };
    char text[CPUS_TEXT_SIZE];

    print_result(pl_take_distributed(&t, &available, (unsigned)number_of(x, "request"),
                                     (unsigned)number_of(x, "cpuGroupSize"), &got, &e),
                 &got, &e, text);
    expect_result(x, "distributed", text);
}

static void replay_hints(const json_t *x)
{
    mem_auto struct pl_machine *m = machine_in(x);
    struct cpus available = cpus_of(text_of(x, "available")), again = cpus_of(text_of(x, "reusable"));
    struct pl_hints h;
    struct err e = { 0 };

    assert_int_equal(pl_cpu_hints_make(m, flag_of(x, "alignBySocket"), &available, &again,
                                       (unsigned)number_of(x, "request"), &h, &e),
                     ERR_OK);
    expect_hints(x, "hints", json_object_get(x, "hints"), &h);
    pl_hints_done(&h);
}

static enum err_code open_manager(const json_t *x, const struct pl_machine *m, bool alpha,
                                  struct pl_cpu_manager *ret, struct err *e)
{
    struct pl_option v[16];
    struct pl_cpu_options o;
    struct cpus reserved = cpus_of(text_of(x, "reservedCPUs"));
    size_t n = options_in(x, v);
    unsigned count = json_object_get(x, "reservedCount") != NULL ? (unsigned)number_of(x, "reservedCount")
                                                                 : cpus_count(&reserved);
    enum pl_policy topology = json_object_get(x, "topologyManagerPolicy") != NULL
                                  ? policy_in(x, "topologyManagerPolicy")
                                  : PL_POLICY_NONE;

    if (pl_cpu_options_read(v, n, alpha, &o, e) != ERR_OK ||
        pl_cpu_options_check(&o, m, topology, e) != ERR_OK)
        return e->code;
    return pl_cpu_manager_init(ret, m, &o, count, &reserved, e);
}

static void replay_new_policy(const json_t *x)
{
    mem_auto struct pl_machine *m = machine_in(x);
    struct pl_cpu_manager c = { 0 };
    struct err e = { 0 };
    char text[CPUS_TEXT_SIZE];

    if (open_manager(x, m, flag_of(x, "alphaOptionsGate"), &c, &e) != ERR_OK) {
        expect_text(x, "newPolicy", text_of(x, "error"), e.text);
        return;
    }
    cpus_print(&c.reserved, text);
    expect_text(x, "newPolicy", text_of(x, "reserved"), text);
    expect_text(x, "newPolicy", text_of(x, "error"), "");
}

static void replay_start(const json_t *x)
{
    mem_auto struct pl_machine *m = machine_in(x);
    struct pl_cpu_manager c = { 0 };
    struct pl_cpu_state s = { .shared = cpus_of(text_of(x, "stateDefaultCpuSet")) };
    struct cpus assigned = cpus_of(text_of(x, "stateAssigned"));
    struct err e = { 0 };
    char text[CPUS_TEXT_SIZE];

    assert_int_equal(open_manager(x, m, true, &c, &e), ERR_OK);
    if (!cpus_is_empty(&assigned))
        assert_int_equal(pl_cpu_state_put(&s, "pod", "c", &assigned, &e), ERR_OK);
    ERR_IGNORE(pl_cpu_manager_start(&c, &s, &e));
    expect_text(x, "start", text_of(x, "error"), e.text);
    cpus_print(e.code == ERR_OK ? &c.state.shared : &s.shared, text);
    expect_text(x, "start", text_of(x, "defaultCpuSet"), text);
    pl_cpu_state_done(&s);
    pl_cpu_manager_done(&c);
}

/* ---- sequences ---- */

static unsigned cpus_wanted(const json_t *pod, const json_t *container)
{
    const char *cpu = text_of(container, "cpu");

    if (strcmp(text_of(pod, "qos"), "Guaranteed") != 0 || strchr(cpu, 'm') != NULL)
        return 0;
    return (unsigned)strtoul(cpu, NULL, 10);
}

static void expect_file(const json_t *x, const struct pl_cpu_manager *c, const char *key)
{
    struct pl_cpu_state s = { 0 };
    struct err e = { 0 };
    str_auto text = NULL, *policy = NULL, *again = NULL;
    size_t n;

    assert_int_equal(pl_cpu_state_write(&c->state, "static", &text, &n, &e), ERR_OK);
    expect_text(x, key, text_of(x, key), text);
    if (pl_cpu_state_read(text, n, &s, &policy, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_string_equal(policy, "static");
    assert_int_equal(pl_cpu_state_write(&s, policy, &again, &n, &e), ERR_OK);
    assert_string_equal(again, text);
    pl_cpu_state_done(&s);
}

/* What kubelet says is available after it first took processors that are not. */
static bool is_miscounted(const struct pl_machine *m, const char *want, const char *got)
{
    static const char text[] = "not enough cpus available";

    if (m->n_cpus % m->n[PL_CORE] == 0 || strcmp(want, got) == 0 || strncmp(want, text, strlen(text)) != 0 ||
        strncmp(got, text, strlen(text)) != 0)
        return false;
    argued++;
    return true;
}

/* False: kubelet gave a processor twice, so that the rest cannot be compared. */
static bool replay_step(const json_t *x, const json_t *step, struct pl_cpu_manager *c,
                        const struct pl_topology *t)
{
    const json_t *pod = by_key(json_object_get(x, "pods"), "uid", text_of(step, "pod"));
    const json_t *container = by_key(json_object_get(pod, "containers"), "name", text_of(step, "container"));
    struct pl_cpu_want w = { text_of(pod, "uid"), text_of(container, "name"), kind_in(container),
                             cpus_wanted(pod, container) };
    const struct pl_cpu_entry *entry;
    struct pl_hints h;
    struct pl_hint best;
    struct cpus available = pl_cpu_available(c), assigned = cpus_of(text_of(step, "assigned"));
    struct err e = { 0 };
    char text[CPUS_TEXT_SIZE] = "";

    available = cpus_or(&available, &c->reuse);
    if (strcmp(text_of(step, "do"), "remove") == 0) {
        pl_cpu_release(c, w.pod, w.container);
    } else {
        assert_int_equal(pl_cpu_hints(c, &w, &h, &e), ERR_OK);
        expect_hints(step, "hints", json_object_get(json_object_get(step, "hints"), "cpu"), &h);
        assert_int_equal(pl_merge(c->m, t, &h, 1, &best, &e), ERR_OK);
        assert_int_equal(best.nodes, nodes_in(json_object_get(json_object_get(step, "affinity"), "numa")));
        assert_int_equal(best.preferred, flag_of(json_object_get(step, "affinity"), "preferred"));
        pl_hints_done(&h);
        ERR_IGNORE(pl_cpu_allocate(c, &w, best.nodes, &e));
        if (!is_miscounted(c->m, text_of(step, "error"), e.text))
            expect_text(step, "error", text_of(step, "error"), e.text);
        assert_int_equal(strcmp(text_of(step, "errorType"), "SMTAlignmentError") == 0, e.code == ERR_INVALID);
        entry = pl_cpu_state_find(&c->state, w.pod, w.container);
        if (entry != NULL && !cpus_contain(&available, &entry->cpus))
            available = cpus_or(&available, &entry->cpus); /* it had them before */
        if (entry != NULL && is_given_twice(&assigned, &available, &entry->cpus))
            return false;
        if (entry != NULL)
            cpus_print(&entry->cpus, text);
        expect_text(step, "assigned", text_of(step, "assigned"), text);
    }
    cpus_print(&c->state.shared, text);
    expect_text(step, "defaultCpuSet", text_of(step, "defaultCpuSet"), text);
    return true;
}

static void replay_sequence(const json_t *x)
{
    mem_auto struct pl_machine *m = machine_in(x);
    struct pl_topology t = { .policy = policy_in(x, "topologyManagerPolicy") };
    struct pl_cpu_manager c = { 0 };
    struct pl_cpu_state s = { 0 };
    struct err e = { 0 };
    char text[CPUS_TEXT_SIZE];
    json_t *step;
    size_t i;

    if (open_manager(x, m, true, &c, &e) != ERR_OK) {
        expect_text(x, "newPolicyError", text_of(x, "newPolicyError"), e.text);
        return;
    }
    cpus_print(&c.reserved, text);
    expect_text(x, "reserved", text_of(x, "reserved"), text);
    cpus_print(&c.reserved_cores, text);
    expect_text(x, "reservedPhysical", text_of(x, "reservedPhysical"), text);
    assert_int_equal(pl_cpu_manager_start(&c, &s, &e), ERR_OK);
    expect_file(x, &c, "stateFileAtStart");
    json_array_foreach (json_object_get(x, "steps"), i, step) {
        if (!replay_step(x, step, &c, &t)) {
            pl_cpu_manager_done(&c);
            return;
        }
    }
    expect_file(x, &c, "stateFileAtEnd");
    pl_cpu_manager_done(&c);
}

static void replay_checksum(const json_t *x)
{
    struct pl_cpu_state s = { 0 };
    struct err e = { 0 };
    str_auto policy = NULL, *text = NULL;
    size_t n;

    if (pl_cpu_state_read(text_of(x, "file"), strlen(text_of(x, "file")), &s, &policy, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(pl_cpu_state_write(&s, policy, &text, &n, &e), ERR_OK);
    expect_text(x, "checksum", text_of(x, "file"), text);
    pl_cpu_state_done(&s);
}

static void packed_allocations_are_kubelets(void **state)
{
    (void)state;
    each_case("packed", replay_packed);
}

static void distributed_allocations_are_kubelets(void **state)
{
    (void)state;
    each_case("distributed", replay_distributed);
}

static void hints_are_kubelets(void **state)
{
    (void)state;
    each_case("hints", replay_hints);
}

static void options_and_reserved_processors_are_kubelets(void **state)
{
    (void)state;
    each_case("newPolicy", replay_new_policy);
}

static void states_are_accepted_as_by_kubelet(void **state)
{
    (void)state;
    each_case("start", replay_start);
}

static void sequences_end_as_in_kubelet(void **state)
{
    (void)state;
    argued = 0;
    each_case("sequences", replay_sequence);
    print_message("argued: %zu\n", argued);
}

static void checksums_are_kubelets(void **state)
{
    (void)state;
    each_case("checksumExamples", replay_checksum);
}

static int open_cpu(void **state)
{
    (void)state;
    return golden_open("cpu.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_allocations_are_kubelets),
        cmocka_unit_test(distributed_allocations_are_kubelets),
        cmocka_unit_test(hints_are_kubelets),
        cmocka_unit_test(options_and_reserved_processors_are_kubelets),
        cmocka_unit_test(states_are_accepted_as_by_kubelet),
        cmocka_unit_test(sequences_end_as_in_kubelet),
        cmocka_unit_test(checksums_are_kubelets),
    };

    return cmocka_run_group_tests(tests, open_cpu, golden_close);
}
