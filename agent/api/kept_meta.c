/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/kept_meta.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdint.h>
#include <string.h>

static const struct {
    const char *name;
    json_type type;
} members[] = { { "creationTimestamp", JSON_STRING }, { "deletionGracePeriodSeconds", JSON_INTEGER },
                { "deletionTimestamp", JSON_STRING }, { "finalizers", JSON_ARRAY },
                { "generateName", JSON_STRING },      { "managedFields", JSON_ARRAY },
                { "ownerReferences", JSON_ARRAY } };

/* Those that a part of the control plane works off, which here ends with the object, or acts without. */
static bool is_own(const char *finalizer)
{
    static const char *const own[] = { "foregroundDeletion", "orphan", "kubernetes.io/pvc-protection",
                                       "kubernetes.io/pv-protection", "batch.kubernetes.io/job-tracking" };

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (str_eq(finalizer, own[i]))
            return true;
    return false;
}

bool api_meta_is_held(const json_t *meta)
{
    const json_t *v;
    size_t i;

    json_array_foreach (json_object_get(meta, "finalizers"), i, v)
        if (json_is_string(v) && !is_own(json_string_value(v)))
            return true;
    return false;
}

bool api_kept_meta_deleting(const char *kept)
{
    /* In compact JSON no value has this: its quotes would be escaped. */
    return kept != NULL && strstr(kept, "\"deletionTimestamp\":") != NULL;
}

enum err_code api_kept_meta_of(const json_t *object, char **ret, struct err *e)
{
    const json_t *meta = json_object_get(object, "metadata");
    json_auto_t *kept = json_object();

    *ret = NULL;
    if (kept == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        json_t *v = json_object_get(meta, members[i].name);

        if (v != NULL && json_typeof(v) == members[i].type && json_object_set(kept, members[i].name, v) != 0)
            return err_nomem(e);
    }
    if (!api_meta_is_held(meta)) { /* a copy of an object that ended elsewhere is a new one */
        json_object_del(kept, "deletionTimestamp");
        json_object_del(kept, "deletionGracePeriodSeconds");
    }
    if (json_object_size(kept) == 0)
        return ERR_OK;
    *ret = json_text(kept);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

bool api_kept_meta_add(json_t *meta, const char *kept)
{
    json_auto_t *all = NULL;

    if (kept == NULL)
        return true;
    return json_parse(kept, strlen(kept), SIZE_MAX, &all, "metadata", ERR_IGNORED) == ERR_OK &&
           json_object_update_missing(meta, all) == 0;
}
