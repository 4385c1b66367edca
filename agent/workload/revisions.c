/* SPDX-License-Identifier: Apache-2.0 */
/*
 * revisions - creates, numbers and drops the revisions of the folder's workloads. A revision is an object of
 * the store with a record, but without a file. Its struct workload has `revision` and is never stepped
 * itself: its workload handles it.
 */
#include "agent/pod/core/pod.h"
#include "agent/workload/internal.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- one revision ---- */

void revision_take(struct workload *one)
{
    json_auto_t *o = json_loads(one->object->json, 0, NULL);
    const char *dash = strrchr(one->object->meta.name, '-');
    struct revision_facts *f = one->revision;

    f->number = revision_number(o);
    f->looks = revision_looks(revision_template(o));
    snprintf(f->hash, sizeof(f->hash), "%s", dash != NULL ? dash + 1 : "");
}

void revisions_link(struct workloads *w)
{
    struct workload *one, *tmp, *owner;

    HASH_ITER (hh, w->all, one, tmp)
        one->revisions = NULL;
    HASH_ITER (hh, w->all, one, tmp) {
        owner = one->revision != NULL && !one->goes ? workload_find(w, one->owner) : NULL;
        if (owner == NULL)
            continue;
        one->next = owner->revisions;
        owner->revisions = one;
    }
}

/* The name of the revision of this hash, and its uid. */
static void revision_uid(const struct workload *one, const char *hash, char ret[WORKLOAD_UID_SIZE])
{
    const struct api_meta *meta = &one->object->meta;
    str_auto name = str_printf("%s-%s", meta->name, hash);

    workload_uid(revision_kind(one->kind), meta->namespace, name != NULL ? name : "", ret);
}

struct workload *revision_of(struct workloads *w, const struct workload *one, const char *hash)
{
    char uid[WORKLOAD_UID_SIZE];
    struct workload *rev;

    if (hash == NULL || !revision_has(one->kind))
        return NULL;
    revision_uid(one, hash, uid);
    rev = workload_find(w, uid);
    return rev != NULL && rev->revision != NULL && strcmp(rev->owner, one->uid) == 0 ? rev : NULL;
}

/* ---- pods ---- */

/* "web" of the pod "web-bcdfghjklm-0", whose ReplicaSet has no record: derived from the naming of pods. */
static struct workload *deployment_of(struct workloads *w, const struct api_pod *pod)
{
    const char *hash = api_kvs_get(&pod->meta.labels, workload_hash_label(API_KIND_DEPLOYMENT)),
               *end = strrchr(pod->meta.name, '-');
    size_t n = hash != NULL ? strlen(hash) : 0, all = end != NULL ? (size_t)(end - pod->meta.name) : 0;
    char set[WORKLOAD_UID_SIZE], uid[WORKLOAD_UID_SIZE];
    str_auto set_name = strndup(pod->meta.name, all);
    str_auto name = n > 0 && all > n + 1 ? strndup(pod->meta.name, all - n - 1) : NULL;

    if (set_name == NULL || name == NULL || strncmp(pod->meta.name + all - n, hash, n) != 0)
        return NULL;
    workload_uid(API_KIND_REPLICA_SET, pod->meta.namespace, set_name, set);
    workload_uid(API_KIND_DEPLOYMENT, pod->meta.namespace, name, uid);
    return strcmp(set, pod->owner_uid) == 0 ? workload_find(w, uid) : NULL;
}

struct workload *workload_of_pod(struct workloads *w, const struct api_pod *pod)
{
    struct workload *one = pod->owner_uid != NULL ? workload_find(w, pod->owner_uid) : NULL;

    if (one != NULL && one->revision != NULL)
        return workload_find(w, one->owner);
    return one == NULL && pod->owner_uid != NULL ? deployment_of(w, pod) : one;
}

const struct api_pod *workload_template(struct workloads *w, const struct workload *one)
{
    const struct workload *rev = one->on_hold ? revision_of(w, one, workload_hash(one)) : NULL;

    return rev != NULL && rev->object->workload != NULL ? rev->object->workload->pods.pod
                                                        : one->object->workload->pods.pod;
}

