/* SPDX-License-Identifier: Apache-2.0 */
/* Finalizers and owners that an object may name (validation of objectmeta.go). */
#include "agent/api/patch/write/write.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

/* The last step of a finalizer's name follows a domain, except for those of Kubernetes itself. */
static bool is_finalizer(const char *name)
{
    static const char *const own[] = { "orphan", "foregroundDeletion", "kubernetes" };

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return strchr(name, '/') != NULL;
}

static bool check_finalizers(json_t *causes, const json_t *meta)
{
    json_t *one;
    size_t i;

    json_array_foreach (json_object_get(meta, "finalizers"), i, one) {
        str_auto field = str_printf("metadata.finalizers[%zu]", i);
        const char *name = json_string_value(one);

        if (name == NULL || is_finalizer(name))
            continue;
        if (field == NULL || json_array_append_new(
                                 causes, api_status_cause("FieldValueInvalid", field,
                                                          "Invalid value: \"%s\": name is neither a standard "
                                                          "finalizer name nor is it fully qualified",
                                                          name)) != 0)
            return false;
    }
    return true;
}

/* Both say what becomes of the objects that this one owns. */
static bool check_propagation(json_t *causes, const json_t *meta)
{
    const json_t *list = json_object_get(meta, "finalizers");
    mem_auto char *text = NULL;

    if (!json_has(list, "orphan") || !json_has(list, "foregroundDeletion"))
        return true;
    text = json_dumps(list, JSON_COMPACT);
    return text != NULL &&
           json_array_append_new(
               causes, api_status_cause("FieldValueInvalid", "metadata.finalizers",
                                        "Invalid value: %s: finalizer orphan and foregroundDeletion "
                                        "cannot be both set",
                                        text)) == 0;
}

static bool check_owners(json_t *causes, const json_t *meta)
{
    static const char *const names[] = { "apiVersion", "kind", "name", "uid" };
    json_t *owners = json_object_get(meta, "ownerReferences"), *one, *first = NULL;
    mem_auto char *text = NULL;
    size_t i;

    json_array_foreach (owners, i, one) {
        for (size_t k = 0; k < ARRAY_LEN(names); k++) {
            const char *v = json_str(one, names[k]), *slash = v != NULL ? strchr(v, '/') : NULL;
            const bool version = k == 0, many = version && slash != NULL && strchr(slash + 1, '/') != NULL;
            str_auto field = str_printf("metadata.ownerReferences.%s", names[k]);

            if (v != NULL && v[0] != '\0' && !many)
                continue;
            if (field == NULL ||
                json_array_append_new(causes,
                                      api_status_cause("FieldValueInvalid", field,
                                                       "Invalid value: \"%s\": %smust not be empty",
                                                       v != NULL ? v : "", version ? "version " : "")) != 0)
                return false;
        }
        if (!json_flag(one, "controller"))
            continue;
        if (first == NULL) {
            first = one;
            continue;
        }
        text = json_dumps(owners, JSON_COMPACT);
        return text != NULL &&
               json_array_append_new(
                   causes,
                   api_status_cause("FieldValueInvalid", "metadata.ownerReferences",
                                    "Invalid value: %s: Only one reference can have Controller set to "
                                    "true. Found \"true\" in references for %s/%s and %s/%s",
                                    text, json_str(first, "kind"), json_str(first, "name"),
                                    json_str(one, "kind"), json_str(one, "name"))) == 0;
    }
    return true;
}

bool api_reference_rules(const json_t *meta, json_t *causes)
{
    return check_finalizers(causes, meta) && check_propagation(causes, meta) && check_owners(causes, meta);
}
