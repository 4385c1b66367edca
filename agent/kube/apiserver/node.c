/* SPDX-License-Identifier: Apache-2.0 */
/* node - objects that are made on request: the Node with its heartbeat, its lease, and measurements. */
#include "agent/kube/apiserver/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

#define NODE_MAX (8u << 20)
#define STATS_MAX (64u << 20)

struct look { /* a request that waits for an answer of the daemon */
    struct api_request request;
    struct ask *ask;
    void (*next)(const struct api_request *r);
};

static void look_gone(struct caller *c)
{
    struct look *l = c->job;

    ask_close(l->ask);
    free(l);
}

static const struct caller_source look_source = { .gone = look_gone };

static void look_begin(const struct api_request *r, const char *target, size_t max, ask_done_fn done,
                       void (*next)(const struct api_request *r))
{
    struct look *l = calloc(1, sizeof(*l));
    struct err e = { 0 };

    if (l != NULL)
        l->ask = ask_open(r->api->o.server, target, max, done, l, &e);
    if (l == NULL || l->ask == NULL) {
        free(l);
        if (e.code == ERR_OK)
            err_nomem(&e);
        api_answer_err(r->caller, &e);
        return;
    }
    l->request = *r;
    l->next = next;
    r->caller->state = CALLER_SERVED;
    r->caller->source = &look_source;
    r->caller->job = l;
}

/* ---- the node ---- */

#define HEARTBEAT_S 10 /* kubelet's nodeStatusUpdateFrequency */

static void put_time(json_t *o, const char *key, int64_t s)
{
    char text[CLOCK_RFC3339_SIZE];

    clock_format_s(s * INT64_C(1000000000), text);
    json_object_set_new(o, key, json_string(text));
}

static json_t *condition_of(const json_t *node, const char *type)
{
    json_t *conditions = json_object_get(json_object_get(node, "status"), "conditions"), *one;
    size_t i;

    json_array_foreach (conditions, i, one)
        if (str_eq(json_str(one, "type"), type))
            return one;
    return NULL;
}

/* The daemon's answer is the heartbeat. Its time advances in steps, so that not every request is a change. */
static void node_beat(json_t *node, const json_t *known)
{
    const int64_t now = clock_wall_ns() / 1000000000;
    json_t *conditions = json_object_get(json_object_get(node, "status"), "conditions"), *one, *since;
    size_t i;

    json_array_foreach (conditions, i, one) {
        json_t *before = condition_of(known, json_str(one, "type"));
        const bool same = str_eq(json_str(one, "status"), json_str(before, "status"));

        put_time(one, "lastHeartbeatTime", now - now % HEARTBEAT_S);
        if (json_object_get(one, "lastTransitionTime") != NULL)
            continue;
        since = same ? json_object_get(before, "lastTransitionTime") : NULL;
        if (before == NULL)
            since = json_object_get(json_object_get(node, "metadata"), "creationTimestamp");
        if (since != NULL)
            json_object_set(one, "lastTransitionTime", since);
        else
            put_time(one, "lastTransitionTime", now);
    }
}

static const struct api_kind_row *node_row(void)
{
    return &api_kinds[API_KIND_NODE];
}

static bool same_member(const json_t *a, const json_t *b, const char *name)
{
    const json_t *x = json_object_get(a, name), *y = json_object_get(b, name);

    return x == y || (x != NULL && y != NULL && json_equal(x, y));
}

/* Whether the two differ in more than their status. */
static bool is_written(const json_t *before, const json_t *node)
{
    json_auto_t *a = json_copy(json_object_get(before, "metadata")),
                *b = json_copy(json_object_get(node, "metadata"));

    json_object_del(a, "resourceVersion");
    json_object_del(b, "resourceVersion");
    return a == NULL || b == NULL || !json_equal(a, b) || !same_member(before, node, "spec");
}

/* Its version is the one of the stock, or the daemon's after a write: a heart-beat is a change. */
const json_t *api_node_take(struct kube_api *a, json_t *node)
{
    json_t *meta = json_object_get(node, "metadata");
    const char *name = json_str(meta, "name"), *given = json_str(meta, "resourceVersion");
    const struct stock_object *known = name != NULL ? stock_find(&a->stock, node_row(), "", name) : NULL;
    const struct stock_change *change = NULL;
    const uint64_t written = given != NULL ? strtoull(given, NULL, 10) : 0;
    uint64_t version = known != NULL ? known->version : a->stock.version;
    bool differs;

    node_beat(node, known != NULL ? known->object : NULL);
    json_object_set_new(meta, "resourceVersion", json_sprintf("%llu", (unsigned long long)version));
    if (known != NULL && json_equal(known->object, node))
        return known->object;
    version = written > a->stock.version ? written : a->stock.version;
    json_object_set_new(meta, "resourceVersion", json_sprintf("%llu", (unsigned long long)version));
    differs = known == NULL || is_written(known->object, node);
    if (!stock_put(&a->stock, node, 0, &change))
        return NULL;
    if (change != NULL && differs)
        a->node_written = version;
    if (change != NULL)
        api_changed(a);
    known = stock_find(&a->stock, node_row(), "", name);
    return known != NULL ? known->object : NULL;
}

