/* SPDX-License-Identifier: Apache-2.0 */
/* serve - the answer of each path, once its client has the right. Paths of pods are looked up first, so that
 * their errors have kubelet's texts. Source: pkg/kubelet/server/server.go. */
#include "agent/kube/server/internal.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

#define POD_MAX (4u << 20)
#define LIST_MAX (64u << 20)

struct look { /* a request that waits for an answer about its pod, or for one that it changes */
    struct caller *caller;
    struct ask *ask;
};

static void look_gone(struct caller *c)
{
    struct look *l = c->job;

    ask_close(l->ask);
    free(l);
}

static const struct caller_source look_source = { .gone = look_gone };

static void look_begin(struct caller *c, const char *target, size_t max, ask_done_fn done)
{
    struct look *l = calloc(1, sizeof(*l));
    struct err e = { 0 };

    if (l != NULL)
        l->ask = ask_open(c->server, target, max, done, c, &e);
    if (l == NULL || l->ask == NULL) {
        free(l);
        caller_text(c, 503, e.code != ERR_OK ? e.text : "out of memory\n");
        return;
    }
    l->caller = c;
    caller_serve(c, &look_source, l);
}

/* The lookup is complete, and its answer is still stored. False: it failed, and the failure was answered. */
static bool look_end(struct caller *c, int http, const json_t *body, const struct err *e,
                     const char *serve_not_found)
{
    c->source = NULL;
    if (e->code != ERR_OK)
        caller_text(c, 503, e->text);
    else if (http == 404)
        caller_text(c, 404, serve_not_found);
    else if (http != 200)
        caller_text(c, http, relay_message(body));
    else
        return true;
    return false;
}

/* ---- a pod and its container ---- */

static bool serve_has_container(const json_t *pod, const char *name)
{
    static const char *const lists[] = { "containers", "initContainers", "ephemeralContainers" };
    const json_t *spec = json_object_get(pod, "spec");

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (json_named(json_object_get(spec, lists[i]), name) != NULL)
            return true;
    return false;
}

static void serve_logs(struct caller *c)
{
    struct buf target = BUF_INIT(HTTP_URL_MAX);
    struct err e = { 0 };

    if (route_log_target(&c->parser.request, &c->route, &target, &e) == ERR_OK)
        relay_begin(c, target.p);
    else
        caller_text(c, e.code == ERR_RANGE ? 422 : e.code == ERR_INVALID ? 400 : 500, e.text);
    buf_done(&target);
}

static void serve_stream(struct caller *c)
{
    const struct http_upgrade *u = &c->parser.request.upgrade;
    struct buf target = BUF_INIT(HTTP_URL_MAX);
    struct err e = { 0 };

    if (c->route.kind == PATH_FORWARD) {
        route_pod_target(&c->route, "portforward", &target);
        if (forward_ws_is_asked(c))
            forward_ws_begin(c, target.p);
        else
            forward_begin(c, target.p);
    } else if (route_stream_target(&c->parser.request, &c->route, &target, &e) != ERR_OK) {
        caller_text(c, e.code == ERR_INVALID ? 400 : 500, e.text);
    } else if (c->route.kind == PATH_RUN) {
        run_begin(c, target.p);
    } else if (u->asked && strcasecmp(u->protocol, "websocket") == 0) {
        tunnel_begin(c, target.p);
    } else {
        remote_begin(c, target.p);
    }
    buf_done(&target);
}

static void serve_on_pod(int http, json_t *body, const struct err *e, void *owner)
{
    struct caller *c = owner;
    struct look *l = c->job;
    const struct route *to = &c->route;
    const char *uid = json_str(json_object_get(body, "metadata"), "uid");
    char text[640] = "pod does not exist";

    if (to->kind == PATH_LOGS)
        snprintf(text, sizeof(text), "pod \"%.253s\" does not exist", to->pod);
    if (look_end(c, http, body, e, text)) {
        if (to->uid != NULL && !str_eq(uid, to->uid)) {
            caller_text(c, 404, "pod not found");
        } else if (to->container != NULL && !serve_has_container(body, to->container)) {
            if (to->kind == PATH_LOGS)
                snprintf(text, sizeof(text), "container \"%.253s\" not found in pod \"%.253s\"",
                         to->container, to->pod);
            else if (to->kind == PATH_CHECKPOINT)
                snprintf(text, sizeof(text), "container %.253s does not exist", to->container);
            else
                snprintf(text, sizeof(text), "container not found (\"%.253s\")", to->container);
            caller_text(c, to->kind == PATH_LOGS || to->kind == PATH_CHECKPOINT ? 404 : 500, text);
        } else if (to->kind == PATH_LOGS) {
            serve_logs(c);
        } else if (to->kind == PATH_CHECKPOINT) {
            snprintf(text, sizeof(text),
                     "checkpointing of %.63s/%.253s/%.63s failed (containers are not checkpointed here)",
                     to->namespace_, to->pod, to->container);
            caller_text(c, 500, text);
        } else {
            serve_stream(c);
        }
    }
    ask_close(l->ask);
    free(l);
}

/* ---- answers that are changed ---- */

static bool serve_is_running(const json_t *pod)
{
    static const char *const lists[] = { "containerStatuses", "initContainerStatuses",
                                         "ephemeralContainerStatuses" };
    const json_t *status = json_object_get(pod, "status"), *v;
    size_t k;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        json_array_foreach (json_object_get(status, lists[i]), k, v)
            if (json_object_get(json_object_get(v, "state"), "running") != NULL)
                return true;
    return false;
}

