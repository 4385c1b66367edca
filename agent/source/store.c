/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/store.h"

#include "agent/source/internal.h"
#include "base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct entry {
    UT_hash_handle hh;
    bool lacking;             /* the object is not in the apiserver, or the apiserver refused to answer */
    char *refused;            /* the text of the refusal; NULL: it has no such object */
    struct api_object object; /* one reference; none if `lacking` */
    char key[];
};

struct src_store {
    struct entry *entries; /* by "0Kind/namespace/name", the origin first */
    struct {
        src_watch_fn fn;
        void *arg;
    } watchers[SRC_WATCHERS_MAX];
    size_t n_watchers;
    bool ready[2], expect_server;
};

void src_key(char ret[SRC_KEY_SIZE], enum api_kind kind, const char *namespace_, const char *name)
{
    snprintf(ret, SRC_KEY_SIZE, "%s/%s/%s", api_kind_name(kind), namespace_ != NULL ? namespace_ : "", name);
}

/* ---- equality: differences visible to readers of the object ---- */

static bool kvs_equal(const struct api_kvs *a, const struct api_kvs *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!str_eq(a->v[i].key, b->v[i].key) || !str_eq(a->v[i].value, b->v[i].value))
            return false;
    return true;
}

static bool meta_equal(const struct api_meta *a, const struct api_meta *b)
{
    return str_eq(a->name, b->name) && str_eq(a->namespace, b->namespace) && str_eq(a->uid, b->uid) &&
           kvs_equal(&a->labels, &b->labels) && kvs_equal(&a->annotations, &b->annotations) &&
           a->generation == b->generation && str_eq(a->kept, b->kept);
}

bool config_data_equal(const struct api_config *a, const struct api_config *b)
{
    if (a->n_data != b->n_data)
        return false;
    for (size_t i = 0; i < a->n_data; i++) {
        const struct api_datum *x = &a->data[i], *y = &b->data[i];

        if (x->size != y->size || x->binary != y->binary || !str_eq(x->key, y->key) ||
            (x->size > 0 && memcmp(x->data, y->data, x->size) != 0))
            return false;
    }
    return true;
}

static bool config_equal(const struct api_config *a, const struct api_config *b)
{
    return a->immutable == b->immutable && str_eq(a->type, b->type) && meta_equal(&a->meta, &b->meta) &&
           config_data_equal(a, b);
}

static bool priority_class_equal(const struct api_priority_class *a, const struct api_priority_class *b)
{
    return a->value == b->value && a->global_default == b->global_default &&
           str_eq(a->preemption_policy, b->preemption_policy) && str_eq(a->description, b->description) &&
           meta_equal(&a->meta, &b->meta);
}

static bool runtime_class_equal(const struct api_runtime_class *a, const struct api_runtime_class *b)
{
    if (a->overhead.n != b->overhead.n)
        return false;
    for (size_t i = 0; i < a->overhead.n; i++)
        if (!str_eq(a->overhead.v[i].name, b->overhead.v[i].name) ||
            quantity_cmp(&a->overhead.v[i].amount, &b->overhead.v[i].amount) != 0)
            return false;
    return str_eq(a->handler, b->handler) && meta_equal(&a->meta, &b->meta);
}

static bool pod_equal(const struct api_pod *a, const struct api_pod *b)
{
    return str_eq(a->json, b->json) && str_eq(a->meta.kept, b->meta.kept) &&
           a->served.deleting == b->served.deleting &&
           a->served.deletion_grace_seconds == b->served.deletion_grace_seconds &&
           str_eq(a->served.conditions, b->served.conditions) && str_eq(a->served.problem, b->served.problem);
}

static bool generic_equal(const struct api_generic *a, const struct api_generic *b)
{
    return str_eq(a->json, b->json) && str_eq(a->meta.kept, b->meta.kept) &&
           (a->workload == NULL || str_eq(a->workload->pods.hash, b->workload->pods.hash));
}

bool src_object_equal(const struct api_object *a, const struct api_object *b)
{
    if (a->kind != b->kind)
        return false;
    if (api_kind_is_generic(a->kind))
        return a->generic == b->generic || generic_equal(a->generic, b->generic);
    switch (a->kind) {
    case API_KIND_POD:
        return a->pod == b->pod || pod_equal(a->pod, b->pod);
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        return a->config == b->config || config_equal(a->config, b->config);
    case API_KIND_PRIORITY_CLASS:
        return a->priority_class == b->priority_class ||
               priority_class_equal(a->priority_class, b->priority_class);
    case API_KIND_RUNTIME_CLASS:
        return a->runtime_class == b->runtime_class ||
               runtime_class_equal(a->runtime_class, b->runtime_class);
    default:
        break;
    }
    return false;
}

