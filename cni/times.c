/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/times.h"

#include <stdio.h>
#include <string.h>

const struct cni_time_bound cni_time_bounds[CNI_TIME_BUCKETS] = {
    { "0.001", 1000 }, { "0.0025", 2500 }, { "0.005", 5000 }, { "0.01", 10000 }, { "0.025", 25000 },
    { "0.05", 50000 }, { "0.1", 100000 },  { "0.5", 500000 }, { "5", 5000000 },
};

void cni_timed_add(struct cni_timed *t, const char *name, uint64_t us)
{
    if (t->n == CNI_TIMED_MAX)
        return;
    snprintf(t->v[t->n].name, CNI_TIMED_NAME, "%s", name);
    t->v[t->n].us = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
    t->n++;
}

static struct cni_time *time_of(struct cni_times *t, const char *name, bool del)
{
    struct cni_time *fresh;

    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].del == del && strncmp(t->v[i].name, name, CNI_TIMED_NAME - 1) == 0)
            return &t->v[i];
    if (t->n == CNI_TIMES_MAX)
        return NULL;
    fresh = &t->v[t->n++];
    snprintf(fresh->name, CNI_TIMED_NAME, "%s", name);
    fresh->del = del;
    return fresh;
}

void cni_times_add(struct cni_times *t, const char *name, bool del, uint64_t us)
{
    struct cni_time *one = time_of(t, name, del);

    if (one == NULL)
        return;
    one->n++;
    one->sum_us += us;
    for (size_t i = 0; i < CNI_TIME_BUCKETS; i++)
        one->buckets[i] += us <= cni_time_bounds[i].us;
}

void cni_timed_text(const struct cni_timed *t, struct buf *out)
{
    for (size_t i = 0; i < t->n; i++)
        buf_addf(out, "%s%s %u.%u", i > 0 ? ", " : "", t->v[i].name, t->v[i].us / 1000,
                 t->v[i].us / 100 % 10);
    if (t->n > 0)
        buf_adds(out, " ms");
}
