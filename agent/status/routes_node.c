/* SPDX-License-Identifier: Apache-2.0 */
/* Paths for the agent itself and the node. */
#include "agent/status/internal.h"

#include "base/clock.h"
#include "base/op.h"

#include <stdio.h>
#include <sys/utsname.h>

#define METRICS_MAX (64u << 20) /* a thousand pods of three containers have about 40 MiB */

void route_healthz(struct conn *c, const struct status_match *m)
{
    (void)m;
    conn_answer(c, 200, "text/plain; charset=utf-8", NULL, "ok", 2);
}

void route_readyz(struct conn *c, const struct status_match *m)
{
    bool ready = false;
    json_t *checks = c->server->provider.ready(c->server->provider.arg, &ready);

    (void)m;
    conn_json(c, ready ? 200 : 503, checks);
}

void route_version(struct conn *c, const struct status_match *m)
{
    char started[CLOCK_RFC3339_SIZE], version[64], platform[sizeof(((struct utsname *)0)->machine) + 8];
    struct utsname u;

    (void)m;
    uname(&u);
    clock_format_s(c->server->started_ns, started);
    snprintf(version, sizeof(version), "v%s", CORACLE_VERSION);
    snprintf(platform, sizeof(platform), "linux/%s", u.machine);
    conn_json(c, 200,
              json_pack("{s:s, s:s, s:s, s:s, s:s}", "gitVersion", version, "platform", platform, "compiler",
                        __VERSION__, "kernelVersion", u.release, "startedAt", started));
}

static void add_metric(struct buf *b, const char *name, const char *type, const char *help, uint64_t value)
{
    buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type, name,
             (unsigned long long)value);
}

static size_t count_watchers(const struct status_server *s)
{
    const struct conn *c;
    size_t n = 0;

    LIST_FOREACH (c, &s->conns, all)
        n += c->watch != NULL;
    return n;
}

/* The server's own counters are on the first page only, so that no name is scraped twice. */
void route_metrics(struct conn *c, const struct status_match *m)
{
    enum status_metrics which = m->route == ROUTE_METRICS_CADVISOR   ? METRICS_CADVISOR
                                : m->route == ROUTE_METRICS_RESOURCE ? METRICS_RESOURCE
                                : m->route == ROUTE_METRICS_PROBES   ? METRICS_PROBES
                                                                     : METRICS_ALL;
    struct status_server *s = c->server;
    struct buf b = BUF_INIT(METRICS_MAX);

    if (reply_owe(c) == NULL)
        return;
    if (which == METRICS_ALL) {
        add_metric(&b, "coracle_status_connections", "gauge", "Open connections of the status socket.",
                   s->n_conns);
        add_metric(&b, "coracle_status_watchers", "gauge", "Clients watching pods or events.",
                   count_watchers(s));
        add_metric(&b, "coracle_status_log_streams", "gauge", "Clients reading a log.", s->n_logs);
        add_metric(&b, "coracle_status_execs", "gauge", "Processes running in containers for clients.",
                   s->n_execs);
        add_metric(&b, "coracle_status_accepted_total", "counter", "Connections accepted.",
                   s->count.connections);
        add_metric(&b, "coracle_status_refused_total", "counter",
                   "Connections refused: not permitted, or too many.", s->count.refused);
        add_metric(&b, "coracle_status_requests_total", "counter", "Requests received.", s->count.requests);
        add_metric(&b, "coracle_status_dropped_total", "counter",
                   "Watch and log clients dropped because they fell behind.", s->count.dropped);
        add_metric(&b, "coracle_status_held_bytes", "gauge", "Bytes of answers pending for all clients.",
                   s->held);
        add_metric(&b, "coracle_status_cut_off_total", "counter",
                   "Slow clients disconnected because too much data was pending for all clients.",
                   s->count.cut_off);
        add_metric(
            &b, "coracle_status_few_files_total", "counter",
            "Connections refused and watches ended because the remaining descriptors are reserved for pods.",
            s->count.few_files);
        add_metric(&b, "coracle_status_no_room_total", "counter",
                   "Answers refused because too much data was pending for other clients.", s->count.no_room);
    }
    if (s->provider.metrics != NULL)
        s->provider.metrics(s->provider.arg, which, &b, c->reply);
    else
        status_reply_text(c->reply, &b);
}

struct operations {
    json_t *list;
    bool complete;
};

static void routes_node_add_operation(const struct op *op, void *arg)
{
    struct operations *all = arg;
    json_t *one = json_pack("{s:s, s:s, s:I, s:i, s:s*}", "name", op->name, "subject", op->subject, "ageMs",
                            (json_int_t)(clock_mono_ms() - op->started_ms), "state", op->state, "ending",
                            op->why.code != ERR_OK ? op->why.text : NULL);

    all->complete = json_array_append_new(all->list, one) == 0 && all->complete;
}

void route_operations(struct conn *c, const struct status_match *m)
{
    struct operations all = { json_array(), true };

    (void)m;
    op_each(routes_node_add_operation, &all);
    if (!all.complete) {
        json_decref(all.list);
        conn_json(c, 500, NULL);
        return;
    }
    conn_json(c, 200, json_pack("{s:o}", "operations", all.list));
}

void route_config(struct conn *c, const struct status_match *m)
{
    struct err e = { 0 };

    (void)m;
    conn_value(c, c->server->provider.config(c->server->provider.arg, &e), &e);
}

void route_kubeconfig(struct conn *c, const struct status_match *m)
{
    const struct status_provider *p = &c->server->provider;
    struct err e = { 0 };

    (void)m;
    if (p->kubeconfig != NULL)
        conn_value(c, p->kubeconfig(p->arg, &e), &e);
    else
        conn_status(c, 404, "NotFound", NULL, NULL, "there is no local API");
}

void route_manifests(struct conn *c, const struct status_match *m)
{
    (void)m;
    conn_items(c, c->server->provider.manifests);
}

void route_evictions(struct conn *c, const struct status_match *m)
{
    (void)m;
    conn_items(c, c->server->provider.evictions);
}

void route_placements(struct conn *c, const struct status_match *m)
{
    (void)m;
    conn_items(c, c->server->provider.placements);
}

void route_stats(struct conn *c, const struct status_match *m)
{
    struct status_server *s = c->server;
    struct err e = { 0 };
    bool basic = false;

    (void)m;
    if (http_param_flag(&c->parser.request, "only_cpu_and_memory", &basic, &e) != ERR_OK)
        conn_err(c, &e);
    else if (reply_owe(c) != NULL)
        s->provider.stats(s->provider.arg, basic, c->reply);
}
