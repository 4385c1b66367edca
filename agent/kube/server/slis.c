/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slis - /metrics/slis: the number of successful /healthz checks. kubelet counts each of its three checks
 * when a client requests all of them; here, ping and log succeed while this process answers, and syncloop is
 * the daemon's answer. Source: k8s.io/component-base/metrics/prometheus/slis,
 * k8s.io/apiserver/pkg/server/healthz.
 */
#include "agent/kube/server/internal.h"

#include "base/scope.h"

#define SLIS_TYPE "text/plain; version=0.0.4; charset=utf-8"

void slis_count(struct caller *c, bool ok)
{
    struct health_count *h = &c->server->health;

    if (c->route.kind != PATH_HEALTHZ || c->parser.request.n_segments != 1)
        return;
    h->good += ok;
    h->bad += !ok;
    h->last_good = ok;
}

static const struct {
    const char *name;
    bool daemon; /* depends on the daemon's answer */
} slis_checks[] = { { "log", false }, { "ping", false }, { "syncloop", true } };

static void slis_totals(const struct health_count *h, struct buf *b)
{
    buf_adds(b, "# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all "
                "healthcheck.\n# TYPE kubernetes_healthchecks_total counter\n");
    for (size_t i = 0; i < ARRAY_LEN(slis_checks); i++) {
        uint64_t bad = slis_checks[i].daemon ? h->bad : 0, good = h->good + h->bad - bad;

        if (bad > 0)
            buf_addf(b, "kubernetes_healthchecks_total{name=\"%s\",status=\"error\",type=\"healthz\"} %llu\n",
                     slis_checks[i].name, (unsigned long long)bad);
        if (good > 0)
            buf_addf(b,
                     "kubernetes_healthchecks_total{name=\"%s\",status=\"success\",type=\"healthz\"} %llu\n",
                     slis_checks[i].name, (unsigned long long)good);
    }
}

void slis_begin(struct caller *c)
{
    const struct health_count *h = &c->server->health;
    struct buf b = BUF_INIT(16 * 1024);

    if (h->good + h->bad > 0) {
        buf_adds(&b, "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single "
                     "healthcheck.\n# TYPE kubernetes_healthcheck gauge\n");
        for (size_t i = 0; i < ARRAY_LEN(slis_checks); i++)
            buf_addf(&b, "kubernetes_healthcheck{name=\"%s\",type=\"healthz\"} %d\n", slis_checks[i].name,
                     !slis_checks[i].daemon || h->last_good);
        slis_totals(h, &b);
    }
    buf_addf(&b,
             "# HELP process_start_time_seconds Start time of coracle-kube's port, in seconds since 1970.\n"
             "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %lld.%03lld\n",
             (long long)(h->since_ns / 1000000000), (long long)(h->since_ns / 1000000 % 1000));
    if (b.failed)
        caller_text(c, 500, "out of memory\n");
    else
        caller_answer(c, 200, SLIS_TYPE, "", b.p, b.n);
    buf_done(&b);
}
