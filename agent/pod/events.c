/* Events, as people know them from kubectl: a bounded ring of the newest, equal ones counted together. */
#include "agent/pod/pod.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <string.h>

#define EVENTS_MAX 1000
#define MESSAGE_MAX 1024 /* the API's limit */

static void event_free(struct event *v)
{
    free(v->namespace_);
    free(v->pod);
    free(v->uid);
    free(v->field_path);
    free(v->reason);
    free(v->message);
    free(v);
}

static void drop(struct node *n, struct event *v)
{
    TAILQ_REMOVE(&n->events, v, link);
    n->n_events--;
    event_free(v);
}

static struct event *find(struct node *n, const char *uid, const char *field_path, const char *reason,
                          const char *message)
{
    struct event *v;

    TAILQ_FOREACH (v, &n->events, link)
        if (strcmp(v->uid, uid) == 0 && str_eq(v->field_path, field_path) && strcmp(v->reason, reason) == 0 &&
            strcmp(v->message, message) == 0)
            return v;
    return NULL;
}

static struct event *add(struct node *n, const char *namespace_, const char *name, const char *uid,
                         const char *field_path, const char *reason, const char *message)
{
    struct event *v = find(n, uid, field_path, reason, message);

    if (v != NULL) {
        v->count++;
        v->last_ns = clock_wall_ns();
        TAILQ_REMOVE(&n->events, v, link);
        TAILQ_INSERT_TAIL(&n->events, v, link);
        return v;
    }
    v = calloc(1, sizeof(*v));
    if (v == NULL)
        return NULL; /* an event less; nothing depends on it */
    v->namespace_ = strdup(namespace_);
    v->pod = strdup(name);
    v->uid = strdup(uid);
    v->field_path = field_path != NULL ? strdup(field_path) : NULL;
    v->reason = strdup(reason);
    v->message = strdup(message);
    if (v->namespace_ == NULL || v->pod == NULL || v->uid == NULL || v->reason == NULL ||
        v->message == NULL) {
        event_free(v);
        return NULL;
    }
    v->count = 1;
    v->first_ns = v->last_ns = clock_wall_ns();
    v->serial = ++n->event_serial;
    TAILQ_INSERT_TAIL(&n->events, v, link);
    if (++n->n_events > EVENTS_MAX)
        drop(n, TAILQ_FIRST(&n->events));
    return v;
}

void pod_event(struct pod *p, const struct ctr *c, bool warning, const char *reason, const char *fmt, ...)
{
    char message[MESSAGE_MAX + 1], path[128];
    const char *field_path = NULL;
    struct event *v;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    if (c != NULL) {
        snprintf(path, sizeof(path), "spec.%s{%s}", c->kind == CTR_REGULAR ? "containers" : "initContainers",
                 c->spec->name);
        field_path = path;
    }
    v = add(p->node, p->api->meta.namespace, p->api->meta.name, p->uid, field_path, reason, message);
    if (v != NULL)
        v->warning = warning;
}

/* As kubelet's: in the namespace "default", with the node's name as uid. */
void node_event(struct node *n, bool warning, const char *reason, const char *message)
{
    struct event *v = add(n, "default", n->o.node_name, n->o.node_name, NULL, reason, message);

    if (v != NULL) {
        v->of_node = true;
        v->warning = warning;
    }
}

json_t *events_json(struct node *n)
{
    json_t *list = json_array();
    struct event *v;

    TAILQ_FOREACH (v, &n->events, link) {
        json_t *o = json_object(), *meta = json_object(), *object = json_object(), *source = json_object();
        char first[CLOCK_RFC3339_SIZE], last[CLOCK_RFC3339_SIZE], name[384];

        clock_format_s(v->first_ns, first);
        clock_format_s(v->last_ns, last);
        snprintf(name, sizeof(name), "%.253s.%llx", v->pod, (unsigned long long)v->first_ns + v->serial);
        json_put_str(meta, "name", name);
        json_put_str(meta, "namespace", v->namespace_);
        json_put_str(meta, "creationTimestamp", first);
        json_put_str(object, "kind", v->of_node ? "Node" : "Pod");
        json_put_str(object, "apiVersion", "v1");
        json_put_str(object, "namespace", v->namespace_);
        json_put_str(object, "name", v->pod);
        json_put_str(object, "uid", v->uid);
        json_put_str(object, "fieldPath", v->field_path);
        json_put_str(source, "component", "coracle");
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
        json_array_append_new(list, o);
    }
    return list;
}

void events_free(struct node *n)
{
    struct event *v;

    while ((v = TAILQ_FIRST(&n->events)) != NULL)
        drop(n, v);
}
