/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object_claims - the file that defines each object. The first file keeps the object; another file that
 * defines it is ignored as a whole until the first releases the object. A released object stays in the store
 * until the files that changed at the same time are read: if one of them now defines it (a rename, a document
 * moved to another file), users of the object see no change.
 */
#include "agent/source/internal.h"
#include "base/buf.h"

#include <limits.h>
#include <string.h>

struct object_claim {
    UT_hash_handle hh;
    struct holder *owner; /* NULL: released */
    uint64_t released;    /* seq of the newest read requested at that time */
    uint64_t generation;  /* of the last object_claims_adopt() that named it */
    bool in_store;        /* put there by us: objects of another source are not ours to remove */
    struct api_object object;
    char key[];
};

static void object_claims_key_of(const struct api_object *o, char ret[SRC_KEY_SIZE])
{
    const struct api_meta *meta = api_object_meta(o);

    src_key(ret, o->kind, meta->namespace, meta->name);
}

static struct object_claim *object_claims_find(const struct object_claims *c, const struct api_object *o)
{
    char key[SRC_KEY_SIZE];
    struct object_claim *claim;

    object_claims_key_of(o, key);
    HASH_FIND_STR(c->table, key, claim);
    return claim;
}

static struct object_claim *find_or_add(struct object_claims *c, const struct api_object *o)
{
    struct object_claim *claim = object_claims_find(c, o);
    char key[SRC_KEY_SIZE];

    if (claim != NULL)
        return claim;
    object_claims_key_of(o, key);
    claim = calloc(1, sizeof(*claim) + strlen(key) + 1);
    if (claim == NULL)
        return NULL;
    strcpy(claim->key, key);
    HASH_ADD_STR(c->table, key, claim);
    if (claim->hh.tbl == NULL) {
        free(claim);
        return NULL;
    }
    claim->object = api_object_ref(o);
    c->n_released++; /* it has no owner yet; object_claims_flush() removes claims without an owner */
    return claim;
}

static struct api_problem problem_of(const struct holder *h, const struct api_object *o, const char *field)
{
    return (
        struct api_problem){ .file = h->name, .document = o->document, .place = o->place, .field = field };
}

/* `by`: the other file; NULL: the same file, which also defines the object in `line`. */
static void report_taken(struct holder *h, const struct api_object *o, const char *by, unsigned line)
{
    const struct api_problem at = problem_of(h, o, "metadata.name");
    const struct api_meta *meta = api_object_meta(o);
    char where[NAME_MAX + 64];

    if (by != NULL)
        snprintf(where, sizeof(where), "%s; the first one is used", by);
    else
        snprintf(where, sizeof(where), "line %u of this file", line);
    api_problems_add_at(&h->problems, &at, "%s %s%s%s is already defined in %s", api_kind_name(o->kind),
                        meta->namespace != NULL ? meta->namespace : "", meta->namespace != NULL ? "/" : "",
                        meta->name, where);
}

/* As with an apiserver, an immutable ConfigMap or Secret does not change while its file defines it, except
 * its labels and annotations. False, with a problem, if the new object differs. */
static bool keeps_immutable(const struct object_claims *c, struct holder *h, const struct api_object *o)
{
    const struct api_config *old;
    struct api_problem at;
    const char *field;

    if (o->kind != API_KIND_CONFIG_MAP && o->kind != API_KIND_SECRET)
        return true;
    old = src_store_config(c->store, API_FROM_FOLDER, o->config->kind, o->config->meta.namespace,
                           o->config->meta.name);
    if (old == NULL || !old->immutable)
        return true;
    field = !o->config->immutable                 ? "immutable"
            : !config_data_equal(old, o->config)  ? "data"
            : !str_eq(old->type, o->config->type) ? "type"
                                                  : NULL;
    if (field == NULL)
        return true;
    at = problem_of(h, o, field);
    api_problems_add_at(
        &h->problems, &at,
        "%s %s/%s is immutable and stays as it was; to change it, remove it first or give the new "
        "one another name",
        api_kind_name(o->kind), old->meta.namespace, old->meta.name);
    return false;
}

/* Marks all of *objects with this generation; false, with h->problems, if one has another owner. */
static bool all_free(struct object_claims *c, struct holder *h, const struct api_objects *objects,
                     bool take_over)
{
    const struct api_object *held = NULL;
    size_t n_held = 0;
    bool ok = true;

    for (size_t i = 0; i < objects->n; i++) {
        const struct api_object *o = &objects->v[i];
        struct object_claim *claim = find_or_add(c, o);

        if (claim == NULL) {
            api_problems_add(&h->problems, h->name, "out of memory");
            return false;
        }
        if (claim->generation == c->generation) {
            report_taken(h, o, NULL, claim->object.place.line);
            ok = false;
            continue;
        }
        if (claim->owner != NULL && claim->owner != h && !(take_over && claim->owner->leaving)) {
            report_taken(h, o, claim->owner->name, 0);
            ok = false;
            continue;
        }
        if (claim->owner == h && !keeps_immutable(c, h, o))
            ok = false;
        else if (n_held++ == 0)
            held = o;
        claim->generation = c->generation;
        api_object_unref(&claim->object);
        claim->object = api_object_ref(o); /* only key and document are needed; the store gets its own */
    }
    if (!ok)
        api_problems_hold_back(&h->problems, held, n_held);
    return ok;
}

