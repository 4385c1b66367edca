/* SPDX-License-Identifier: Apache-2.0 */
/* DELETE of a collection, and of a namespace with its content: one object after the other. */
#include "agent/kube/apiserver/write.h"

#include "base/clock.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>

static void keep(struct api_job *j, const struct api_kind_row *kind, const char *namespace_, const char *name)
{
    struct api_kept *k = &j->kept[j->n_kept++];

    k->kind = kind;
    snprintf(k->namespace, sizeof(k->namespace), "%s", namespace_ != NULL ? namespace_ : "");
    snprintf(k->name, sizeof(k->name), "%s", name != NULL ? name : "");
}

/* The end: the list as it was, or the namespace that ends. */
static void answer_all(struct api_job *j)
{
    json_t *list = j->list;

    j->list = NULL;
    j->r.target = j->whole;
    snprintf(j->name, sizeof(j->name), "%s", j->whole.name);
    job_answer(j, 200, list);
}

void job_collection_next(struct api_job *j)
{
    const struct api_kept *k;

    if (j->at == j->n_kept) {
        answer_all(j);
        return;
    }
    k = &j->kept[j->at++];
    j->r.target.kind = k->kind;
    snprintf(j->r.target.namespace, sizeof(j->r.target.namespace), "%s", k->namespace);
    snprintf(j->name, sizeof(j->name), "%s", k->name);
    j->tries = 0;
    j->looked = job_delete;
    job_look(j);
}

void job_collection(struct api_job *j)
{
    json_t *status = NULL, *one, *meta;
    size_t i;

    j->whole = j->r.target;
    j->list = api_list_of(&j->r, &status);
    if (j->list == NULL) {
        job_fail(j, status);
        return;
    }
    j->kept = calloc(json_array_size(json_object_get(j->list, "items")) + 1, sizeof(*j->kept));
    if (j->kept == NULL) {
        job_fail(j, NULL);
        return;
    }
    json_array_foreach (json_object_get(j->list, "items"), i, one) {
        meta = json_object_get(one, "metadata");
        keep(j, j->r.target.kind, json_str(meta, "namespace"), json_str(meta, "name"));
    }
    job_collection_next(j);
}

/* ---- namespaces ---- */

static bool is_kept_always(const char *name)
{
    static const char *const names[] = { "default", "kube-system", "kube-public" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Pods of a workload and its revisions end with it. */
static bool goes_with_owner(const struct stock_object *o)
{
    const enum api_kind kind = o->kind->id;

    return (kind == API_KIND_POD || kind == API_KIND_REPLICA_SET || kind == API_KIND_CONTROLLER_REVISION) &&
           json_array_size(json_object_get(json_object_get(o->object, "metadata"), "ownerReferences")) > 0;
}

/* Has a home of its own, and is nothing that the node tells. */
static bool is_deletable(const struct stock_object *o)
{
    return o->kind->held != API_HELD_NOT && (api_service_of(o->kind)->verbs & API_VERB_DELETE) &&
           !goes_with_owner(o);
}

/* Workloads before the claims and settings that their pods use, the namespace at the end. */
static void keep_contents(struct api_job *j, const char *namespace_)
{
    struct stock_object *o, *tmp;

    for (int workloads = 1; workloads >= 0; workloads--)
        HASH_ITER (hh, j->r.api->stock.objects, o, tmp) {
            const bool runs = api_kind_is_workload(o->kind->id) || o->kind->id == API_KIND_POD;

            if (strcmp(o->namespace_, namespace_) == 0 && runs == (workloads == 1) && is_deletable(o))
                keep(j, o->kind, namespace_, o->name);
        }
}

/* The namespace while it ends: it disappears with its last object, which may be a slowly ending pod. */
static json_t *ending(struct api_job *j, const struct stock_object *o)
{
    const struct stock_change *change = NULL;
    char now[CLOCK_RFC3339_SIZE];
    json_t *object = json_deep_copy(o->object), *meta = json_object_get(object, "metadata");

    clock_format_s(clock_wall_ns(), now);
    json_object_set_new(meta, "resourceVersion",
                        json_sprintf("%llu", (unsigned long long)j->r.api->stock.version));
    if (object == NULL ||
        json_object_set_new(object, "status", json_pack("{s:s}", "phase", "Terminating")) != 0 ||
        (json_object_get(meta, "deletionTimestamp") == NULL &&
         json_object_set_new(meta, "deletionTimestamp", json_string(now)) != 0)) {
        json_decref(object);
        return NULL;
    }
    if (!j->dry && stock_put(&j->r.api->stock, object, o->set, &change) && change != NULL)
        api_changed(j->r.api);
    return object;
}

void job_delete_namespace(struct api_job *j)
{
    const struct api_kind_row *k = j->r.target.kind;
    struct kube_api *a = j->r.api;
    const struct stock_object *o = stock_find(&a->stock, k, "", j->name);

    if (o == NULL) {
        job_lacks(j);
        return;
    }
    if (is_kept_always(j->name)) {
        job_fail(j,
                 api_status(403, "Forbidden", json_pack("{s:s, s:s}", "name", j->name, "kind", k->plural),
                            "%s \"%s\" is forbidden: this namespace may not be deleted", k->plural, j->name));
        return;
    }
    j->whole = j->r.target;
    j->kept = calloc(HASH_COUNT(a->stock.objects) + 1, sizeof(*j->kept));
    if (j->kept != NULL)
        keep_contents(j, j->name);
    if (o->set != 0 && j->kept != NULL) /* it has a manifest */
        keep(j, k, NULL, j->name);
    j->list = j->kept != NULL ? ending(j, o) : NULL;
    if (j->list == NULL)
        job_fail(j, NULL);
    else
        job_collection_next(j);
}

bool job_namespace_exists(struct api_job *j)
{
    const struct api_kind_row *k = j->r.target.kind, *row = &api_kinds[API_KIND_NAMESPACE];
    const char *name = j->r.target.namespace;
    const struct stock_object *o;

    if (!k->namespaced)
        return true;
    o = stock_find(&j->r.api->stock, row, "", name);
    if (o == NULL) {
        job_fail(j, api_status_not_found("", "namespaces", name));
        return false;
    }
    if (json_object_get(json_object_get(o->object, "metadata"), "deletionTimestamp") == NULL)
        return true;
    job_fail(j, api_status(403, "Forbidden",
                           json_pack("{s:s, s:s*, s:s, s:[{s:s, s:o, s:s}]}", "name", j->name, "group",
                                     k->group[0] != '\0' ? k->group : NULL, "kind", k->plural, "causes",
                                     "reason", "NamespaceTerminating", "message",
                                     json_sprintf("namespace %s is being terminated", name), "field",
                                     "metadata.namespace"),
                           "%s%s%s \"%s\" is forbidden: unable to create new content in namespace %s "
                           "because it is being terminated",
                           k->plural, k->group[0] != '\0' ? "." : "", k->group, j->name, name));
    return false;
}