static void serve_on_pod_list(int http, json_t *body, const struct err *e, void *owner)
{
    struct caller *c = owner;
    struct look *l = c->job;
    json_t *items = json_object_get(body, "items");

    if (look_end(c, http, body, e, "404 page not found\n")) {
        for (size_t i = json_array_size(items); i-- > 0;)
            if (!serve_is_running(json_array_get(items, i)))
                json_array_remove(items, i);
        caller_json(c, 200, json_incref(body));
    }
    ask_close(l->ask);
    free(l);
}

static void serve_on_config(int http, json_t *body, const struct err *e, void *owner)
{
    struct caller *c = owner;
    struct look *l = c->job;

    if (look_end(c, http, body, e, "404 page not found\n")) {
        json_t *config = json_object_get(body, "kubeletconfig");

        caller_json(c, 200, json_pack("{s:O}", "kubeletconfig", config != NULL ? config : json_null()));
    }
    ask_close(l->ask);
    free(l);
}

/* component-base/zpages: lines "name: value" after a warning that this is no API. */
static void serve_on_version(int http, json_t *body, const struct err *e, void *owner)
{
    struct caller *c = owner;
    struct look *l = c->job;
    struct buf b = BUF_INIT(16 * 1024);
    const char *version = json_str(body, "gitVersion"), *since = json_str(body, "startedAt");

    if (look_end(c, http, body, e, "404 page not found\n")) {
        buf_addf(&b,
                 "\nkubelet statusz\nWarning: This endpoint is not meant to be machine parseable, has no "
                 "formatting compatibility guarantees and is for debugging purposes only.\n\n"
                 "Started: %s\nBinary version: %s\n",
                 since != NULL ? since : "?", version != NULL ? version : "?");
        caller_text(c, b.failed ? 500 : 200, b.failed ? "out of memory\n" : b.p);
    }
    buf_done(&b);
    ask_close(l->ask);
    free(l);
}

/* ---- dispatch ---- */

/* The answers of kubelet's routers, in two wordings: the standard library's and go-restful's. */
static void serve_not_found(struct caller *c)
{
    static const char *const known[] = { "pods",   "stats",       "run",           "exec",
                                         "attach", "portForward", "containerLogs", "runningpods" };
    const struct http_request *r = &c->parser.request;

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (r->n_segments > 0 && strcmp(r->segments[0], known[i]) == 0) {
            caller_text(c, 404, "404: Page Not Found");
            return;
        }
    }
    caller_text(c, 404, "404 page not found\n");
}

static void serve_not_allowed(struct caller *c)
{
    char head[64];

    snprintf(head, sizeof(head), "Allow: %s\r\n",
             c->route.methods == METHOD_POST         ? "POST"
             : (c->route.methods & METHOD_POST) != 0 ? "GET, POST"
                                                     : "GET");
    caller_answer(c, 405, "text/plain; charset=utf-8", head, "Method Not Allowed",
                  strlen("Method Not Allowed"));
}

static void serve_stats(struct caller *c)
{
    bool basic = false;

    if (http_param_flag(&c->parser.request, "only_cpu_and_memory", &basic, ERR_IGNORED) != ERR_OK)
        basic = false; /* as kubelet: a value that it cannot read is not set */
    relay_begin(c, basic ? "/stats/summary?only_cpu_and_memory=true" : "/stats/summary");
}

static void serve_pod(struct caller *c)
{
    struct buf target = BUF_INIT(HTTP_URL_MAX);

    route_pod_target(&c->route, "", &target);
    if (target.failed)
        caller_text(c, 414, "the URL is too long");
    else
        look_begin(c, target.p, POD_MAX, serve_on_pod);
    buf_done(&target);
}

void serve_request(struct caller *c)
{
    const struct route to = route_find(&c->parser.request);

    c->route = to;
    if (to.kind == PATH_NONE || (c->read_only && to.debugging)) {
        serve_not_found(c);
        return;
    }
    if (to.debugging && !c->server->rules.debugging) {
        if (to.kind == PATH_CONFIGZ || to.kind == PATH_CHECKPOINT || to.kind == PATH_STATUSZ ||
            to.kind == PATH_FLAGZ)
            caller_text(c, 404, "404 page not found\n");
        else
            caller_text(c, 405, "Debug endpoints are disabled.\n");
        return;
    }
    if ((to.methods & c->parser.request.method) == 0) {
        serve_not_allowed(c);
        return;
    }
    switch (to.kind) {
    case PATH_STATS:
        serve_stats(c);
        break;
    case PATH_RUNNING_PODS:
        look_begin(c, to.target, LIST_MAX, serve_on_pod_list);
        break;
    case PATH_CONFIGZ:
    case PATH_FLAGZ: /* flags and files are one configuration here */
        look_begin(c, to.target, POD_MAX, serve_on_config);
        break;
    case PATH_STATUSZ:
        look_begin(c, to.target, POD_MAX, serve_on_version);
        break;
    case PATH_SLIS:
        slis_begin(c);
        break;
    case PATH_SYSTEM_LOGS:
        caller_text(c, 405, "logs endpoint is disabled.\n");
        break;
    case PATH_DEBUG:
        caller_text(c, 405, "profiling endpoint is disabled.\n");
        break;
    case PATH_LOGS:
    case PATH_EXEC:
    case PATH_ATTACH:
    case PATH_FORWARD:
    case PATH_RUN:
    case PATH_CHECKPOINT:
        serve_pod(c);
        break;
    case PATH_METRICS:
        c->server->o.scraped(c->server->o.scraped_arg);
        relay_begin(c, to.target);
        break;
    default:
        relay_begin(c, to.target);
    }
}
