/* SPDX-License-Identifier: Apache-2.0 */
/* binding - binds a claim to the best PersistentVolume of the manifest folder (bind.h), or creates a folder
 * for it. */
#include "agent/claim/internal.h"
#include "agent/pod/core/node_labels.h"
#include "base/array.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

struct volumes {
    const struct claims *c;
    const struct claim *of; /* the claim to be bound */
    struct claim_volume *v;
    size_t n;
};

static bool is_taken(const struct claims *c, const struct claim *by, const char *volume)
{
    for (const struct claim *one = c->all; one != NULL; one = one->hh.next)
        if (one != by && str_eq(one->volume, volume))
            return true;
    return false;
}

bool claim_is_of_node(const struct node *n, const struct api_pv *pv)
{
    struct api_kvs labels = { 0 };
    mem_auto struct api_kv *v = labels.v = node_labels(n, &labels.n);

    return v != NULL && api_pv_fits_node(pv, n->o.node_name, &labels);
}

static void add_volume(const struct api_object *o, void *arg)
{
    struct volumes *all = arg;
    const struct api_generic *g = o->generic;
    struct claim_volume *v;

    if (g->origin != API_FROM_FOLDER || g->pv == NULL || !array_room(all->v, all->n))
        return;
    v = &all->v[all->n++];
    *v = (struct claim_volume){
        .object = g,
        .bound = is_taken(all->c, all->of, g->meta.name) || claims_released(all->c, g->meta.name) != NULL,
        .going = claim_deleted_at(g) != NULL,
        .foreign = !claim_is_of_node(all->c->o.node, g->pv),
    };
}

/* Records the new binding of the claim; after a failure the claim is unbound again. */
static enum err_code keep_binding(struct claims *c, struct claim *one, struct err *e)
{
    if (one->volume != NULL && one->size != NULL && claim_record_save(c, one, e) == ERR_OK) {
        one->problem[0] = '\0';
        return ERR_OK;
    }
    free(take_ptr(&one->volume));
    free(take_ptr(&one->size));
    api_generic_unref(take_ptr(&one->pv));
    return e->code != ERR_OK ? e->code : err_nomem(e);
}

static enum err_code bind_to(struct claims *c, struct claim *one, const struct claim_volume *v, struct err *e)
{
    char size[QUANTITY_TEXT_SIZE];

    quantity_format(api_resource_get(&v->object->pv->capacity, "storage"), size);
    one->volume = strdup(v->object->meta.name);
    one->size = strdup(size);
    one->pv = api_generic_ref((struct api_generic *)v->object);
    if (keep_binding(c, one, e) != ERR_OK)
        return e->code;
    log_info("claim bound to a PersistentVolume", F_STR("claim", one->key), F_STR("volume", one->volume));
    return ERR_OK;
}

/* Binds the claim to a folder of the agent. */
static enum err_code bind_to_folder(struct claims *c, struct claim *one, const struct claim_wish *w,
                                    struct err *e)
{
    const struct quantity *size = api_resource_get(&w->claim->requests, "storage");
    char text[QUANTITY_TEXT_SIZE] = "0";

    if (size != NULL)
        quantity_format(size, text);
    one->volume = str_printf("pvc-%s", one->uid);
    one->size = strdup(text);
    if (keep_binding(c, one, e) != ERR_OK)
        return e->code;
    log_info("claim gets a folder of this node", F_STR("claim", one->key), F_STR("folder", one->own_path));
    return ERR_OK;
}

static enum err_code no_volume(const struct claim_wish *w, const struct volumes *all, struct err *e)
{
    const char *named = w->claim->volume_name;

    for (size_t i = 0; named != NULL && i < all->n; i++)
        if (str_eq(named, all->v[i].object->meta.name))
            return claim_fits(w, &all->v[i], e);
    if (claim_may_be_made(w))
        return err_set(e, ERR_PRECONDITION, "waiting for first consumer to be created before binding");
    if (named != NULL)
        return err_set(e, ERR_PRECONDITION, "there is no PersistentVolume \"%.253s\"", named);
    return err_set(e, ERR_PRECONDITION,
                   "no persistent volumes available for this claim, and its %s allows no other",
                   w->claim->selector != NULL               ? "selector"
                   : str_eq(w->claim->volume_mode, "Block") ? "volumeMode"
                                                            : "storageClassName");
}

enum err_code claim_bind(struct claims *c, struct claim *one, const struct api_generic *g, bool make,
                         struct err *e)
{
    const struct claim_wish w = {
        .namespace_ = g->meta.namespace, .name = g->meta.name, .uid = one->uid, .claim = g->claim
    };
    struct volumes all = { .c = c, .of = one };
    const struct claim_volume *best;

    src_store_each(c->store, API_KIND_PERSISTENT_VOLUME, add_volume, &all);
    best = claim_best(&w, all.v, all.n);
    if (best != NULL)
        ERR_IGNORE(bind_to(c, one, best, e));
    else if (make && claim_may_be_made(&w))
        ERR_IGNORE(bind_to_folder(c, one, &w, e));
    else
        ERR_IGNORE(no_volume(&w, &all, e));
    free(all.v);
    snprintf(one->problem, sizeof(one->problem), "%.299s", e->text);
    return e->code;
}
