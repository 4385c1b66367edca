/* SPDX-License-Identifier: Apache-2.0 */
/* Merged hints, and the settings of the topology manager, compared with kubelet's. */
#include "tests/unit/agent_placement/golden.h"

static struct pl_machine *machine_in(const json_t *x)
{
    struct pl_machine *m = calloc(1, sizeof(*m));
    size_t i, k;
    json_t *id, *row, *d;

    assert_non_null(m);
    cpus_add(&m->cpus, 0);
    json_array_foreach (json_object_get(x, "numaNodes"), i, id)
        m->node[m->n_nodes++].id = (unsigned)json_integer_value(id);
    json_array_foreach (json_object_get(x, "distances"), i, row)
        json_array_foreach (row, k, d)
            m->node[i].distance[k] = (uint32_t)json_integer_value(d);
    pl_machine_count(m);
    return m;
}

static size_t providers_in(const json_t *x, struct pl_hints *ret)
{
    json_t *provider, *list;
    const char *resource;
    size_t i, n = 0;

    json_array_foreach (json_object_get(x, "providers"), i, provider) {
        if (json_object_size(provider) == 0)
            hints_in(NULL, &ret[n++]);
        json_object_foreach (provider, resource, list) {
            (void)resource;
            hints_in(list, &ret[n++]);
        }
    }
    return n;
}

static void replay_merge(const json_t *x)
{
    mem_auto struct pl_machine *m = machine_in(x);
    struct pl_hints v[64];
    size_t n = providers_in(x, v), i;
    json_t *expect;

    json_array_foreach (json_object_get(x, "expect"), i, expect) {
        struct pl_topology t = { .policy = policy_in(expect, "policy"),
                                 .prefer_closest = flag_of(expect, "preferClosestNUMANodes") };
        const json_t *best = json_object_get(expect, "best");
        struct pl_hint got;
        struct err e = { 0 };
        char want[64], text[64];

        ERR_IGNORE(pl_merge(m, &t, v, n, &got, &e));
        snprintf(want, sizeof(want), "%llx %d %d",
                 (unsigned long long)nodes_in(json_object_get(best, "numa")), flag_of(best, "preferred"),
                 flag_of(expect, "admit"));
        snprintf(text, sizeof(text), "%llx %d %d", (unsigned long long)got.nodes, got.preferred,
                 e.code == ERR_OK);
        expect_text(expect, "merge", want, text);
        if (e.code != ERR_OK)
            assert_string_equal(e.text, "Resources cannot be allocated with Topology locality");
    }
    for (i = 0; i < n; i++)
        pl_hints_done(&v[i]);
}

static void replay_new_manager(const json_t *x)
{
    struct pl_option v[16];
    struct pl_topology t = { 0 };
    struct err e = { 0 };
    size_t n = options_in(x, v);

    ERR_IGNORE(pl_topology_read(text_of(x, "policy"), text_of(x, "scope"), v, n,
                                (size_t)number_of(x, "numaNodes"), flag_of(x, "distancesKnown"), &t, &e));
    expect_text(x, "newManager", text_of(x, "error"), e.text);
    if (e.code != ERR_OK)
        return;
    expect_text(x, "newManager", text_of(x, "policyName"), pl_policy_name(t.policy));
    expect_text(x, "newManager", text_of(x, "scopeName"),
                t.policy == PL_POLICY_NONE ? "none"
                : t.pod_scope              ? "pod"
                                           : "container");
}

static void merged_hints_are_kubelets(void **state)
{
    (void)state;
    each_case("merge", replay_merge);
}

static void settings_are_kubelets(void **state)
{
    (void)state;
    each_case("newManager", replay_new_manager);
}

static int open_topology(void **state)
{
    (void)state;
    return golden_open("topology.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_hints_are_kubelets),
        cmocka_unit_test(settings_are_kubelets),
    };

    return cmocka_run_group_tests(tests, open_topology, golden_close);
}
