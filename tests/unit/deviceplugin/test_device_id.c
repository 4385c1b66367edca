/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "base/scope.h"
#include "deviceplugin/device_id.h"

static void numbers_in_ids_are_compared_as_numbers(void **state)
{
    static const char *const ascending[] = {
        "",
        "0",
        "00",
        "01",
        "1",
        "2",
        "10",
        "a",
        "dev-0",
        "dev-1",
        "dev-01a",
        "dev-1a",
        "dev-2",
        "dev-2-9",
        "dev-2-10",
        "dev-10",
        "dev-a",
        "gpu0/mig1",
        "gpu00/mig1",
        "gpu00/mig9",
        "gpu0/mig12",
        "x18446744073709551615",
        "x18446744073709551616",
        "x99999999999999999999998",
        "x99999999999999999999999",
        "\xc3\xa4",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ascending); i++)
        for (size_t k = 0; k < ARRAY_LEN(ascending); k++) {
            int order = dp_id_compare(ascending[i], ascending[k]);

            if ((i < k) != (order < 0) || (i > k) != (order > 0))
                fail_msg("%s, %s: %d", ascending[i], ascending[k], order);
        }
}

static void ids_are_utf8_of_bounded_length(void **state)
{
    char longest[DP_ID_MAX + 2];

    (void)state;
    assert_true(dp_id_ok("dev-0"));
    assert_true(dp_id_ok("GPU-8ac1\xc3\xa4 \t/\"\\\n"));
    assert_false(dp_id_ok(""));
    assert_false(dp_id_ok("\xff"));
    assert_false(dp_id_ok("dev-\xc3"));
    memset(longest, 'a', sizeof(longest));
    longest[DP_ID_MAX] = '\0';
    assert_true(dp_id_ok(longest));
    longest[DP_ID_MAX] = 'a';
    longest[DP_ID_MAX + 1] = '\0';
    assert_false(dp_id_ok(longest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_ids_are_compared_as_numbers),
        cmocka_unit_test(ids_are_utf8_of_bounded_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
