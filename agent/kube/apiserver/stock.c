/* SPDX-License-Identifier: Apache-2.0 */
/* stock - the copy of the node's objects, and the last changes of them. */
#include "agent/kube/apiserver/internal.h"

#include "agent/api/manifest/decode.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = 512 };

const struct api_kind_row *stock_row(const struct api_kind_row *kind)
{
    return kind->stored != NULL ? kind->stored : kind;
}

static void stock_key(char ret[KEY_SIZE], const struct api_kind_row *kind, const char *namespace_,
                      const char *name)
{
    snprintf(ret, KEY_SIZE, "%s/%s/%s/%s", kind->group, kind->kind, kind->namespaced ? namespace_ : "", name);
}

void stock_init(struct stock *s)
{
    *s = (struct stock){ 0 };
}

/* The last reference to a Secret is wiped. */
static void drop(const struct api_kind_row *kind, json_t *object)
{
    if (object != NULL && kind->id == API_KIND_SECRET && object->refcount == 1)
        api_json_wipe(object);
    json_decref(object);
}

static void change_done(struct stock_change *change)
{
    drop(change->kind, change->object);
    drop(change->kind, change->old);
    *change = (struct stock_change){ 0 };
}

/* ---- namespaces that are in use ---- */

static bool is_counted(const struct stock_object *o)
{
    return o->namespace_[0] != '\0' && o->kind->id != API_KIND_EVENT;
}

static bool namespace_add(struct stock *s, const char *name)
{
    struct stock_namespace *n;

    HASH_FIND_STR(s->namespaces, name, n);
    if (n == NULL) {
        n = calloc(1, sizeof(*n) + strlen(name) + 1);
        if (n == NULL)
            return false;
        strcpy(n->name, name);
        HASH_ADD_STR(s->namespaces, name, n);
        if (n->hh.tbl == NULL) {
            free(n);
            return false;
        }
    }
    n->n_objects++;
    return true;
}

static void namespace_drop(struct stock *s, const char *name)
{
    struct stock_namespace *n;

    HASH_FIND_STR(s->namespaces, name, n);
    if (n == NULL || --n->n_objects > 0)
        return;
    HASH_DEL(s->namespaces, n);
    free(n);
}

bool stock_uses(const struct stock *s, const char *namespace_)
{
    struct stock_namespace *n;

    HASH_FIND_STR(s->namespaces, namespace_, n);
    return n != NULL;
}

/* ---- objects ---- */

static void object_free(struct stock *s, struct stock_object *o)
{
    HASH_DEL(s->objects, o);
    if (is_counted(o))
        namespace_drop(s, o->namespace_);
    drop(o->kind, o->object);
    free(o->namespace_);
    free(o->name);
    free(o);
}

void stock_done(struct stock *s)
{
    struct stock_object *o, *tmp;

    HASH_ITER (hh, s->objects, o, tmp)
        object_free(s, o);
    for (size_t i = 0; i < API_CHANGES_MAX; i++)
        change_done(&s->changes[i]);
}

struct stock_object *stock_find(const struct stock *s, const struct api_kind_row *kind,
                                const char *namespace_, const char *name)
{
    struct stock_object *o;
    char key[KEY_SIZE];

    stock_key(key, stock_row(kind), namespace_, name);
    HASH_FIND_STR(s->objects, key, o);
    return o;
}

/* ---- changes ---- */

static void forget_first(struct stock *s)
{
    struct stock_change *first = &s->changes[s->first];

    s->forgotten = first->version;
    s->bytes -= first->bytes;
    change_done(first);
    s->first = (s->first + 1) % API_CHANGES_MAX;
    s->n_changes--;
    s->n_forgotten++;
}

/* Steals `old`. */
static const struct stock_change *stock_note(struct stock *s, const struct api_kind_row *kind,
                                             uint64_t version, json_t *object, json_t *old, size_t bytes)
{
    struct stock_change *change;

    while (s->n_changes == API_CHANGES_MAX || (s->n_changes > 0 && s->bytes + bytes > API_CHANGES_BYTES))
        forget_first(s);
    change = &s->changes[(s->first + s->n_changes) % API_CHANGES_MAX];
    *change = (struct stock_change){
        .version = version, .kind = kind, .object = json_incref(object), .old = old, .bytes = bytes
    };
    s->n_changes++;
    s->bytes += bytes;
    return change;
}

/* Of the memory of a value, about: jansson has a block for each value, and one for each member. */
static size_t weight_of(const json_t *v)
{
    enum { VALUE = 48, MEMBER = 80 };
    size_t n = VALUE, i;
    const char *key;
    json_t *child;

    if (json_is_string(v))
        n += json_string_length(v);
    json_object_foreach ((json_t *)(uintptr_t)v, key, child)
        n += MEMBER + strlen(key) + weight_of(child);
    json_array_foreach (v, i, child)
        n += sizeof(void *) + weight_of(child);
    return n;
}

