/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/patch/apply/managed.h"

#include "agent/api/patch/apply/fields.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *entry, const char *name)
{
    const char *text = json_str(entry, name);

    return text != NULL ? text : "";
}

static bool is_apply(const json_t *entry)
{
    return strcmp(text_of(entry, "operation"), "Apply") == 0;
}

json_t *managed_entry(const char *manager, const char *operation, const char *api_version,
                      const char *subresource)
{
    json_t *entry = json_object();

    if (entry == NULL || !json_put_str(entry, "manager", manager) ||
        !json_put_str(entry, "operation", operation) || !json_put_str(entry, "apiVersion", api_version) ||
        !json_put_str(entry, "subresource", subresource) ||
        json_object_set_new(entry, "fieldsV1", json_object()) != 0) {
        json_decref(entry);
        return NULL;
    }
    return entry;
}

/* ---- decode ---- */

static const char *wrong(const json_t *entry)
{
    const char *operation = text_of(entry, "operation"), *type = text_of(entry, "fieldsType");

    if (strcmp(operation, "Apply") != 0 && strcmp(operation, "Update") != 0)
        return "operation must be `Apply` or `Update`";
    if (text_of(entry, "apiVersion")[0] == '\0')
        return "apiVersion must not be empty";
    if (strcmp(type, "FieldsV1") != 0)
        return type[0] == '\0' ? "missing fieldsType in managed fields entry" : "invalid fieldsType";
    return NULL;
}

/* A copy of one entry; NULL: *ret_why, or no memory. */
static json_t *decode_entry(const json_t *entry, const char **ret_why)
{
    const json_t *fields = json_object_get(entry, "fieldsV1");
    json_t *to, *set;

    *ret_why = wrong(entry);
    if (*ret_why != NULL)
        return NULL;
    set = fields != NULL ? fields_decode(fields) : json_object();
    if (set == NULL) {
        *ret_why = "error decoding set";
        return NULL;
    }
    to = managed_entry(text_of(entry, "manager"), text_of(entry, "operation"), text_of(entry, "apiVersion"),
                       text_of(entry, "subresource"));
    if (to == NULL || !json_put_str(to, "time", json_str(entry, "time"))) {
        json_decref(set);
        json_decref(to);
        return NULL;
    }
    if (json_object_set_new(to, "fieldsV1", set) != 0) {
        json_decref(to);
        return NULL;
    }
    return to;
}

json_t *managed_decode(const json_t *list, const char **ret_why)
{
    json_t *entries = json_array(), *entry, *decoded;
    size_t i;

    *ret_why = NULL;
    if (json_array_size(list) > MANAGED_ENTRIES_MAX) {
        *ret_why = "too many entries";
        json_decref(entries);
        return NULL;
    }
    json_array_foreach ((json_t *)list, i, entry) {
        ssize_t before;

        decoded = entries != NULL ? decode_entry(entry, ret_why) : NULL;
        before = decoded != NULL ? managed_find(entries, decoded) : -1;
        if (decoded == NULL || (before < 0 ? json_array_append_new(entries, decoded)
                                           : json_array_set_new(entries, (size_t)before, decoded)) != 0) {
            json_decref(entries);
            return NULL;
        }
    }
    return entries;
}

/* ---- encode ---- */

static int by_order(const void *a, const void *b)
{
    static const char *const names[] = { "operation", "time", "manager", "apiVersion", "subresource" };
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int order = 0;

    for (size_t i = 0; order == 0 && i < ARRAY_LEN(names); i++)
        order = strcmp(text_of(x, names[i]), text_of(y, names[i]));
    return order;
}

static json_t *encode_entry(const json_t *entry)
{
    const char *time = json_str(entry, "time"), *subresource = json_str(entry, "subresource");

    return json_pack("{s:s*, s:s, s:s, s:s*, s:s, s:o, s:s*}", "manager", json_str(entry, "manager"),
                     "operation", text_of(entry, "operation"), "apiVersion", text_of(entry, "apiVersion"),
                     "time", time, "fieldsType", "FieldsV1", "fieldsV1", json_deep_copy(managed_set(entry)),
                     "subresource", subresource);
}

