/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec/percent.h"
#include "tests/unit/base/helper.h"

#include <string.h>

static void only_unreserved_bytes_stay(void **state)
{
    buf_auto b = BUF_INIT(4096);

    (void)state;
    percent_add(&b, "azAZ09-._~");
    assert_string_equal(b.p, "azAZ09-._~");
    percent_add(&b, "");
    percent_add(&b, "/? &=%+\x01\x7f\xc3\xa9");
    assert_string_equal(b.p, "azAZ09-._~%2F%3F%20%26%3D%25%2B%01%7F%C3%A9");
}

static void a_full_buffer_says_so(void **state)
{
    buf_auto b = BUF_INIT(4);

    (void)state;
    percent_add(&b, "////");
    assert_true(b.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_unreserved_bytes_stay),
        cmocka_unit_test(a_full_buffer_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
