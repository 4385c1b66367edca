/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage - the claims of the apiserver's pods, their volumes and attachments: read while a pod refers to
 * them, because a node may not watch them. An object that blocks a pod is read again soon; other objects are
 * read at the pace of kubelet's pod syncs, by which kubelet detects that a volume has to grow.
 */
#include "agent/cluster/internal.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "volumes/csi/volume.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define HOT_FIRST_MS 500 /* kubelet's back-off for a waiting volume, but with a lower limit */
#define HOT_MAX_MS 8000
#define REST_MS 60000
#define REST_JITTER_MS 30000

static const char *const kinds[] = { [THING_CLAIM] = "PersistentVolumeClaim",
                                     [THING_VOLUME] = "PersistentVolume",
                                     [THING_ATTACHMENT] = "VolumeAttachment" };

static void thing_key(enum thing_kind kind, const char *namespace_, const char *name,
                      char ret[CLUSTER_KEY_SIZE])
{
    snprintf(ret, CLUSTER_KEY_SIZE, "%s/%.63s%s%.253s", kinds[kind], namespace_ != NULL ? namespace_ : "",
             namespace_ != NULL ? "/" : "", name);
}

struct cluster_thing *storage_find(const struct cluster *c, enum thing_kind kind, const char *namespace_,
                                   const char *name)
{
    char key[CLUSTER_KEY_SIZE];
    struct cluster_thing *t = NULL;

    if (name == NULL)
        return NULL;
    thing_key(kind, namespace_, name, key);
    HASH_FIND_STR(c->things, key, t);
    return t;
}

static void thing_free(struct cluster_thing *t)
{
    json_decref(t->object);
    free(t->denied);
    free(t->namespace_);
    free(t->name);
    free(t);
}

/* ---- references of pods ---- */

static struct cluster_thing *storage_need(struct cluster *c, enum thing_kind kind, const char *namespace_,
                                          const char *name)
{
    struct cluster_thing *t;
    char key[CLUSTER_KEY_SIZE];

    if (name == NULL || name[0] == '\0' || strlen(name) > CLUSTER_NAME_MAX)
        return NULL;
    t = storage_find(c, kind, namespace_, name);
    if (t == NULL) {
        thing_key(kind, namespace_, name, key);
        t = calloc(1, sizeof(*t) + strlen(key) + 1);
        if (t == NULL)
            return NULL; /* the next pod causes another count */
        t->kind = kind;
        t->since = clock_boot();
        strcpy(t->key, key);
        t->namespace_ = namespace_ != NULL ? strdup(namespace_) : NULL;
        t->name = strdup(name);
        if (t->name != NULL && (namespace_ == NULL || t->namespace_ != NULL))
            HASH_ADD_STR(c->things, key, t);
        if (t->hh.tbl == NULL) {
            thing_free(t);
            return NULL;
        }
    }
    t->users = t->seen == c->count ? t->users + 1 : 1;
    t->seen = c->count;
    return t;
}

static void need_secrets(struct cluster *c, const json_t *source)
{
    static const char *const refs[] = { "nodeStageSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef" };

    for (size_t i = 0; i < ARRAY_LEN(refs); i++) {
        const json_t *ref = json_object_get(source, refs[i]);
        const char *namespace_ = json_str(ref, "namespace"), *name = json_str(ref, "name");

        if (namespace_ != NULL && name != NULL && strlen(namespace_) <= 63 &&
            strlen(name) <= CLUSTER_NAME_MAX)
            needs_secret(c, namespace_, name);
    }
}

static const json_t *csi_source(const struct cluster_thing *volume)
{
    return json_at(volume->object, "spec.csi");
}

void storage_need_claim(struct cluster *c, const struct api_pod *api, const struct api_volume *v)
{
    char name[600], attachment[CSI_HASHED_SIZE];
    struct cluster_thing *claim, *volume;
    const char *driver, *handle;
    const json_t *source;

    if (v->ephemeral)
        snprintf(name, sizeof(name), "%s-%s", api->meta.name, v->name);
    else
        snprintf(name, sizeof(name), "%s", v->claim_name);
    claim = storage_need(c, THING_CLAIM, api->meta.namespace, name);
    if (claim == NULL || !str_eq(json_str(json_object_get(claim->object, "status"), "phase"), "Bound"))
        return;
    volume =
        storage_need(c, THING_VOLUME, NULL, json_str(json_object_get(claim->object, "spec"), "volumeName"));
    source = volume != NULL ? csi_source(volume) : NULL;
    driver = json_str(source, "driver");
    handle = json_str(source, "volumeHandle");
    if (driver == NULL || handle == NULL)
        return;
    need_secrets(c, source);
    if (!csi_drivers_attach(c, driver))
        return;
    csi_attachment_name(handle, driver, c->o.node->o.node_name, attachment);
    storage_need(c, THING_ATTACHMENT, NULL, attachment);
}

