/* SPDX-License-Identifier: Apache-2.0 */
#include "base/near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const char *nearest(const char *name)
{
    static const char *const names[] = { "get", "logs", "describe", "exec", "Explain" };
    struct near near = { .name = name };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        near_try(&near, names[i]);
    return near.found != NULL ? near.found : "none";
}

static void a_slip_is_near(void **state)
{
    (void)state;
    assert_string_equal(nearest("log"), "logs");
    assert_string_equal(nearest("gte"), "get"); /* swapped: one slip */
    assert_string_equal(nearest("describbe"), "describe");
    assert_string_equal(nearest("descrlbe"), "describe");
    assert_string_equal(nearest("dsecirbe"), "describe");
    assert_string_equal(nearest("EXPLAIN"), "Explain");
    assert_string_equal(nearest("exce"), "exec");
}

static void another_word_is_not(void **state)
{
    char longer[300];

    (void)state;
    memset(longer, 'g', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_string_equal(nearest(longer), "none");
    assert_string_equal(nearest("frobnicate"), "none");
    assert_string_equal(nearest("prescribed"), "none"); /* three slips */
    assert_string_equal(nearest("destriXX"), "none");
    assert_string_equal(nearest("x"), "none");
    assert_string_equal(nearest(""), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slip_is_near),
        cmocka_unit_test(another_word_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
