/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/device/admissions.h"

uint64_t admissions_bound_ns(unsigned bucket)
{
    return UINT64_C(50000) << bucket;
}

void admissions_add(struct admissions *a, uint64_t took_ns, bool refused)
{
    a->pods++;
    a->refused += refused;
    a->took_ns += took_ns;
    for (unsigned i = 0; i < ADMISSION_BUCKETS; i++)
        a->buckets[i] += took_ns <= admissions_bound_ns(i);
}
