/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random steps against a model that knows only who was given what: pods are admitted with any containers, on
 * any nodes, and removed; the agent restarts with its state file. After each step no processor belongs to two
 * pods, to a container and to the shared ones, or to a container although it is reserved; none is lost; and
 * the memory of a node is what its blocks add up to. PLACEMENT_SEED and PLACEMENT_STEPS change the run.
 */
#include "tests/unit/agent_placement/helper.h"

#define PODS 24
#define CONTAINERS 4

struct model_pod {
    bool here;
    char uid[16];
    size_t n;
    struct pl_cpu_want cpu[CONTAINERS];
    struct pl_memory_want memory[CONTAINERS];
    char names[CONTAINERS][8];
};

struct model {
    struct pl_machine *m;
    struct pl_cpu_options o;
    struct cpus reserved;
    struct pl_cpu_manager c;
    struct pl_memory_manager g;
    struct model_pod pod[PODS];
    unsigned next, admitted, refused;
};

static uint64_t seed;

static unsigned any(unsigned below)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(seed >> 33) % below;
}

/* ---- what must hold ---- */

static void check_cpus(const struct model *x)
{
    const struct pl_cpu_state *s = &x->c.state;
    struct cpus seen = s->shared, all = x->m->cpus;

    for (size_t i = 0; i < s->n; i++) {
        assert_false(cpus_overlap(&s->shared, &s->v[i].cpus));
        assert_false(cpus_overlap(&x->reserved, &s->v[i].cpus));
        seen = cpus_or(&seen, &s->v[i].cpus);
        for (size_t k = i + 1; k < s->n; k++)
            if (strcmp(s->v[i].owner.pod, s->v[k].owner.pod) != 0)
                assert_false(cpus_overlap(&s->v[i].cpus, &s->v[k].cpus));
    }
    if (x->o.strict)
        all = cpus_without(&all, &x->reserved);
    assert_true(cpus_equal(&seen, &all));
}

/* Containers of a pod that run at the same time share no processor. */
static void check_pod(const struct model *x, const struct model_pod *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct pl_cpu_entry *a = pl_cpu_state_find(&x->c.state, p->uid, p->names[i]);

        assert_int_equal(a != NULL ? cpus_count(&a->cpus) : 0, p->cpu[i].n);
        for (size_t k = i + 1; a != NULL && k < p->n && p->cpu[i].kind != PL_INIT; k++) {
            const struct pl_cpu_entry *b = pl_cpu_state_find(&x->c.state, p->uid, p->names[k]);

            if (b != NULL)
                assert_false(cpus_overlap(&a->cpus, &b->cpus));
        }
    }
}

static void check_memory(const struct model *x)
{
    const struct pl_memory_state *s = &x->g.state;
    uint64_t reserved = 0, blocks = 0;

    for (size_t i = 0; i < s->n_cells; i++) {
        assert_int_equal(s->cell[i].v[0].free + s->cell[i].v[0].reserved, s->cell[i].v[0].allocatable);
        reserved += s->cell[i].v[0].reserved;
    }
    for (size_t i = 0; i < s->n; i++)
        blocks += s->v[i].v[0].size;
    assert_int_equal(reserved, blocks);
}

static void check(const struct model *x)
{
    check_cpus(x);
    check_memory(x);
    for (size_t i = 0; i < PODS; i++)
        if (x->pod[i].here)
            check_pod(x, &x->pod[i]);
}

/* ---- steps ---- */

static void release(struct model *x, struct model_pod *p)
{
    for (size_t i = 0; i < p->n; i++) {
        pl_cpu_release(&x->c, p->uid, p->names[i]);
        pl_memory_release(&x->g, p->uid, p->names[i]);
    }
    p->here = false;
}

