/* SPDX-License-Identifier: Apache-2.0 */
/* The members of an object that belong in its file: unwritten defaults are left out, so that people can read
 * the file. */
#include "agent/api/manifest/decode.h"
#include "agent/api/patch/write/write.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The table's default of an absent member. */
static bool is_default(const struct api_row *row, const json_t *v)
{
    if (row->otherwise == NULL)
        return false;
    switch (row->type) {
    case API_INT32:
    case API_INT64:
        return json_is_integer(v) && json_integer_value(v) == strtoll(row->otherwise, NULL, 10);
    case API_BOOL:
        return json_is_boolean(v) && json_is_true(v) == (strcmp(row->otherwise, "true") == 0);
    case API_OBJECT:
        return json_is_object(v) && json_object_size(v) == 0;
    default:
        if (json_is_null(v))
            return strcmp(row->otherwise, "null") == 0;
        return json_is_string(v) && strcmp(json_string_value(v), row->otherwise) == 0;
    }
}

/* The element of `said` that corresponds to this one, by key or by position. */
static const json_t *element_of(const struct api_row *row, const json_t *said, const json_t *element,
                                size_t i)
{
    const json_t *key = row->merge_key != NULL ? json_object_get(element, row->merge_key) : NULL;
    json_t *v;
    size_t k;

    if (key == NULL)
        return json_array_get(said, i);
    json_array_foreach ((json_t *)(uintptr_t)said, k, v)
        if (json_object_get(v, row->merge_key) != NULL && json_equal(json_object_get(v, row->merge_key), key))
            return v;
    return NULL;
}

static void bare_object(const struct api_schema *schema, json_t *object, const json_t *said)
{
    const char *name;
    json_t *v, *element;
    void *next;
    size_t i;

    json_object_foreach_safe (object, next, name, v) {
        const struct api_row *row = api_row_find(schema, name);
        const json_t *also = json_object_get(said, name);

        if (row == NULL || ((strcmp(name, "metadata") == 0 || strcmp(name, "status") == 0) &&
                            row->otherwise == NULL)) /* those of the object itself */
            continue;
        if (row->type == API_OBJECT && json_is_object(v))
            bare_object(row->nested, v, also);
        if (row->type == API_LIST)
            json_array_foreach (v, i, element)
                if (json_is_object(element))
                    bare_object(row->nested, element, element_of(row, also, element, i));
        if (also == NULL && is_default(row, v))
            json_object_del(object, name);
    }
}

/* ---- those that depend on other fields ---- */

static bool drop(json_t *object, const json_t *said, const char *name, const json_t *otherwise)
{
    json_t *v = json_object_get(object, name);

    if (v == NULL || otherwise == NULL || json_object_get(said, name) != NULL || !json_equal(v, otherwise))
        return false;
    json_object_del(object, name);
    return true;
}

static void bare_policies(json_t *spec, const json_t *said)
{
    static const char *const lists[] = { "containers", "initContainers" };
    static const struct api_row by_name = { .merge_key = "name" };
    json_t *v;
    size_t i;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        json_array_foreach (json_object_get(spec, lists[k]), i, v) {
            const char *image = json_str(v, "image");
            json_auto_t *policy =
                image != NULL
                    ? json_string(api_pull_policy_default(image) == API_PULL_ALWAYS ? "Always"
                                                                                    : "IfNotPresent")
                    : NULL;

            drop(v, element_of(&by_name, json_object_get(said, lists[k]), v, i), "imagePullPolicy", policy);
        }
}

static void bare_rolling(json_t *spec, const json_t *said, const char *name, json_t *whole /* stolen */)
{
    json_t *strategy = json_object_get(spec, name);
    const json_t *also = json_object_get(said, name);

    drop(strategy, also, "rollingUpdate", whole);
    json_decref(whole);
    if (also == NULL && json_object_size(strategy) == 0 && strategy != NULL)
        json_object_del(spec, name);
}

/* Members that depend on others: what defaults do not restore is found out in the end. */
static void bare_service(json_t *spec, const json_t *said)
{
    static const char *const names[] = {
        "allocateLoadBalancerNodePorts", "clusterIPs", "externalTrafficPolicy",
        "internalTrafficPolicy",         "ipFamilies", "ipFamilyPolicy",
        "sessionAffinityConfig"
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (json_object_get(said, names[i]) == NULL)
            json_object_del(spec, names[i]);
}

static void bare_kind(const char *kind, json_t *spec, const json_t *said)
{
    json_t *pod =
        strcmp(kind, "Pod") == 0 ? spec : json_object_get(json_object_get(spec, "template"), "spec");
    const json_t *also =
        strcmp(kind, "Pod") == 0 ? said : json_object_get(json_object_get(said, "template"), "spec");

    bare_policies(pod, also);
    if (strcmp(kind, "Deployment") == 0)
        bare_rolling(spec, said, "strategy",
                     json_pack("{s:s, s:s}", "maxUnavailable", "25%", "maxSurge", "25%"));
    else if (strcmp(kind, "DaemonSet") == 0)
        bare_rolling(spec, said, "updateStrategy",
                     json_pack("{s:i, s:i}", "maxUnavailable", 1, "maxSurge", 0));
    else if (strcmp(kind, "Service") == 0)
        bare_service(spec, said);
    else if (strcmp(kind, "StatefulSet") == 0)
        bare_rolling(spec, said, "updateStrategy", json_pack("{s:i}", "partition", 0));
}

bool api_object_bare(const struct api_patch_kind *kind, json_t *object, const json_t *said)
{
    json_auto_t *bare = json_deep_copy(object), *again = NULL;
    json_t *spec = json_object_get(bare, "spec");
    struct err e = { 0 };

    if (bare == NULL)
        return false;
    if (!json_is_object(said))
        said = NULL;
    if (json_is_object(spec))
        bare_kind(kind->row->kind, spec, json_object_get(said, "spec"));
    bare_object(kind->schema, bare, said);
    again = json_deep_copy(bare);
    if (again == NULL || api_object_default(kind, again, &e) != ERR_OK)
        return false;
    /* A part that defaults would not restore stays whole. */
    return !json_equal(again, object) ||
           (json_object_clear(object) == 0 && json_object_update(object, bare) == 0);
}
