/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of isolated processors against a tree of cgroups that is only data: containers come and go, the agent
 * is killed after any write. Whatever happened before, a whole plan ends as it should; no write gives one
 * processor to two cgroups of one parent, takes it from a partition that stays, or from the admin.
 */
#include "tests/unit/agent_placement/helper.h"

#include "agent/placement/isolate.h"

#define PODS 4
#define IN_POD 3
#define CGROUPS (2 + 1 + PODS * (1 + IN_POD))
#define ALL 2

static unsigned seed = 25;

static unsigned any(unsigned below)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % below;
}

static void tree_of(struct pl_iso_cgroup *v)
{
    memset(v, 0, CGROUPS * sizeof(*v));
    v[0].exclusive = cpus_of("40-41"); /* the admin's */
    v[ALL].level = PL_ISO_ALL;
    for (size_t i = ALL + 1; i < CGROUPS; i++)
        v[i].level = (i - ALL - 1) % (1 + IN_POD) == 0 ? PL_ISO_POD : PL_ISO_CONTAINER;
}

/* Every container, at random, with processors that no other has. */
static void want_any(struct pl_iso_cgroup *v)
{
    struct cpus left = cpus_of("0-31");

    for (size_t i = 0; i < CGROUPS; i++) {
        memset(&v[i].want, 0, sizeof(v[i].want));
        for (unsigned k = 0; v[i].level == PL_ISO_CONTAINER && any(3) > 0 && k <= any(3); k++) {
            unsigned cpu = cpus_next(&left, any(28));

            if (cpu == CPUS_MAX)
                break;
            cpus_add(&v[i].want, cpu);
            left = cpus_without(&left, &v[i].want);
        }
    }
}

static bool is_granted(const struct pl_iso_cgroup *v, size_t i)
{
    size_t pod = i;

    while (v[pod].level != PL_ISO_POD)
        pod--;
    return v[i].partition && !cpus_is_empty(&v[i].exclusive) &&
           cpus_contain(&v[pod].exclusive, &v[i].exclusive) &&
           cpus_contain(&v[ALL].exclusive, &v[i].exclusive) &&
           cpus_contain(&v[0].exclusive, &v[i].exclusive) && cpus_contain(&v[1].exclusive, &v[i].exclusive);
}

/* The kernel's rule for siblings: pods among each other, containers of a pod among each other. */
static void check_siblings(const struct pl_iso_cgroup *v)
{
    for (size_t i = ALL + 1; i < CGROUPS; i++)
        for (size_t k = i + 1; k < CGROUPS; k++) {
            bool same_pod = (i - ALL - 1) / (1 + IN_POD) == (k - ALL - 1) / (1 + IN_POD);

            if (v[i].level == v[k].level && (v[i].level == PL_ISO_POD || same_pod))
                assert_false(cpus_overlap(&v[i].exclusive, &v[k].exclusive));
        }
}

static void carry_out(struct pl_iso_cgroup *v, const struct pl_iso_write *w)
{
    bool was[CGROUPS];

    for (size_t i = 0; i < CGROUPS; i++)
        was[i] =
            v[i].level == PL_ISO_CONTAINER && is_granted(v, i) && cpus_equal(&v[i].exclusive, &v[i].want);
    if (w->file == PL_ISO_EXCLUSIVE)
        v[w->cgroup].exclusive = w->cpus;
    else
        v[w->cgroup].partition = w->isolated;
    check_siblings(v);
    for (size_t i = 0; i < CGROUPS; i++) {
        if (v[i].level == PL_ISO_CONTAINER)
            v[i].isolated = is_granted(v, i);
        assert_true(!was[i] || v[i].isolated);
    }
    assert_true(cpus_has(&v[0].exclusive, 40) && cpus_has(&v[0].exclusive, 41));
}

static void check_end(const struct pl_iso_cgroup *v)
{
    struct cpus all = pl_isolated(v, CGROUPS), admin = cpus_of("40-41"), first = cpus_or(&all, &admin);

    assert_true(cpus_equal(&v[0].exclusive, &first));
    assert_true(cpus_equal(&v[1].exclusive, &all));
    assert_true(cpus_equal(&v[ALL].exclusive, &all));
    for (size_t i = ALL + 1; i < CGROUPS; i++) {
        if (v[i].level == PL_ISO_POD) {
            struct cpus pod = pl_isolated(&v[i], 1 + IN_POD);

            assert_true(cpus_equal(&v[i].exclusive, &pod));
            continue;
        }
        assert_true(cpus_equal(&v[i].exclusive, &v[i].want));
        assert_int_equal(v[i].isolated, !cpus_is_empty(&v[i].want));
        assert_int_equal(v[i].partition, v[i].isolated);
    }
}

static void test_any_order(void **state)
{
    struct pl_iso_cgroup v[CGROUPS];
    struct pl_iso_write w[PL_ISO_WRITES(CGROUPS)];
    size_t whole = 0, cut = 0;

    (void)state;
    tree_of(v);
    for (unsigned step = 0; step < 20000; step++) {
        size_t n, until;

        want_any(v);
        n = pl_isolate(v, CGROUPS, w);
        assert_true(n <= PL_ISO_WRITES(CGROUPS));
        until = any(2) == 0 ? n : any((unsigned)n + 1);
        for (size_t i = 0; i < until; i++)
            carry_out(v, &w[i]);
        if (until < n) {
            cut++;
            continue;
        }
        whole++;
        check_end(v);
        assert_int_equal(pl_isolate(v, CGROUPS, w), 0);
    }
    assert_true(whole > 1000 && cut > 1000);
}

/* The setting was turned off, or the last such pod is gone. */
static void test_nothing_is_left(void **state)
{
    struct pl_iso_cgroup v[CGROUPS];
    struct pl_iso_write w[PL_ISO_WRITES(CGROUPS)];
    size_t n;

    (void)state;
    tree_of(v);
    v[4].want = cpus_of("2-3");
    n = pl_isolate(v, CGROUPS, w);
    for (size_t i = 0; i < n; i++)
        carry_out(v, &w[i]);
    assert_true(v[4].isolated);
    v[4].want = cpus_of("");
    n = pl_isolate(v, CGROUPS, w);
    assert_int_equal(w[0].file, PL_ISO_PARTITION);
    for (size_t i = 0; i < n; i++)
        carry_out(v, &w[i]);
    check_end(v);
    assert_true(cpus_is_empty(&v[ALL].exclusive));
}

/* The kernel refused, or a processor is offline: the partition is asked for again, and nothing else. */
static void test_invalid(void **state)
{
    struct pl_iso_cgroup v[CGROUPS];
    struct pl_iso_write w[PL_ISO_WRITES(CGROUPS)];
    size_t n;

    (void)state;
    tree_of(v);
    v[4].want = cpus_of("2-3");
    n = pl_isolate(v, CGROUPS, w);
    for (size_t i = 0; i < n; i++)
        carry_out(v, &w[i]);
    v[4].isolated = false;
    assert_int_equal(pl_isolate(v, CGROUPS, w), 1);
    assert_int_equal(w[0].cgroup, 4);
    assert_true(w[0].file == PL_ISO_PARTITION && w[0].isolated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_nothing_is_left),
        cmocka_unit_test(test_invalid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
