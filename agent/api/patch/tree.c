/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/patch/tree.h"

#include "agent/api/patch/patch.h"
#include "base/codec/json.h"

size_t tree_depth(const json_t *v, size_t max)
{
    size_t deepest = 0, i, d;
    const char *key;
    json_t *member;

    if (!json_is_object(v) && !json_is_array(v))
        return 0;
    if (max == 0)
        return 1;
    json_object_foreach ((json_t *)v, key, member) {
        d = tree_depth(member, max - 1);
        deepest = d > deepest ? d : deepest;
    }
    json_array_foreach ((json_t *)v, i, member) {
        d = tree_depth(member, max - 1);
        deepest = d > deepest ? d : deepest;
    }
    return deepest + 1;
}

enum err_code tree_fail(json_t *status, json_t **ret_status, struct err *e)
{
    const char *message = json_str(status, "message");

    if (status == NULL)
        return err_nomem(e);
    *ret_status = status;
    return err_set(e, ERR_INVALID, "%s", message != NULL ? message : "");
}

enum err_code tree_bounded(const json_t *v, const char *what, json_t **ret_status, struct err *e)
{
    if (tree_depth(v, API_PATCH_DEPTH) <= API_PATCH_DEPTH)
        return ERR_OK;
    return tree_fail(
        api_status(400, "BadRequest", NULL, "the %s nests deeper than %d levels", what, API_PATCH_DEPTH),
        ret_status, e);
}

const char *tree_go_type(const json_t *v)
{
    switch (v != NULL ? json_typeof(v) : JSON_NULL) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "bool";
    case JSON_NULL:
        break;
    }
    return "null";
}
