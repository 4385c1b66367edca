/* SPDX-License-Identifier: Apache-2.0 */
/* Events, as known from kubectl: a bounded ring of the newest, identical ones counted, similar ones
 * combined. */
#include "agent/pod/core/events.h"
#include "agent/api/made_uid.h"
#include "agent/pod/core/internal.h"
#include "agent/pod/core/pod.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/siphash.h"

#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 1000
#define EVENTS_BYTES_MAX (2 * 1024 * 1024) /* of their messages: usually 100 bytes each */
#define SIMILAR_MAX 10                     /* this and the next: client-go's correlator */
#define SIMILAR_NS INT64_C(600000000000)
#define COMBINED "(combined from similar events): "

static void event_free(struct event *v)
{
    free(v->namespace_);
    free(v->pod);
    free(v->uid);
    free(v->field_path);
    free(v->reason);
    free(v->message);
    free(v->detail);
    json_decref(v->annotations);
    free(v);
}

/* ---- as objects ---- */

/* The part of its name behind the last dot. */
static unsigned long long event_number(const struct event *v)
{
    return (unsigned long long)v->first_ns + v->serial;
}

static json_t *event_annotations(const struct event *v)
{
    json_t *o = v->annotations != NULL ? json_copy(v->annotations) : json_object();

    if (v->detail != NULL)
        json_object_set_new(o, EVENT_DETAIL, json_string_of(v->detail));
    return o;
}

static json_t *event_json(const struct node *n, const struct event *v)
{
    json_t *o = json_object(), *meta = json_object(), *object = json_object(), *source = json_object();
    char first[CLOCK_RFC3339_SIZE], last[CLOCK_RFC3339_SIZE], name[384], uid[API_UID_SIZE];

    clock_format_s(v->first_ns, first);
    clock_format_s(v->last_ns, last);
    snprintf(name, sizeof(name), "%.253s.%llx", v->pod, event_number(v));
    json_put_str(meta, "name", name);
    json_put_str(meta, "namespace", v->namespace_);
    api_made_uid("Event", v->namespace_, name, uid);
    json_put_str(meta, "uid", uid);
    json_put_str(meta, "creationTimestamp", first);
    if (v->detail != NULL || v->annotations != NULL)
        json_object_set_new(meta, "annotations", event_annotations(v));
    json_put_str(object, "kind", api_kind_name(v->kind));
    json_put_str(object, "apiVersion", api_kinds[v->kind].api_version);
    if (v->kind !=
        API_KIND_NODE) /* `kubectl describe node` asks for those of an object without a namespace */
        json_put_str(object, "namespace", v->namespace_);
    json_put_str(object, "name", v->pod);
    json_put_str(object, "uid", v->uid);
    json_put_str(object, "fieldPath", v->field_path);
    json_put_str(source, "component", v->component);
    json_put_str(source, "host", n->o.node_name);
    json_put_str(o, "apiVersion", "v1");
    json_put_str(o, "kind", "Event");
    json_object_set_new(o, "metadata", meta);
    json_object_set_new(o, "involvedObject", object);
    json_put_str(o, "reason", v->reason);
    json_put_str(o, "message", v->message);
    json_object_set_new(o, "source", source);
    json_put_str(o, "firstTimestamp", first);
    json_put_str(o, "lastTimestamp", last);
    json_object_set_new(o, "count", json_integer(v->count));
    json_put_str(o, "type", v->warning ? "Warning" : "Normal");
    return o;
}

static void pod_events_tell(struct node *n, const char *type, const struct event *v)
{
    json_t *o;

    if (n->server == NULL || !status_server_has_event_watchers(n->server))
        return;
    o = event_json(n, v);
    status_server_event(n->server, type, o);
    json_decref(o);
}

json_t *events_json(struct node *n)
{
    json_t *list = json_array();
    struct event *v;

    TAILQ_FOREACH (v, &core_node(n)->events, link)
        json_array_append_new(list, event_json(n, v));
    return list;
}