/* ---- the store ---- */

struct src_store *src_store_new(void)
{
    return calloc(1, sizeof(struct src_store));
}

static void entry_free(struct src_store *s, struct entry *entry)
{
    HASH_DEL(s->entries, entry);
    if (!entry->lacking)
        api_object_unref(&entry->object);
    free(entry->refused);
    free(entry);
}

void src_store_free(struct src_store *s)
{
    struct entry *entry, *tmp;

    if (s == NULL)
        return;
    HASH_ITER (hh, s->entries, entry, tmp)
        entry_free(s, entry);
    free(s);
}

void src_store_watch(struct src_store *s, src_watch_fn fn, void *arg)
{
    assert(s->n_watchers < SRC_WATCHERS_MAX);
    s->watchers[s->n_watchers].fn = fn;
    s->watchers[s->n_watchers].arg = arg;
    s->n_watchers++;
}

static void store_tell(struct src_store *s, enum src_change change, const struct api_object *object)
{
    for (size_t i = 0; i < s->n_watchers; i++)
        s->watchers[i].fn(change, object, s->watchers[i].arg);
}

static void store_key(char ret[SRC_KEY_SIZE + 1], enum api_origin origin, enum api_kind kind,
                      const char *namespace_, const char *name)
{
    ret[0] = (char)('0' + (int)origin);
    src_key(ret + 1, kind, namespace_, name);
}

static struct entry *store_find(const struct src_store *s, enum api_origin origin, enum api_kind kind,
                                const char *namespace_, const char *name)
{
    char key[SRC_KEY_SIZE + 1];
    struct entry *entry;

    store_key(key, origin, kind, namespace_, name);
    HASH_FIND_STR(s->entries, key, entry);
    return entry;
}

/* The entry's object is not set. NULL: out of memory. */
static struct entry *store_add(struct src_store *s, enum api_origin origin, enum api_kind kind,
                               const char *namespace_, const char *name)
{
    char key[SRC_KEY_SIZE + 1];
    struct entry *entry;

    store_key(key, origin, kind, namespace_, name);
    entry = calloc(1, sizeof(*entry) + strlen(key) + 1);
    if (entry == NULL)
        return NULL;
    strcpy(entry->key, key);
    HASH_ADD_STR(s->entries, key, entry);
    if (entry->hh.tbl != NULL)
        return entry;
    free(entry);
    return NULL;
}

enum err_code src_store_put(struct src_store *s, const struct api_object *object, struct err *e)
{
    const struct api_meta *meta = api_object_meta(object);
    enum api_origin origin = api_object_origin(object);
    struct entry *entry = store_find(s, origin, object->kind, meta->namespace, meta->name);

    if (entry != NULL && !entry->lacking) {
        struct api_object old = entry->object;

        if (src_object_equal(&old, object))
            return ERR_OK;
        entry->object = api_object_ref(object);
        store_tell(s, SRC_UPDATED, object);
        api_object_unref(&old);
        return ERR_OK;
    }
    if (entry == NULL)
        entry = store_add(s, origin, object->kind, meta->namespace, meta->name);
    if (entry == NULL)
        return err_nomem(e);
    free(take_ptr(&entry->refused));
    entry->lacking = false;
    entry->object = api_object_ref(object);
    store_tell(s, SRC_ADDED, object);
    return ERR_OK;
}

void src_store_remove(struct src_store *s, enum api_origin origin, enum api_kind kind, const char *namespace_,
                      const char *name)
{
    struct entry *entry = store_find(s, origin, kind, namespace_, name);
    struct api_object old;

    if (entry == NULL || entry->lacking)
        return;
    old = api_object_ref(&entry->object);
    entry_free(s, entry);
    store_tell(s, SRC_REMOVED, &old);
    api_object_unref(&old);
}

static enum api_kind kind_of_config(enum api_config_kind kind)
{
    return kind == API_SECRET ? API_KIND_SECRET : API_KIND_CONFIG_MAP;
}