static bool thing_tell(struct cluster *c, const struct cluster_thing *t, const char *type)
{
    return cluster_send(c, json_pack("{s:s, s:s, s:s*, s:s}", "type", type, "kind", kinds[t->kind],
                                     "namespace", t->namespace_, "name", t->name));
}

static void thing_to_store(struct cluster *c, const struct cluster_thing *t)
{
    if (t->kind == THING_CLAIM)
        src_store_remove(c->o.store, API_FROM_SERVER, API_KIND_CLAIM, t->namespace_, t->name);
    if (t->kind == THING_VOLUME)
        src_store_remove(c->o.store, API_FROM_SERVER, API_KIND_PERSISTENT_VOLUME, NULL, t->name);
}

static void storage_plan(struct cluster *c);

void storage_count(struct cluster *c)
{
    struct cluster_thing *t, *next;

    HASH_ITER (hh, c->things, t, next) {
        if (t->seen != c->count) {
            if (t->told)
                thing_tell(c, t, "drop");
            thing_to_store(c, t);
            kept_drop(c->kept, t->key);
            HASH_DEL(c->things, t);
            thing_free(t);
        } else if (!t->told) {
            t->told = thing_tell(c, t, "need");
        } else if (t->users > t->before && t->object != NULL) { /* a new pod needs the present state */
            thing_tell(c, t, "look");
        }
    }
    for (t = c->things; t != NULL; t = t->hh.next)
        t->before = t->users;
    storage_plan(c);
}

void storage_untold(struct cluster *c)
{
    for (struct cluster_thing *t = c->things; t != NULL; t = t->hh.next)
        t->told = false;
}

/* ---- reads ---- */

static void thing_rest(struct cluster_thing *t)
{
    uint32_t chance = 0;

    if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
        chance = 0;
    t->wait_ms = 0;
    t->look_at = clock_boot_in_ms(REST_MS + chance % REST_JITTER_MS);
}

/* Only existing objects are read again: coracle-kube itself retries missing or refused ones. */
static bool thing_is_looked_at(const struct cluster_thing *t)
{
    return t->object != NULL && t->told && (t->kind != THING_ATTACHMENT || t->hot);
}

void storage_hot(struct cluster *c, struct cluster_thing *t, bool hot)
{
    if (t->hot == hot)
        return;
    t->hot = hot;
    if (hot) {
        t->wait_ms = HOT_FIRST_MS;
        t->look_at = clock_boot_in_ms(t->wait_ms);
    } else {
        thing_rest(t);
    }
    storage_plan(c);
}

void storage_look(struct cluster *c, struct cluster_thing *t)
{
    if (t->told)
        thing_tell(c, t, "look");
}

static void storage_on_timer(uv_timer_t *timer)
{
    struct cluster *c = timer->data;

    for (struct cluster_thing *t = c->things; t != NULL; t = t->hh.next) {
        if (!thing_is_looked_at(t) || !clock_boot_is_due(t->look_at))
            continue;
        thing_tell(c, t, "look");
        if (!t->hot) {
            thing_rest(t);
            continue;
        }
        t->wait_ms = backoff_next_ms(t->wait_ms, HOT_FIRST_MS, HOT_MAX_MS);
        t->look_at = clock_boot_in_ms(t->wait_ms);
    }
    storage_plan(c);
}

/* Sets the timer for the next read. */
static void storage_plan(struct cluster *c)
{
    int64_t next_ns = INT64_MAX;

    if (c->closing)
        return;
    for (struct cluster_thing *t = c->things; t != NULL; t = t->hh.next)
        if (thing_is_looked_at(t)) {
            int64_t left_ns = clock_boot_left_ns(t->look_at);

            next_ns = left_ns < next_ns ? left_ns : next_ns;
        }
    if (next_ns == INT64_MAX)
        uv_timer_stop(&c->storage_timer);
    else
        uv_timer_start(&c->storage_timer, storage_on_timer,
                       next_ns > 0 ? (uint64_t)(next_ns / 1000000) + 1 : 0, 0);
}

/* ---- answers of the apiserver ---- */

