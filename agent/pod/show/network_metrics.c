/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the network plugins: the time that each of them adds to the start and the removal of pods. */
#include "agent/pod/core/usage_text.h"
#include "agent/pod/show/agent_metrics.h"
#include "cni/cni.h"

static void put_one(const struct cni_time *t, const char *name, struct buf *out)
{
    const char *verb = t->del ? "DEL" : "ADD";

    for (size_t i = 0; i < CNI_TIME_BUCKETS; i++) {
        buf_addf(out, "%s_bucket{", name);
        usage_label(out, "plugin", t->name, true);
        buf_addf(out, ",operation=\"%s\",le=\"%s\"} %llu\n", verb, cni_time_bounds[i].text,
                 (unsigned long long)t->buckets[i]);
    }
    buf_addf(out, "%s_bucket{", name);
    usage_label(out, "plugin", t->name, true);
    buf_addf(out, ",operation=\"%s\",le=\"+Inf\"} %llu\n%s_sum{", verb, (unsigned long long)t->n, name);
    usage_label(out, "plugin", t->name, true);
    buf_addf(out, ",operation=\"%s\"} ", verb);
    usage_value(out, t->sum_us * 1000, UNIT_NS);
    buf_addf(out, "\n%s_count{", name);
    usage_label(out, "plugin", t->name, true);
    buf_addf(out, ",operation=\"%s\"} %llu\n", verb, (unsigned long long)t->n);
}

void network_metrics(const struct node *n, struct buf *out)
{
    static const char name[] = "coracle_network_plugin_duration_seconds";
    const struct cni_times *all = n->o.cni != NULL ? cni_times(n->o.cni) : NULL;

    if (all == NULL || all->n == 0)
        return;
    buf_addf(out, "# HELP %s Time that a network plugin took, by operation.\n# TYPE %s histogram\n", name,
             name);
    for (size_t i = 0; i < all->n; i++)
        put_one(&all->v[i], name, out);
}
