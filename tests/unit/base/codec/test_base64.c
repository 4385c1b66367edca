/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void the_vectors_of_rfc_4648(void **state)
{
    static const char *const cases[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
        { "\xff\xfe\xfb", "//77" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        buf_auto out = BUF_INIT(100);

        base64_add(&out, cases[i][0], strlen(cases[i][0]));
        assert_string_equal(out.p, cases[i][1]);
    }
}

static void bytes_of_zero_count(void **state)
{
    buf_auto out = BUF_INIT(100);

    (void)state;
    base64_add(&out, "\0\0\0\0", 4);
    assert_string_equal(out.p, "AAAAAA==");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_rfc_4648),
        cmocka_unit_test(bytes_of_zero_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
