/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods whose pulls of an image succeeded. They are part of the image's record, so they are written and
 * removed with the image:
 *
 *     "pulledFor": {"<repository>": true | [{"namespace","name","uid","hash"}, ...]}
 *
 * true: all pods of the node, because it was pulled without a password or with the node's own. Otherwise the
 * accepted secrets, each with a keyed hash of its credentials; the key is on tmpfs, so after a reboot only
 * the secrets' names are compared. An empty list: unknown. No "pulledFor": never pulled for a pod
 * ("preloaded"); a missing repository: not pulled from there.
 */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"

#include <string.h>

enum {
    SECRETS_MAX = 100,
    REPOSITORIES_MAX = 20
}; /* a dropped entry causes another check with the registry */

static bool is_secret(const json_t *v)
{
    const char *hash = json_str(v, "hash");

    return json_str(v, "namespace") != NULL && json_str(v, "name") != NULL && hash != NULL &&
           strlen(hash) == 16 && strspn(hash, "0123456789abcdef") == 16;
}

bool img_pulled_for_is_valid(const json_t *pulled_for)
{
    const char *repository;
    json_t *by, *one;
    size_t i;

    if (!json_is_object(pulled_for) || json_object_size(pulled_for) > REPOSITORIES_MAX)
        return false;
    json_object_foreach ((json_t *)pulled_for, repository, by) {
        if (!json_is_true(by) && (!json_is_array(by) || json_array_size(by) > SECRETS_MAX))
            return false;
        json_array_foreach (by, i, one)
            if (!is_secret(one))
                return false;
    }
    return true;
}

static bool same_secret(const json_t *a, const json_t *b)
{
    return str_eq(json_str(a, "namespace"), json_str(b, "namespace")) &&
           str_eq(json_str(a, "name"), json_str(b, "name")) && str_eq(json_str(a, "uid"), json_str(b, "uid"));
}

/* The newest is last; false when out of memory. */
static bool image_pulled_for_add_secret(json_t *list, json_t *whose)
{
    json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (same_secret(one, whose)) {
            json_array_remove(list, i);
            break;
        }
    if (json_array_size(list) == SECRETS_MAX)
        json_array_remove(list, 0);
    return json_array_append(list, whose) == 0;
}

static bool image_pulled_for_put(json_t *to, const char *repository, json_t *whose, bool unsure)
{
    json_t *list = json_object_get(to, repository);

    if (json_is_true(list))
        return true;
    if (whose == NULL && !unsure)
        return json_object_set_new(to, repository, json_true()) == 0;
    if (list == NULL) {
        while (json_object_size(to) >= REPOSITORIES_MAX)
            json_object_del(to, json_object_iter_key(json_object_iter(to)));
        list = json_array();
        if (json_object_set_new(to, repository, list) != 0)
            return false;
    }
    return whose == NULL || image_pulled_for_add_secret(list, whose);
}

json_t *img_pulled_for_add(const json_t *is, const char *repository, json_t *whose, bool unsure)
{
    json_t *to = is != NULL ? json_deep_copy(is) : json_object();

    if (to != NULL && image_pulled_for_put(to, repository, whose, unsure))
        return to;
    json_decref(to);
    return NULL;
}

bool img_pulled_for_has(const json_t *by, const json_t *whose)
{
    json_t *one;
    size_t i;

    json_array_foreach ((json_t *)by, i, one)
        if (same_secret(one, whose) || str_eq(json_str(one, "hash"), json_str(whose, "hash")))
            return true;
    return false;
}
