/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/seen.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "base/siphash.h"

#include <string.h>

bool seen_version_is_older(const char *version, const char *known)
{
    size_t a = version != NULL ? strlen(version) : 0, b = known != NULL ? strlen(known) : 0;

    /* Since Kubernetes 1.35 versions of one resource may be compared as numbers: by length, then by digits.
     */
    if (a == 0 || b == 0 || strspn(version, "0123456789") != a || strspn(known, "0123456789") != b ||
        version[0] == '0' || known[0] == '0')
        return false;
    return a != b ? a < b : strcmp(version, known) < 0;
}

bool seen_is_older(const json_t *object, const json_t *known)
{
    const json_t *a = json_object_get(object, "metadata"), *b = json_object_get(known, "metadata");

    return str_eq(json_str(a, "uid"), json_str(b, "uid")) &&
           seen_version_is_older(json_str(a, "resourceVersion"), json_str(b, "resourceVersion"));
}

uint64_t seen_text_hash(const char *text)
{
    uint64_t hash = siphash_part(0, text, strlen(text));

    return hash != 0 ? hash : 1;
}

uint64_t seen_hash(const json_t *object, const char *skip)
{
    json_t *copy = json_copy((json_t *)object), *meta = json_copy(json_object_get(object, "metadata"));
    str_auto text = NULL;

    json_object_del(meta, "resourceVersion");
    json_object_del(meta, "managedFields");
    if (meta != NULL)
        json_object_set_new(copy, "metadata", meta);
    if (skip != NULL)
        json_object_del(copy, skip);
    text = copy != NULL ? json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(copy);
    return text != NULL ? seen_text_hash(text) : 0;
}
