/* SPDX-License-Identifier: Apache-2.0 */
/* show - the connection to the cluster, for `coracle explain` and for metrics. */
#include "agent/cluster/internal.h"
#include "agent/pod/core/usage_text.h"
#include "base/clock.h"
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

static void show_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* client-go's name and labels; a request without an answer has the code "<error>". */
static void show_answers(struct buf *out, const struct cluster *c)
{
    const json_t *answers = json_object_get(c->parts, "answers");
    const char *host = json_str(answers, "host");
    json_t *row;
    size_t i;

    if (answers == NULL)
        return;
    show_head(out, "rest_client_requests_total", "counter",
              "Number of HTTP requests, partitioned by status code, method, and host.");
    json_array_foreach (json_object_get(answers, "counts"), i, row) {
        const char *method;
        json_int_t http, requests;
        char code[24];

        if (json_unpack(row, "[s, I, I]", &method, &http, &requests) != 0)
            continue;
        snprintf(code, sizeof(code), http > 0 ? "%" JSON_INTEGER_FORMAT : "<error>", http);
        buf_adds(out, "rest_client_requests_total{");
        usage_label(out, "code", code, true);
        usage_label(out, "host", host != NULL ? host : "", false);
        usage_label(out, "method", method, false);
        buf_addf(out, "} %" JSON_INTEGER_FORMAT "\n", requests);
    }
}

/* As in kubelet: only for a certificate that is rotated; without one the time is infinite. */
static void show_certificate(struct buf *out, const json_t *one, const char *ttl, const char *errors)
{
    const json_int_t not_after = json_int(one, "notAfter", 0);

    if (one == NULL)
        return;
    show_head(out, ttl, "gauge",
              "Seconds until the certificate expires; negative: since it did; +Inf: there is none.");
    if (not_after != 0)
        buf_addf(out, "%s %" JSON_INTEGER_FORMAT "\n", ttl,
                 not_after - (json_int_t)(clock_wall_ns() / 1000000000));
    else
        buf_addf(out, "%s +Inf\n", ttl);
    metric(out, errors, "counter", "Attempts to renew the certificate that failed.",
           (uint64_t)json_int(one, "errors", 0));
}

static void show_certificates(struct buf *out, const json_t *both)
{
    show_certificate(out, json_object_get(both, "client"), "kubelet_certificate_manager_client_ttl_seconds",
                     "kubelet_certificate_manager_client_expiration_renew_errors");
    show_certificate(out, json_object_get(both, "server"), "kubelet_certificate_manager_server_ttl_seconds",
                     "kubelet_server_expiration_renew_errors");
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
           "Events that were dropped because coracle-kube did not read.", c->events_dropped);
    metric(out, "coracle_kube_objects_followed", "gauge",
           "ConfigMaps and Secrets that pods of the apiserver refer to.", HASH_COUNT(c->needs));
    metric(out, "coracle_kube_services", "gauge", "Services with a cluster IP that the apiserver has.",
           HASH_COUNT(c->services));
    if (json_object_get(c->parts, "requests") != NULL)
        metric(out, "coracle_kube_requests_total", "counter", "Requests to the apiserver.",
               (uint64_t)json_int(c->parts, "requests", 0));
    show_answers(out, c);
    show_certificates(out, json_object_get(c->parts, "certificates"));
}
