/* SPDX-License-Identifier: Apache-2.0 */
/* units - converts Kubernetes' numbers to the kernel's; see cgroup.h for the sources. */
#include "cgroups/cgroup.h"

#define SHARES_MIN 2
#define SHARES_MAX 262144
#define SHARES_PER_CPU 1024
#define WEIGHT_MAX 10000
#define QUOTA_MIN_US 1000 /* the kernel's minimum; so any limit below 10m acts as 10m */

uint64_t cg_shares_from_milli(int64_t milli_cpu)
{
    if (milli_cpu <= 0)
        return SHARES_MIN;
    if (milli_cpu >= (int64_t)SHARES_MAX * 1000 / SHARES_PER_CPU)
        return SHARES_MAX;
    uint64_t shares = (uint64_t)milli_cpu * SHARES_PER_CPU / 1000;
    return shares < SHARES_MIN ? SHARES_MIN : shares;
}

int64_t cg_quota_from_milli(int64_t milli_cpu, int64_t period_us)
{
    int64_t quota;

    if (milli_cpu <= 0 || period_us <= 0)
        return -1;
    if (__builtin_mul_overflow(milli_cpu, period_us, &quota))
        return -1; /* more CPUs than exist: no limit */
    quota /= 1000;
    return quota < QUOTA_MIN_US ? QUOTA_MIN_US : quota;
}

/* Binary logarithm, digit by digit: squaring doubles it. Avoids libm. */
static double log2_of(uint64_t s)
{
    int whole = 63 - __builtin_clzll(s);
    double x = (double)s / (double)(1ull << whole);
    double result = whole;

    for (double bit = 0.5; bit > 1e-15; bit /= 2) {
        x *= x;
        if (x >= 2) {
            x /= 2;
            result += bit;
        }
    }
    return result;
}

static double pow10_of(double x) /* x >= 0 and small */
{
    const double ln10 = 2.302585092994045684;
    double power = 1, term = 1, sum = 1;

    for (; x >= 1; x -= 1)
        power *= 10;
    for (int i = 1; i < 40; i++) {
        term *= x * ln10 / i;
        sum += term;
    }
    return power * sum;
}

/*
 * The formula of opencontainers/cgroups since 0.0.4 and crun since 1.23: a curve through (2, 1), (1024, 100)
 * and (262144, 10000), so that the default shares become the default weight.  kubelet itself still uses the
 * linear formula for pods; weights only matter among siblings, and all our levels use this one.
 */
uint64_t cg_weight_from_shares(uint64_t shares)
{
    if (shares <= SHARES_MIN)
        return 1;
    if (shares >= SHARES_MAX)
        return WEIGHT_MAX;
    double l = log2_of(shares);
    double weight = pow10_of((l * l + 125 * l) / 612.0 - 7.0 / 34.0);
    uint64_t whole = (uint64_t)weight;

    /* Rounds up; the tolerance keeps an exact result (1024 -> 100) unchanged. */
    return weight - (double)whole > 1e-7 ? whole + 1 : whole;
}
