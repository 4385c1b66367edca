/* SPDX-License-Identifier: Apache-2.0 */
/* What resources agree on: by each policy, and against kubelet's way of trying every combination. Rows marked
 * with a case are sessions of a real kubelet. */
#include "tests/unit/agent_placement/helper.h"

#include "agent/placement/hints.h"

#include <time.h>

static uint64_t seed;

static unsigned chance(unsigned n) /* xorshift64 */
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

static void begin_chance(void)
{
    const char *given = getenv("RANDOM_SEED");

    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + 1;
    print_message("RANDOM_SEED=%llu\n", (unsigned long long)seed);
}

/* ---- hints by set: bit i of the index is the i-th node of the machine ---- */

enum { HINT_NO, HINT_POSSIBLE, HINT_PREFERRED };

struct table {
    bool any;
    uint8_t v[256];
};

static void hints_of(uint64_t nodes, const struct table *t, struct pl_hints *ret)
{
    struct err e = { 0 };

    *ret = (struct pl_hints){ .any = t->any };
    for (unsigned set = 1; !t->any && set < 1u << __builtin_popcountll(nodes); set++) {
        uint64_t numbers = 0;
        unsigned bits = set;

        if (t->v[set] == HINT_NO)
            continue;
        for (uint64_t left = nodes; left != 0; left &= left - 1, bits >>= 1)
            numbers |= (bits & 1) != 0 ? left & -left : 0;
        assert_int_equal(pl_hints_add(ret, numbers, &e), ERR_OK);
        ret->v[ret->n - 1].preferred = t->v[set] == HINT_PREFERRED;
    }
}

/* *has false: nothing is aligned. */
static enum err_code merge(uint64_t nodes, enum pl_policy policy, const struct table *v, size_t n, bool *has,
                           uint64_t *numa, struct err *e)
{
    const struct pl_topology t = { .policy = policy };
    struct pl_machine *m = calloc(1, sizeof(*m));
    struct pl_hints list[64];
    struct pl_hint best = { 0 };

    assert_non_null(m);
    assert_true(n <= ARRAY_LEN(list));
    *e = (struct err){ 0 };
    for (uint64_t left = nodes; left != 0; left &= left - 1)
        m->node[m->n_nodes++].id = (unsigned)__builtin_ctzll(left);
    pl_machine_count(m);
    for (size_t i = 0; i < n; i++)
        hints_of(nodes, &v[i], &list[i]);
    ERR_IGNORE(pl_merge(m, &t, list, n, &best, e));
    for (size_t i = 0; i < n; i++)
        pl_hints_done(&list[i]);
    free(m);
    *has = best.nodes != 0;
    *numa = best.nodes;
    return e->code;
}

/* ---- merging ---- */

/* Of a machine with the nodes 0 to 7: the index of a set is its bits. */
static void parse_hints(struct table *h, const char *text)
{
    char copy[256], *save = NULL;

    *h = (struct table){ .any = strcmp(text, "any") == 0 };
    if (h->any || strcmp(text, "none") == 0)
        return;
    strcpy(copy, text);
    for (char *word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        unsigned set = 0;
        char *at = word;

        for (; *at >= '0' && *at <= '7'; at += at[1] == ',' ? 2 : 1)
            set |= 1u << (*at - '0');
        h->v[set] = *at == '!' ? HINT_PREFERRED : HINT_POSSIBLE;
    }
}

