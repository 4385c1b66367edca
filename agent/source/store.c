/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/store.h"

#include "agent/source/internal.h"
#include "base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct entry {
    UT_hash_handle hh;
    struct api_object object; /* one reference */
    char key[];
};

struct src_store {
    struct entry *entries; /* by "Kind/namespace/name" */
    struct {
        src_watch_fn fn;
        void *arg;
    } watchers[SRC_WATCHERS_MAX];
    size_t n_watchers;
    bool ready;
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
           a->generation == b->generation;
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

static bool object_equal(const struct api_object *a, const struct api_object *b)
{
    switch (a->kind) {
    case API_KIND_POD:
        return a->pod == b->pod || str_eq(a->pod->json, b->pod->json);
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        return a->config == b->config || config_equal(a->config, b->config);
    case API_KIND_PRIORITY_CLASS:
        return a->priority_class == b->priority_class ||
               priority_class_equal(a->priority_class, b->priority_class);
    }
    return false;
}

/* ---- the store ---- */

struct src_store *src_store_new(void)
{
    return calloc(1, sizeof(struct src_store));
}

void src_store_free(struct src_store *s)
{
    struct entry *entry, *tmp;

    if (s == NULL)
        return;
    HASH_ITER (hh, s->entries, entry, tmp) {
        HASH_DEL(s->entries, entry);
        api_object_unref(&entry->object);
        free(entry);
    }
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

static struct entry *store_find(const struct src_store *s, enum api_kind kind, const char *namespace_,
                                const char *name)
{
    char key[SRC_KEY_SIZE];
    struct entry *entry;

    src_key(key, kind, namespace_, name);
    HASH_FIND_STR(s->entries, key, entry);
    return entry;
}

enum err_code src_store_put(struct src_store *s, const struct api_object *object, struct err *e)
{
    const struct api_meta *meta = api_object_meta(object);
    struct entry *entry = store_find(s, object->kind, meta->namespace, meta->name);
    char key[SRC_KEY_SIZE];

    if (entry != NULL) {
        struct api_object old = entry->object;

        if (object_equal(&old, object))
            return ERR_OK;
        entry->object = api_object_ref(object);
        store_tell(s, SRC_UPDATED, object);
        api_object_unref(&old);
        return ERR_OK;
    }

    src_key(key, object->kind, meta->namespace, meta->name);
    entry = calloc(1, sizeof(*entry) + strlen(key) + 1);
    if (entry == NULL)
        return err_nomem(e);
    strcpy(entry->key, key);
    HASH_ADD_STR(s->entries, key, entry);
    if (entry->hh.tbl == NULL) {
        free(entry);
        return err_nomem(e);
    }
    entry->object = api_object_ref(object);
    store_tell(s, SRC_ADDED, object);
    return ERR_OK;
}

void src_store_remove(struct src_store *s, enum api_kind kind, const char *namespace_, const char *name)
{
    struct entry *entry = store_find(s, kind, namespace_, name);

    if (entry == NULL)
        return;
    HASH_DEL(s->entries, entry);
    store_tell(s, SRC_REMOVED, &entry->object);
    api_object_unref(&entry->object);
    free(entry);
}

struct api_pod *src_store_pod(const struct src_store *s, const char *namespace_, const char *name)
{
    struct entry *entry = store_find(s, API_KIND_POD, namespace_, name);

    return entry != NULL ? entry->object.pod : NULL;
}

struct api_config *src_store_config(const struct src_store *s, enum api_config_kind kind,
                                    const char *namespace_, const char *name)
{
    struct entry *entry =
        store_find(s, kind == API_SECRET ? API_KIND_SECRET : API_KIND_CONFIG_MAP, namespace_, name);

    return entry != NULL ? entry->object.config : NULL;
}

struct api_priority_class *src_store_priority_class(const struct src_store *s, const char *name)
{
    struct entry *entry = store_find(s, API_KIND_PRIORITY_CLASS, NULL, name);

    return entry != NULL ? entry->object.priority_class : NULL;
}

struct api_priority_class *src_store_default_priority(const struct src_store *s)
{
    struct api_priority_class *best = NULL;
    struct entry *entry, *tmp;

    HASH_ITER (hh, s->entries, entry, tmp) {
        if (entry->object.kind == API_KIND_PRIORITY_CLASS && entry->object.priority_class->global_default &&
            (best == NULL || entry->object.priority_class->value < best->value))
            best = entry->object.priority_class;
    }
    return best;
}

void src_store_each(const struct src_store *s, enum api_kind kind,
                    void (*fn)(const struct api_object *o, void *arg), void *arg)
{
    struct entry *entry, *tmp;

    HASH_ITER (hh, s->entries, entry, tmp) {
        if (entry->object.kind == kind)
            fn(&entry->object, arg);
    }
}

bool src_store_ready(const struct src_store *s)
{
    return s->ready;
}

void src_store_set_ready(struct src_store *s)
{
    s->ready = true;
}
