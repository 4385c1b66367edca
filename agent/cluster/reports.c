/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reports - reports pods, events and the node to coracle-kube.
 *
 * A pod's changes within one turn of the loop are one message. On a slow link, only the fact of a change is
 * queued: the latest state is sent when there is room again. Events are queued by the link and dropped when
 * there is no room: coracle-kube would drop them by its own limit in any case.
 */
#include "agent/cluster/internal.h"
#include "agent/pod/status/status.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/siphash.h"

#include <stdlib.h>
#include <string.h>

#define NODE_MS 10000     /* kubelet's nodeStatusUpdateFrequency, unless `config` has another */
#define NODE_FIRST_MS 200 /* until it is Ready, for the first time */
#define SWEPT_MS 600      /* until the staged volumes are known: volumes in use are reported then */
#define SLOW_MS 50        /* while there is no room in the link */

static uint64_t text_hash(const char *text)
{
    uint64_t h = siphash_part(0, text, strlen(text));

    return h != 0 ? h : 1;
}

/* ---- pods ---- */

static struct cluster_report *report_of(struct cluster *c, const struct pod *p)
{
    struct cluster_report *r;

    HASH_FIND_STR(c->reports, p->uid, r);
    if (r != NULL)
        return r;
    r = calloc(1, sizeof(*r) + strlen(p->uid) + 1);
    if (r == NULL)
        return NULL;
    strcpy(r->uid, p->uid);
    HASH_ADD_STR(c->reports, uid, r);
    if (r->hh.tbl == NULL) {
        free(r);
        return NULL;
    }
    snprintf(r->key, sizeof(r->key), "%s", p->key);
    return r;
}

/* The annotations that kubelet adds to its static pods; the mirror's hash is the static pod's uid. */
static void annotate_static(const struct pod *p, json_t *object)
{
    json_t *meta = json_object_get(object, "metadata"), *notes = json_object_get(meta, "annotations");
    char seen[CLOCK_RFC3339_SIZE];

    if (!json_is_object(notes)) {
        notes = json_object();
        json_object_set_new(meta, "annotations", notes);
    }
    clock_format_us(p->created_ns, seen);
    json_put_str(notes, "kubernetes.io/config.hash", p->uid);
    json_put_str(notes, "kubernetes.io/config.seen", seen);
    json_put_str(notes, "kubernetes.io/config.source", "file");
}

/* Whether nothing of the pod is left on the node. */
static bool has_ended(const struct pod *p)
{
    return p->state == POD_TERMINATED && pod_ask_idle(p);
}

static void report_pod(struct cluster *c, struct cluster_report *r)
{
    struct pod *p = pods_by_uid(c->o.node, r->uid);
    json_auto_t *message = NULL;
    str_auto text = NULL;
    json_t *object;
    bool folder;

    r->dirty = false;
    if (p == NULL || p->unseen) /* its state is unknown yet: the last report stays */
        return;
    object = pod_status_json(p);
    folder = p->api->origin == API_FROM_FOLDER;
    if (object != NULL && folder)
        annotate_static(p, object);
    message = json_pack("{s:s, s:o, s:b, s:b}", "type", "pod", "object", object, "static", folder, "ended",
                        has_ended(p));
    text = message != NULL ? json_text(message) : NULL;
    if (text == NULL) {
        r->dirty = true; /* out of memory: in a later turn */
        return;
    }
    if (text_hash(text) == r->hash)
        return;
    if (cluster_send(c, json_incref(message)))
        r->hash = text_hash(text);
}

void reports_pod(struct pod *p, void *cluster)
{
    struct cluster *c = cluster;
    struct cluster_report *r = report_of(c, p);

    if (r == NULL)
        return;
    r->dirty = true;
    reports_wake(c);
}

void reports_pod_gone(const struct pod *p, void *cluster)
{
    struct cluster *c = cluster;
    struct cluster_report *r;

    HASH_FIND_STR(c->reports, p->uid, r);
    if (r != NULL) {
        HASH_DEL(c->reports, r);
        free(r);
    }
    tokens_pod_gone(c, p->uid);
    cluster_send(c, json_pack("{s:s, s:s, s:s, s:s}", "type", "podgone", "namespace", p->api->meta.namespace,
                              "name", p->api->meta.name, "uid", p->uid));
    reports_wake(c);
}

