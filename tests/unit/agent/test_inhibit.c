/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of coracle-shutdown, as the agent reads them. */
#include "agent/inhibit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void each_word_is_told_from_the_others(void **state)
{
    const char *text = NULL;
    uint64_t value = 7;

    (void)state;
    assert_int_equal(inhibit_parse("held 38000000", &value, &text), INHIBIT_HELD);
    assert_int_equal(value, 38000000);
    assert_int_equal(inhibit_parse("held 18446744073709551615", &value, &text), INHIBIT_HELD); /* infinity */
    assert_int_equal(inhibit_parse("preparing 1", &value, &text), INHIBIT_PREPARING);
    assert_int_equal(value, 1);
    assert_int_equal(inhibit_parse("preparing 0", &value, &text), INHIBIT_PREPARING);
    assert_int_equal(value, 0);
    assert_int_equal(inhibit_parse("warn logind waits 5s", &value, &text), INHIBIT_WARN);
    assert_string_equal(text, "logind waits 5s");
}

static void what_is_no_line_of_it_is_nonsense(void **state)
{
    static const char *const lines[] = { "",
                                         "held",
                                         "held ",
                                         "held -1",
                                         "held 1s",
                                         "preparing",
                                         "preparing 2",
                                         "preparing -1",
                                         "preparing 01x",
                                         "warn",
                                         "HELD 1",
                                         " held 1",
                                         "release",
                                         "held 18446744073709551616" };
    const char *text = NULL;
    uint64_t value = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (inhibit_parse(lines[i], &value, &text) != INHIBIT_NONSENSE)
            fail_msg("taken: \"%s\"", lines[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_is_told_from_the_others),
        cmocka_unit_test(what_is_no_line_of_it_is_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
