#include "agent/status/internal.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/op.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define TEXT_PLAIN "text/plain; charset=utf-8"
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_MAX (64u << 20) /* a thousand pods of three containers have some 40 MiB */

struct status_reply {
    struct conn *conn; /* NULL: nobody waits any more */
};

/* ---- helpers --------------------------------------------------------------------------------- */

static void pod_not_found(struct conn *c, const char *name)
{
    char message[400];

    snprintf(message, sizeof(message), "pods \"%.253s\" not found", name);
    conn_status(c, 404, "NotFound", "pods", name, message);
}

/* The array in `value` (stolen): an array as it is, the items of a list. */
static json_t *items_of(json_t *value)
{
    json_t *items = json_object_get(value, "items");

    if (items == NULL)
        return value;
    json_incref(items);
    json_decref(value);
    return items;
}

/* `items` is stolen; NULL, like an array that could not be filled: no memory. */
static json_t *list_of(struct status_server *s, const char *kind, json_t *items, bool complete)
{
    char version[24];

    if (!complete) {
        json_decref(items);
        return NULL;
    }

    snprintf(version, sizeof(version), "%llu", (unsigned long long)s->version);
    return json_pack("{s:s, s:s, s:{s:s}, s:o}", "kind", kind, "apiVersion", "v1", "metadata",
                     "resourceVersion", version, "items", items);
}

static void answer_or_err(struct conn *c, json_t *value, const struct err *e)
{
    if (value == NULL)
        conn_err(c, e);
    else
        conn_json(c, 200, value);
}

/* ---- pods ------------------------------------------------------------------------------------ */

static int by_namespace_and_name(const void *a, const void *b)
{
    static const char *const members[] = { "namespace", "name" };
    const json_t *x = json_object_get(*(json_t *const *)a, "metadata");
    const json_t *y = json_object_get(*(json_t *const *)b, "metadata");
    int order = 0;

    for (size_t i = 0; i < ARRAY_LEN(members) && order == 0; i++) {
        const char *s = json_str(x, members[i]), *t = json_str(y, members[i]);

        order = strcmp(s != NULL ? s : "", t != NULL ? t : "");
    }
    return order;
}

/* The matching ones in the order of an apiserver's list, as a new list; NULL: no memory. */
static json_t *pod_list(struct status_server *s, json_t *pods, struct selection *selection)
{
    mem_auto json_t **chosen = calloc(json_array_size(pods) + 1, sizeof(*chosen));
    json_t *items = json_array(), *pod;
    bool complete;
    size_t i, n = 0;

    if (chosen == NULL)
        return list_of(s, "PodList", items, false);
    json_array_foreach (pods, i, pod) {
        if (selection_matches(selection, pod))
            chosen[n++] = pod;
    }
    qsort(chosen, n, sizeof(*chosen), by_namespace_and_name);
    complete = !selection->failed;
    for (i = 0; i < n && complete; i++)
        complete = json_array_append_new(items, with_version(s, chosen[i])) == 0;
    return list_of(s, "PodList", items, complete);
}

/* One pod of a watch that names it in the path. */
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

static void get_pods(struct conn *c, const struct status_match *m)
{
    struct status_server *s = c->server;
    struct selection selection;
    struct err e = { 0 };
    bool watch = false;
    json_t *pods;

    if (status_param_flag(&c->parser.request, "watch", &watch, &e) != ERR_OK ||
        selection_parse(&c->parser.request, SELECT_PODS, m->namespace_, &selection, &e) != ERR_OK) {
        conn_err(c, &e);
        return;
    }
    pods = items_of(s->provider.pods(s->provider.arg, &e));
    if (!json_is_array(pods) || (watch && m->name != NULL && !narrow(&selection, m->name))) {
        if (e.code == ERR_OK)
            err_nomem(&e);
        conn_err(c, &e);
    } else if (watch) {
        watch_begin(c, &selection, SELECT_PODS, pods);
    } else {
        conn_json(c, 200, pod_list(s, pods, &selection));
    }
    json_decref(pods);
    selection_done(&selection);
}