/* ---- events ---- */

void reports_event(json_t *event, void *cluster)
{
    struct cluster *c = cluster;

    if (!cluster_has_room(c)) {
        c->events_dropped++;
        return;
    }
    json_put_str(json_object_get(event, "source"), "component", "kubelet"); /* tools search for this name */
    cluster_send(c, json_pack("{s:s, s:O}", "type", "event", "object", event));
}

/* ---- the node ---- */

void reports_node(void *cluster)
{
    struct cluster *c = cluster;

    c->node_due = true;
    reports_wake(c);
}

static bool is_ready(const json_t *object)
{
    const json_t *list = json_object_get(json_object_get(object, "status"), "conditions"), *condition;
    size_t i;

    json_array_foreach (list, i, condition)
        if (str_eq(json_str(condition, "type"), "Ready"))
            return str_eq(json_str(condition, "status"), "True");
    return false;
}

static void reports_on_node(uv_timer_t *timer)
{
    reports_node(timer->data);
}

static void report_node(struct cluster *c)
{
    json_t *object = c->o.node_object(c->o.arg), *in_use = bound_in_use(c);
    bool ready = is_ready(object);

    if (in_use != NULL)
        json_object_set_new(json_object_get(object, "status"), "volumesInUse", in_use);
    str_auto text = object != NULL ? json_text(object) : NULL;

    c->node_due = false;
    uv_timer_start(&c->node_timer, reports_on_node,
                   !ready                        ? NODE_FIRST_MS
                   : c->pods_synced && !c->swept ? SWEPT_MS
                                                 : (uint64_t)json_int(c->o.config, "updateMs", NODE_MS),
                   0);
    if (text == NULL || text_hash(text) == c->node_hash) {
        json_decref(object);
        return;
    }
    if (cluster_send(c, json_pack("{s:s, s:o}", "type", "node", "object", object)))
        c->node_hash = text_hash(text);
}

/* ---- once a turn ---- */

static void reports_on_slow(uv_timer_t *timer)
{
    reports_wake(timer->data);
}

static void reports_on_turn(uv_idle_t *handle)
{
    struct cluster *c = handle->data;
    struct cluster_report *r, *tmp;

    uv_idle_stop(handle);
    if (c->closing)
        return;
    needs_count(c);
    if (c->link == NULL)
        return; /* a new link receives everything */
    if (c->node_due && cluster_has_room(c))
        report_node(c);
    HASH_ITER (hh, c->reports, r, tmp) {
        if (!cluster_has_room(c)) {
            uv_timer_start(&c->slow_timer, reports_on_slow, SLOW_MS, 0);
            return;
        }
        if (r->dirty)
            report_pod(c, r);
    }
}

void reports_wake(struct cluster *c)
{
    if (!c->closing)
        uv_idle_start(&c->turn, reports_on_turn);
}

void reports_all(struct cluster *c)
{
    c->node_hash = 0;
    c->node_due = true;
    pods_each (c->o.node, p) {
        struct cluster_report *r = report_of(c, p);

        if (r == NULL)
            continue;
        r->hash = 0;
        r->dirty = true;
    }
    reports_wake(c);
}

/* ---- life ---- */

void reports_open(struct cluster *c)
{
    uv_idle_init(c->o.loop, &c->turn);
    uv_timer_init(c->o.loop, &c->node_timer);
    uv_timer_init(c->o.loop, &c->slow_timer);
    c->turn.data = c->node_timer.data = c->slow_timer.data = c;
    c->open_handles += 3;
}

static void reports_on_closed(uv_handle_t *handle)
{
    struct cluster *c = handle->data;

    c->open_handles--;
}

void reports_close(struct cluster *c)
{
    uv_close((uv_handle_t *)&c->turn, reports_on_closed);
    uv_close((uv_handle_t *)&c->node_timer, reports_on_closed);
    uv_close((uv_handle_t *)&c->slow_timer, reports_on_closed);
}

void reports_free(struct cluster *c)
{
    struct cluster_report *r, *tmp;

    HASH_ITER (hh, c->reports, r, tmp) {
        HASH_DEL(c->reports, r);
        free(r);
    }
}
