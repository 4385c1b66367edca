/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/manifest/decode.h"

#include "agent/api/kept_meta.h"
#include "agent/api/manifest/internal.h"
#include "agent/api/yaml/yaml.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* State of one api_decode_file(). */
struct decoder {
    struct api_check check;
    struct api_objects objects;
};

/* ---- objects ---- */
/* Takes over the reference in `object`. */
static void api_decode_keep(struct decoder *d, struct api_object object)
{
    if (array_room(d->objects.v, d->objects.n)) {
        d->objects.v[d->objects.n++] = object;
        return;
    }
    api_object_unref(&object);
    d->check.no_memory = true;
}

static void check_generate_name(struct api_check *c, const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");

    if (json_string_length(json_object_get(meta, "generateName")) > 0 &&
        json_string_length(json_object_get(meta, "name")) == 0)
        api_fault_at(c, "metadata.generateName",
                     "not supported: nothing generates names here; set metadata.name");
}

static struct api_place place_below(struct api_check *c, const char *child)
{
    size_t mark = api_enter(c, child);
    struct api_place place = { 0 };

    if (c->places != NULL)
        place = api_places_find(c->places, c->document, c->path);

    api_leave(c, mark);
    return place;
}

static void keep_meta(struct api_check *c, struct api_object *o, const char *kept)
{
    struct api_meta *meta = (struct api_meta *)(uintptr_t)api_object_meta(o); /* still being made */

    if (kept == NULL)
        return;
    meta->kept = arena_strdup(api_object_arena(o), kept);
    c->no_memory = c->no_memory || meta->kept == NULL;
}

static void decode_object(struct decoder *d, enum api_kind kind, json_t *object)
{
    struct api_object result = { .kind = kind, .document = d->check.document };
    struct api_check *c = &d->check;
    str_auto kept = NULL;
    struct err e = { 0 };

    check_generate_name(c, object);
    if (!c->served && api_kept_meta_of(object, &kept, &e) != ERR_OK)
        c->no_memory = true;
    if (!api_build_object(c, kind, object, &result))
        return;
    keep_meta(c, &result, kept);
    result.place = place_below(c, "metadata.name");
    api_decode_keep(d, result);
}

/* ---- kinds and lists ---- */
static bool is_missing(const json_t *v)
{
    return v == NULL || json_is_null(v) || (json_is_string(v) && json_string_length(v) == 0);
}

/* The value of apiVersion or kind; NULL after reporting its problem. */
static const char *type_field(struct api_check *c, const json_t *object, const char *field)
{
    const json_t *v = json_object_get(object, field);

    if (is_missing(v))
        api_fault_at(c, field, "required");
    else if (!json_is_string(v))
        api_fault_at(c, field, "expected a string");
    else
        return json_string_value(v);
    return NULL;
}

static bool has_version(struct api_check *c, const json_t *object, const char *kind, const char *wanted)
{
    const char *version = type_field(c, object, "apiVersion");

    if (version != NULL && strcmp(version, wanted) != 0)
        api_fault_at(c, "apiVersion", "%s is not supported for kind %s, allowed is %s", QUOTE(version), kind,
                     wanted);
    return version != NULL && strcmp(version, wanted) == 0;
}

/* A document without any version is read anyway to report its other problems, but not kept. */
static bool lacks_version(const json_t *object)
{
    return is_missing(json_object_get(object, "apiVersion"));
}

static void api_decode_drop_from(struct decoder *d, size_t first)
{
    while (d->objects.n > first)
        api_object_unref(&d->objects.v[--d->objects.n]);
}

static void unknown_kind(struct api_check *c, const char *kind)
{
    api_fault_at(
        c, "kind",
        "%s is not handled by a node, allowed are Pod, ConfigMap, Secret, Deployment, ReplicaSet, "
        "StatefulSet, "
        "DaemonSet, Job, CronJob, PersistentVolumeClaim, PriorityClass, RuntimeClass, kinds that are only "
        "shown (Service, Ingress ...), List, and typed lists such as PodList",
        QUOTE(kind));
}