bool revision_holds_back(struct workloads *w, const struct workload *one, unsigned number)
{
    const struct api_workload *spec = one->object->workload;

    return one->kind == API_KIND_STATEFUL_SET && spec->update == API_UPDATE_ROLLING &&
           number < (unsigned)spec->first_ordinal + (unsigned)spec->partition &&
           strcmp(one->before, one->hash) != 0 && revision_of(w, one, one->before) != NULL;
}

enum err_code revision_past(struct workloads *w, const struct workload *one, struct api_generic **ret,
                            struct err *e)
{
    const struct workload *rev = revision_of(w, one, one->before);
    json_auto_t *kept = rev != NULL ? json_loads(rev->object->json, 0, NULL) : NULL,
                *object = json_loads(one->object->json, 0, NULL);
    json_t *template_ = json_deep_copy(revision_template(kept));

    if (rev == NULL) {
        json_decref(template_);
        return err_set(e, ERR_NOT_FOUND,
                       "the revision %s-%s, of which pods below the partition are made, is gone",
                       one->object->meta.name, one->before);
    }
    json_object_del(template_, "$patch");
    if (template_ == NULL || json_object_set_new(json_object_get(object, "spec"), "template", template_) != 0)
        return err_nomem(e);
    return api_make_generic(one->kind, object, ret, e);
}

/* ---- writing ---- */

/* Takes ownership of `object`. */
static bool put(struct workloads *w, const struct workload *one, const struct workload *rev, json_t *object)
{
    const enum api_kind kind = revision_kind(one->kind);
    struct api_object o = { .kind = kind, .document = 1 };
    const char *name = json_str(json_object_get(object, "metadata"), "name");
    char uid[WORKLOAD_UID_SIZE];
    struct err e = { 0 };

    workload_uid(kind, one->object->meta.namespace, name != NULL ? name : "", uid);
    if (object == NULL)
        err_nomem(&e);
    else if (rev == NULL &&
             src_store_generic(w->store, API_FROM_FOLDER, kind, one->object->meta.namespace, name) != NULL)
        err_set(&e, ERR_EXISTS, "another manifest has a %s of this name", api_kind_name(kind));
    else if (workload_record_made(w, uid, rev != NULL ? rev->created_ns : clock_wall_ns(), object, &e) ==
                 ERR_OK &&
             api_make_generic(kind, object, &o.generic, &e) == ERR_OK)
        ERR_IGNORE(src_store_put(w->store, &o, &e));
    if (e.code != ERR_OK)
        log_error("cannot store a revision of a workload", F_STR("kind", api_kind_name(one->kind)),
                  F_STR("namespace", one->object->meta.namespace), F_STR("name", one->object->meta.name),
                  F_STR("revision", name), F_ERR(&e));
    api_generic_unref(o.generic);
    json_decref(object);
    return e.code == ERR_OK;
}

/* ---- the current revision ---- */

struct history {
    struct workload *newest, *same; /* same: of the workload's template */
    int64_t number;                 /* the greatest */
};

static struct history look(const struct workload *one)
{
    struct history h = { 0 };

    for (struct workload *rev = one->revisions; rev != NULL; rev = rev->next) {
        if (h.newest == NULL || rev->revision->number > h.number)
            h.newest = rev;
        h.number = h.newest->revision->number;
        if (strcmp(rev->revision->hash, one->object->workload->pods.hash) == 0)
            h.same = rev;
    }
    if (h.same != NULL) /* equal text, otherwise equal meaning */
        return h;
    for (struct workload *rev = one->revisions; rev != NULL; rev = rev->next)
        if (rev->revision->looks == one->looks &&
            (h.same == NULL || rev->revision->number > h.same->revision->number))
            h.same = rev;
    return h;
}

/* Ensures that the revision has the greatest number, and a ReplicaSet the Deployment's annotations. */
static void refresh(struct workloads *w, const struct workload *one, struct workload *rev, int64_t greatest)
{
    json_auto_t *owner = json_loads(one->object->json, 0, NULL);
    json_t *object = json_loads(rev->object->json, 0, NULL);
    bool changed = rev->revision->number < greatest && revision_renumber(object, greatest + 1);

    if (one->kind == API_KIND_DEPLOYMENT && revision_annotate(object, owner))
        changed = true;
    if (changed)
        put(w, one, rev, object);
    else
        json_decref(object);
}

