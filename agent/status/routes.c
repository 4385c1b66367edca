/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/internal.h"

#include "base/codec/json.h"

#include <stdio.h>
#include <string.h>

/* ---- helpers ---- */

static void pod_not_found(struct conn *c, const char *name)
{
    char message[400];

    snprintf(message, sizeof(message), "pods \"%.253s\" not found", name);
    conn_status(c, 404, "NotFound", "pods", name, message);
}

/* ---- pods ---- */

/* Restricts a watch to the pod named in the path. */
static bool narrow(struct selection *s, const char *name)
{
    if (s->n_fields == SELECT_FIELDS_MAX)
        return false;
    s->fields[s->n_fields].path = strdup("metadata.name");
    s->fields[s->n_fields].value = strdup(name);
    s->fields[s->n_fields].differs = false;
    s->n_fields++;
    return s->fields[s->n_fields - 1].path != NULL && s->fields[s->n_fields - 1].value != NULL;
}

static void routes_get_pods(struct conn *c, const struct status_match *m)
{
    static const struct listing_of pod_list = { KIND_POD, "PodList", "v1", true };
    struct selection selection;
    struct err e = { 0 };
    struct object_keys keys;
    bool watch = false;

    if (http_param_flag(&c->parser.request, "watch", &watch, &e) != ERR_OK ||
        selection_parse(&c->parser.request, SELECT_PODS, m->namespace_, &selection, &e) != ERR_OK) {
        conn_err(c, &e);
        return;
    }
    if (!watch) {
        listing_begin(c, &pod_list, &selection);
    } else if (m->name != NULL && !narrow(&selection, m->name)) {
        err_nomem(&e);
        conn_err(c, &e);
    } else if (keys_read(&keys, c->server, KIND_POD, &selection, &e) != ERR_OK) {
        conn_err(c, &e);
    } else {
        watch_begin(c, &selection, &keys);
    }
    selection_done(&selection);
}

static void get_pod(struct conn *c, const struct status_match *m)
{
    struct status_server *s = c->server;
    struct err e = { 0 };
    bool watch = false;
    json_t *pod;

    if (http_param_flag(&c->parser.request, "watch", &watch, &e) != ERR_OK) {
        conn_err(c, &e);
        return;
    }
    if (watch) {
        routes_get_pods(c, m);
        return;
    }
    pod = s->provider.pod(s->provider.arg, m->namespace_, m->name, &e);
    if (pod == NULL && e.code == ERR_NOT_FOUND)
        pod_not_found(c, m->name);
    else if (pod == NULL)
        conn_err(c, &e);
    else
        conn_json(c, 200, with_version(s, pod));
    json_decref(pod);
}

static void get_log(struct conn *c, const struct status_match *m)
{
    struct status_log_options o;
    struct err e = { 0 };

    if (status_log_options(&c->parser.request, &o, &e) != ERR_OK)
        conn_err(c, &e);
    else
        logs_begin(c, m->namespace_, m->name, &o);
}

static void routes_get_events(struct conn *c, const struct status_match *m)
{
    static const struct listing_of event_list = { KIND_EVENT, "EventList", "v1", true };
    struct selection selection;
    struct err e = { 0 };
    struct object_keys keys;
    bool watch = false;

    if (http_param_flag(&c->parser.request, "watch", &watch, &e) != ERR_OK ||
        selection_parse(&c->parser.request, SELECT_EVENTS, m->namespace_, &selection, &e) != ERR_OK) {
        conn_err(c, &e);
        return;
    }
    if (!watch)
        listing_begin(c, &event_list, &selection);
    else if (keys_read(&keys, c->server, KIND_EVENT, &selection, &e) != ERR_OK)
        conn_err(c, &e);
    else
        watch_begin(c, &selection, &keys);
    selection_done(&selection);
}

static void get_explain(struct conn *c, const struct status_match *m)
{
    struct err e = { 0 };
    json_t *value =
        c->server->provider.explain(c->server->provider.arg, m->namespace_ != NULL ? m->namespace_ : "",
                                    m->name != NULL ? m->name : "", &e);

    if (value == NULL && e.code == ERR_NOT_FOUND)
        pod_not_found(c, m->name);
    else
        conn_value(c, value, &e);
}

/* `runs` is stolen; NULL: out of memory. */
static json_t *restarted(const char *name, json_t *runs)
{
    json_t *body = status_object(200, "", "pods", name, "restarted");

    if (json_object_set_new(json_object_get(body, "details"), "containers", runs) == 0)
        return body;
    json_decref(body);
    return NULL;
}

static void restart_pod(struct conn *c, const struct status_match *m)
{
    const struct status_provider *p = &c->server->provider;
    struct err e = { 0 };
    json_t *runs =
        p->pod_restart(p->arg, m->namespace_, m->name, http_param(&c->parser.request, "container"), &e);

    if (runs != NULL)
        conn_json(c, 200, restarted(m->name, runs));
    else if (e.code == ERR_NOT_FOUND)
        pod_not_found(c, m->name);
    else
        conn_err(c, &e);
}