static uint64_t version_of(const json_t *object)
{
    const char *text = json_str(json_object_get(object, "metadata"), "resourceVersion");

    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static struct stock_object *object_new(struct stock *s, const struct api_kind_row *kind,
                                       const char *namespace_, const char *name, const char *key)
{
    struct stock_object *o = calloc(1, sizeof(*o) + strlen(key) + 1);

    if (o == NULL)
        return NULL;
    strcpy(o->key, key);
    o->kind = kind;
    o->namespace_ = strdup(kind->namespaced ? namespace_ : "");
    o->name = strdup(name);
    if (o->namespace_ != NULL && o->name != NULL)
        HASH_ADD_STR(s->objects, key, o);
    if (o->hh.tbl == NULL)
        goto no_memory;
    if (is_counted(o) && !namespace_add(s, o->namespace_)) {
        HASH_DEL(s->objects, o);
        goto no_memory;
    }
    return o;
no_memory:
    free(o->namespace_);
    free(o->name);
    free(o);
    return NULL;
}

bool stock_put(struct stock *s, json_t *object, unsigned set, const struct stock_change **ret)
{
    const json_t *meta = json_object_get(object, "metadata");
    const char *api_version = json_str(object, "apiVersion"), *kind = json_str(object, "kind");
    const char *namespace_ = json_str(meta, "namespace"), *name = json_str(meta, "name");
    const struct api_kind_row *row =
        api_version != NULL && kind != NULL ? api_kind_of_object(api_version, kind) : NULL;
    uint64_t version = version_of(object);
    struct stock_object *o;
    char key[KEY_SIZE];
    json_t *old = NULL;
    size_t bytes;

    *ret = NULL;
    if (row == NULL || name == NULL || (row->namespaced && namespace_ == NULL))
        return false;
    row = stock_row(row);
    stock_key(key, row, namespace_ != NULL ? namespace_ : "", name);
    HASH_FIND_STR(s->objects, key, o);
    if (o == NULL) {
        o = object_new(s, row, namespace_ != NULL ? namespace_ : "", name, key);
        if (o == NULL)
            return false;
    }
    o->set = set;
    if (o->object != NULL && (version < o->version || json_equal(o->object, object)))
        return true;
    old = o->object;
    o->object = json_incref(object);
    o->version = version;
    if (version > s->version)
        s->version = version;
    bytes = weight_of(object);
    *ret = stock_note(s, row, version, object, old, bytes + o->bytes);
    o->bytes = bytes;
    return true;
}

void stock_remove(struct stock *s, struct stock_object *o, uint64_t version, json_t *last)
{
    const struct api_kind_row *kind = o->kind;
    json_t *old = json_incref(last != NULL ? last : o->object);
    const size_t bytes = last != NULL ? weight_of(last) : o->bytes;

    if (version > s->version)
        s->version = version;
    object_free(s, o);
    stock_note(s, kind, s->version, NULL, old, bytes);
}

uint64_t stock_next(const struct stock *s)
{
    return s->n_forgotten + s->n_changes;
}

const struct stock_change *stock_change_at(const struct stock *s, uint64_t number)
{
    if (number < s->n_forgotten || number >= stock_next(s))
        return NULL;
    return &s->changes[(s->first + (number - s->n_forgotten)) % API_CHANGES_MAX];
}

bool stock_is_as_at(const struct stock *s, const struct api_kind_row *kind, uint64_t version)
{
    if (version < s->forgotten)
        return false;
    for (size_t i = 0; i < s->n_changes; i++) {
        const struct stock_change *change = &s->changes[(s->first + i) % API_CHANGES_MAX];

        if (change->kind == stock_row(kind) && change->version > version)
            return false;
    }
    return true;
}

/* ---- in order ---- */

static int by_key(const void *a, const void *b)
{
    const struct stock_object *x = *(struct stock_object *const *)a, *y = *(struct stock_object *const *)b;
    int order = strcmp(x->namespace_, y->namespace_);

    return order != 0 ? order : strcmp(x->name, y->name);
}

struct stock_object **stock_sorted(const struct stock *s, const struct api_kind_row *kind, size_t *ret_n)
{
    struct stock_object **list = calloc(HASH_COUNT(s->objects) + 1, sizeof(struct stock_object *)), *o, *tmp;
    size_t n = 0;

    if (list == NULL)
        return NULL;
    kind = stock_row(kind);
    HASH_ITER (hh, s->objects, o, tmp)
        if (o->kind == kind)
            list[n++] = o;
    qsort(list, n, sizeof(struct stock_object *), by_key);
    *ret_n = n;
    return list;
}