static void make(struct model *x, struct model_pod *p)
{
    bool guaranteed = any(4) > 0;
    bool init = true;

    *p = (struct model_pod){ .here = true, .n = 1 + any(CONTAINERS) };
    snprintf(p->uid, sizeof(p->uid), "pod-%u", x->next++);
    for (size_t i = 0; i < p->n; i++) {
        enum pl_kind kind = i + 1 < p->n && init ? (enum pl_kind)any(3) : PL_REGULAR;

        init = init && kind != PL_REGULAR;
        snprintf(p->names[i], sizeof(p->names[i]), "c%zu", i);
        p->cpu[i] = (struct pl_cpu_want){ p->uid, p->names[i], kind, guaranteed ? any(7) : 0 };
        p->memory[i] = (struct pl_memory_want){ .pod = p->uid, .container = p->names[i], .kind = kind };
        if (guaranteed) {
            p->memory[i].n = 1;
            p->memory[i].v[0].bytes = (uint64_t)(1 + any(6000)) << 20;
            snprintf(p->memory[i].v[0].type, PL_TYPE_NAME_MAX, "memory");
        }
    }
}

static void admit(struct model *x, struct model_pod *p)
{
    static const enum pl_policy policies[] = { PL_POLICY_NONE, PL_POLICY_BEST_EFFORT, PL_POLICY_RESTRICTED,
                                               PL_POLICY_SINGLE_NODE };
    struct pl_topology t = { .policy = policies[any(4)], .pod_scope = any(2) == 0 };

    make(x, p);
    for (size_t i = 0; i < p->n; i++) {
        struct pl_hints h[2] = { 0 };
        struct pl_hint best = { 0 };
        struct err e = { 0 };
        bool pod = t.pod_scope;

        assert_int_equal(pod ? pl_cpu_pod_hints(&x->c, p->cpu, p->n, &h[0], &e)
                             : pl_cpu_hints(&x->c, &p->cpu[i], &h[0], &e),
                         ERR_OK);
        assert_int_equal(pod ? pl_memory_pod_hints(&x->g, p->memory, p->n, &h[1], &e)
                             : pl_memory_hints(&x->g, &p->memory[i], &h[1], &e),
                         ERR_OK);
        if (pl_merge(x->m, &t, h, 2, &best, &e) == ERR_OK &&
            pl_cpu_allocate(&x->c, &p->cpu[i], best.nodes, &e) == ERR_OK)
            ERR_IGNORE(pl_memory_allocate(&x->g, p->memory, i, &best, &e));
        pl_hints_done(&h[0]);
        pl_hints_done(&h[1]);
        if (e.code != ERR_OK) {
            release(x, p);
            x->refused++;
            return;
        }
    }
    x->admitted++;
}