/* The body is one EphemeralContainer; the answer is the pod. */
static void debug_pod(struct conn *c, const struct status_match *m)
{
    const struct status_provider *p = &c->server->provider;
    json_auto_t *container = NULL, *pod = NULL;
    struct err e = { 0 };

    if (json_parse(c->body.p, c->body.n, STATUS_BODY_MAX, &container, "the body", &e) == ERR_OK &&
        !json_is_object(container))
        err_set(&e, ERR_INVALID, "the body must be an ephemeral container");
    if (e.code == ERR_OK)
        pod = p->pod_debug(p->arg, m->namespace_, m->name, container, &e);
    if (pod != NULL)
        conn_json(c, 200, with_version(c->server, pod));
    else if (e.code == ERR_NOT_FOUND)
        pod_not_found(c, m->name);
    else
        conn_err(c, &e);
}

/* ---- dispatch ---- */

static void not_allowed(struct conn *c, unsigned methods)
{
    char head[80];
    json_t *body = status_object(405, status_reason(405), NULL, NULL, "the method is not allowed here");
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;

    snprintf(head, sizeof(head), "Allow: %s%s%s%s\r\n", methods & METHOD_GET ? "GET, HEAD, " : "",
             methods & METHOD_POST ? "POST, " : "", methods & METHOD_PUT ? "PUT, " : "",
             methods & METHOD_DELETE ? "DELETE, " : "");
    memcpy(head + strlen(head) - strlen(", \r\n"), "\r\n", sizeof("\r\n"));
    conn_answer(c, 405, "application/json", head, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
    json_decref(body);
    free(text);
}

/* Routes that need more than read permission: those that read a pod's contents, or secrets. */
static bool is_secret(enum status_route route)
{
    return route == ROUTE_STORE || route == ROUTE_STORE_OBJECT || route == ROUTE_KUBECONFIG;
}

static bool reaches_in(enum status_route route)
{
    return route == ROUTE_POD_EXEC || route == ROUTE_POD_ATTACH || route == ROUTE_POD_FORWARD ||
           route == ROUTE_POD_ARCHIVE || is_secret(route);
}

static bool allowed(struct conn *c, const struct status_match *m)
{
    enum http_method method = c->parser.request.method;

    if (c->role >= PEER_LENT ||
        (method != METHOD_POST && method != METHOD_DELETE && method != METHOD_PUT && !reaches_in(m->route)))
        return true;
    conn_status(c, 403, "Forbidden", NULL, NULL,
                m->route == ROUTE_POD_EXEC ? "only root may run something in containers through this socket"
                : is_secret(m->route)      ? "only root may read secrets through this socket"
                : reaches_in(m->route)     ? "only root may reach into pods through this socket"
                                           : "only root may change something through this socket");
    return false;
}

static void (*const handlers[])(struct conn *c, const struct status_match *m) = {
    [ROUTE_HEALTHZ] = route_healthz,
    [ROUTE_READYZ] = route_readyz,
    [ROUTE_VERSION] = route_version,
    [ROUTE_METRICS] = route_metrics,
    [ROUTE_METRICS_CADVISOR] = route_metrics,
    [ROUTE_METRICS_RESOURCE] = route_metrics,
    [ROUTE_METRICS_PROBES] = route_metrics,
    [ROUTE_STATS] = route_stats,
    [ROUTE_PODS] = routes_get_pods,
    [ROUTE_POD] = get_pod,
    [ROUTE_POD_LOG] = get_log,
    [ROUTE_POD_EXEC] = exec_begin,
    [ROUTE_POD_ATTACH] = exec_begin,
    [ROUTE_POD_FORWARD] = exec_begin,
    [ROUTE_POD_ARCHIVE] = exec_begin,
    [ROUTE_POD_RESTART] = restart_pod,
    [ROUTE_POD_DEBUG] = debug_pod,
    [ROUTE_EVENTS] = routes_get_events,
    [ROUTE_NODES] = route_objects,
    [ROUTE_CONFIG_MAPS] = route_objects,
    [ROUTE_SECRETS] = route_objects,
    [ROUTE_PRIORITY_CLASSES] = route_objects,
    [ROUTE_GENERIC] = route_generic,
    [ROUTE_EXPLAIN] = get_explain,
    [ROUTE_MANIFESTS] = route_manifests,
    [ROUTE_CONFIG] = route_config,
    [ROUTE_DEVICES] = route_devices,
    [ROUTE_EVICTIONS] = route_evictions,
    [ROUTE_PLACEMENTS] = route_placements,
    [ROUTE_IMAGES] = route_images,
    [ROUTE_IMAGE_TASK] = route_image_task,
    [ROUTE_OPERATIONS] = route_operations,
    [ROUTE_STORE] = feed_begin,
    [ROUTE_STORE_OBJECT] = route_store_object,
    [ROUTE_KUBECONFIG] = route_kubeconfig,
};

void route_request(struct conn *c)
{
    const struct http_request *r = &c->parser.request;
    struct status_match m = status_route(r);

    if (http_param_flag(r, "pretty", &c->pretty, ERR_IGNORED) != ERR_OK)
        c->pretty = true; /* "?pretty=yes" is accepted */
    if (m.route == ROUTE_NONE && !(r->method & (METHOD_OTHER | METHOD_PUT | METHOD_PATCH)))
        conn_status(c, 404, "NotFound", NULL, NULL, "the server could not find the requested resource");
    else if (!(m.methods & r->method))
        not_allowed(c, m.methods);
    else if (allowed(c, &m))
        handlers[m.route](c, &m);
}
