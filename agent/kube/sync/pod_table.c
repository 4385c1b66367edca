/* SPDX-License-Identifier: Apache-2.0 */
/* pod_table - by name: the apiserver's object, and the node's pods. */
#include "agent/kube/sync/pods.h"

#include "agent/kube/decide/seen.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

static void pod_entry_drop(struct pod_entry *e)
{
    free(e->key);
    free(e->namespace_);
    free(e->name);
    free(e);
}

struct pod_entry *pod_entry_of(struct pods_part *p, const char *namespace_, const char *name)
{
    str_auto key = str_printf("%s/%s", namespace_ != NULL ? namespace_ : "default", name);
    struct pod_entry *e = NULL;

    if (key == NULL)
        return NULL;
    HASH_FIND_STR(p->entries, key, e);
    if (e != NULL || HASH_COUNT(p->entries) >= 2 * PODS_MAX)
        return e;
    e = calloc(1, sizeof(*e));
    if (e == NULL)
        return NULL;
    LIST_INIT(&e->ours);
    e->key = take_ptr(&key);
    e->namespace_ = strdup(namespace_ != NULL ? namespace_ : "default");
    e->name = strdup(name);
    if (e->namespace_ != NULL && e->name != NULL)
        HASH_ADD_KEYPTR(hh, p->entries, e->key, strlen(e->key), e);
    if (e->hh.tbl == NULL) {
        pod_entry_drop(e);
        return NULL;
    }
    return e;
}

void our_pod_free(struct our_pod *o)
{
    free(o->uid);
    free(o->status);
    free(o->manifest);
    free(o);
}

void pod_entry_unsee(struct pod_entry *e)
{
    free(e->uid);
    free(e->version);
    free(e->mirror);
    free(e->status);
    e->uid = e->version = e->mirror = e->status = NULL;
    e->there = e->leaving = e->deleted = e->orphan = false;
    e->forwarded = 0;
}

void pod_entry_free(struct pods_part *p, struct pod_entry *e)
{
    struct our_pod *o;

    while ((o = LIST_FIRST(&e->ours)) != NULL) {
        LIST_REMOVE(o, link);
        our_pod_free(o);
    }
    if (e->dirty)
        TAILQ_REMOVE(&p->queue, e, queued);
    HASH_DEL(p->entries, e);
    pod_entry_unsee(e);
    pod_entry_drop(e);
}

void pod_entry_release(struct pods_part *p, struct pod_entry *e)
{
    if (!e->there && LIST_EMPTY(&e->ours) && p->writing != e)
        pod_entry_free(p, e);
}

bool pod_entry_see(struct pod_entry *e, const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata"), *status = json_object_get(object, "status");
    const char *uid = json_str(meta, "uid"), *version = json_str(meta, "resourceVersion"),
               *mirror = json_str(json_object_get(meta, "annotations"), MIRROR_ANNOTATION);
    char *v[4];

    if (uid == NULL || (e->there && str_eq(uid, e->uid) && seen_version_is_older(version, e->version)))
        return false;
    v[0] = strdup(uid);
    v[1] = strdup(version != NULL ? version : "");
    v[2] = mirror != NULL ? strdup(mirror) : NULL;
    v[3] = status != NULL ? json_text(status) : strdup("{}");
    if (v[0] == NULL || v[1] == NULL || v[3] == NULL || (mirror != NULL && v[2] == NULL)) {
        for (size_t i = 0; i < ARRAY_LEN(v); i++)
            free(v[i]);
        return false;
    }
    if (e->there && !str_eq(uid, e->uid))
        pod_entry_unsee(e);
    free(e->uid);
    free(e->version);
    free(e->mirror);
    free(e->status);
    e->uid = v[0];
    e->version = v[1];
    e->mirror = v[2];
    e->status = v[3];
    e->deleted = e->deleted && e->there;
    e->there = true;
    e->leaving = json_str(meta, "deletionTimestamp") != NULL;
    return true;
}

struct our_pod *our_pod_find(const struct pod_entry *e, const char *uid)
{
    struct our_pod *o;

    LIST_FOREACH (o, &e->ours, link)
        if (str_eq(o->uid, uid))
            return o;
    return NULL;
}

struct our_pod *our_pod_of(const struct pod_entry *e)
{
    struct our_pod *o;

    LIST_FOREACH (o, &e->ours, link)
        if (o->is_static ? !e->there || e->mirror != NULL
                         : e->there && e->mirror == NULL && str_eq(o->uid, e->uid))
            return o; /* the newest static one is in front */
    return NULL;
}
