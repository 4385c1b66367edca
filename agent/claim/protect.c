/* SPDX-License-Identifier: Apache-2.0 */
/* protect - claims in use by pods, and PersistentVolumes bound to claims, outlive their manifests, as with
 * the controllers of pvc-protection and pv-protection: their objects are kept and marked as being deleted. */
#include "agent/claim/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <string.h>

const char *claim_deleted_at(const struct api_generic *g)
{
    return api_kvs_get(&g->meta.annotations, CLAIM_DELETED);
}

static bool set_deleted(json_t *object, const char *at)
{
    json_t *meta = json_object_get(object, "metadata"), *own = json_object_get(meta, "annotations");

    if (own == NULL && json_object_set_new(meta, "annotations", own = json_object()) != 0)
        return false;
    return json_object_set_new(own, CLAIM_DELETED, json_string(at)) == 0;
}

/* Puts the object back, marked. */
static json_t *put_back(struct claims *c, enum api_kind kind, const char *text, const char *name)
{
    json_t *object = text != NULL ? json_loads(text, 0, NULL) : NULL;
    char now[CLOCK_RFC3339_SIZE];
    struct err e = { 0 };

    clock_format_s(clock_wall_ns(), now);
    if (object == NULL || !set_deleted(object, now))
        err_nomem(&e);
    else
        ERR_IGNORE(claim_put(c, kind, object, &e));
    if (e.code == ERR_OK) {
        log_info("manifest removed while it is in use: the object is kept until it is not",
                 F_STR("object", name), F_STR("kind", api_kind_name(kind)));
        return object;
    }
    log_error("cannot store an object that is in use", F_STR("object", name), F_ERR(&e));
    json_decref(object);
    return NULL;
}

/* ---- claims ---- */

static void save(struct claims *c, const struct claim *one)
{
    struct err e = { 0 };

    if (claim_record_save(c, one, &e) != ERR_OK)
        log_warn("cannot record a claim", F_STR("claim", one->key), F_ERR(&e));
}

static void protect_claim(struct claims *c, struct claim *one)
{
    const struct api_generic *g = claim_object(c, one);

    if (g != NULL && one->made == NULL && claim_deleted_at(g) == NULL) {
        api_generic_unref(one->last);
        one->last = api_generic_ref((struct api_generic *)g);
    } else if (g != NULL && one->kept && claim_deleted_at(g) == NULL) {
        json_decref(take_ptr(&one->made)); /* the manifest exists again */
        one->kept = one->going = false;
        save(c, one);
    } else if (g == NULL && one->made == NULL && one->last != NULL && claim_is_used(c, one)) {
        one->made = put_back(c, API_KIND_CLAIM, one->last->json, one->key);
        one->kept = one->going = one->made != NULL;
        if (one->kept)
            save(c, one);
    }
}

/* ---- PersistentVolumes ---- */

static const struct claim *bound_to(const struct claims *c, const char *volume)
{
    for (const struct claim *one = c->all; one != NULL; one = one->hh.next)
        if (one->pv != NULL && str_eq(one->volume, volume))
            return one;
    return NULL;
}

struct last_volumes {
    const struct claims *c;
    char name[256]; /* of a volume that is no longer in use; "": none */
};

static void find_last(const struct api_object *o, void *arg)
{
    struct last_volumes *l = arg;

    if (l->name[0] == '\0' && o->generic->origin == API_FROM_FOLDER && claim_deleted_at(o->generic) != NULL &&
        bound_to(l->c, o->generic->meta.name) == NULL)
        snprintf(l->name, sizeof(l->name), "%.253s", o->generic->meta.name);
}

static void drop_volumes(struct claims *c)
{
    struct last_volumes l = { .c = c };

    do {
        l.name[0] = '\0';
        src_store_each(c->store, API_KIND_PERSISTENT_VOLUME, find_last, &l);
        if (l.name[0] != '\0')
            src_store_remove(c->store, API_FROM_FOLDER, API_KIND_PERSISTENT_VOLUME, NULL, l.name);
    } while (l.name[0] != '\0');
}

void claims_protect(struct claims *c)
{
    struct claim *one, *tmp;

    HASH_ITER (hh, c->all, one, tmp) {
        protect_claim(c, one);
        if (one->pv != NULL && src_store_generic(c->store, API_FROM_FOLDER, API_KIND_PERSISTENT_VOLUME, NULL,
                                                 one->volume) == NULL)
            json_decref(put_back(c, API_KIND_PERSISTENT_VOLUME, one->pv->json, one->volume));
    }
    drop_volumes(c);
    claims_tidy_released(c);
}