static void decode_single(struct decoder *d, json_t *object)
{
    const char *name = type_field(&d->check, object, "kind");
    const size_t before = d->objects.n;
    enum api_kind kind;

    if (name == NULL)
        return;
    if (!api_kind_find(name, strlen(name), &kind)) {
        unknown_kind(&d->check, name);
    } else if (has_version(&d->check, object, name, api_kinds[kind].api_version)) {
        decode_object(d, kind, object);
    } else if (lacks_version(object)) {
        decode_object(d, kind, object);
        api_decode_drop_from(d, before);
    }
}

/* Items of a typed list may omit their kind and apiVersion. */
static void decode_item(struct decoder *d, const struct api_kind_row *kind, json_t *item)
{
    struct api_check *c = &d->check;
    const char *name;

    if (!json_is_object(item)) {
        api_fault(c, "expected an object");
        return;
    }
    if (kind != NULL && ((json_object_get(item, "kind") == NULL &&
                          json_object_set_new(item, "kind", json_string(kind->kind)) != 0) ||
                         (json_object_get(item, "apiVersion") == NULL &&
                          json_object_set_new(item, "apiVersion", json_string(kind->api_version)) != 0))) {
        c->no_memory = true;
        return;
    }
    name = json_string_value(json_object_get(item, "kind"));
    if (kind != NULL && name != NULL && strcmp(name, kind->kind) != 0)
        api_fault_at(c, "kind", "%s in a %sList, allowed is %s", QUOTE(name), kind->kind, kind->kind);
    else if (name != NULL && str_ends(name, "List"))
        api_fault_at(c, "kind", "%s: a list in a list is not supported", QUOTE(name));
    else
        decode_single(d, item);
}

static void decode_list(struct decoder *d, const struct api_kind_row *kind, const char *name, json_t *object)
{
    struct api_check *c = &d->check;
    const size_t before = d->objects.n;
    struct arena scratch = { 0 };
    json_t *items, *item;
    size_t i, outer;
    bool versioned = has_version(c, object, name, kind != NULL ? kind->api_version : "v1");

    if (!versioned && !lacks_version(object))
        return;
    c->arena = &scratch;
    api_walk(c, &api_schema_list, object, NULL);
    c->arena = NULL;
    arena_done(&scratch);
    items = json_object_get(object, "items");
    outer = api_enter(c, "items");
    if (items != NULL && !json_is_array(items))
        api_fault(c, "expected a list");
    json_array_foreach (items, i, item) {
        size_t mark = api_enter_index(c, i);
        decode_item(d, kind, item);
        api_leave(c, mark);
    }
    api_leave(c, outer);
    if (!versioned)
        api_decode_drop_from(d, before);
}

static void decode_document(struct decoder *d, json_t *document)
{
    struct api_check *c = &d->check;
    const struct api_kind_row *info = NULL;
    enum api_kind kind;
    const char *name;
    size_t n;

    if (!json_is_object(document)) {
        api_fault(c, "expected an object with apiVersion, kind and metadata");
        return;
    }
    name = json_string_value(json_object_get(document, "kind"));
    if (name == NULL || !str_ends(name, "List")) {
        decode_single(d, document);
        return;
    }
    n = strlen(name) - strlen("List");
    if (n > 0 && api_kind_find(name, n, &kind))
        info = &api_kinds[kind];
    if (n > 0 && info == NULL)
        unknown_kind(c, name);
    else
        decode_list(d, info, name, document);
}

/* ---- files ---- */

/* `how`: lint and static_node, as the caller wants the document checked. */
static enum err_code decode_text(const char *file, const char *text, size_t size, struct api_check how,
                                 struct api_objects *ret, struct api_problems *problems, struct err *e)
{
    struct api_places places = { 0 };
    struct decoder d = { .check = how };
    struct err syntax = { 0 };
    json_t *documents = NULL;
    int *numbers = NULL;

