/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

static void hex_ids_have_the_length_asked_for(void **state)
{
    char a[201], b[201];

    (void)state;
    memset(a, 'x', sizeof(a));
    id_random_hex(a, 0);
    assert_string_equal(a, "");
    id_random_hex(a, 1);
    assert_int_equal(strlen(a), 1);
    id_random_hex(a, 200);
    id_random_hex(b, 200);
    assert_int_equal(strspn(a, "0123456789abcdef"), 200);
    assert_string_not_equal(a, b);
    assert_memory_not_equal(a, a + 64, 64); /* several draws */
}

static void uuids_are_random_ones_of_version_4(void **state)
{
    char a[37], b[37];
    int i;

    (void)state;
    for (i = 0; i < 100; i++) {
        id_random_uuid(a);
        id_random_uuid(b);
        assert_string_not_equal(a, b);
        assert_int_equal(strlen(a), 36);
        assert_true(a[8] == '-' && a[13] == '-' && a[18] == '-' && a[23] == '-');
        assert_int_equal(a[14], '4');
        assert_non_null(strchr("89ab", a[19]));
        assert_int_equal(strspn(a, "0123456789abcdef-"), 36);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_ids_have_the_length_asked_for),
        cmocka_unit_test(uuids_are_random_ones_of_version_4),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