static void policies_merge_hints(void **state)
{
    enum { B = 1, R = 2, S = 4 }; /* best-effort, restricted, single-numa-node */
    static const struct {
        const char *hints[3];
        int admitted;
        uint64_t best;   /* of best-effort and restricted, as bits */
        uint64_t single; /* 0: no alignment */
    } rows[] = {
        { { NULL }, B | R | S, 3, 0 },
        { { "any" }, B | R | S, 3, 0 },
        { { "none" }, B, 3, 0 },
        { { "0! 1! 0,1" }, B | R | S, 1, 1 },
        { { "1! 0,1" }, B | R | S, 2, 2 },
        { { "0,1!" }, B | R, 3, 0 },                    /* case 32: three of two and two */
        { { "0,1" }, B, 3, 0 },                         /* case 37 */
        { { "0! 1! 0,1", "1! 0,1" }, B | R | S, 2, 2 }, /* case 33: a */
        { { "0! 0,1", "1! 0,1" }, B, 1, 0 },            /* case 33: b */
        { { "0! 0,1", "1!" }, B, 2, 0 },
        { { "0!", "1!" }, B, 3, 0 }, /* nothing in common: all nodes */
        { { "0! 0,1", "none" }, B, 1, 0 },
        { { "0! 0,1", "any" }, B | R | S, 1, 1 },
        /* All prefer something, but not the same. */
        { { "0! 1! 0,1", "0,1!" }, B, 3, 0 },
        /* The size to come near to is that of the greatest of the smallest sets. */
        { { "0 1 0,1", "0,1" }, B, 3, 0 },
        { { "0! 1! 0,1", "0,1!", "1! 0,1" }, B, 3, 0 },
    };
    const uint64_t m = 3;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int policy = PL_POLICY_NONE; policy <= PL_POLICY_SINGLE_NODE; policy++) {
            struct table v[3];
            struct err e = { 0 };
            uint64_t numa = 0;
            bool has = false, admitted;
            size_t n = 0;

            for (; n < 3 && rows[i].hints[n] != NULL; n++)
                parse_hints(&v[n], rows[i].hints[n]);
            admitted = merge(m, (enum pl_policy)policy, v, n, &has, &numa, &e) == ERR_OK;
            if (policy == PL_POLICY_NONE) {
                assert_true(admitted && !has);
                continue;
            }
            if (admitted != ((rows[i].admitted >> (policy - 1) & 1) != 0))
                fail_msg("row %zu, policy %d: %d", i, policy, admitted);
            if (!admitted) {
                assert_int_equal(e.code, ERR_PRECONDITION);
                assert_string_equal(e.text, "Resources cannot be allocated with Topology locality");
            } else if (policy == PL_POLICY_SINGLE_NODE) {
                assert_int_equal(has ? numa : 0, rows[i].single);
            } else if (!has || numa != rows[i].best) {
                fail_msg("row %zu, policy %d: %llx", i, policy, (unsigned long long)numa);
            }
        }
}

static void on_a_machine_with_one_node_a_single_node_aligns_nothing(void **state)
{
    const uint64_t m = 1;
    struct table h;
    struct err e = { 0 };
    uint64_t numa = 0;
    bool has = true;

    (void)state;
    parse_hints(&h, "0!");
    assert_int_equal(merge(m, PL_POLICY_SINGLE_NODE, &h, 1, &has, &numa, &e), ERR_OK);
    assert_false(has);
    assert_int_equal(merge(m, PL_POLICY_RESTRICTED, &h, 1, &has, &numa, &e), ERR_OK);
    assert_true(has && numa == 1);
}

static void a_merged_set_is_in_the_machines_numbers(void **state)
{
    const uint64_t m = 1ull << 8 | 1ull << 63;
    struct table h;
    struct err e = { 0 };
    uint64_t numa = 0;
    bool has = false;

    (void)state;
    parse_hints(&h, "1! 0,1");
    assert_int_equal(merge(m, PL_POLICY_SINGLE_NODE, &h, 1, &has, &numa, &e), ERR_OK);
    assert_true(has && numa == 1ull << 63);
}