static void src_claims_release(struct object_claims *c, struct object_claim *claim, uint64_t seq)
{
    claim->owner = NULL;
    claim->released = seq;
    c->n_released++;
    c->releases++;
}

/* ConfigMaps and Secrets come first, so that a pod does not wait for them. */
static enum err_code put_all(struct object_claims *c, struct holder *h, const struct api_objects *objects,
                             struct err *e)
{
    for (int pods = 0; pods < 2; pods++)
        for (size_t i = 0; i < objects->n; i++) {
            const struct api_object *o = &objects->v[i];
            struct object_claim *claim = object_claims_find(c, o);

            if ((o->kind == API_KIND_POD) != (pods == 1))
                continue;
            if (claim->owner == NULL)
                c->n_released--;
            claim->owner = h;
            claim->in_store = true;
            if (src_store_put(c->store, o, e) != ERR_OK)
                return e->code;
        }
    return ERR_OK;
}

/* Releases the objects of `from` that `h` owns, except objects that are also in `but`. */
static void release_all(struct object_claims *c, struct holder *h, const struct api_objects *from,
                        const struct api_objects *but, uint64_t seq)
{
    c->generation++;
    for (size_t i = 0; i < but->n; i++) {
        struct object_claim *claim = object_claims_find(c, &but->v[i]);

        if (claim != NULL)
            claim->generation = c->generation;
    }
    for (size_t i = 0; i < from->n; i++) {
        struct object_claim *claim = object_claims_find(c, &from->v[i]);

        if (claim != NULL && claim->owner == h && claim->generation != c->generation)
            src_claims_release(c, claim, seq);
    }
}

bool object_claims_adopt(struct object_claims *c, struct holder *h, struct api_objects *objects,
                         bool take_over, uint64_t seq)
{
    struct api_objects next = *objects;
    struct err e = { 0 };

    *objects = (struct api_objects){ 0 };
    c->generation++;
    api_problems_done(&h->problems);
    h->blocked = !all_free(c, h, &next, take_over);
    if (!h->blocked && put_all(c, h, &next, &e) != ERR_OK) {
        api_problems_add(&h->problems, h->name, "%s", e.text);
        h->blocked = true;
        release_all(c, h, &next, &h->in_force, seq);
    }
    if (h->blocked) {
        api_objects_done(&h->waiting);
        h->waiting = next;
        return false;
    }

    release_all(c, h, &h->in_force, &next, seq);
    api_objects_done(&h->in_force);
    api_objects_done(&h->waiting);
    h->in_force = next;
    h->waiting = (struct api_objects){ 0 };
    return true;
}

void object_claims_release(struct object_claims *c, struct holder *h, uint64_t seq)
{
    const struct api_objects none = { 0 };

    release_all(c, h, &h->in_force, &none, seq);
    api_objects_done(&h->in_force);
    api_objects_done(&h->waiting);
    h->in_force = h->waiting = (struct api_objects){ 0 };
    h->blocked = false;
}

void object_claims_flush(struct object_claims *c, uint64_t before)
{
    struct object_claim *claim, *tmp;

    if (c->n_released == 0)
        return;
    HASH_ITER (hh, c->table, claim, tmp) {
        const struct api_meta *meta = api_object_meta(&claim->object);

        if (claim->owner != NULL || claim->released >= before)
            continue;
        HASH_DEL(c->table, claim);
        c->n_released--;
        if (claim->in_store)
            src_store_remove(c->store, API_FROM_FOLDER, claim->object.kind, meta->namespace, meta->name);
        api_object_unref(&claim->object);
        free(claim);
    }
}

const char *object_claims_owner(const struct object_claims *c, enum api_kind kind, const char *namespace_,
                                const char *name)
{
    char key[SRC_KEY_SIZE];
    const struct object_claim *claim;

    src_key(key, kind, namespace_, name);
    HASH_FIND_STR(c->table, key, claim);
    return claim != NULL && claim->owner != NULL ? claim->owner->name : NULL;
}

void object_claims_done(struct object_claims *c)
{
    struct object_claim *claim, *tmp;

    HASH_ITER (hh, c->table, claim, tmp) {
        HASH_DEL(c->table, claim);
        api_object_unref(&claim->object);
        free(claim);
    }
}