json_t *managed_encode(const json_t *entries)
{
    size_t n = json_array_size(entries);
    mem_auto json_t **order = calloc(n + 1, sizeof(json_t *));
    json_t *list = json_array(), *encoded;

    if (order == NULL || list == NULL) {
        json_decref(list);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        order[i] = json_array_get(entries, i);
    qsort(order, n, sizeof(json_t *), by_order);
    for (size_t i = 0; i < n; i++) {
        encoded = encode_entry(order[i]);
        if (encoded == NULL || json_array_append_new(list, encoded) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* ---- one entry ---- */

ssize_t managed_find(const json_t *entries, const json_t *like)
{
    json_t *entry;
    size_t i;

    json_array_foreach ((json_t *)entries, i, entry)
        if (strcmp(text_of(entry, "manager"), text_of(like, "manager")) == 0 &&
            strcmp(text_of(entry, "operation"), text_of(like, "operation")) == 0 &&
            strcmp(text_of(entry, "subresource"), text_of(like, "subresource")) == 0 &&
            (is_apply(like) || strcmp(text_of(entry, "apiVersion"), text_of(like, "apiVersion")) == 0))
            return (ssize_t)i;
    return -1;
}

const json_t *managed_set(const json_t *entry)
{
    return json_object_get(entry, "fieldsV1");
}

bool managed_put(json_t *entries, size_t index, json_t *set)
{
    if (set == NULL)
        return false;
    if (!fields_empty(set))
        return json_object_set_new(json_array_get(entries, index), "fieldsV1", set) == 0;
    json_decref(set);
    return json_array_remove(entries, index) == 0;
}

/* ---- not too many ---- */

static int by_age(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int order = strcmp(text_of(x, "time"), text_of(y, "time"));

    return order != 0 ? order : strcmp(text_of(x, "manager"), text_of(y, "manager"));
}

/* The bucket of a version: the entry of the oldest of its updaters, renamed. */
static bool merge_into(json_t *bucket, const json_t *entry)
{
    json_t *set = fields_union(managed_set(bucket), managed_set(entry));

    if (set == NULL || json_object_set_new(bucket, "fieldsV1", set) != 0)
        return false;
    json_object_del(bucket, "subresource");
    return json_object_set_new(bucket, "manager", json_string("ancient-changes")) == 0 &&
           json_put_str(bucket, "time", json_str(entry, "time"));
}

static json_t *bucket_of(json_t *const *order, size_t n, const json_t *entry)
{
    for (size_t i = 0; i < n; i++)
        if (order[i] != NULL && order[i] != entry &&
            strcmp(text_of(order[i], "apiVersion"), text_of(entry, "apiVersion")) == 0)
            return order[i];
    return NULL;
}

bool managed_cap(json_t *entries)
{
    mem_auto json_t **order = calloc(json_array_size(entries) + 1, sizeof(json_t *));
    size_t n = 0, left, i;
    json_t *entry, *bucket;

    if (order == NULL)
        return false;
    json_array_foreach (entries, i, entry)
        if (!is_apply(entry))
            order[n++] = entry;
    qsort(order, n, sizeof(json_t *), by_age);
    left = n;
    for (size_t k = 0; k < n && left > MANAGED_UPDATERS_MAX; k++) {
        entry = order[k];
        bucket = bucket_of(order, k, entry);
        if (bucket == NULL)
            continue;
        if (!merge_into(bucket, entry))
            return false;
        order[k] = NULL;
        left--;
        json_array_foreach (entries, i, bucket)
            if (bucket == entry)
                break;
        if (json_array_remove(entries, i) != 0)
            return false;
    }
    return true;
}
