/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/start_times.h"

#include "agent/pod/core/internal.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/core/usage_text.h"

static const char *const names[START_STEPS] = {
    [START_ADMISSION] = "admission", [START_NAMESPACES] = "namespaces", [START_NETWORK] = "network",
    [START_VOLUMES] = "volumes",     [START_CREATE] = "create",         [START_RUN] = "start",
};

static const struct {
    const char *text;
    uint32_t us;
} bounds[START_STEP_BUCKETS] = {
    { "0.001", 1000 },  { "0.0025", 2500 }, { "0.005", 5000 }, { "0.01", 10000 },
    { "0.025", 25000 }, { "0.05", 50000 },  { "0.1", 100000 }, { "0.25", 250000 },
    { "0.5", 500000 },  { "1", 1000000 },   { "5", 5000000 },  { "30", 30000000 },
};

static uint32_t now_us(const struct start_times *t)
{
    uint64_t us = (uv_hrtime() - t->since_ns) / 1000;

    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

void start_times_open(struct pod *p)
{
    p->start_times = (struct start_times){ .since_ns = uv_hrtime() };
    start_times_begin(p, START_ADMISSION);
}

void start_times_begin(struct pod *p, enum start_step s)
{
    struct start_times *t = &p->start_times;

    if (t->since_ns == 0 || t->step[s].begun)
        return;
    t->step[s].begun = true;
    t->step[s].begin_us = now_us(t);
}

void start_times_end(struct pod *p, enum start_step s)
{
    struct start_times *t = &p->start_times;

    if (t->since_ns == 0)
        return;
    start_times_begin(p, s); /* a step that did not wait */
    t->step[s].end_us = now_us(t);
}

static bool was_measured(const struct start_times *t, size_t s)
{
    return t->step[s].begun && t->step[s].end_us > 0;
}

void start_times_over(struct pod *p)
{
    struct start_times *t = &p->start_times;
    struct start_sums *sums = &core_node(p->node)->start_sums;

    if (t->since_ns == 0)
        return;
    t->whole_us = now_us(t);
    t->since_ns = 0;
    for (size_t s = 0; s < START_STEPS; s++) {
        if (!was_measured(t, s))
            continue;
        uint32_t took = t->step[s].end_us - t->step[s].begin_us;
        for (size_t b = 0; b < START_STEP_BUCKETS; b++)
            sums->step[s].buckets[b] += took <= bounds[b].us;
        sums->step[s].count++;
        sums->step[s].sum_us += took;
    }
}

static void put_ms(struct buf *out, uint32_t us)
{
    buf_addf(out, "%u.%u", us / 1000, us / 100 % 10);
}

void start_times_text(const struct pod *p, struct buf *out)
{
    const struct start_times *t = &p->start_times;
    const char *between = "";

    for (size_t s = 0; s < START_STEPS; s++) {
        if (!was_measured(t, s))
            continue;
        buf_addf(out, "%s%s ", between, names[s]);
        put_ms(out, t->step[s].begin_us);
        buf_addc(out, '-');
        put_ms(out, t->step[s].end_us);
        between = ", ";
    }
    if (between[0] != '\0')
        buf_adds(out, " ms after it was seen");
    if (t->whole_us > 0) {
        buf_adds(out, "; ran after ");
        put_ms(out, t->whole_us);
        buf_adds(out, " ms");
    }
}

void start_times_metrics(const struct node *n, struct buf *out)
{
    const struct start_sums *sums = &core_node(n)->start_sums;
    static const char name[] = "coracle_pod_start_step_duration_seconds";

    buf_addf(out, "# HELP %s Steps of pods' first starts; they overlap.\n# TYPE %s histogram\n", name, name);
    for (size_t s = 0; s < START_STEPS; s++) {
        for (size_t b = 0; b < START_STEP_BUCKETS; b++)
            buf_addf(out, "%s_bucket{step=\"%s\",le=\"%s\"} %llu\n", name, names[s], bounds[b].text,
                     (unsigned long long)sums->step[s].buckets[b]);
        buf_addf(out, "%s_bucket{step=\"%s\",le=\"+Inf\"} %llu\n%s_sum{step=\"%s\"} ", name, names[s],
                 (unsigned long long)sums->step[s].count, name, names[s]);
        usage_value(out, sums->step[s].sum_us * 1000, UNIT_NS);
        buf_addf(out, "\n%s_count{step=\"%s\"} %llu\n", name, names[s],
                 (unsigned long long)sums->step[s].count);
    }
}
