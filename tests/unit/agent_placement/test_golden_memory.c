/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: allocations, hints and states, compared with those that kubelet computed. */
#include "tests/unit/agent_placement/golden.h"

static uint64_t bytes_of(const char *text)
{
    struct quantity q;
    struct err e = { 0 };

    assert_int_equal(quantity_parse(text, &q, &e), ERR_OK);
    return (uint64_t)quantity_value(&q);
}

static size_t machine_in(const json_t *x, struct pl_machine *m, struct pl_reserved *reserved)
{
    const json_t *machine = json_object_get(json_object_get(golden, "machines"), text_of(x, "machine"));
    json_t *node, *pages, *bytes;
    const char *type;
    size_t i, k, n = 0;

    *m = (struct pl_machine){ .n_nodes = 0 };
    json_array_foreach (json_object_get(machine, "nodes"), i, node) {
        struct pl_node *ret = &m->node[m->n_nodes++];

        ret->id = (unsigned)number_of(node, "numa");
        ret->memory = (uint64_t)number_of(node, "memory");
        json_array_foreach (json_object_get(node, "hugepages"), k, pages)
            ret->pages[ret->n_pages++] = (struct pl_pages){ (uint64_t)number_of(pages, "pageSizeKiB"),
                                                            (uint64_t)number_of(pages, "pages") };
        json_object_foreach (json_object_get(node, "reserved"), type, bytes) {
            reserved[n] =
                (struct pl_reserved){ .node = ret->id, .bytes = (uint64_t)json_integer_value(bytes) };
            snprintf(reserved[n++].type, PL_TYPE_NAME_MAX, "%s", type);
        }
    }
    cpus_add(&m->cpus, 0);
    pl_machine_count(m);
    return n;
}

static size_t wants_in(const json_t *pod, struct pl_memory_want *ret)
{
    bool guaranteed = strcmp(text_of(pod, "qos"), "Guaranteed") == 0;
    json_t *container, *amount;
    const char *type;
    size_t i, n = 0;

    json_array_foreach (json_object_get(pod, "containers"), i, container) {
        struct pl_memory_want *w = &ret[n++];

        *w = (struct pl_memory_want){ .pod = text_of(pod, "uid"),
                                      .container = text_of(container, "name"),
                                      .kind = kind_in(container) };
        json_object_foreach (json_object_get(container, "requests"), type, amount) {
            if (!guaranteed)
                continue;
            w->v[w->n].bytes = bytes_of(json_string_value(amount));
            snprintf(w->v[w->n++].type, PL_TYPE_NAME_MAX, "%s", type);
        }
    }
    return n;
}

/* ---- what is compared, as text ---- */

static void expect_cells(const json_t *x, const json_t *want, const struct pl_memory_state *s)
{
    json_t *cell, *table;
    const char *id, *type;

    if (!json_is_object(want))
        return; /* refused before the allocation */
    assert_int_equal(json_object_size(want), s->n_cells);
    json_object_foreach ((json_t *)want, id, cell) {
        const struct pl_cell *c = pl_memory_cell(s, (unsigned)strtoul(id, NULL, 10));
        json_t *tables = json_object_get(cell, "memoryMap");
        char a[256], b[256];

        assert_non_null(c);
        snprintf(a, sizeof(a), "node %s %lld %llx", id, number_of(cell, "numberOfAssignments"),
                 (unsigned long long)nodes_in(json_object_get(cell, "cells")));
        snprintf(b, sizeof(b), "node %s %lld %llx", id, (long long)c->assignments,
                 (unsigned long long)c->group);
        expect_text(x, "machineState", a, b);
        assert_int_equal(json_object_size(tables), c->n);
        json_object_foreach (tables, type, table) {
            const struct pl_table *t = pl_memory_table(c, type);

            assert_non_null(t);
            snprintf(a, sizeof(a), "node %s %s %lld %lld %lld %lld %lld", id, type, number_of(table, "total"),
                     number_of(table, "systemReserved"), number_of(table, "allocatable"),
                     number_of(table, "reserved"), number_of(table, "free"));
            snprintf(b, sizeof(b), "node %s %s %llu %llu %llu %llu %llu", id, type,
                     (unsigned long long)t->total, (unsigned long long)t->system_reserved,
                     (unsigned long long)t->allocatable, (unsigned long long)t->reserved,
                     (unsigned long long)t->free);
            expect_text(x, "machineState", a, b);
        }
    }
}