json_t *events_keys(struct node *n)
{
    json_t *list = json_array();
    struct event *v;

    TAILQ_FOREACH (v, &core_node(n)->events, link)
        if (list != NULL && json_array_append_new(list, json_sprintf("%s/%.253s.%llx", v->namespace_, v->pod,
                                                                     event_number(v))) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

json_t *events_find_json(struct node *n, const char *name)
{
    const char *dot = strrchr(name, '.');
    unsigned long long number = dot != NULL ? strtoull(dot + 1, NULL, 16) : 0;
    struct event *v;

    TAILQ_FOREACH (v, &core_node(n)->events, link)
        if (event_number(v) == number && strncmp(v->pod, name, (size_t)(dot - name)) == 0)
            return event_json(n, v);
    return NULL;
}

/* ---- the ring ---- */

static size_t event_bytes(const struct event *v)
{
    return strlen(v->message) + (v->detail != NULL ? strlen(v->detail) : 0);
}

static void pod_events_drop(struct node *n, struct event *v)
{
    struct core_node *core = core_node(n);

    TAILQ_REMOVE(&core->events, v, link);
    LIST_REMOVE(v, near);
    core->n_events--;
    core->event_bytes -= event_bytes(v);
    pod_events_tell(n, "DELETED", v);
    event_free(v);
}

struct said { /* the content of an event */
    const char *namespace_, *name, *uid, *field_path, *reason, *message, *detail;
    const json_t *annotations;
    uint64_t about;
    enum api_kind kind;
    const char *component; /* a constant */
    bool warning;
};
static const char agent[] = "coracle";

/* The event as it occurred; the cluster's side counts equal events itself, as client-go does in kubelet. */
static void tell_cluster(struct node *n, const struct said *s)
{
    struct event v = { .namespace_ = (char *)(uintptr_t)s->namespace_,
                       .pod = (char *)(uintptr_t)s->name,
                       .uid = (char *)(uintptr_t)s->uid,
                       .field_path = (char *)(uintptr_t)s->field_path,
                       .reason = (char *)(uintptr_t)s->reason,
                       .message = (char *)(uintptr_t)s->message,
                       .detail = (char *)(uintptr_t)s->detail,
                       .annotations = (json_t *)(uintptr_t)s->annotations,
                       .kind = s->kind,
                       .component = s->component,
                       .warning = s->warning,
                       .count = 1 };
    json_t *o;

    if (n->cluster == NULL)
        return;
    v.first_ns = v.last_ns = clock_wall_ns();
    v.serial = ++core_node(n)->event_serial;
    o = event_json(n, &v);
    n->cluster->event(o, n->cluster->arg);
    json_decref(o);
}

static uint64_t about(const struct said *s)
{
    const char *const parts[] = { s->uid, s->field_path != NULL ? s->field_path : "", s->reason };
    uint64_t h = 0;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        h = siphash_part(h, parts[i], strlen(parts[i]));
    return h;
}

static bool pod_events_similar(const struct event *v, const struct said *s)
{
    return v->about == s->about && strcmp(v->uid, s->uid) == 0 && str_eq(v->field_path, s->field_path) &&
           strcmp(v->reason, s->reason) == 0;
}

static struct event *pod_events_find(struct node *n, const struct said *s)
{
    struct event *v;

    LIST_FOREACH (v, &core_node(n)->events_about[s->about % EVENT_BUCKETS], near)
        if (pod_events_similar(v, s) && strcmp(v->message, s->message) == 0)
            return v;
    return NULL;
}

/* Like kubelet's correlator: the tenth different text for the same object within ten minutes starts an event
 * for itself and the following ones, so that changing texts do not displace all other events. */
static bool too_many(struct node *n, const struct said *s, struct event **ret_combined)
{
    unsigned count = 0;
    struct event *v;

    *ret_combined = NULL;
    LIST_FOREACH (v, &core_node(n)->events_about[s->about % EVENT_BUCKETS], near) {
        if (!pod_events_similar(v, s))
            continue;
        if (v->combined)
            *ret_combined = v;
        else if (clock_boot_since_ns(v->last_at) < SIMILAR_NS)
            count++;
    }
    return count + 1 >= SIMILAR_MAX;
}

static void again(struct node *n, struct event *v)
{
    struct core_node *core = core_node(n);

    v->count++;
    v->last_ns = clock_wall_ns();
    v->last_at = clock_boot();
    TAILQ_REMOVE(&core->events, v, link);
    TAILQ_INSERT_TAIL(&core->events, v, link);
    pod_events_tell(n, "MODIFIED", v);
}

static struct event *event_new(const struct said *s)
{
    struct event *v = calloc(1, sizeof(*v));

    if (v == NULL)
        return NULL; /* one event less does no harm */
    v->namespace_ = strdup(s->namespace_);
    v->pod = strdup(s->name);
    v->uid = strdup(s->uid);
    v->field_path = s->field_path != NULL ? strdup(s->field_path) : NULL;
    v->reason = strdup(s->reason);
    v->message = strdup(s->message);
    v->detail = s->detail != NULL ? strdup(s->detail) : NULL;
    v->annotations = s->annotations != NULL ? json_deep_copy(s->annotations) : NULL;
    v->about = s->about;
    v->warning = s->warning;
    v->kind = s->kind;
    v->component = s->component;
    v->count = 1;
    if (v->namespace_ != NULL && v->pod != NULL && v->uid != NULL && v->reason != NULL && v->message != NULL)
        return v;
    event_free(v);
    return NULL;
}

static void set_detail(struct core_node *core, struct event *v, const char *detail)
{
    core->event_bytes -= event_bytes(v);
    free(v->detail);
    v->detail = detail != NULL ? strdup(detail) : NULL;
    core->event_bytes += event_bytes(v);
}

/* Removes the oldest events; a repeated event counts as the newest. */
static void pod_events_trim(struct node *n)
{
    struct core_node *core = core_node(n);

    while (core->n_events > EVENTS_MAX || core->event_bytes > EVENTS_BYTES_MAX)
        pod_events_drop(n, TAILQ_FIRST(&core->events));
}

static void pod_events_add(struct node *n, struct said *s)
{
    struct core_node *core = core_node(n);
    char text[EVENT_MESSAGE_MAX + sizeof(COMBINED)];
    struct event *v, *combined;
    bool combine;

    tell_cluster(n, s);
    s->about = about(s);
    v = pod_events_find(n, s);
    if (v != NULL) {
        set_detail(core, v, s->detail);
        again(n, v);
        pod_events_trim(n);
        return;
    }
    combine = too_many(n, s, &combined);
    if (combine) {
        snprintf(text, sizeof(text), COMBINED "%s", s->message);
        text[EVENT_MESSAGE_MAX] = '\0';
        s->message = text;
    }
    if (combine && combined != NULL) {
        char *message = strdup(text);

        if (message != NULL) {
            core->event_bytes += strlen(message) - strlen(combined->message);
            free(combined->message);
            combined->message = message;
        }
        set_detail(core, combined, s->detail);
        again(n, combined);
        pod_events_trim(n);
        return;
    }
    v = event_new(s);
    if (v == NULL)
        return;
    v->combined = combine;
    v->first_ns = v->last_ns = clock_wall_ns();
    v->last_at = clock_boot();
    v->serial = ++core->event_serial;
    TAILQ_INSERT_TAIL(&core->events, v, link);
    LIST_INSERT_HEAD(&core->events_about[s->about % EVENT_BUCKETS], v, near);
    pod_events_tell(n, "ADDED", v);
    core->n_events++;
    core->event_bytes += event_bytes(v);
    pod_events_trim(n);
}

void pod_event_detail(struct pod *p, const struct ctr *c, bool warning, const char *reason,
                      const char *message, const char *detail)
{
    char path[128];
    struct said s = { .namespace_ = p->api->meta.namespace,
                      .name = p->api->meta.name,
                      .uid = p->uid,
                      .reason = reason,
                      .message = message,
                      .detail = detail,
                      .kind = API_KIND_POD,
                      .component = agent,
                      .warning = warning };

    if (c != NULL) {
        snprintf(path, sizeof(path), "spec.%s{%s}",
                 c->kind == CTR_REGULAR     ? "containers"
                 : c->kind == CTR_EPHEMERAL ? "ephemeralContainers"
                                            : "initContainers",
                 c->spec->name);
        s.field_path = path;
    }
    pod_events_add(p->node, &s);
}

void pod_event(struct pod *p, const struct ctr *c, bool warning, const char *reason, const char *fmt, ...)
{
    char message[EVENT_MESSAGE_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    pod_event_detail(p, c, warning, reason, message, NULL);
}

void pod_event_annotated(struct pod *p, bool warning, const char *reason, const char *message,
                         const json_t *annotations)
{
    struct said s = { .namespace_ = p->api->meta.namespace,
                      .name = p->api->meta.name,
                      .uid = p->uid,
                      .reason = reason,
                      .message = message,
                      .annotations = annotations,
                      .kind = API_KIND_POD,
                      .component = agent,
                      .warning = warning };

    pod_events_add(p->node, &s);
}

/* Like kubelet's: in the namespace "default", with the node's name as uid. */
void node_event(struct node *n, bool warning, const char *reason, const char *message)
{
    struct said s = { .namespace_ = "default",
                      .name = n->o.node_name,
                      .uid = n->o.node_name,
                      .reason = reason,
                      .message = message,
                      .kind = API_KIND_NODE,
                      .component = agent,
                      .warning = warning };

    pod_events_add(n, &s);
}

void object_event(struct node *n, const char *controller, enum api_kind kind, const struct api_meta *meta,
                  const char *uid, bool warning, const char *reason, const char *message)
{
    struct said s = { .namespace_ = meta->namespace,
                      .name = meta->name,
                      .uid = uid,
                      .reason = reason,
                      .message = message,
                      .kind = kind,
                      .component = controller,
                      .warning = warning };

    pod_events_add(n, &s);
}

void node_event_status(struct node *n, const char *reason)
{
    char text[384];

    snprintf(text, sizeof(text), "Node %s status is now: %s", n->o.node_name, reason);
    node_event(n, false, reason, text);
}

void events_free(struct node *n)
{
    struct event *v;

    while ((v = TAILQ_FIRST(&core_node(n)->events)) != NULL)
        pod_events_drop(n, v);
}