void src_store_lacks(struct src_store *s, enum api_config_kind kind, const char *namespace_, const char *name,
                     const char *refused)
{
    struct entry *entry = store_find(s, API_FROM_SERVER, kind_of_config(kind), namespace_, name);

    if (entry != NULL && !entry->lacking) {
        if (refused != NULL)
            return;
        src_store_remove(s, API_FROM_SERVER, kind_of_config(kind), namespace_, name);
        entry = NULL;
    }
    if (entry == NULL)
        entry = store_add(s, API_FROM_SERVER, kind_of_config(kind), namespace_, name);
    if (entry == NULL)
        return; /* the object stays unknown */
    entry->lacking = true;
    free(take_ptr(&entry->refused));
    if (refused != NULL && (entry->refused = strdup(refused)) == NULL)
        entry_free(s, entry);
}

void src_store_forget(struct src_store *s, enum api_config_kind kind, const char *namespace_,
                      const char *name)
{
    struct entry *entry = store_find(s, API_FROM_SERVER, kind_of_config(kind), namespace_, name);

    if (entry != NULL)
        entry_free(s, entry);
}

struct api_pod *src_store_pod(const struct src_store *s, enum api_origin origin, const char *namespace_,
                              const char *name)
{
    struct entry *entry = store_find(s, origin, API_KIND_POD, namespace_, name);

    return entry != NULL ? entry->object.pod : NULL;
}

struct api_config *src_store_config(const struct src_store *s, enum api_origin origin,
                                    enum api_config_kind kind, const char *namespace_, const char *name)
{
    struct entry *entry = store_find(s, origin, kind_of_config(kind), namespace_, name);

    return entry != NULL && !entry->lacking ? entry->object.config : NULL;
}

struct presence src_store_look_config(const struct src_store *s, enum api_origin origin,
                                      enum api_config_kind kind, const char *namespace_, const char *name,
                                      struct err *e)
{
    const struct entry *entry = store_find(s, origin, kind_of_config(kind), namespace_, name);

    if (entry != NULL && !entry->lacking)
        return presence_present();
    if (origin == API_FROM_FOLDER || (entry != NULL && entry->refused == NULL))
        return presence_absent();
    err_set(e, ERR_UNAVAILABLE, "%s \"%s\" is not known yet: %s", kind == API_SECRET ? "secret" : "configmap",
            name, entry != NULL ? entry->refused : "the apiserver has not answered");
    return presence_unknown(e);
}

struct api_priority_class *src_store_priority_class(const struct src_store *s, const char *name)
{
    struct entry *entry = store_find(s, API_FROM_FOLDER, API_KIND_PRIORITY_CLASS, NULL, name);

    return entry != NULL ? entry->object.priority_class : NULL;
}

struct api_priority_class *src_store_default_priority(const struct src_store *s)
{
    struct api_priority_class *best = NULL;
    struct entry *entry, *tmp;

    HASH_ITER (hh, s->entries, entry, tmp) {
        struct api_priority_class *class = entry->object.priority_class;

        if (!entry->lacking && entry->object.kind == API_KIND_PRIORITY_CLASS &&
            class->origin == API_FROM_FOLDER && class->global_default &&
            (best == NULL || class->value < best->value))
            best = class;
    }
    return best;
}

struct api_runtime_class *src_store_runtime_class(const struct src_store *s, enum api_origin origin,
                                                  const char *name)
{
    struct entry *entry = store_find(s, origin, API_KIND_RUNTIME_CLASS, NULL, name);

    return entry != NULL ? entry->object.runtime_class : NULL;
}

struct api_generic *src_store_generic(const struct src_store *s, enum api_origin origin, enum api_kind kind,
                                      const char *namespace_, const char *name)
{
    struct entry *entry = store_find(s, origin, kind, namespace_, name);

    return entry != NULL && !entry->lacking ? entry->object.generic : NULL;
}

void src_store_each(const struct src_store *s, enum api_kind kind,
                    void (*fn)(const struct api_object *o, void *arg), void *arg)
{
    struct entry *entry, *tmp;

    HASH_ITER (hh, s->entries, entry, tmp) {
        if (!entry->lacking && entry->object.kind == kind)
            fn(&entry->object, arg);
    }
}

bool src_store_ready(const struct src_store *s)
{
    return s->ready[API_FROM_FOLDER] && (!s->expect_server || s->ready[API_FROM_SERVER]);
}

void src_store_expect_server(struct src_store *s)
{
    s->expect_server = true;
}

void src_store_set_ready(struct src_store *s, enum api_origin origin)
{
    s->ready[origin] = true;
}
