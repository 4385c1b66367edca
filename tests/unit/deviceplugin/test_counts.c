/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins do is counted by resource, within bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deviceplugin/inventory.h"
#include "deviceplugin/plugin/counts.h"

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)

static void counts_are_kept_by_resource(void **state)
{
    struct dp_counts c = { 0 };

    (void)state;
    dp_counts_registered(&c, "example.com/b");
    dp_counts_registered(&c, "example.com/a");
    dp_counts_registered(&c, "example.com/b");
    dp_counts_allocated(&c, "example.com/b", 5 * MS);
    dp_counts_allocated(&c, "example.com/b", 6 * MS);
    dp_counts_allocated(&c, "example.com/b", 11000 * MS);
    assert_int_equal(c.n, 2);
    assert_string_equal(c.v[0].resource, "example.com/a");
    assert_int_equal(c.v[0].registrations, 1);
    assert_int_equal(c.v[0].allocations, 0);
    assert_int_equal(c.v[1].registrations, 2);
    assert_int_equal(c.v[1].allocations, 3);
    assert_int_equal(c.v[1].took_ns, 11011 * MS);
    assert_int_equal(c.v[1].buckets[0], 1);                    /* up to 5 ms */
    assert_int_equal(c.v[1].buckets[1], 2);                    /* up to 10 ms */
    assert_int_equal(c.v[1].buckets[DP_ALLOC_BUCKETS - 1], 2); /* up to 10 s */
    dp_counts_done(&c);
}

static void names_of_plugins_are_bounded(void **state)
{
    char name[DP_RESOURCE_NAME_MAX + 2];
    struct dp_counts c = { 0 };

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    dp_counts_registered(&c, name);
    assert_int_equal(c.n, 0);
    for (int i = 0; i < DP_COUNTS_MAX + 10; i++) {
        snprintf(name, sizeof(name), "example.com/%d", i);
        dp_counts_registered(&c, name);
    }
    assert_int_equal(c.n, DP_COUNTS_MAX);
    dp_counts_registered(&c, "example.com/7"); /* it is known */
    for (size_t i = 0; i < c.n; i++)
        if (strcmp(c.v[i].resource, "example.com/7") == 0)
            assert_int_equal(c.v[i].registrations, 2);
    dp_counts_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_kept_by_resource),
        cmocka_unit_test(names_of_plugins_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