static void start_cpu(struct model *x, struct pl_cpu_state *s)
{
    struct err e = { 0 };

    assert_int_equal(pl_cpu_manager_init(&x->c, x->m, &x->o, cpus_count(&x->reserved), &x->reserved, &e),
                     ERR_OK);
    if (pl_cpu_manager_start(&x->c, s, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static void start_memory(struct model *x, struct pl_memory_state *s)
{
    struct pl_reserved reserved = { .type = "memory", .bytes = 1ull << 30 };
    struct err e = { 0 };

    assert_int_equal(pl_memory_manager_init(&x->g, x->m, &reserved, 1, &e), ERR_OK);
    if (pl_memory_manager_start(&x->g, s, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

/* The agent is killed, and reads its files. */
static void restart(struct model *x)
{
    str_auto cpu = NULL, *memory = NULL, *policy = NULL, *other = NULL;
    struct pl_cpu_state c = { 0 };
    struct pl_memory_state g = { 0 };
    struct err e = { 0 };
    size_t n, k;

    assert_int_equal(pl_cpu_state_write(&x->c.state, "static", &cpu, &n, &e), ERR_OK);
    assert_int_equal(pl_memory_state_write(&x->g.state, "Static", &memory, &k, &e), ERR_OK);
    pl_cpu_manager_done(&x->c);
    pl_memory_manager_done(&x->g);
    assert_int_equal(pl_cpu_state_read(cpu, n, &c, &policy, &e), ERR_OK);
    assert_int_equal(pl_memory_state_read(memory, k, &g, &other, &e), ERR_OK);
    start_cpu(x, &c);
    start_memory(x, &g);
}

static void run(struct pl_machine *m, struct pl_cpu_options o, const char *reserved, unsigned steps)
{
    struct model *x = calloc(1, sizeof(*x));

    assert_non_null(x);
    *x = (struct model){ .m = m, .o = o, .reserved = cpus_of(reserved) };
    start_cpu(x, &(struct pl_cpu_state){ 0 });
    start_memory(x, &(struct pl_memory_state){ 0 });
    for (unsigned i = 0; i < steps; i++) {
        struct model_pod *p = &x->pod[any(PODS)];

        if (any(50) == 0)
            restart(x);
        else if (p->here)
            release(x, p);
        else
            admit(x, p);
        check(x);
    }
    print_message("%u pods admitted, %u refused\n", x->admitted, x->refused);
    assert_true(x->admitted > steps / 20);
    for (size_t i = 0; i < PODS; i++)
        release(x, &x->pod[i]);
    check(x);
    assert_int_equal(x->c.state.n, 0);
    pl_cpu_manager_done(&x->c);
    pl_memory_manager_done(&x->g);
    free(x);
    free(m);
}

static unsigned steps(void)
{
    const char *n = getenv("PLACEMENT_STEPS");

    return n != NULL ? (unsigned)strtoul(n, NULL, 10) : 10000;
}

static struct pl_machine *without(struct pl_machine *m, const char *offline)
{
    struct cpus s = cpus_of(offline);

    m->cpus = cpus_without(&m->cpus, &s);
    cpus_each(cpu, &m->cpus)
    {
        struct cpus core = pl_cpus_in(m, &m->cpus, PL_CORE, m->cpu[cpu].in[PL_CORE]);

        m->cpu[cpu].in[PL_CORE] = (int32_t)cpus_next(&core, 0);
    }
    pl_machine_count(m);
    return m;
}

static void no_processor_is_given_twice(void **state)
{
    (void)state;
    run(machine_of(2, 2, 1, 8, 2, false), (struct pl_cpu_options){ 0 }, "0,32", steps());
}

static void no_processor_is_given_twice_with_whole_cores_shared_evenly(void **state)
{
    (void)state;
    run(machine_of(2, 2, 2, 4, 2, false), (struct pl_cpu_options){ .full_cores = true, .distribute = true },
        "0,32", steps() / 4);
}

static void no_processor_is_given_twice_with_caches(void **state)
{
    (void)state;
    run(machine_of(1, 2, 4, 4, 2, true), (struct pl_cpu_options){ .uncore_first = true, .strict = true },
        "0-1", steps() / 4);
}

static void no_processor_is_given_twice_with_spread_cores(void **state)
{
    (void)state;
    run(machine_of(2, 1, 1, 8, 2, false), (struct pl_cpu_options){ .spread = true }, "3", steps() / 4);
}

static void no_processor_is_given_twice_with_offline_threads(void **state)
{
    (void)state;
    run(without(machine_of(2, 1, 1, 8, 2, false), "3,17,25,30"),
        (struct pl_cpu_options){ .align_by_socket = true }, "0", steps() / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_processor_is_given_twice),
        cmocka_unit_test(no_processor_is_given_twice_with_whole_cores_shared_evenly),
        cmocka_unit_test(no_processor_is_given_twice_with_caches),
        cmocka_unit_test(no_processor_is_given_twice_with_spread_cores),
        cmocka_unit_test(no_processor_is_given_twice_with_offline_threads),
    };
    const char *text = getenv("PLACEMENT_SEED");

    seed = text != NULL ? strtoull(text, NULL, 10) : 20;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