    d.check.problems = problems;
    d.check.file = file;
    d.check.document = 1;
    d.check.places = &places;
    if (size > API_FILE_MAX) {
        api_problems_add(problems, file, "%zu bytes are too many, at most %d are allowed", size,
                         API_FILE_MAX);
        *ret = (struct api_objects){ 0 };
        return ERR_OK;
    }
    if (yaml_to_json(text, size, &documents, &numbers, &places, &syntax) != ERR_OK &&
        syntax.code != ERR_INVALID)
        d.check.no_memory = true;
    for (size_t i = 0; i < json_array_size(documents) && !d.check.no_memory; i++) {
        d.check.document = numbers[i];
        decode_document(&d, json_array_get(documents, i));
    }
    if (syntax.code == ERR_INVALID)
        yaml_add_problem(problems, file, &syntax);
    api_problems_sort(problems);
    api_places_done(&places);
    api_json_wipe(documents);
    json_decref(documents);
    free(numbers);
    if (d.check.no_memory) {
        api_objects_done(&d.objects);
        return err_nomem(e);
    }
    *ret = d.objects;
    return ERR_OK;
}

enum err_code api_decode_file(const char *file, const char *text, size_t size, struct api_objects *ret,
                              struct api_problems *problems, struct err *e)
{
    return decode_text(file, text, size, (struct api_check){ 0 }, ret, problems, e);
}

enum err_code api_decode_static(const char *file, const char *text, size_t size, const char *node_name,
                                struct api_objects *ret, struct api_problems *problems, struct err *e)
{
    return decode_text(file, text, size, (struct api_check){ .static_node = node_name }, ret, problems, e);
}

enum err_code api_lint_file(const char *file, const char *text, size_t size, const struct api_lint *lint,
                            struct api_objects *ret, struct api_problems *problems, struct err *e)
{
    return decode_text(file, text, size, (struct api_check){ .lint = lint }, ret, problems, e);
}

enum err_code api_decode_one(struct api_check *how, json_t *object, struct api_object *ret, struct err *e)
{
    struct decoder d = { .check = *how };

    decode_single(&d, object);
    how->no_memory = d.check.no_memory;
    how->faults = d.check.faults;
    if (d.objects.n == 1)
        *ret = api_object_ref(&d.objects.v[0]);
    else if (!d.check.no_memory)
        err_set(e, ERR_INVALID, "it is not valid");
    api_objects_done(&d.objects);
    return d.check.no_memory ? err_nomem(e) : e->code;
}

enum err_code api_decode_pod(const json_t *object, struct api_pod **ret, struct api_problems *problems,
                             struct err *e)
{
    /* it was accepted once */
    struct api_check c = { .problems = problems, .joined = true, .expanded = true };
    json_t *copy;

    *ret = NULL;
    if (!json_is_object(object)) {
        api_fault(&c, "expected an object with apiVersion, kind and metadata");
        return ERR_OK;
    }
    copy = json_deep_copy(object); /* the walk modifies it */
    if (copy == NULL)
        return err_nomem(e);
    if (type_field(&c, copy, "kind") != NULL && has_version(&c, copy, "Pod", "v1")) {
        if (strcmp(json_string_value(json_object_get(copy, "kind")), "Pod") != 0)
            api_fault_at(&c, "kind", "must be Pod");
        else
            *ret = api_build_pod(&c, &api_schema_pod, copy);
    }
    json_decref(copy);
    return c.no_memory ? err_nomem(e) : ERR_OK;
}

enum err_code api_pod_remake(const struct api_pod *pod, const json_t *object, struct api_pod **ret,
                             struct err *e)
{
    struct api_problems problems = { 0 };

    if (api_decode_pod(object, ret, &problems, e) == ERR_OK && problems.n > 0)
        err_set(e, ERR_INVALID, "%s: %s", problems.v[0].field, problems.v[0].message);
    api_problems_done(&problems);
    if (e->code == ERR_OK && pod->origin == API_FROM_SERVER &&
        api_pod_serve(*ret, &pod->served, e) != ERR_OK) {
        api_pod_unref(*ret);
        *ret = NULL;
    }
    return e->code;
}