/* A heartbeat causes no conflict: any version since the last write counts as the current one. */
void api_node_version(const struct kube_api *a, const json_t *live, json_t *body)
{
    json_t *meta = json_object_get(body, "metadata"), *now = json_object_get(live, "metadata");
    const char *version = json_str(meta, "resourceVersion");

    now = json_object_get(now, "resourceVersion");
    if (version != NULL && version[0] != '\0' && version[strspn(version, "0123456789")] == '\0' &&
        now != NULL && strtoull(version, NULL, 10) >= a->node_written &&
        strtoull(version, NULL, 10) <= strtoull(json_string_value(now), NULL, 10))
        json_object_set(meta, "resourceVersion", now);
}

static void node_on_answer(int http, json_t *body, const struct err *e, void *owner)
{
    struct look *l = owner;
    const struct api_request r = l->request;
    void (*next)(const struct api_request *r) = l->next;

    r.caller->source = NULL;
    if (http == 200 && json_is_object(body))
        api_node_take(r.api, body);
    if (e->code != ERR_OK)
        api_answer_err(r.caller, e);
    else if (http != 200)
        api_answer_status(r.caller, json_incref(body));
    else
        next(&r);
    ask_close(l->ask);
    free(l);
}

void api_node_first(const struct api_request *r, void (*next)(const struct api_request *r))
{
    look_begin(r, "/store/node", NODE_MAX, node_on_answer, next);
}

/* ---- its lease ---- */

#define LEASE_S 40 /* kubelet's nodeLeaseDurationSeconds */

/* A node without a cluster renews no lease; its answers show that it is alive. */
void api_lease_renew(struct kube_api *a)
{
    const struct api_kind_row *row = &api_kinds[API_KIND_LEASE];
    const struct stock_object *known = stock_find(&a->stock, row, API_LEASE_NAMESPACE, a->node_name);
    const int64_t now = clock_wall_ns() / 1000000000;
    const struct stock_change *change = NULL;
    char time[CLOCK_RFC3339_SIZE], micro[CLOCK_RFC3339_SIZE + 8];
    json_auto_t *lease = NULL;

    clock_format_s((now - now % HEARTBEAT_S) * INT64_C(1000000000), time);
    snprintf(micro, sizeof(micro), "%.*s.000000Z", (int)strcspn(time, "Z"), time);
    if (known != NULL && str_eq(json_str(json_object_get(known->object, "spec"), "renewTime"), micro))
        return;
    lease = json_pack("{s:s, s:s, s:{s:s, s:s, s:O*, s:o}, s:{s:s, s:i, s:s}}", "kind", row->kind,
                      "apiVersion", row->api_version, "metadata", "name", a->node_name, "namespace",
                      API_LEASE_NAMESPACE, "creationTimestamp",
                      known != NULL
                          ? json_object_get(json_object_get(known->object, "metadata"), "creationTimestamp")
                          : NULL,
                      "resourceVersion", json_sprintf("%llu", (unsigned long long)a->stock.version), "spec",
                      "holderIdentity", a->node_name, "leaseDurationSeconds", LEASE_S, "renewTime", micro);
    if (lease != NULL && known == NULL)
        json_object_set_new(json_object_get(lease, "metadata"), "creationTimestamp", json_string(time));
    if (lease != NULL && stock_put(&a->stock, lease, 0, &change) && change != NULL)
        api_changed(a);
}

/* ---- kubectl top ---- */

/* Labels of all objects of the kind, by "namespace/name". */
static json_t *labels_of(const struct kube_api *a, const struct api_kind_row *kind)
{
    json_t *labels = json_object();
    struct stock_object *o, *tmp;

    HASH_ITER (hh, a->stock.objects, o, tmp) {
        json_t *own =
            o->kind == kind ? json_object_get(json_object_get(o->object, "metadata"), "labels") : NULL;
        str_auto key = own != NULL ? str_printf("%s/%s", o->namespace_, o->name) : NULL;

        if (key != NULL)
            ERR_IGNORE(json_object_set(labels, key, own));
    }
    return labels;
}

/* Removes the objects that were not requested. */
static void metrics_select(json_t *list, const struct api_selection *s)
{
    json_t *items = json_object_get(list, "items");

    for (size_t i = json_array_size(items); i-- > 0;)
        if (!api_selection_has(s, json_array_get(items, i)))
            json_array_remove(items, i);
}

static void metrics_answer(const struct api_request *r, const json_t *summary)
{
    const bool pods = r->target.kind->namespaced;
    json_auto_t *labels = labels_of(r->api, &api_kinds[pods ? API_KIND_POD : API_KIND_NODE]);
    struct api_selection s = { 0 };
    json_t *status = NULL, *found;
    struct err e = { 0 };

    if (api_selection_read(&s, &r->caller->parser.request, &r->target, &e) != ERR_OK) {
        api_answer_err(r->caller, &e);
        return;
    }
    found = api_metrics_of(&r->target, summary, labels, &status);
    if (found == NULL) {
        api_answer_status(r->caller, status);
    } else {
        metrics_select(found, &s);
        api_answer_value(r, 200, found);
    }
    api_selection_done(&s);
}

static void metrics_on_answer(int http, json_t *body, const struct err *e, void *owner)
{
    struct look *l = owner;
    const struct api_request r = l->request;

    r.caller->source = NULL;
    if (e->code != ERR_OK)
        api_answer_err(r.caller, e);
    else if (http != 200)
        api_answer_status(r.caller, json_incref(body));
    else
        metrics_answer(&r, body);
    ask_close(l->ask);
    free(l);
}

void api_metrics(const struct api_request *r)
{
    look_begin(r, "/stats/summary", STATS_MAX, metrics_on_answer, NULL);
}