static void resources_with_the_same_hints_can_meet_in_a_smaller_set(void **state)
{
    const struct pl_topology t = { .policy = PL_POLICY_BEST_EFFORT };
    struct pl_machine *m = machine_of(1, 3, 1, 1, 1, false);
    struct pl_hints h[2] = { { 0 } }; /* of processors, none; of memory */
    struct pl_hint best;
    struct err e = { 0 };

    (void)state;
    for (uint64_t nodes = 2; nodes <= 7; nodes++)
        if (nodes != 3)
            assert_int_equal(pl_hints_add(&h[1], nodes, &e), ERR_OK);
    assert_int_equal(pl_hints_add(&h[1], 3, &e), ERR_OK);
    pl_hints_prefer(&h[1], 1);
    assert_int_equal(pl_merge(m, &t, h, 2, &best, &e), ERR_OK);
    assert_int_equal(best.nodes, 2);
    h[1].more = 1; /* nodes 0 and 1 for one type, 0 and 2 for the other */
    assert_int_equal(pl_merge(m, &t, h, 2, &best, &e), ERR_OK);
    assert_int_equal(best.nodes, 1);
    assert_false(best.preferred);
    pl_hints_done(&h[1]);
    free(m);
}

static void the_size_to_come_near_to_counts_nodes_that_do_not_exist(void **state)
{
    const struct pl_topology t = { .policy = PL_POLICY_BEST_EFFORT };
    struct pl_machine *m = machine_of(1, 3, 1, 1, 1, false);
    struct pl_hints h[2] = { { 0 } };
    struct pl_hint best;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(pl_hints_add(&h[0], 7, &e), ERR_OK);
    assert_int_equal(pl_hints_add(&h[0], 6, &e), ERR_OK);
    assert_int_equal(pl_hints_add(&h[1], 15, &e), ERR_OK); /* there is no node 3 */
    assert_int_equal(pl_merge(m, &t, h, 2, &best, &e), ERR_OK);
    assert_int_equal(best.nodes, 7);
    pl_hints_done(&h[0]);
    pl_hints_done(&h[1]);
    free(m);
}

/* ---- against kubelet's way: every combination of hints, one after the other ---- */

struct candidate {
    unsigned set;
    bool preferred;
};

struct oracle {
    const struct table *v;
    size_t n;
    unsigned all, size; /* kubelet's bestNonPreferredAffinityCount */
    bool single, found;
    struct candidate best;
};