bool storage_kind(const char *kind, enum thing_kind *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_eq(kind, kinds[i])) {
            *ret = (enum thing_kind)i;
            return true;
        }
    return false;
}

void storage_wake(struct cluster *c)
{
    pods_each (c->o.node, p)
        if (p->api->origin == API_FROM_SERVER)
            volumes_claims_changed(p);
    volumes_drivers_changed(c->o.node);
    reports_node(c); /* volumes in use */
    reports_wake(c); /* the needs have changed */
}

static bool is_same(const json_t *a, const json_t *b)
{
    const char *x = json_str(json_object_get(a, "metadata"), "resourceVersion"),
               *y = json_str(json_object_get(b, "metadata"), "resourceVersion");

    return x != NULL && str_eq(x, y);
}

static void thing_set(struct cluster *c, struct cluster_thing *t, json_t *object)
{
    bool first = t->object == NULL;

    json_decref(t->object);
    t->object = object;
    t->absent = false;
    free(take_ptr(&t->denied));
    if (first)
        thing_rest(t);
    if (t->kind != THING_ATTACHMENT)
        objects_to_store(c, object);
    storage_wake(c);
}

bool storage_put(struct cluster *c, enum thing_kind kind, const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    struct cluster_thing *t = storage_find(c, kind, kind == THING_CLAIM ? json_str(meta, "namespace") : NULL,
                                           json_str(meta, "name"));
    json_t *copy;

    if (t == NULL || (t->object != NULL && is_same(t->object, object)))
        return false;
    copy = json_deep_copy(object);
    if (copy == NULL)
        return false;
    json_object_del(json_object_get(copy, "metadata"), "managedFields");
    thing_set(c, t, copy);
    if (kind != THING_ATTACHMENT)
        kept_changed(c->kept, t->key, false);
    return true;
}

void storage_gone(struct cluster *c, enum thing_kind kind, const char *namespace_, const char *name)
{
    struct cluster_thing *t = storage_find(c, kind, kind == THING_CLAIM ? namespace_ : NULL, name);

    if (t == NULL || t->absent)
        return;
    t->absent = true;
    json_decref(t->object);
    t->object = NULL;
    thing_to_store(c, t);
    storage_wake(c);
}

void storage_denied(struct cluster *c, enum thing_kind kind, const char *namespace_, const char *name,
                    const char *why)
{
    struct cluster_thing *t = storage_find(c, kind, kind == THING_CLAIM ? namespace_ : NULL, name);

    if (t == NULL || str_eq(t->denied, why))
        return;
    free(t->denied);
    t->denied = strdup(why);
    storage_wake(c);
}

/* ---- on the disk: claims and volumes ---- */

json_t *storage_keep(const struct cluster *c, const char *name)
{
    struct cluster_thing *t = NULL;

    HASH_FIND_STR(c->things, name, t);
    return t != NULL && t->object != NULL ? json_deep_copy(t->object) : NULL;
}

bool storage_is_needed(const struct cluster *c, const char *name)
{
    struct cluster_thing *t = NULL;

    HASH_FIND_STR(c->things, name, t);
    return t != NULL;
}

bool storage_use(struct cluster *c, const char *name, const json_t *object)
{
    struct cluster_thing *t = NULL;
    json_t *copy;

    HASH_FIND_STR(c->things, name, t);
    if (t == NULL)
        return false;
    if (t->object != NULL || t->absent)
        return true; /* the apiserver has just sent it */
    copy = json_deep_copy(object);
    if (copy == NULL)
        return true;
    log_info("no answer of the apiserver about an object: its kept content is used", F_STR("object", name));
    thing_set(c, t, copy);
    return true;
}

bool storage_wanting(const struct cluster *c)
{
    for (const struct cluster_thing *t = c->things; t != NULL; t = t->hh.next)
        if (t->kind != THING_ATTACHMENT && t->object == NULL && !t->absent)
            return true;
    return false;
}

/* ---- life ---- */

void storage_open(struct cluster *c)
{
    uv_timer_init(c->o.loop, &c->storage_timer);
    c->storage_timer.data = c;
    c->open_handles++;
}

static void storage_on_closed(uv_handle_t *handle)
{
    struct cluster *c = handle->data;

    c->open_handles--;
}

void storage_close(struct cluster *c)
{
    uv_close((uv_handle_t *)&c->storage_timer, storage_on_closed);
}

void storage_free(struct cluster *c)
{
    struct cluster_thing *t, *next;

    HASH_ITER (hh, c->things, t, next) {
        HASH_DEL(c->things, t);
        thing_free(t);
    }
}