static void get_pod(struct conn *c, const struct status_match *m)
{
    struct status_server *s = c->server;
    struct err e = { 0 };
    bool watch = false;
    json_t *pod;

    if (status_param_flag(&c->parser.request, "watch", &watch, &e) != ERR_OK) {
        conn_err(c, &e);
        return;
    }
    if (watch) {
        get_pods(c, m);
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

static void get_events(struct conn *c, const struct status_match *m)
{
    struct status_server *s = c->server;
    struct selection selection;
    struct err e = { 0 };
    json_t *events, *event, *chosen;
    bool watch = false, complete = true;
    size_t i;

    if (status_param_flag(&c->parser.request, "watch", &watch, &e) != ERR_OK ||
        selection_parse(&c->parser.request, SELECT_EVENTS, m->namespace_, &selection, &e) != ERR_OK) {
        conn_err(c, &e);
        return;
    }
    events = items_of(s->provider.events(s->provider.arg, &e));
    if (!json_is_array(events)) {
        conn_err(c, &e);
    } else if (watch) {
        watch_begin(c, &selection, SELECT_EVENTS, events);
    } else {
        chosen = json_array();
        json_array_foreach (events, i, event) {
            if (complete && selection_matches(&selection, event))
                complete = json_array_append(chosen, event) == 0;
        }
        conn_json(c, 200, list_of(s, "EventList", chosen, complete && !selection.failed));
    }
    json_decref(events);
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
        answer_or_err(c, value, &e);
}

/* ---- the agent ------------------------------------------------------------------------------- */

static void get_readyz(struct conn *c)
{
    bool ready = false;
    json_t *checks = c->server->provider.ready(c->server->provider.arg, &ready);

    conn_json(c, ready ? 200 : 503, checks);
}

static void get_version(struct conn *c)
{
    char started[CLOCK_RFC3339_SIZE], version[64], platform[sizeof(((struct utsname *)0)->machine) + 8];
    struct utsname u;

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

/* The server's own counters are part of the first page only, so that no name is scraped twice. */
static void get_metrics(struct conn *c, enum status_metrics which)
{
    struct status_server *s = c->server;
    struct buf b = BUF_INIT(METRICS_MAX);

    if (which == METRICS_ALL) {
        add_metric(&b, "coracle_status_connections", "gauge", "Open connections of the status socket.",
                   s->n_conns);
        add_metric(&b, "coracle_status_watchers", "gauge", "Clients that watch pods or events.",
                   count_watchers(s));
        add_metric(&b, "coracle_status_log_streams", "gauge", "Clients that read a log.", s->n_logs);
        add_metric(&b, "coracle_status_execs", "gauge", "Processes in containers for clients.", s->n_execs);
        add_metric(&b, "coracle_status_accepted_total", "counter", "Connections accepted.",
                   s->count.connections);
        add_metric(&b, "coracle_status_refused_total", "counter",
                   "Connections refused: no right, or too many.", s->count.refused);
        add_metric(&b, "coracle_status_requests_total", "counter", "Requests received.", s->count.requests);
        add_metric(&b, "coracle_status_dropped_total", "counter",
                   "Watch and log clients dropped because they fell behind.", s->count.dropped);
    }
    if (s->provider.metrics != NULL)
        s->provider.metrics(s->provider.arg, which, &b);
    if (b.failed)
        conn_status(c, 500, "InternalError", NULL, NULL, "the metrics are too long");
    else
        conn_answer(c, 200, METRICS_TYPE, NULL, b.p, b.n);
    buf_done(&b);
}

struct operations {
    json_t *list;
    bool complete;
};

static void add_operation(const struct op *op, void *arg)
{
    struct operations *all = arg;
    json_t *one = json_pack("{s:s, s:s, s:I, s:i, s:s*}", "name", op->name, "subject", op->subject, "ageMs",
                            (json_int_t)(clock_mono_ms() - op->started_ms), "state", op->state, "ending",
                            op->why.code != ERR_OK ? op->why.text : NULL);

    all->complete = json_array_append_new(all->list, one) == 0 && all->complete;
}

static void get_operations(struct conn *c)
{
    struct operations all = { json_array(), true };

    op_each(add_operation, &all);
    if (!all.complete) {
        json_decref(all.list);
        conn_json(c, 500, NULL);
        return;
    }
    conn_json(c, 200, json_pack("{s:o}", "operations", all.list));
}

/* A list of things that are no Kubernetes objects: {"items": [...]}. */
static void get_items(struct conn *c, json_t *(*get)(void *arg, struct err *e))
{
    struct err e = { 0 };
    json_t *items = items_of(get(c->server->provider.arg, &e));

    if (json_is_array(items))
        items = json_pack("{s:o}", "items", items);
    answer_or_err(c, items, &e);
}

static void get_config(struct conn *c)
{
    struct err e = { 0 };

    answer_or_err(c, c->server->provider.config(c->server->provider.arg, &e), &e);
}

/* ---- answers that come later, changes
 * --------------------------------------------------------------------------------- */

void status_reply_orphan(struct status_reply *r)
{
    r->conn = NULL;
}

void status_reply_json(struct status_reply *r, int http_code, json_t *body)
{
    struct conn *c = r->conn;

    free(r);
    if (c == NULL) {
        json_decref(body);
        return;
    }
    c->reply = NULL;
    conn_json(c, http_code, body);
}

void status_reply_err(struct status_reply *r, const struct err *e)
{
    int http_code = status_http_code(e->code);

    status_reply_json(r, http_code, status_object(http_code, status_reason(http_code), NULL, NULL, e->text));
}

/* NULL: there is no memory for one, and that was answered. */
static struct status_reply *owe_reply(struct conn *c)
{
    c->reply = calloc(1, sizeof(*c->reply));
    if (c->reply == NULL)
        conn_json(c, 500, NULL);
    else
        c->reply->conn = c;
    return c->reply;
}

static void add_image(struct conn *c)
{
    struct status_server *s = c->server;
    const char *source = status_param(&c->parser.request, "source");
    const char *name = status_param(&c->parser.request, "name");

    if (source == NULL || source[0] == '\0') {
        conn_status(c, 400, "BadRequest", NULL, NULL,
                    "source: required, docker://NAME or the path of an archive or layout");
        return;
    }
    if (owe_reply(c) == NULL)
        return;
    s->provider.image_add(s->provider.arg, source, name != NULL && name[0] != '\0' ? name : NULL, c->reply);
}

static void get_stats(struct conn *c)
{
    struct status_server *s = c->server;
    struct err e = { 0 };
    bool basic = false;

    if (status_param_flag(&c->parser.request, "only_cpu_and_memory", &basic, &e) != ERR_OK)
        conn_err(c, &e);
    else if (owe_reply(c) != NULL)
        s->provider.stats(s->provider.arg, basic, c->reply);
}

static void remove_image(struct conn *c)
{
    struct status_server *s = c->server;
    const char *name = status_param(&c->parser.request, "name");
    struct err e = { 0 };

    if (name == NULL || name[0] == '\0')
        conn_status(c, 400, "BadRequest", NULL, NULL, "name: required");
    else if (s->provider.image_remove(s->provider.arg, name, &e) == ERR_OK)
        conn_status(c, 200, "", "images", name, "removed");
    else if (e.code == ERR_NOT_FOUND)
        conn_status(c, 404, "NotFound", "images", name, e.text);
    else
        conn_err(c, &e);
}

static void images(struct conn *c)
{
    if (c->parser.request.method == METHOD_POST)
        add_image(c);
    else if (c->parser.request.method == METHOD_DELETE)
        remove_image(c);
    else
        get_items(c, c->server->provider.images);
}

static void image_task(struct conn *c, const char *word)
{
    static const struct {
        const char *word;
        enum status_image_verb verb;
        bool wants_name;
    } verbs[] = {
        { "verify", IMAGE_VERIFY, false }, { "pin", IMAGE_PIN, true },       { "unpin", IMAGE_UNPIN, true },
        { "prune", IMAGE_PRUNE, false },   { "export", IMAGE_EXPORT, true },
    };
    const struct status_request *r = &c->parser.request;
    struct status_image_task task = { .name = status_param(r, "name"), .file = status_param(r, "file") };
    struct err e = { 0 };
    size_t i = 0;

    if (task.name != NULL && task.name[0] == '\0')
        task.name = NULL;
    while (i < ARRAY_LEN(verbs) && strcmp(verbs[i].word, word) != 0)
        i++;
    if (i == ARRAY_LEN(verbs)) {
        conn_status(c, 404, "NotFound", NULL, NULL, "the server could not find the requested resource");
        return;
    }
    task.verb = verbs[i].verb;
    if (verbs[i].wants_name && task.name == NULL)
        conn_status(c, 400, "BadRequest", NULL, NULL, "name: required");
    else if (task.verb == IMAGE_EXPORT && (task.file == NULL || task.file[0] != '/'))
        conn_status(c, 400, "BadRequest", NULL, NULL, "file: required, an absolute path");
    else if (status_param_flag(r, "all", &task.all, &e) != ERR_OK)
        conn_err(c, &e);
    else if (owe_reply(c) != NULL)
        c->server->provider.image_task(c->server->provider.arg, &task, c->reply);
}

static void restart_pod(struct conn *c, const struct status_match *m)
{
    const struct status_provider *p = &c->server->provider;
    struct err e = { 0 };

    if (p->pod_restart(p->arg, m->namespace_, m->name, &e) == ERR_OK)
        conn_status(c, 200, "", "pods", m->name, "restarted");
    else if (e.code == ERR_NOT_FOUND)
        pod_not_found(c, m->name);
    else
        conn_err(c, &e);
}

/* ---- dispatch -------------------------------------------------------------------------------- */

static void not_allowed(struct conn *c, unsigned methods)
{
    char head[64];
    json_t *body = status_object(405, status_reason(405), NULL, NULL, "the method is not allowed here");
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;

    snprintf(head, sizeof(head), "Allow: %s%s%s\r\n", methods & METHOD_GET ? "GET, HEAD, " : "",
             methods & METHOD_POST ? "POST, " : "", methods & METHOD_DELETE ? "DELETE, " : "");
    memcpy(head + strlen(head) - strlen(", \r\n"), "\r\n", sizeof("\r\n"));
    conn_answer(c, 405, "application/json", head, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
    json_decref(body);
    free(text);
}

void route_request(struct conn *c)
{
    const struct status_request *r = &c->parser.request;
    struct status_match m = status_route(r);
    struct err ignored = { 0 };

    if (status_param_flag(r, "pretty", &c->pretty, &ignored) != ERR_OK)
        c->pretty = true; /* "?pretty=yes" means what it says */
    if (m.route == ROUTE_NONE && r->method != METHOD_OTHER) {
        conn_status(c, 404, "NotFound", NULL, NULL, "the server could not find the requested resource");
        return;
    }
    if (!(m.methods & r->method)) {
        not_allowed(c, m.methods);
        return;
    }
    bool stream = m.route == ROUTE_POD_EXEC || m.route == ROUTE_POD_ATTACH || m.route == ROUTE_POD_FORWARD ||
                  m.route == ROUTE_POD_ARCHIVE;
    if ((r->method == METHOD_POST || r->method == METHOD_DELETE || stream) && c->role != PEER_ROOT) {
        conn_status(c, 403, "Forbidden", NULL, NULL,
                    stream && m.route != ROUTE_POD_EXEC ? "only root may reach into pods through this socket"
                    : m.route == ROUTE_POD_EXEC
                        ? "only root may run something in containers through this socket"
                        : "only root may change something through this socket");
        return;
    }

    switch (m.route) {
    case ROUTE_NONE:
        return;
    case ROUTE_HEALTHZ:
        conn_answer(c, 200, TEXT_PLAIN, NULL, "ok", 2);
        return;
    case ROUTE_READYZ:
        get_readyz(c);
        return;
    case ROUTE_VERSION:
        get_version(c);
        return;
    case ROUTE_METRICS:
        get_metrics(c, METRICS_ALL);
        return;
    case ROUTE_METRICS_CADVISOR:
        get_metrics(c, METRICS_CADVISOR);
        return;
    case ROUTE_METRICS_RESOURCE:
        get_metrics(c, METRICS_RESOURCE);
        return;
    case ROUTE_STATS:
        get_stats(c);
        return;
    case ROUTE_PODS:
        get_pods(c, &m);
        return;
    case ROUTE_POD:
        get_pod(c, &m);
        return;
    case ROUTE_POD_LOG:
        get_log(c, &m);
        return;
    case ROUTE_POD_EXEC:
    case ROUTE_POD_ATTACH:
    case ROUTE_POD_FORWARD:
    case ROUTE_POD_ARCHIVE:
        exec_begin(c, &m);
        return;
    case ROUTE_POD_RESTART:
        restart_pod(c, &m);
        return;
    case ROUTE_EVENTS:
        get_events(c, &m);
        return;
    case ROUTE_EXPLAIN:
        get_explain(c, &m);
        return;
    case ROUTE_MANIFESTS:
        get_items(c, c->server->provider.manifests);
        return;
    case ROUTE_CONFIG:
        get_config(c);
        return;
    case ROUTE_IMAGES:
        images(c);
        return;
    case ROUTE_IMAGE_TASK:
        image_task(c, m.name);
        return;
    case ROUTE_OPERATIONS:
        get_operations(c);
        return;
    }
}
