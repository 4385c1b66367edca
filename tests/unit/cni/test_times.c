/* SPDX-License-Identifier: Apache-2.0 */
/* How long plugins took: of one operation as text, and summed up for a histogram. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cni/times.h"

#include <stdio.h>
#include <string.h>

static void an_operation_tells_its_plugins_in_their_order(void **state)
{
    struct cni_timed t = { 0 };
    struct buf text = BUF_INIT(1024);

    (void)state;
    cni_timed_text(&t, &text);
    assert_int_equal(text.n, 0);
    cni_timed_add(&t, "bridge", 12149);
    cni_timed_add(&t, "portmap", 3400);
    cni_timed_text(&t, &text);
    assert_string_equal(text.p, "bridge 12.1, portmap 3.4 ms");
    buf_done(&text);
}

static void plugins_beyond_the_limit_are_not_timed(void **state)
{
    struct cni_timed t = { 0 };

    (void)state;
    for (int i = 0; i < CNI_TIMED_MAX + 3; i++)
        cni_timed_add(&t, "bridge", UINT64_MAX);
    assert_int_equal(t.n, CNI_TIMED_MAX);
    assert_int_equal(t.v[0].us, UINT32_MAX);
}

static void sums_are_kept_by_plugin_and_operation(void **state)
{
    struct cni_times t = { 0 };

    (void)state;
    cni_times_add(&t, "bridge", false, 900);
    cni_times_add(&t, "bridge", false, 30000);
    cni_times_add(&t, "bridge", true, 6000000);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.v[0].n, 2);
    assert_int_equal(t.v[0].sum_us, 30900);
    assert_int_equal(t.v[0].buckets[0], 1);
    assert_int_equal(t.v[0].buckets[4], 1);
    assert_int_equal(t.v[0].buckets[5], 2);
    assert_true(t.v[1].del);
    assert_int_equal(t.v[1].buckets[CNI_TIME_BUCKETS - 1], 0);
    assert_int_equal(t.v[1].n, 1);
}

static void long_names_and_many_plugins_are_bounded(void **state)
{
    struct cni_times t = { 0 };
    char name[CNI_TIMED_NAME + 20];

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    cni_times_add(&t, name, false, 1);
    cni_times_add(&t, name, false, 1);
    assert_int_equal(t.n, 1);
    assert_int_equal(strlen(t.v[0].name), CNI_TIMED_NAME - 1);
    for (int i = 0; i < 2 * CNI_TIMES_MAX; i++) {
        snprintf(name, sizeof(name), "plugin-%d", i);
        cni_times_add(&t, name, false, 1);
    }
    assert_int_equal(t.n, CNI_TIMES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_tells_its_plugins_in_their_order),
        cmocka_unit_test(plugins_beyond_the_limit_are_not_timed),
        cmocka_unit_test(sums_are_kept_by_plugin_and_operation),
        cmocka_unit_test(long_names_and_many_plugins_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
