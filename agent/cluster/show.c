/* SPDX-License-Identifier: Apache-2.0 */
/* show - the connection to the cluster for people and for metrics. */
#include "agent/cluster/internal.h"
#include "base/codec/json.h"

#include <inttypes.h>
#include <string.h>

#define ERROR_MAX 300

void show_state(struct cluster *c, const json_t *message)
{
    json_t *copy = json_deep_copy(message);

    if (copy == NULL)
        return;
    free(take_ptr(&c->lost));
    json_decref(c->state);
    c->state = copy;
    keep_state(c);
}

void show_parts(struct cluster *c, const json_t *message)
{
    json_t *copy = json_deep_copy(message);

    if (copy == NULL)
        return;
    json_decref(c->parts);
    c->parts = copy;
}

/* "; lease: no answer" for each part of coracle-kube that cannot do its work; malloc'ed. */
static char *show_troubles(const struct cluster *c)
{
    buf_auto b = BUF_INIT(4096);
    const char *name;
    json_t *part;

    json_object_foreach (json_object_get(c->parts, "parts"), name, part)
        buf_addf(&b, "; %.60s: %.300s", name,
                 json_str(part, "error") != NULL ? json_str(part, "error") : "?");
    return buf_detach(&b);
}

json_t *show_explain(void *cluster)
{
    const struct cluster *c = cluster;
    const char *error = json_str(c->state, "error"), *since = json_str(c->state, "since");
    bool connected = c->link != NULL && json_flag(c->state, "connected");
    str_auto troubles = show_troubles(c);
    str_auto detail = str_printf("connected since %.40s; %s%s", since != NULL ? since : "?",
                                 c->pods_synced ? "its pods are known" : "its pods are not known yet",
                                 troubles != NULL ? troubles : "");
    json_t *o = json_object();

    json_put_str(o, "state", connected ? "done" : "waiting");
    if (c->lost != NULL && c->link == NULL)
        json_object_set_new(o, "detail", json_sprintf("coracle-kube does not run: %.300s", c->lost));
    else if (connected)
        json_object_set_new(o, "detail", json_string_of(detail != NULL ? detail : "connected"));
    else if (c->credentials == NULL)
        json_object_set_new(o, "detail",
                            json_sprintf("there are no credentials for the apiserver: %.300s",
                                         c->trouble != NULL ? c->trouble : "they are being read"));
    else
        json_object_set_new(o, "detail",
                            json_sprintf("the apiserver does not answer: %.300s; pods run on as recorded",
                                         error != NULL && error[0] != '\0' ? error : "no answer yet"));
    return o;
}

static void metric(struct buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", name, help, name, type, name, value);
}

void show_metrics(struct buf *out, void *cluster)
{
    const struct cluster *c = cluster;

    metric(out, "coracle_cluster_connected", "gauge", "Whether the apiserver answers.",
           c->link != NULL && json_flag(c->state, "connected"));
    metric(out, "coracle_kube_starts_total", "counter", "Starts of coracle-kube.", c->starts);
    metric(out, "coracle_kube_backlog_bytes", "gauge", "Messages that wait for coracle-kube.",
           c->link != NULL ? kube_link_backlog(c->link) : 0);
    metric(out, "coracle_kube_events_dropped_total", "counter",
           "Events that were not told because coracle-kube did not read.", c->events_dropped);
    metric(out, "coracle_kube_objects_followed", "gauge",
           "ConfigMaps and Secrets that pods of the apiserver refer to.", HASH_COUNT(c->needs));
    metric(out, "coracle_kube_services", "gauge", "Services with a cluster IP that the apiserver has.",
           HASH_COUNT(c->services));
    if (json_object_get(c->parts, "requests") != NULL)
        metric(out, "coracle_kube_requests_total", "counter", "Requests to the apiserver.",
               (uint64_t)json_int(c->parts, "requests", 0));
}
