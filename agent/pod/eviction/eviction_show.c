/* SPDX-License-Identifier: Apache-2.0 */
/* Pressure as shown to people: records, `coracle explain node`, metrics. */
#include "agent/pod/core/explain_step.h"
#include "agent/pod/eviction/internal.h"

#include <inttypes.h>

json_t *eviction_records(const struct node *n)
{
    const struct eviction *r = eviction_of(n);

    return r != NULL ? ev_records_json(r->records) : json_array();
}

/* ---- explain ---- */

static void add_signal(const struct eviction *r, enum ev_signal s, json_t *steps)
{
    const struct ev_value *v = &r->last[s];
    uint64_t headroom = ev_manager_headroom(r->manager, s, v);
    char available[QUANTITY_TEXT_SIZE], capacity[QUANTITY_TEXT_SIZE], left[QUANTITY_TEXT_SIZE];
    str_auto text = NULL;

    if (!v->known || (headroom == UINT64_MAX && !r->helpless[s]))
        return;
    ev_value_text(s, v->available, available);
    ev_value_text(s, v->capacity, capacity);
    ev_value_text(s, headroom, left);
    if (headroom == 0)
        text = str_printf("%s of %s; below its threshold%s", available, capacity,
                          r->helpless[s] ? ", and no pod can be evicted" : "");
    else
        text = str_printf("%s of %s; %s until the next threshold", available, capacity, left);
    explain_step(steps, ev_signal_name(s), headroom == 0 ? "failed" : "done", r->last_ns[s],
                 text != NULL ? text : "", 0);
}

void eviction_explain(const struct node *n, json_t *steps)
{
    const struct eviction_node *part = eviction_node(n);
    const struct eviction *r = part->room;

    if (r == NULL)
        return;
    for (enum ev_condition c = 0; c < EV_CONDITIONS; c++)
        if (eviction_pressure(n, c))
            explain_step(steps, ev_condition_name(c), "failed", r->since_ns[c], ev_condition_message(c, true),
                         0);
    for (enum ev_signal s = 0; s < EV_SIGNALS; s++)
        add_signal(r, s, steps);
    observe_explain(part->observe, steps);
    if (part->watch != NULL)
        eviction_watch_explain(part->watch, steps);
    if (part->forks != NULL)
        forks_explain(part->forks, steps);
}

/* ---- metrics ---- */

void eviction_metrics(const struct node *n, struct buf *out)
{
    const struct eviction *r = eviction_of(n);

    if (r == NULL)
        return;
    buf_adds(out, "# HELP kubelet_evictions Cumulative number of pod evictions by eviction signal\n"
                  "# TYPE kubelet_evictions counter\n");
    for (enum ev_signal s = 0; s < EV_SIGNALS; s++)
        if (r->n_evicted[s] > 0)
            buf_addf(out, "kubelet_evictions{eviction_signal=\"%s\"} %" PRIu64 "\n", ev_signal_name(s),
                     r->n_evicted[s]);
    buf_adds(out, "# HELP coracle_pressure Whether the node has this condition.\n"
                  "# TYPE coracle_pressure gauge\n");
    for (enum ev_condition c = 0; c < EV_CONDITIONS; c++)
        buf_addf(out, "coracle_pressure{condition=\"%s\"} %d\n", ev_condition_name(c),
                 eviction_pressure(n, c));
    buf_addf(
        out,
        "# HELP coracle_reclaims_total Times that unused images and old logs were removed under pressure.\n"
        "# TYPE coracle_reclaims_total counter\ncoracle_reclaims_total %" PRIu64 "\n"
        "# HELP coracle_reclaimed_bytes_total Bytes that this freed.\n"
        "# TYPE coracle_reclaimed_bytes_total counter\ncoracle_reclaimed_bytes_total %" PRIu64 "\n",
        r->n_reclaims, r->bytes_reclaimed);
}
