/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/claim/bind.h"

#include "agent/api/selector.h"
#include "base/buf.h"
#include "base/codec/json.h"

#include <string.h>

static const char *text_or(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

enum err_code claim_volume_read(const struct api_generic *object, const json_t *json,
                                struct claim_volume *ret, struct err *e)
{
    const json_t *spec = json_object_get(json, "spec"), *ref = json_object_get(spec, "claimRef");
    const json_t *host_path = json_object_get(spec, "hostPath"), *local = json_object_get(spec, "local");
    const char *size = json_str(json_object_get(spec, "capacity"), "storage");

    *ret = (struct claim_volume){ .name = object->meta.name,
                                  .storage_class = text_or(json_str(spec, "storageClassName"), ""),
                                  .for_namespace = text_or(json_str(ref, "namespace"), "default"),
                                  .for_name = json_str(ref, "name"),
                                  .access_modes = json_object_get(spec, "accessModes"),
                                  .labels = &object->meta.labels };
    ret->path = json_str(host_path != NULL ? host_path : local, "path");
    ret->type = local != NULL ? "Directory" : text_or(json_str(host_path, "type"), "");
    if (ret->path == NULL || ret->path[0] != '/')
        return err_set(e, ERR_PRECONDITION,
                       "PersistentVolume %.253s has no hostPath or local with an absolute path", ret->name);
    if (size == NULL || quantity_parse(size, &ret->size, ERR_IGNORED) != ERR_OK)
        return err_set(e, ERR_PRECONDITION, "PersistentVolume %.253s has no capacity.storage", ret->name);
    if (str_eq(json_str(spec, "volumeMode"), "Block"))
        return err_set(e, ERR_PRECONDITION, "PersistentVolume %.253s is a block device", ret->name);
    return ERR_OK;
}

static bool has_modes(const struct claim_wish *w, const struct claim_volume *v)
{
    for (size_t i = 0; i < w->claim->access_modes.n; i++)
        if (!json_has(v->access_modes, w->claim->access_modes.v[i]))
            return false;
    return true;
}

enum err_code claim_fits(const struct claim_wish *w, const struct claim_volume *v, struct err *e)
{
    const struct quantity *size = api_resource_get(&w->claim->requests, "storage");
    bool reserved = v->for_name != NULL;
    const char *why = NULL;

    if (v->bound)
        why = "it is bound to another claim";
    else if (reserved && (!str_eq(v->for_name, w->name) || !str_eq(v->for_namespace, w->namespace_)))
        why = "it is for another claim";
    else if (w->claim->volume_name != NULL && !str_eq(w->claim->volume_name, v->name))
        why = "the claim names another one";
    else if (!str_eq(text_or(w->claim->storage_class, ""), v->storage_class))
        why = "storageClassName does not match";
    else if (!has_modes(w, v))
        why = "incompatible accessMode";
    else if (size != NULL && quantity_cmp(&v->size, size) < 0)
        why = "requested PV is too small";
    else if (w->selector != NULL && !api_label_selector_matches(w->selector, v->labels))
        why = "its labels do not match the selector";
    return why == NULL ? ERR_OK : err_set(e, ERR_PRECONDITION, "%.253s: %s", v->name, why);
}

/* One that is for this claim comes first. */
static bool is_better(const struct claim_volume *a, const struct claim_volume *b)
{
    int order = quantity_cmp(&a->size, &b->size);

    if ((a->for_name != NULL) != (b->for_name != NULL))
        return a->for_name != NULL;
    return order != 0 ? order < 0 : strcmp(a->name, b->name) < 0;
}

const struct claim_volume *claim_best(const struct claim_wish *w, const struct claim_volume *v, size_t n)
{
    const struct claim_volume *best = NULL;

    for (size_t i = 0; i < n; i++)
        if (claim_fits(w, &v[i], ERR_IGNORED) == ERR_OK && (best == NULL || is_better(&v[i], best)))
            best = &v[i];
    return best;
}

bool claim_may_be_made(const struct claim_wish *w)
{
    return w->claim->volume_name == NULL && w->selector == NULL &&
           (w->claim->storage_class == NULL || w->claim->storage_class[0] != '\0');
}

bool claim_is_for_one_pod(const struct api_claim *c)
{
    for (size_t i = 0; i < c->access_modes.n; i++)
        if (strcmp(c->access_modes.v[i], "ReadWriteOncePod") == 0)
            return true;
    return false;
}
