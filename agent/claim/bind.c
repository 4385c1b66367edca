/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/claim/bind.h"

#include "agent/api/selector.h"
#include "base/buf.h"

#include <string.h>

static bool has_mode(const struct api_strs *modes, const char *mode)
{
    for (size_t i = 0; i < modes->n; i++)
        if (strcmp(modes->v[i], mode) == 0)
            return true;
    return false;
}

static bool has_modes(const struct claim_wish *w, const struct api_pv *pv)
{
    for (size_t i = 0; i < w->claim->access_modes.n; i++)
        if (!has_mode(&pv->access_modes, w->claim->access_modes.v[i]))
            return false;
    return true;
}

static bool is_same(const char *a, const char *b) /* NULL is "" */
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

/* A uid in claimRef identifies one claim; a later claim of the same name is a different one. */
static bool is_for(const struct claim_wish *w, const struct api_pv *pv)
{
    return pv->has_claim && str_eq(pv->claim_name, w->name) && str_eq(pv->claim_namespace, w->namespace_) &&
           (pv->claim_uid == NULL || str_eq(pv->claim_uid, w->uid));
}

static const struct quantity *size_of(const struct api_pv *pv)
{
    return api_resource_get(&pv->capacity, "storage");
}

static const char *why_not_this_kind(const struct claim_wish *w, const struct api_pv *pv)
{
    const struct quantity *wanted = api_resource_get(&w->claim->requests, "storage"), *size = size_of(pv);

    if (size == NULL || (wanted != NULL && quantity_cmp(size, wanted) < 0))
        return "requested PV is too small";
    if (!str_eq(w->claim->volume_mode, "Block") != !api_pv_is_block(pv))
        return "incompatible volumeMode";
    return has_modes(w, pv) ? NULL : "incompatible accessMode";
}

static const char *why_not_free(const struct claim_wish *w, const struct claim_volume *v)
{
    const struct api_claim *c = w->claim;
    const struct api_pv *pv = v->object->pv;

    if (!is_same(c->storage_class, pv->storage_class))
        return "storageClassName does not match";
    if (!is_same(c->attributes_class, pv->attributes_class))
        return "volumeAttributesClassName does not match";
    if (c->volume_name != NULL)
        return NULL;
    if (c->selector != NULL && !api_label_selector_matches(c->selector, &v->object->meta.labels))
        return "its labels do not match the selector";
    return v->foreign ? "its nodeAffinity excludes this node" : NULL;
}

enum err_code claim_fits(const struct claim_wish *w, const struct claim_volume *v, struct err *e)
{
    const struct api_pv *pv = v->object->pv;
    const bool named = w->claim->volume_name != NULL, ours = is_for(w, pv);
    const char *why = NULL;

    if (v->bound)
        why = "it is bound to another claim";
    else if (v->going)
        why = "it is being deleted";
    else if (named && !str_eq(w->claim->volume_name, v->object->meta.name))
        why = "the claim names another one";
    else if (pv->has_claim && !ours)
        why = "it is for another claim";
    else if (!named || !ours)
        why = why_not_this_kind(w, pv);
    if (why == NULL && !ours)
        why = why_not_free(w, v);
    return why == NULL ? ERR_OK : err_set(e, ERR_PRECONDITION, "%.253s: %s", v->object->meta.name, why);
}

static bool is_better(const struct claim_wish *w, const struct claim_volume *a, const struct claim_volume *b)
{
    const struct api_pv *x = a->object->pv, *y = b->object->pv;
    int order = quantity_cmp(size_of(x), size_of(y));

    if (is_for(w, x) != is_for(w, y))
        return is_for(w, x);
    if (x->access_modes.n != y->access_modes.n)
        return x->access_modes.n < y->access_modes.n;
    return order != 0 ? order < 0 : strcmp(a->object->meta.name, b->object->meta.name) < 0;
}

const struct claim_volume *claim_best(const struct claim_wish *w, const struct claim_volume *v, size_t n)
{
    const struct claim_volume *best = NULL;

    for (size_t i = 0; i < n; i++)
        if (claim_fits(w, &v[i], ERR_IGNORED) == ERR_OK && (best == NULL || is_better(w, &v[i], best)))
            best = &v[i];
    return best;
}

bool claim_may_be_made(const struct claim_wish *w)
{
    return w->claim->volume_name == NULL && w->claim->selector == NULL &&
           !str_eq(w->claim->volume_mode, "Block") &&
           (w->claim->storage_class == NULL || w->claim->storage_class[0] != '\0');
}

bool claim_is_for_one_pod(const struct api_claim *c)
{
    return has_mode(&c->access_modes, "ReadWriteOncePod");
}
