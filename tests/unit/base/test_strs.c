/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strs.h"

#include "base/array.h"
#include "tests/unit/base/helper.h"

static void an_array_keeps_what_it_holds_while_it_grows_and_shrinks(void **state)
{
    int *v = NULL;
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_true(array_room(v, n));
        v[n++] = i;
    }
    for (n = 5; n < 500; n++) {
        assert_true(array_room(v, n));
        v[n] = -1;
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(v[i], i);
    free(v);
}

static void a_list_has_each_text_once_in_order(void **state)
{
    struct strs s = { 0 };

    (void)state;
    strs_unique(&s);
    assert_null(strs_list(&s)[0]);
    assert_false(strs_take(&s, NULL));
    for (const char *const *text = (const char *const[]){ "b", "a", "b", "c", "a", "b", NULL }; *text; text++)
        assert_true(strs_add(&s, *text));
    strs_unique(&s);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.v[0], "a");
    assert_string_equal(s.v[1], "b");
    assert_string_equal(s.v[2], "c");
    assert_null(s.v[3]);
    assert_true(strs_add_once(&s, "c") && strs_add(&s, "d"));
    assert_int_equal(s.n, 4);
    assert_null(s.v[4]);
    strs_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_keeps_what_it_holds_while_it_grows_and_shrinks),
        cmocka_unit_test(a_list_has_each_text_once_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
