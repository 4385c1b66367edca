/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/pods.h"

#include "agent/kube/decide/pod_merge.h"
#include "agent/kube/decide/seen.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

/* ---- from the apiserver ---- */

/* Of the members that the daemon uses: all except the node's part of the status, which each patch returns. */
static uint64_t pods_relevant(const json_t *object)
{
    json_t *copy = json_copy((json_t *)object), *foreign = json_array(), *c;
    uint64_t hash;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(object, "status"), "conditions"), i, c)
        if (!pod_condition_is_of_node(json_str(c, "type")))
            json_array_append(foreign, c);
    json_object_set_new(copy, "status", foreign);
    hash = seen_hash(copy, NULL);
    json_decref(copy);
    return hash;
}

static void pods_forward(struct pods_part *p, struct pod_entry *e, json_t *object)
{
    uint64_t hash = pods_relevant(object);

    if (hash == e->forwarded)
        return;
    e->forwarded = hash;
    objects_part_pods(p->sync->objects);
    sync_send(p->sync, json_pack("{s:s, s:O}", "type", "put", "object", object));
}

static void pods_on_put(json_t *object, void *arg)
{
    struct pods_part *p = arg;
    json_t *meta = json_object_get(object, "metadata");
    const char *name = json_str(meta, "name");
    struct pod_entry *e = name != NULL ? pod_entry_of(p, json_str(meta, "namespace"), name) : NULL;

    if (e == NULL)
        return;
    json_object_del(meta, "managedFields");
    if (!pod_entry_see(e, object)) {
        pod_entry_release(p, e);
        return;
    }
    if (e->mirror == NULL)
        pods_forward(p, e, object);
    pods_queue(p, e);
}

static void pods_on_gone(const char *namespace_, const char *name, const char *uid, void *arg)
{
    struct pods_part *p = arg;
    struct pod_entry *e = pod_entry_of(p, namespace_, name);

    if (e == NULL)
        return;
    if (!e->there || !str_eq(e->uid, uid)) {
        pod_entry_release(p, e);
        return;
    }
    if (e->mirror == NULL)
        sync_send(p->sync, json_pack("{s:s, s:s, s:s, s:s, s:s}", "type", "gone", "kind", "Pod", "namespace",
                                     e->namespace_, "name", name, "uid", uid));
    pod_entry_unsee(e);
    e->wait_ms = e->not_before_ms = 0;
    if (LIST_EMPTY(&e->ours))
        pod_entry_release(p, e);
    else
        pods_queue(p, e);
}

static void pods_queue_all(struct pods_part *p)
{
    struct pod_entry *e, *next;

    HASH_ITER (hh, p->entries, e, next)
        pods_queue(p, e);
}

static void pods_on_told(void *owner)
{
    struct pods_part *p = owner;

    p->told = true;
    pods_queue_all(p);
}

static void pods_on_synced(void *arg)
{
    struct pods_part *p = arg;

    sync_send(p->sync, json_pack("{s:s, s:s}", "type", "synced", "kind", "Pod"));
    if (!p->told && !p->told_timer.runs)
        sync_timer_start(p->sync, &p->told_timer, PODS_TOLD_MS, pods_on_told, p);
    pods_queue_all(p);
}

static void pods_on_trouble(const struct err *why, int http, void *arg)
{
    struct pods_part *p = arg;

    (void)http;
    state_part_report(p->sync->state, "watch of pods", why != NULL ? why->text : NULL);
}

/* ---- from the daemon ---- */

static struct our_pod *our_pod_new(struct pod_entry *e, const char *uid)
{
    struct our_pod *o = calloc(1, sizeof(*o));

    if (o == NULL)
        return NULL;
    o->uid = strdup(uid);
    if (o->uid == NULL) {
        free(o);
        return NULL;
    }
    LIST_INSERT_HEAD(&e->ours, o, link);
    return o;
}

static void our_pod_set(struct our_pod *o, const json_t *message)
{
    const json_t *object = json_object_get(message, "object"), *status = json_object_get(object, "status");
    json_t *manifest;

    o->is_static = json_flag(message, "static");
    o->ended = json_flag(message, "ended");
    free(o->status);
    o->status = status != NULL ? json_text(status) : NULL;
    if (!o->is_static)
        return;
    mirror_hash(object, o->hash);
    manifest = json_copy((json_t *)object);
    json_object_del(manifest, "status");
    free(o->manifest);
    o->manifest = json_text(manifest);
    json_decref(manifest);
}

