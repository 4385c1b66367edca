/* SPDX-License-Identifier: Apache-2.0 */
/* probe_metrics - counts of checks, as in kubelet's /metrics/probes (pkg/kubelet/prober/prober_manager.go).
 * kubelet measures how long a successful check took, and counts none that could not be carried out. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/probes.h"
#include "agent/pod/core/usage_text.h"
#include "base/scope.h"

/* The client library's default buckets. */
static const struct {
    const char *seconds;
    int64_t ns;
} probe_bounds[PROBE_BUCKETS] = {
    { "0.005", 5000000 },  { "0.01", 10000000 },  { "0.025", 25000000 }, { "0.05", 50000000 },
    { "0.1", 100000000 },  { "0.25", 250000000 }, { "0.5", 500000000 },  { "1", 1000000000 },
    { "2.5", 2500000000 }, { "5", 5000000000 },   { "10", 10000000000 },
};

void probes_tally_add(struct probe_tally *t, bool success, int64_t took_ns)
{
    if (!success) {
        t->failed++;
        return;
    }
    t->successful++;
    t->sum_ns += took_ns > 0 ? (uint64_t)took_ns : 0;
    for (size_t i = 0; i < PROBE_BUCKETS; i++)
        t->buckets[i] += took_ns <= probe_bounds[i].ns;
}

/* Labels in the order of their names, as the client library writes them. */
static void probe_total(const struct ctr *c, enum probe_type type, const char *result, uint64_t n,
                        struct buf *out)
{
    if (n == 0)
        return;
    buf_adds(out, "prober_probe_total{");
    usage_label(out, "container", c->spec->name, true);
    usage_label(out, "namespace", c->pod->api->meta.namespace, false);
    usage_label(out, "pod", c->pod->api->meta.name, false);
    usage_label(out, "pod_uid", c->pod->uid, false);
    usage_label(out, "probe_type", probe_type_name(type), false);
    usage_label(out, "result", result, false);
    buf_addf(out, "} %llu\n", (unsigned long long)n);
}

static void probe_labels(const struct ctr *c, enum probe_type type, const char *what, struct buf *out)
{
    buf_addf(out, "prober_probe_duration_seconds_%s{", what);
    usage_label(out, "container", c->spec->name, true);
    usage_label(out, "namespace", c->pod->api->meta.namespace, false);
    usage_label(out, "pod", c->pod->api->meta.name, false);
    usage_label(out, "probe_type", probe_type_name(type), false);
}

static void probe_durations(const struct ctr *c, enum probe_type type, const struct probe_tally *t,
                            struct buf *out)
{
    if (t->successful == 0)
        return;
    for (size_t i = 0; i <= PROBE_BUCKETS; i++) {
        probe_labels(c, type, "bucket", out);
        usage_label(out, "le", i < PROBE_BUCKETS ? probe_bounds[i].seconds : "+Inf", false);
        buf_addf(out, "} %llu\n", (unsigned long long)(i < PROBE_BUCKETS ? t->buckets[i] : t->successful));
    }
    probe_labels(c, type, "sum", out);
    buf_adds(out, "} ");
    usage_value(out, t->sum_ns, UNIT_NS);
    buf_addc(out, '\n');
    probe_labels(c, type, "count", out);
    buf_addf(out, "} %llu\n", (unsigned long long)t->successful);
}

void probes_metrics(const struct node *n, struct buf *out)
{
    const struct probe_tally *tally;

    buf_adds(out, "# HELP prober_probe_duration_seconds [ALPHA] Duration in seconds for a probe response.\n"
                  "# TYPE prober_probe_duration_seconds histogram\n");
    pods_each (n, p)
        for (size_t i = 0; i < p->n_ctrs; i++)
            for (int t = 0; t < PROBE_TYPES; t++)
                if ((tally = probes_tally_of(p->ctrs[i], (enum probe_type)t)) != NULL)
                    probe_durations(p->ctrs[i], (enum probe_type)t, tally, out);
    buf_adds(out, "# HELP prober_probe_total [BETA] Cumulative number of a liveness, readiness or startup "
                  "probe for a container by result.\n# TYPE prober_probe_total counter\n");
    pods_each (n, p) {
        for (size_t i = 0; i < p->n_ctrs; i++) {
            for (int t = 0; t < PROBE_TYPES; t++) {
                if ((tally = probes_tally_of(p->ctrs[i], (enum probe_type)t)) == NULL)
                    continue;
                probe_total(p->ctrs[i], (enum probe_type)t, "failed", tally->failed, out);
                probe_total(p->ctrs[i], (enum probe_type)t, "successful", tally->successful, out);
            }
        }
    }
}
