/* SPDX-License-Identifier: Apache-2.0 */
/* namespaces - a node without a cluster does not require Namespace objects: a name in a manifest suffices.
 * For clients there is a Namespace for each name in use, in addition to those in manifests. */
#include "agent/api/made_uid.h"
#include "agent/api/patch/write/write.h"
#include "agent/kube/apiserver/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

static const char *const always[] = { "default", API_LEASE_NAMESPACE };

static bool is_always(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        if (strcmp(name, always[i]) == 0)
            return true;
    return false;
}

static struct stock_object *namespace_find(struct kube_api *a, const char *name)
{
    return stock_find(&a->stock, &api_kinds[API_KIND_NAMESPACE], "", name);
}

/* A Namespace without a manifest, or with a hand-written one, has no stored uid. */
void api_namespace_complete(json_t *object)
{
    json_t *meta = json_object_get(object, "metadata");
    const char *name = json_str(meta, "name");
    char uid[API_UID_SIZE];

    if (name != NULL && json_str(meta, "uid") == NULL) {
        api_made_uid("Namespace", NULL, name, uid);
        json_put_str(meta, "uid", uid);
    }
    if (json_object_size(json_object_get(object, "spec")) == 0) /* kubectl 1.20 sends an empty one */
        json_object_set_new(object, "spec", json_pack("{s:[s]}", "finalizers", "kubernetes"));
    if (json_object_get(object, "status") == NULL)
        json_object_set_new(object, "status", json_pack("{s:s}", "phase", "Active"));
}

void api_object_complete(json_t *object)
{
    const char *version = json_str(object, "apiVersion"), *kind = json_str(object, "kind");
    const struct api_patch_kind *known =
        version != NULL && kind != NULL ? api_patch_kind_find(version, kind) : NULL;

    if (known == NULL)
        return;
    if (known->row->id == API_KIND_NAMESPACE)
        api_namespace_complete(object);
    else if (known->row->held != API_HELD_NOT && known->row->id != API_KIND_POD)
        ERR_IGNORE(api_object_default(known, object, ERR_IGNORED)); /* without memory it is shown as it is */
}

void api_namespace_need(struct kube_api *a, const char *name)
{
    const struct stock_change *change = NULL;
    char time[CLOCK_RFC3339_SIZE];
    json_auto_t *o = NULL;

    if (name[0] == '\0' || namespace_find(a, name) != NULL)
        return;
    clock_format_s(is_always(name) && a->since_ns > 0 ? a->since_ns : clock_wall_ns(), time);
    o = json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}, s:o}}", "kind", "Namespace", "apiVersion", "v1",
                  "metadata", "name", name, "creationTimestamp", time, "labels",
                  "kubernetes.io/metadata.name", name, "resourceVersion",
                  json_sprintf("%llu", (unsigned long long)a->stock.version));
    if (o == NULL)
        return;
    api_namespace_complete(o);
    if (stock_put(&a->stock, o, 0, &change) && change != NULL)
        api_changed(a);
}

void api_namespaces_begin(struct kube_api *a)
{
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        api_namespace_need(a, always[i]);
}

static bool is_used(const struct kube_api *a, const char *name)
{
    return is_always(name) || stock_uses(&a->stock, name);
}

static void namespace_remove(struct kube_api *a, struct stock_object *o)
{
    stock_remove(&a->stock, o, a->stock.version, NULL);
    api_changed(a);
}

void api_namespace_check(struct kube_api *a, const char *name)
{
    struct stock_object *o = name[0] != '\0' ? namespace_find(a, name) : NULL;

    if (is_used(a, name))
        api_namespace_need(a, name);
    else if (o != NULL && o->set == 0)
        namespace_remove(a, o);
}

bool api_namespace_stays(struct kube_api *a, struct stock_object *o)
{
    if (o->kind->id != API_KIND_NAMESPACE || !is_used(a, o->name))
        return false;
    o->set = 0;
    return true;
}

void api_namespaces_sweep(struct kube_api *a)
{
    struct stock_object *o, *tmp;

    HASH_ITER (hh, a->stock.objects, o, tmp)
        if (o->kind->id == API_KIND_NAMESPACE && o->set == 0 && !is_used(a, o->name))
            namespace_remove(a, o);
    HASH_ITER (hh, a->stock.objects, o, tmp)
        if (o->kind->id != API_KIND_EVENT)
            api_namespace_need(a, o->namespace_);
}