static unsigned bits(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

static bool replaces(const struct oracle *o, const struct candidate *c)
{
    const struct candidate *b = &o->best;
    bool narrower = bits(c->set) != bits(b->set) ? bits(c->set) < bits(b->set) : c->set < b->set;

    if (c->set == 0)
        return false;
    if (!o->found)
        return true;
    if (b->preferred != c->preferred)
        return c->preferred;
    if (b->preferred || bits(b->set) > o->size)
        return narrower;
    if (bits(b->set) == o->size)
        return bits(c->set) == o->size && narrower;
    if (bits(c->set) > o->size || bits(c->set) < bits(b->set))
        return false;
    return bits(c->set) > bits(b->set) || narrower;
}

static void combine(struct oracle *o, size_t i, unsigned merged, bool preferred, unsigned first)
{
    const struct table *h = &o->v[i];
    bool none = true;

    if (i == o->n) {
        struct candidate c = { merged, preferred };

        if (replaces(o, &c)) {
            o->best = c;
            o->found = true;
        }
        return;
    }
    for (unsigned set = 1; set <= o->all; set++) {
        bool prefers = h->v[set] == HINT_PREFERRED;

        if (h->any || h->v[set] == HINT_NO)
            continue;
        none = false;
        if (!o->single || (prefers && bits(set) == 1))
            combine(o, i + 1, merged & set, preferred && prefers && (first == 0 || set == first),
                    first == 0 ? set : first);
    }
    if (h->any)
        combine(o, i + 1, merged, preferred, first);
    else if (none && !o->single)
        combine(o, i + 1, merged, false, first);
}

static bool oracle_merge(struct oracle *o, enum pl_policy policy, bool *has, uint64_t *numa)
{
    o->single = policy == PL_POLICY_SINGLE_NODE;
    for (size_t i = 0; i < o->n; i++) {
        unsigned least = 0;

        for (unsigned set = 1; set <= o->all && !o->v[i].any; set++)
            if (o->v[i].v[set] != HINT_NO && (least == 0 || bits(set) < least))
                least = bits(set);
        o->size = least > o->size ? least : o->size;
    }
    combine(o, 0, o->all, true, 0);
    if (!o->found)
        o->best = (struct candidate){ o->all, false };
    *numa = o->best.set;
    *has = !o->single || o->best.set != o->all;
    return policy == PL_POLICY_BEST_EFFORT || o->best.preferred;
}

static void random_hints(struct table *h, unsigned all)
{
    unsigned kind = chance(8), density = 1 + chance(4);

    *h = (struct table){ .any = kind == 0 };
    for (unsigned set = 1; set <= all && kind > 1; set++)
        if (chance(4) < density)
            h->v[set] = chance(2) != 0 ? HINT_PREFERRED : HINT_POSSIBLE;
}

static void merging_is_as_if_each_combination_were_tried_in_any_order(void **state)
{
    (void)state;
    begin_chance();
    for (int round = 0; round < 30000; round++) {
        uint64_t m = (1ull << (1 + chance(3))) - 1;
        enum pl_policy policy = (enum pl_policy)(PL_POLICY_BEST_EFFORT + (int)chance(3));
        struct table v[4], shuffled[4];
        struct oracle o = { .v = v, .n = chance(5), .all = (unsigned)m };
        uint64_t numa = 0, numa_shuffled = 0, expected = 0;
        bool has = false, has_shuffled = false, expected_has = false, admitted, admitted_shuffled;
        struct err e = { 0 };

        for (size_t i = 0; i < o.n; i++)
            random_hints(&v[i], o.all);
        for (size_t i = 0, first = chance(4); i < o.n; i++)
            shuffled[i] = v[(o.n - 1 - i + first) % o.n];
        admitted = merge(m, policy, v, o.n, &has, &numa, &e) == ERR_OK;
        admitted_shuffled = merge(m, policy, shuffled, o.n, &has_shuffled, &numa_shuffled, &e) == ERR_OK;
        assert_int_equal(admitted, admitted_shuffled);
        assert_int_equal(admitted, oracle_merge(&o, policy, &expected_has, &expected));
        if (!admitted)
            continue;
        assert_true(has == has_shuffled && has == expected_has);
        assert_true(!has || (numa == numa_shuffled && numa == expected));
        if (policy == PL_POLICY_SINGLE_NODE && has)
            assert_int_equal(__builtin_popcountll(numa), 1);
    }
}

/* Eight nodes, many resources: kubelet would try 255 to the power of 64 combinations. */
static void many_resources_on_many_nodes_are_merged_at_once(void **state)
{
    static struct table v[64];
    const uint64_t m = 255;
    struct err e = { 0 };
    uint64_t numa = 0;
    bool has = false;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        for (unsigned set = 1; set < 256; set++)
            v[i].v[set] = (set & 0x0f) != 0 ? HINT_POSSIBLE : HINT_NO;
    for (unsigned set = 1; set < 256; set++) /* one needs three nodes */
        v[7].v[set] = bits(set) >= 3 ? HINT_POSSIBLE : HINT_NO;
    assert_int_equal(merge(m, PL_POLICY_BEST_EFFORT, v, ARRAY_LEN(v), &has, &numa, &e), ERR_OK);
    assert_int_equal(numa, 7);
    assert_int_equal(merge(m, PL_POLICY_RESTRICTED, v, ARRAY_LEN(v), &has, &numa, &e), ERR_PRECONDITION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_merge_hints),
        cmocka_unit_test(on_a_machine_with_one_node_a_single_node_aligns_nothing),
        cmocka_unit_test(a_merged_set_is_in_the_machines_numbers),
        cmocka_unit_test(resources_with_the_same_hints_can_meet_in_a_smaller_set),
        cmocka_unit_test(the_size_to_come_near_to_counts_nodes_that_do_not_exist),
        cmocka_unit_test(merging_is_as_if_each_combination_were_tried_in_any_order),
        cmocka_unit_test(many_resources_on_many_nodes_are_merged_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
