/* SPDX-License-Identifier: Apache-2.0 */
/* How many operations run at once: halved by a slow one, widened one by one by quick ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cni/width.h"

static void a_slow_operation_halves_it_down_to_one(void **state)
{
    struct cni_width w;

    (void)state;
    cni_width_init(&w, 12);
    assert_int_equal(w.now, 12);
    for (size_t i = 0; i < 4; i++) {
        static const size_t wanted[] = { 6, 3, 1, 1 };

        cni_width_slow(&w);
        assert_int_equal(w.now, wanted[i]);
    }
    assert_int_equal(w.most, 12);
}

static void as_many_quick_ones_in_a_row_as_run_at_once_widen_it_by_one(void **state)
{
    struct cni_width w;

    (void)state;
    cni_width_init(&w, 4);
    cni_width_slow(&w);
    cni_width_took(&w, 100);
    assert_int_equal(w.now, 2);
    cni_width_took(&w, CNI_WIDTH_QUICK_MS); /* breaks the row */
    cni_width_took(&w, 0);
    assert_int_equal(w.now, 2);
    cni_width_took(&w, CNI_WIDTH_QUICK_MS - 1);
    assert_int_equal(w.now, 3);
    cni_width_took(&w, 1);
    cni_width_took(&w, 1);
    cni_width_slow(&w);
    assert_int_equal(w.now, 1);
    cni_width_took(&w, 1);
    assert_int_equal(w.now, 2); /* those before the slow one do not count */
}

static void what_was_slow_alone_was_not_slowed_by_others(void **state)
{
    struct cni_width w;

    (void)state;
    cni_width_init(&w, 4);
    cni_width_slow(&w);
    cni_width_slow(&w);
    assert_int_equal(w.now, 1);
    cni_width_took(&w, 10 * CNI_WIDTH_QUICK_MS);
    assert_int_equal(w.now, 2);
    cni_width_took(&w, 10 * CNI_WIDTH_QUICK_MS);
    cni_width_took(&w, 10 * CNI_WIDTH_QUICK_MS);
    assert_int_equal(w.now, 2);
}

static void it_never_exceeds_what_it_began_with(void **state)
{
    struct cni_width w;

    (void)state;
    cni_width_init(&w, 4);
    for (int i = 0; i < 100; i++)
        cni_width_took(&w, 1);
    assert_int_equal(w.now, 4);
    cni_width_slow(&w);
    for (int i = 0; i < 100; i++)
        cni_width_took(&w, 1);
    assert_int_equal(w.now, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_operation_halves_it_down_to_one),
        cmocka_unit_test(as_many_quick_ones_in_a_row_as_run_at_once_widen_it_by_one),
        cmocka_unit_test(what_was_slow_alone_was_not_slowed_by_others),
        cmocka_unit_test(it_never_exceeds_what_it_began_with),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