static void expect_blocks(const json_t *x, const json_t *want, const struct pl_memory_entry *got)
{
    char a[1024] = "", b[1024] = "";
    size_t i, n = 0;
    json_t *block;

    json_array_foreach (want, i, block)
        n += (size_t)snprintf(a + n, sizeof(a) - n, "%llx %s %lld; ",
                              (unsigned long long)nodes_in(json_object_get(block, "numaAffinity")),
                              text_of(block, "type"), number_of(block, "size"));
    n = 0;
    for (i = 0; got != NULL && i < got->n; i++)
        n += (size_t)snprintf(b + n, sizeof(b) - n, "%llx %s %llu; ", (unsigned long long)got->v[i].nodes,
                              got->v[i].type, (unsigned long long)got->v[i].size);
    expect_text(x, "blocks", a, b);
}

static void expect_file(const json_t *x, const struct pl_memory_manager *g, const char *key)
{
    struct pl_memory_state s = { 0 };
    struct err e = { 0 };
    str_auto text = NULL, *policy = NULL, *again = NULL;
    size_t n;

    if (pl_memory_state_write(&g->state, "Static", &text, &n, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(n, strlen(text));
    if (json_object_get(x, key) != NULL)
        expect_text(x, key, text_of(x, key), text);
    if (pl_memory_state_read(text, n, &s, &policy, &e) != ERR_OK)
        fail_msg("%s\n%s", e.text, text);
    assert_int_equal(pl_memory_state_write(&s, policy, &again, &n, &e), ERR_OK);
    assert_string_equal(again, text);
    pl_memory_state_done(&s);
}

/* ---- steps ---- */

static void expect_step_hints(const json_t *step, const struct pl_hints *h)
{
    const json_t *want = json_object_get(step, "hints");
    const char *type;
    json_t *list;

    if (json_object_size(want) == 0)
        assert_true(h->any);
    json_object_foreach ((json_t *)want, type, list) {
        (void)type;
        expect_hints(step, "hints", list, h);
    }
}

/* The affinity of the step; with the policies also whether that is what the hints give. */
static struct pl_hint affinity_in(const json_t *x, const json_t *step, const struct pl_memory_manager *g,
                                  const struct pl_hints *h)
{
    const json_t *affinity = json_object_get(step, "affinity");
    struct pl_hint ret = { nodes_in(json_object_get(affinity, "numa")), flag_of(affinity, "preferred") }, got;
    struct pl_topology t = { 0 };
    struct err e = { 0 };

    if (strcmp(text_of(x, "affinitySource"), "given") == 0)
        return ret;
    assert_true(pl_policy_from_name(text_of(x, "affinitySource"), &t.policy));
    ERR_IGNORE(pl_merge(g->m, &t, h, 1, &got, &e));
    assert_int_equal(json_is_false(json_object_get(step, "topologyManagerAdmits")),
                     e.code == ERR_PRECONDITION);
    assert_int_equal(got.nodes, ret.nodes);
    assert_int_equal(got.preferred, ret.preferred);
    return ret;
}

static void replay_step(const json_t *x, const json_t *step, struct pl_memory_manager *g)
{
    const json_t *pod = by_key(json_object_get(x, "pods"), "uid", text_of(step, "pod"));
    struct pl_memory_want v[16];
    size_t n = wants_in(pod, v), i = 0;
    struct pl_hints h;
    struct pl_hint hint;
    struct err e = { 0 };

    while (i < n && strcmp(v[i].container, text_of(step, "container")) != 0)
        i++;
    assert_true(i < n);
    if (strcmp(text_of(step, "do"), "remove") == 0) {
        pl_memory_release(g, v[i].pod, v[i].container);
        expect_cells(step, json_object_get(step, "machineState"), &g->state);
        return;
    }
    assert_int_equal(pl_memory_hints(g, &v[i], &h, &e), ERR_OK);
    expect_step_hints(step, &h);
    hint = affinity_in(x, step, g, &h);
    pl_hints_done(&h);
    if (!json_is_false(json_object_get(step, "topologyManagerAdmits"))) {
        ERR_IGNORE(pl_memory_allocate(g, v, i, &hint, &e));
        expect_text(step, "error", text_of(step, "error"), e.text);
        expect_blocks(step, json_object_get(step, "blocks"),
                      pl_memory_state_find(&g->state, v[i].pod, v[i].container));
    }
    expect_cells(step, json_object_get(step, "machineState"), &g->state);
}

static void replay_sequence(const json_t *x)
{
    static struct pl_machine m;
    static struct pl_memory_manager g;
    struct pl_reserved reserved[64];
    size_t n = machine_in(x, &m, reserved), i;
    struct pl_memory_state s = { 0 };
    struct err e = { 0 };
    json_t *step;

    assert_int_equal(pl_memory_manager_init(&g, &m, reserved, n, &e), ERR_OK);
    assert_int_equal(pl_memory_manager_start(&g, &s, &e), ERR_OK);
    expect_cells(x, json_object_get(x, "machineStateAtStart"), &g.state);
    expect_file(x, &g, "stateFileAtStart");
    json_array_foreach (json_object_get(x, "steps"), i, step)
        replay_step(x, step, &g);
    expect_file(x, &g, "stateFileAtEnd");
    s = g.state;
    g.state = (struct pl_memory_state){ 0 };
    ERR_IGNORE(pl_memory_manager_start(&g, &s, &e));
    expect_text(x, "startAgainError", text_of(x, "startAgainError"), e.text);
    pl_memory_state_done(&s);
    pl_memory_manager_done(&g);
}

/* ---- reservations ---- */

static struct quantity quantity_of(const char *text)
{
    struct quantity q;
    struct err e = { 0 };

    assert_int_equal(quantity_parse(text, &q, &e), ERR_OK);
    return q;
}

static void expect_reserved(const json_t *x, const struct pl_reserved *v, size_t n)
{
    json_t *node, *bytes;
    const char *id, *type;
    size_t seen = 0;

    json_object_foreach (json_object_get(x, "systemReserved"), id, node)
        json_object_foreach (node, type, bytes) {
            size_t i = 0;

            while (i < n && (v[i].node != strtoul(id, NULL, 10) || strcmp(v[i].type, type) != 0))
                i++;
            assert_true(i < n);
            assert_int_equal(v[i].bytes, json_integer_value(bytes));
            seen++;
        }
    assert_int_equal(seen, n);
}

static void replay_reserved(const json_t *x)
{
    static struct pl_machine m;
    static struct pl_memory_manager g;
    struct pl_reservation v[16], whole[16];
    struct pl_reserved ret[16];
    size_t n = 0, n_whole = 0, n_ret, i;
    struct err e = { 0 };
    json_t *entry, *amount;
    const char *type;

    m = (struct pl_machine){ .n_nodes = (size_t)number_of(x, "numaNodes") };
    for (i = 0; i < m.n_nodes; i++)
        m.node[i] = (struct pl_node){ .id = (unsigned)i, .memory = 8ull << 30 };
    json_array_foreach (json_object_get(x, "reservedMemory"), i, entry)
        json_object_foreach (json_object_get(entry, "limits"), type, amount)
            v[n++] = (struct pl_reservation){ (unsigned)number_of(entry, "numaNode"), type,
                                              quantity_of(json_string_value(amount)) };
    json_object_foreach (json_object_get(x, "nodeAllocatableReservation"), type, amount)
        whole[n_whole++] = (struct pl_reservation){ 0, type, quantity_of(json_string_value(amount)) };
    if (pl_reserve(&m, v, n, whole, n_whole, ret, &n_ret, &e) != ERR_OK) {
        expect_text(x, "error", text_of(x, "error"), e.text);
        return;
    }
    expect_text(x, "error", text_of(x, "error"), "");
    expect_reserved(x, ret, n_ret);
    ERR_IGNORE(pl_memory_manager_init(&g, &m, ret, n_ret, &e));
    expect_text(x, "newPolicyError", text_of(x, "newPolicyError"),
                json_object_get(x, "newPolicyError") != NULL ? e.text : "");
}

static void replay_checksum(const json_t *x)
{
    struct pl_memory_state s = { 0 };
    struct err e = { 0 };
    str_auto policy = NULL, *text = NULL;
    size_t n;

    if (pl_memory_state_read(text_of(x, "file"), strlen(text_of(x, "file")), &s, &policy, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(pl_memory_state_write(&s, policy, &text, &n, &e), ERR_OK);
    expect_text(x, "checksum", text_of(x, "file"), text);
    pl_memory_state_done(&s);
}

static void reservations_are_checked_as_by_kubelet(void **state)
{
    (void)state;
    each_case("systemReserved", replay_reserved);
}

static void sequences_end_as_in_kubelet(void **state)
{
    (void)state;
    each_case("sequences", replay_sequence);
}

static void checksums_are_kubelets(void **state)
{
    (void)state;
    each_case("checksumExamples", replay_checksum);
}

static int open_memory(void **state)
{
    (void)state;
    return golden_open("memory.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reservations_are_checked_as_by_kubelet),
        cmocka_unit_test(sequences_end_as_in_kubelet),
        cmocka_unit_test(checksums_are_kubelets),
    };

    return cmocka_run_group_tests(tests, open_memory, golden_close);
}