/* Static pods stand under the name of their mirror. */
static struct pod_entry *pods_entry(struct pods_part *p, const char *namespace_, const char *name,
                                    bool is_static)
{
    char mirror[MIRROR_NAME_SIZE];

    if (name == NULL || p->sync->node_name == NULL)
        return NULL;
    if (is_static)
        mirror_name(name, p->sync->node_name, mirror);
    return pod_entry_of(p, namespace_, is_static ? mirror : name);
}

void pods_part_take(struct pods_part *p, const json_t *message)
{
    const json_t *meta = json_object_get(json_object_get(message, "object"), "metadata");
    const char *uid = json_str(meta, "uid");
    struct pod_entry *e = uid != NULL ? pods_entry(p, json_str(meta, "namespace"), json_str(meta, "name"),
                                                   json_flag(message, "static"))
                                      : NULL;
    struct our_pod *o;

    if (e == NULL)
        return;
    o = our_pod_find(e, uid);
    if (o == NULL)
        o = our_pod_new(e, uid);
    if (o == NULL) {
        pod_entry_release(p, e);
        return;
    }
    objects_part_pods(p->sync->objects); /* a static pod has variables of Services, too */
    our_pod_set(o, message);
    pods_queue(p, e);
}

static struct our_pod *pods_static(struct pods_part *p, const char *namespace_, const char *name,
                                   const char *uid, struct pod_entry **ret_entry)
{
    struct our_pod *o;

    *ret_entry = pods_entry(p, namespace_, name, true);
    o = *ret_entry != NULL ? our_pod_find(*ret_entry, uid) : NULL;
    if (o == NULL && *ret_entry != NULL)
        pod_entry_release(p, *ret_entry);
    return o;
}

const char *pods_part_mirror(struct pods_part *p, const char *namespace_, const char *name, const char *uid)
{
    struct pod_entry *e;

    return pods_static(p, namespace_, name, uid, &e) != NULL ? e->name : NULL;
}

void pods_part_forget(struct pods_part *p, const json_t *message)
{
    const char *namespace_ = json_str(message, "namespace"), *name = json_str(message, "name"),
               *uid = json_str(message, "uid");
    struct pod_entry *e;
    struct our_pod *o = pods_static(p, namespace_, name, uid, &e);

    if (o == NULL) {
        e = pods_entry(p, namespace_, name, false);
        o = e != NULL ? our_pod_find(e, uid) : NULL;
    }
    if (e == NULL)
        return;
    if (o != NULL) {
        LIST_REMOVE(o, link);
        e->orphan = o->is_static && e->there && e->mirror != NULL && LIST_EMPTY(&e->ours);
        our_pod_free(o);
    }
    if (e->there)
        pods_queue(p, e);
    else
        pod_entry_release(p, e);
}

/* ---- the part ---- */

struct pods_part *pods_part_new(struct kube_sync *s)
{
    struct pods_part *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return NULL;
    p->sync = s;
    TAILQ_INIT(&p->queue);
    return p;
}

void pods_part_start(struct pods_part *p)
{
    struct err e = { 0 };
    char selector[300];
    const struct kube_reflector_options o = { .loop = p->sync->o.loop,
                                              .client = p->sync->o.client,
                                              .path = "/api/v1/pods",
                                              .field_selector = selector,
                                              .subject = "pods of this node",
                                              .objects_max = PODS_MAX,
                                              .expected = json_flag(p->sync->config, "hasPods"),
                                              .on_put = pods_on_put,
                                              .on_gone = pods_on_gone,
                                              .on_synced = pods_on_synced,
                                              .on_trouble = pods_on_trouble,
                                              .arg = p };

    if (p->started)
        return;
    p->started = true;
    snprintf(selector, sizeof(selector), "spec.nodeName=%s", p->sync->node_name);
    if (kube_reflector_open(&p->reflector, &o, &e) != ERR_OK)
        state_part_report(p->sync->state, "watch of pods", e.text);
}

void pods_part_anew(struct pods_part *p)
{
    struct pod_entry *e, *next;

    HASH_ITER (hh, p->entries, e, next)
        e->not_before_ms = 0;
    pods_write(p);
}

void pods_part_stop(struct pods_part *p)
{
    p->started = false;
    kube_reflector_close(p->reflector);
    p->reflector = NULL;
    sync_timer_stop(p->sync, &p->timer);
    sync_timer_stop(p->sync, &p->told_timer);
    sync_call_cancel(&p->call);
}

void pods_part_free(struct pods_part *p)
{
    struct pod_entry *e, *next;

    if (p == NULL)
        return;
    HASH_ITER (hh, p->entries, e, next)
        pod_entry_free(p, e);
    free(p->writing_uid);
    free(p);
}