static struct workload *make(struct workloads *w, struct workload *one, int64_t number)
{
    json_auto_t *owner = json_loads(one->object->json, 0, NULL);
    struct workload *rev;

    if (!put(w, one, NULL, revision_object(one->kind, owner, one->uid, one->hash, number)))
        return NULL; /* the pods run without a revision */
    rev = revision_of(w, one, one->hash);
    if (rev != NULL) {
        rev->next = one->revisions;
        one->revisions = rev;
    }
    return rev;
}

void revisions_resolve(struct workloads *w, struct workload *one)
{
    const struct api_workload *spec = one->object->workload;
    const bool holds = one->kind == API_KIND_DEPLOYMENT && spec->paused;
    struct history h = look(one);
    const char *hash = h.same != NULL              ? h.same->revision->hash
                       : holds && h.newest != NULL ? h.newest->revision->hash
                                                   : spec->pods.hash;

    snprintf(one->hash, sizeof(one->hash), "%s", hash);
    one->on_hold = holds && h.same == NULL;
    if (h.same == NULL)
        h.same = holds ? h.newest : make(w, one, h.number + 1);
    else if (one->changed || h.same->revision->number < h.number)
        refresh(w, one, h.same, h.number);
    one->changed = false;
    one->number = h.same != NULL ? h.same->revision->number : 0;
    for (struct workload *rev = one->revisions; rev != NULL; rev = rev->next) {
        rev->counts = (struct workload_counts){ 0 };
        rev->revision->uses = rev->revision->made = rev->revision->removed = 0;
    }
}

/* ---- old revisions ---- */

static int by_number(const void *a, const void *b)
{
    const struct workload *const *x = a, *const *y = b;

    return ((*x)->revision->number > (*y)->revision->number) -
           ((*x)->revision->number < (*y)->revision->number);
}

/* The revision from which a StatefulSet is being updated: until all pods have the new one, as in Kubernetes.
 */
static void settle_set(struct workloads *w, struct workload *one, const struct workload *running)
{
    const unsigned wanted = (unsigned)one->object->workload->replicas;
    const bool whole =
        one->counts.updated == wanted && one->counts.pods == wanted && one->counts.ready >= wanted;
    const struct workload *before = one->before[0] != '\0' ? revision_of(w, one, one->before) : NULL;
    const char *hash = whole             ? one->hash
                       : before != NULL  ? before->revision->hash
                       : running != NULL ? running->revision->hash
                                         : one->hash;

    if (strcmp(hash, one->before) == 0)
        return;
    snprintf(one->before, sizeof(one->before), "%s", hash);
    workload_record_save(w, one);
}

static unsigned pods_before(struct workloads *w, const struct workload *one)
{
    const struct workload *rev = revision_of(w, one, one->before);

    return rev != NULL ? rev->counts.pods : one->counts.updated;
}

void revisions_settle(struct workloads *w, struct workload *one)
{
    const int32_t limit = one->object->workload->revision_history_limit;
    const size_t keep = limit > 0 ? (size_t)limit : 0;
    const struct workload *running = NULL;
    mem_auto struct workload **old = NULL;
    size_t n = 0;

    for (struct workload *rev = one->revisions; rev != NULL; rev = rev->next) {
        workload_notify(w, rev);
        if (strcmp(rev->revision->hash, one->hash) == 0)
            continue;
        if (rev->revision->uses == 0)
            n++;
        else if (running == NULL || rev->revision->number > running->revision->number)
            running = rev;
    }
    if (one->kind == API_KIND_STATEFUL_SET)
        settle_set(w, one, running);
    else
        snprintf(one->before, sizeof(one->before), "%s",
                 running != NULL ? running->revision->hash : one->hash);
    one->n_before = pods_before(w, one);
    old = n > keep ? calloc(n, sizeof(struct workload *)) : NULL;
    if (old == NULL)
        return;
    n = 0;
    for (struct workload *rev = one->revisions; rev != NULL; rev = rev->next)
        if (rev->revision->uses == 0 && strcmp(rev->revision->hash, one->hash) != 0 &&
            strcmp(rev->revision->hash, one->before) != 0)
            old[n++] = rev;
    qsort(old, n, sizeof(struct workload *), by_number);
    for (size_t i = 0; i + keep < n; i++)
        old[i]->goes = true;
}
