/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "agent/api/quantity.h"

static struct quantity parse(const char *text)
{
    struct quantity q = { 0 };
    struct err e = { 0 };

    if (quantity_parse(text, &q, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return q;
}

static void canonical(const char *text, const char *wanted)
{
    struct quantity q = parse(text);
    char got[QUANTITY_TEXT_SIZE];

    quantity_format(&q, got);
    if (strcmp(got, wanted) != 0)
        fail_msg("%s became %s, not %s", text, got, wanted);
}

static void refused(const char *text, const char *what)
{
    struct quantity q = { .nano = 77 };
    struct err e = { 0 };
    char wanted[200];

    assert_int_equal(quantity_parse(text, &q, &e), ERR_INVALID);
    snprintf(wanted, sizeof(wanted), "quantity \"%.60s\" %s, allowed are ", text, what);
    if (strncmp(e.text, wanted, strlen(wanted)) != 0)
        fail_msg("%s: %s", text, e.text);
    assert_true(q.nano == 77);
}

static void canonical_text_has_no_fraction_and_the_largest_suffix(void **state)
{
    (void)state;
    canonical("1.5", "1500m");
    canonical("0.5Gi", "512Mi");
    canonical("1500m", "1500m");
    canonical("1000m", "1");
    canonical("1000", "1k");
    canonical("1024", "1024");
    canonical("1024Ki", "1Mi");
    canonical("100M", "100M");
    canonical("0.001", "1m");
    canonical("000120", "120");
    canonical("+5", "5");
    canonical("-2000", "-2k");
    canonical("-1.5Gi", "-1536Mi");
    canonical("5.", "5");
    canonical(".5", "500m");
    canonical("3E", "3E");
    canonical("3000E", "3000E");
}

static void zero_is_0_whatever_the_suffix(void **state)
{
    (void)state;
    canonical("0", "0");
    canonical("0Ki", "0");
    canonical("0.0", "0");
    canonical("-0", "0");
    canonical("0e9", "0");
    canonical("0.00e1000", "0");
}

static void exponents_stay_exponents(void **state)
{
    (void)state;
    canonical("12e3", "12e3");
    canonical("12E3", "12e3");
    canonical("1e2", "100");
    canonical("1e5", "100e3");
    canonical("12e+6", "12e6");
    canonical("1.5e3", "1500");
    canonical("1e-3", "1e-3");
    canonical("1e28", "10e27");
    canonical("1e0", "1");
}

static void binary_values_that_are_fractional_or_small_print_as_decimal(void **state)
{
    (void)state;
    canonical("0.5Ki", "512");
    canonical("1Ki", "1Ki");
    canonical("1.0001Ki", "1024102400u");
    canonical("1.1Mi", "1153433600m");
    canonical("0.0001Ki", "102400u");
    canonical("-0.5Ki", "-512");
}

static void finer_than_nano_rounds_away_from_zero(void **state)
{
    (void)state;
    canonical("0.0000000001", "1n");
    canonical("1e-10", "1e-9");
    canonical("1e-1000", "1e-9");
    canonical("0.1n", "1n");
    canonical("1.5n", "2n");
    canonical("-0.1n", "-1n");
    canonical("1.0000000001", "1000000001n");
    canonical("1.0000000000", "1");
    canonical("0.00000000000001Ki", "1n");
}

static void binary_suffixes_are_capped_and_huge_decimals_refused(void **state)
{
    struct quantity q;

    (void)state;
    canonical("9223372036854775807", "9223372036854775807");
    canonical("8Ei", "9223372036854775807");
    canonical("100000Ei", "9223372036854775807");
    canonical("99999999999999999999999999Ki", "9223372036854775807");
    canonical("-8Ei", "-9223372036854775807");
    q = parse("7.999999Ei");
    assert_true(quantity_value(&q) < INT64_MAX);
    canonical("100000000000E", "100000000000E");
    canonical("1e29", "100e27");
    refused("1e30", "is too large");
    refused("1000000000000E", "is too large");
    refused("1e99999999999999999999", "is too large");
}

static void what_is_no_quantity_is_refused_with_its_text(void **state)
{
    (void)state;
    refused("", "is empty");
    refused("K", "is not a number");
    refused("Ki", "is not a number");
    refused(".", "is not a number");
    refused("-", "is not a number");
    refused("1K", "has an unknown suffix");
    refused("1mi", "has an unknown suffix");
    refused("1KiB", "has an unknown suffix");
    refused("1e", "has an unknown suffix");
    refused("1e+", "has an unknown suffix");
    refused("1.1.1", "has an unknown suffix");
    refused("1 Gi", "has an unknown suffix");
    refused(" 1", "is not a number");
    refused("1,5", "has an unknown suffix");
    refused("0x10", "has an unknown suffix");
    refused("--1", "is not a number");
    refused("1e5m", "has an unknown suffix");
}

static void integer_views_round_up(void **state)
{
    struct quantity q;

    (void)state;
    q = parse("0.1");
    assert_int_equal(quantity_value(&q), 1);
    assert_int_equal(quantity_milli(&q), 100);
    q = parse("1.0001");
    assert_int_equal(quantity_milli(&q), 1001);
    q = parse("1500m");
    assert_int_equal(quantity_value(&q), 2);
    q = parse("2Ki");
    assert_int_equal(quantity_value(&q), 2048);
    q = parse("8Ei");
    assert_true(quantity_value(&q) == INT64_MAX);
    assert_true(quantity_milli(&q) == INT64_MAX);
    q = parse("1e25");
    assert_true(quantity_value(&q) == INT64_MAX);
    q = parse("-1e25");
    assert_true(quantity_value(&q) == INT64_MIN);
}

static void sums_are_exact_and_saturate(void **state)
{
    struct quantity a = parse("100m"), b = parse("1Gi"), none = { 0 }, most = parse("1e29"), sum;
    char text[QUANTITY_TEXT_SIZE];

    (void)state;
    sum = quantity_add(&a, &a);
    quantity_format(&sum, text);
    assert_string_equal(text, "200m");
    sum = quantity_add(&none, &b);
    quantity_format(&sum, text);
    assert_string_equal(text, "1Gi");
    sum = quantity_add(&most, &most);
    assert_int_equal(quantity_cmp(&sum, &most), 0);
    assert_true(quantity_cmp(&a, &b) < 0);
    assert_true(quantity_is_zero(&none));
    sum = quantity_from_int(64, QUANTITY_BINARY_SI);
    assert_int_equal(quantity_value(&sum), 64);
}

static void a_canonical_text_reads_back_as_the_same_amount(void **state)
{
    static const char *const texts[] = { "1.5",      "0.5Gi",      "12e3",   "1e-3", "3000E",
                                         "1.0001Ki", "123456789n", "-7",     "8Ei",  "1e29",
                                         "333u",     "5P",         "1023Mi", "1e28", "0.1Ei" };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct quantity q = parse(texts[i]), again;
        char text[QUANTITY_TEXT_SIZE], second[QUANTITY_TEXT_SIZE];

        quantity_format(&q, text);
        again = parse(text);
        assert_int_equal(quantity_cmp(&q, &again), 0);
        quantity_format(&again, second);
        assert_string_equal(text, second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical_text_has_no_fraction_and_the_largest_suffix),
        cmocka_unit_test(zero_is_0_whatever_the_suffix),
        cmocka_unit_test(exponents_stay_exponents),
        cmocka_unit_test(binary_values_that_are_fractional_or_small_print_as_decimal),
        cmocka_unit_test(finer_than_nano_rounds_away_from_zero),
        cmocka_unit_test(binary_suffixes_are_capped_and_huge_decimals_refused),
        cmocka_unit_test(what_is_no_quantity_is_refused_with_its_text),
        cmocka_unit_test(integer_views_round_up),
        cmocka_unit_test(sums_are_exact_and_saturate),
        cmocka_unit_test(a_canonical_text_reads_back_as_the_same_amount),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
