/* SPDX-License-Identifier: Apache-2.0 */
/* JSON merge patch (RFC 7386). */
#include "agent/api/patch/patch.h"
#include "agent/api/patch/tree.h"

/* The target becomes the patch's value, a new reference; NULL: out of memory.  Depth: both are bounded. */
static json_t *merged(const json_t *target, const json_t *patch)
{
    json_t *to, *value, *inner;
    const char *key;

    if (!json_is_object(patch))
        return json_deep_copy(patch);
    to = json_is_object(target) ? json_copy((json_t *)target) : json_object();
    json_object_foreach ((json_t *)patch, key, value) {
        if (json_is_null(value)) {
            json_object_del(to, key);
            continue;
        }
        inner = merged(json_object_get(to, key), value);
        if (inner == NULL || json_object_set_new(to, key, inner) != 0) {
            json_decref(to);
            return NULL;
        }
    }
    return to;
}

enum err_code api_patch_merge(const json_t *live, const json_t *patch, json_t **ret, json_t **ret_status,
                              struct err *e)
{
    json_t *shared, *to;

    if (json_is_null(patch))
        return tree_fail(api_status(400, "BadRequest", NULL, "Invalid JSON Patch"), ret_status, e);
    if (!json_is_object(patch))
        return tree_fail(api_status(400, "BadRequest", NULL,
                                    "error decoding patch: json: cannot unmarshal %s into Go value of type "
                                    "map[string]interface {}",
                                    tree_go_type(patch)),
                         ret_status, e);
    if (tree_bounded(live, "object", ret_status, e) != ERR_OK ||
        tree_bounded(patch, "patch", ret_status, e) != ERR_OK)
        return e->code;
    shared = merged(live, patch);
    to = shared != NULL ? json_deep_copy(shared) : NULL; /* nothing of the result is `live`'s */
    json_decref(shared);
    if (to == NULL)
        return err_nomem(e);
    *ret = to;
    return ERR_OK;
}
