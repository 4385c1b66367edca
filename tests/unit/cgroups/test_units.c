/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroups/cgroup.h"

static void shares_follow_the_millicores_and_stay_in_the_kernels_range(void **state)
{
    (void)state;
    assert_int_equal(cg_shares_from_milli(0), 2);
    assert_int_equal(cg_shares_from_milli(-5), 2);
    assert_int_equal(cg_shares_from_milli(1), 2);
    assert_int_equal(cg_shares_from_milli(10), 10);
    assert_int_equal(cg_shares_from_milli(50), 51);
    assert_int_equal(cg_shares_from_milli(250), 256);
    assert_int_equal(cg_shares_from_milli(1000), 1024);
    assert_int_equal(cg_shares_from_milli(256000), 262144);
    assert_int_equal(cg_shares_from_milli(INT64_MAX), 262144);
}

static double ratio_of(int64_t milli, int64_t times)
{
    return (double)cg_weight_from_shares(cg_shares_from_milli(times * milli)) /
           (double)cg_weight_from_shares(cg_shares_from_milli(milli));
}

/* docs/decisions/resources.md says which requests compete as 1 to 3 within ten percent. */
static void requests_of_one_to_four_weigh_one_to_three(void **state)
{
    (void)state;
    for (int64_t milli = 65; milli <= 56000; milli += 5) {
        if (ratio_of(milli, 4) < 2.7 || ratio_of(milli, 4) > 3.3)
            fail_msg("%lld: 1 to %f", (long long)milli, ratio_of(milli, 4));
        if (ratio_of(milli, 3) > 2.7)
            fail_msg("%lld, three times: 1 to %f", (long long)milli, ratio_of(milli, 3));
    }
}

static void weights_match_the_published_table(void **state)
{
    static const struct {
        uint64_t shares, weight;
    } rows[] = { { 0, 1 },          { 2, 1 },          { 3, 2 },
                 { 10, 4 },         { 51, 11 },        { 102, 17 },
                 { 204, 29 },       { 256, 35 },       { 512, 59 },
                 { 1024, 100 },     { 2048, 174 },     { 4096, 303 },
                 { 8192, 532 },     { 16384, 942 },    { 65536, 3023 },
                 { 262143, 10000 }, { 262144, 10000 }, { UINT64_MAX, 10000 } };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(cg_weight_from_shares(rows[i].shares), rows[i].weight);
}

static void more_shares_never_weigh_less(void **state)
{
    uint64_t before = 0;

    (void)state;
    for (uint64_t s = 0; s <= 262150; s++) {
        uint64_t w = cg_weight_from_shares(s);
        if (w < before || w < 1 || w > 10000)
            fail_msg("weight of %llu shares is %llu", (unsigned long long)s, (unsigned long long)w);
        before = w;
    }
}

static void quota_is_at_least_a_millisecond_and_zero_means_none(void **state)
{
    (void)state;
    assert_int_equal(cg_quota_from_milli(0, 100000), -1);
    assert_int_equal(cg_quota_from_milli(-1, 100000), -1);
    assert_int_equal(cg_quota_from_milli(1, 100000), 1000);
    assert_int_equal(cg_quota_from_milli(10, 100000), 1000);
    assert_int_equal(cg_quota_from_milli(11, 100000), 1100);
    assert_int_equal(cg_quota_from_milli(1500, 100000), 150000);
    assert_int_equal(cg_quota_from_milli(2000, 50000), 100000);
    assert_int_equal(cg_quota_from_milli(INT64_MAX, 100000), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_follow_the_millicores_and_stay_in_the_kernels_range),
        cmocka_unit_test(weights_match_the_published_table),
        cmocka_unit_test(requests_of_one_to_four_weigh_one_to_three),
        cmocka_unit_test(more_shares_never_weigh_less),
        cmocka_unit_test(quota_is_at_least_a_millisecond_and_zero_means_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
