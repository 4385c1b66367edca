/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/apiserver/selector_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void sentences_that_break_off_have_an_apiservers_words(void **state)
{
    static const struct {
        const char *text, *why;
    } samples[] = {
        { "n=a b", "found 'b', expected: ',' or 'end of string'" },
        { ",", "found ',', expected: !, identifier, or 'end of string'" },
        { "n=>1", "unable to parse requirement: found '>', expected: identifier" },
        { "n in (1", "unable to parse requirement: found '', expected: ',' or ')'" },
        { "a,", "found '', expected: identifier after ','" },
        { "!", "unable to parse requirement: found '', expected: identifier" },
        { "a in b", "unable to parse requirement: found 'b' expected: '('" },
        { "a in (b,c),in notin ()", "as it was" }, /* a sentence: what is wrong is a key or a value */
        { "", "as it was" },
        { "a!=,b=,!c", "as it was" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct err e = { 0 };

        err_set(&e, ERR_INVALID, "as it was");
        selector_words(samples[i].text, &e);
        assert_string_equal(e.text, samples[i].why);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sentences_that_break_off_have_an_apiservers_words) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
