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

static void decoding_takes_padding_or_none(void **state)
{
    static const char *const fine[][2] = {
        { "", "" },           { "Zg==", "f" },        { "Zg", "f" },
        { "Zm8=", "fo" },     { "Zm8", "fo" },        { "Zm9v", "foo" },
        { "Zm9vYg", "foob" }, { "Zm9vYg==", "foob" }, { "//77", "\xff\xfe\xfb" },
    };
    static const char *const bad[] = { "Z",     "Zg=",   "=",    "==",   "====", "Z===",
                                       "Zm9v=", "Zm9vY", "Zm 9", "Zm9-", "Z=g=" };
    unsigned char out[16];
    size_t n = 99;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(base64_decode(bad[i], strlen(bad[i]), out, &n));
    assert_false(base64_decode("Zm\0v", 4, out, &n));
    assert_int_equal(n, 99);
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        assert_true(base64_decode(fine[i][0], strlen(fine[i][0]), out, &n));
        assert_int_equal(n, strlen(fine[i][1]));
        assert_memory_equal(out, fine[i][1], n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_rfc_4648),
        cmocka_unit_test(bytes_of_zero_count),
        cmocka_unit_test(decoding_takes_padding_or_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
