/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategic merge patch, maps: as apimachinery's strategicpatch.StrategicMergeMapPatch() of Kubernetes 1.36,
 * also in its corners: a list that is replaced keeps directives as unknown fields, `$patch: replace` in one
 * element replaces the whole list.  Where that one panics, this is a 400.
 */
#include "agent/api/patch/strategic.h"

#include "agent/api/patch/go_text.h"
#include "agent/api/patch/patch.h"
#include "agent/api/patch/tree.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

json_t *strategic_fail(struct strategic_run *run, json_t *status)
{
    if (run->status == NULL)
        run->status = status;
    else
        json_decref(status);
    return NULL;
}

json_t *strategic_fail_format(struct strategic_run *run, const char *directive)
{
    return strategic_fail(run, api_status(400, "BadRequest", NULL, "invalid patch format of %s", directive));
}

json_t *strategic_fail_key(struct strategic_run *run, const json_t *map, const char *merge_key)
{
    str_auto text = go_text(map);

    return strategic_fail(run, api_status(500, NULL, NULL, "map: %s does not contain declared merge key: %s",
                                          text != NULL ? text : "", merge_key));
}

static json_t *fail_type(struct strategic_run *run, const json_t *received)
{
    return strategic_fail(
        run, api_status(500, NULL, NULL, "expected a []interface {}, but received a %s", go_type(received)));
}

struct strategic_list strategic_list_of(const struct api_row *row)
{
    struct strategic_list how = { .merge_key = NULL };

    if (row == NULL)
        return how;
    how.merge_key = row->merge_key;
    how.merges = row->merge_key != NULL || (row->flags & API_MERGED) != 0;
    how.element = row->nested;
    return how;
}

/* ---- values that are new ---- */

static bool clean_list(struct strategic_run *run, const json_t *v, bool nulls, json_t **ret)
{
    json_t *to = json_array(), *element, *kept;
    size_t i;

    json_array_foreach ((json_t *)v, i, element) {
        if (to == NULL || !strategic_clean(run, element, nulls, &kept) ||
            (kept != NULL && json_array_append_new(to, kept) != 0)) {
            json_decref(to);
            return false;
        }
    }
    *ret = to;
    return to != NULL;
}

static bool clean_map(struct strategic_run *run, const json_t *v, bool nulls, json_t **ret)
{
    json_t *to, *member, *kept;
    const char *name;

    *ret = NULL;
    if (json_object_get(v, DIRECTIVE) != NULL)
        return true;
    to = json_object();
    json_object_foreach ((json_t *)v, name, member) {
        if (!nulls && json_is_null(member))
            continue;
        if (to == NULL || !strategic_clean(run, member, nulls, &kept) ||
            (kept != NULL && json_object_set_new(to, name, kept) != 0)) {
            json_decref(to);
            return false;
        }
    }
    *ret = to;
    return to != NULL;
}

bool strategic_clean(struct strategic_run *run, const json_t *v, bool nulls, json_t **ret)
{
    if (json_is_object(v))
        return clean_map(run, v, nulls, ret);
    if (json_is_array(v))
        return clean_list(run, v, nulls, ret);
    *ret = json_incref((json_t *)v);
    return true;
}

/* to[name] becomes the patch's value.  False: out of memory. */
static bool put_new(struct strategic_run *run, json_t *to, const char *name, const json_t *v)
{
    json_t *kept = NULL;

    if (!strategic_clean(run, v, false, &kept))
        return false;
    if (kept == NULL) {
        json_object_del(to, name);
        return true;
    }
    return json_object_set_new(to, name, kept) == 0;
}

/* ---- directives ---- */

static json_t *directive_of_map(struct strategic_run *run, const json_t *patch)
{
    const json_t *directive = json_object_get(patch, DIRECTIVE);
    str_auto shown = NULL;
    str_auto map = NULL;
    json_t *to;

    if (str_eq(json_string_value(directive), "replace")) {
        to = json_copy((json_t *)patch);
        json_object_del(to, DIRECTIVE);
        return to;
    }
    if (str_eq(json_string_value(directive), "delete"))
        return json_object();
    shown = go_text(directive);
    map = go_text(patch);
    return strategic_fail(run, api_status(500, NULL, NULL, "unknown patch type: %s in map: %s",
                                          shown != NULL ? shown : "", map != NULL ? map : ""));
}

static bool is_directive_of_list(const char *name)
{
    return str_starts(name, DELETE_FROM) || str_starts(name, ELEMENT_ORDER);
}

/* Removes members that $retainKeys does not list. */
static bool retain_keys(struct strategic_run *run, json_t *to, const json_t *patch)
{
    const json_t *keys = json_object_get(patch, RETAIN_KEYS);
    const char *name;
    json_t *v;
    void *next;
    size_t i;

    if (keys == NULL)
        return true;
    if (!json_is_array(keys))
        return strategic_fail_format(run, "retainKeys");
    json_array_foreach ((json_t *)keys, i, v)
        if (json_is_object(v) || json_is_array(v))
            return strategic_fail_format(run, "retainKeys");
    json_object_foreach ((json_t *)patch, name, v) {
        if (json_is_null(v) || is_directive_of_list(name) || strcmp(name, RETAIN_KEYS) == 0)
            continue;
        if (!json_has(keys, name))
            return strategic_fail_format(run, "retainKeys");
    }
    json_object_foreach_safe (to, next, name, v)
        if (!json_has(keys, name))
            json_object_del(to, name);
    return true;
}

/* "$setElementOrder/ports" is "ports"; NULL: it is malformed. */
static const char *directive_target(const char *name, const char *directive)
{
    size_t n = strlen(directive);

    return name[n] == '/' ? name + n + 1 : NULL;
}

/* The row of a field that a directive names; false: there is none. */
static bool directive_row(struct strategic_run *run, const struct api_schema *schema, const char *name,
                          const struct api_row **ret)
{
    *ret = schema != NULL ? api_row_find(schema, name) : NULL;
    if (*ret == NULL && schema != NULL) {
        strategic_fail(run, api_status(500, NULL, NULL,
                                       "unable to find api field in struct %s for the json field \"%s\"",
                                       schema->name, name));
        return false;
    }
    return true;
}

/* One $setElementOrder and the patch's list of the same name. */
static bool order_list(struct strategic_run *run, const struct api_schema *schema, json_t *to,
                       const json_t *patch, const char *directive, const json_t *order)
{
    const char *name = directive_target(directive, ELEMENT_ORDER);
    const json_t *list, *with;
    const struct api_row *row = NULL;
    struct strategic_list how;
    json_t *merged;

    if (!json_is_array(order))
        return fail_type(run, order);
    if (name == NULL)
        return strategic_fail_format(run, "setElementOrder list");
    list = json_object_get(to, name);
    with = json_object_get(patch, name);
    if (list != NULL && !json_is_array(list))
        return fail_type(run, list);
    if (with != NULL && !json_is_array(with))
        return fail_type(run, with);
    if (!directive_row(run, schema, name, &row))
        return false;
    if (list == NULL && with == NULL)
        return true;
    how = strategic_list_of(row);
    merged = strategic_ordered_list(run, &how, list, with, order);
    return merged != NULL && json_object_set_new(to, name, merged) == 0;
}

static bool order_lists(struct strategic_run *run, const struct api_schema *schema, json_t *to,
                        const json_t *patch)
{
    const char *name;
    json_t *v;

    json_object_foreach ((json_t *)patch, name, v)
        if (str_starts(name, ELEMENT_ORDER) && !order_list(run, schema, to, patch, name, v))
            return false;
    return true;
}

/* ---- members ---- */

static bool has_order(const json_t *patch, const char *name)
{
    str_auto directive = str_printf(ELEMENT_ORDER "/%s", name);

    return directive == NULL || json_object_get(patch, directive) != NULL;
}

static bool is_array_or_object(const json_t *v)
{
    return json_is_array(v) || json_is_object(v);
}

/* Merges one member of the patch; `deletes`: it is a list of $deleteFromPrimitiveList. */
static bool merge_member(struct strategic_run *run, const struct api_schema *schema, json_t *to,
                         const char *name, const json_t *v, bool deletes)
{
    json_t *before = json_object_get(to, name), *merged;
    const struct api_row *row = schema != NULL ? api_row_find(schema, name) : NULL;
    struct strategic_list how = strategic_list_of(row);

    if (json_is_null(v)) {
        json_object_del(to, name);
        return true;
    }
    if (before == NULL || json_typeof(before) != json_typeof(v) || !is_array_or_object(v))
        return deletes || put_new(run, to, name, v);
    if (json_is_array(v))
        merged = strategic_list(run, &how, before, v, deletes);
    else
        merged = strategic_map(run, row != NULL ? row->nested : NULL, before, v);
    return merged != NULL && json_object_set_new(to, name, merged) == 0;
}

static bool merge_members(struct strategic_run *run, const struct api_schema *schema, json_t *to,
                          const json_t *patch)
{
    const char *name, *target;
    json_t *v;

    json_object_foreach ((json_t *)patch, name, v) {
        bool deletes = str_starts(name, DELETE_FROM);

        if (str_starts(name, ELEMENT_ORDER) || strcmp(name, RETAIN_KEYS) == 0)
            continue;
        target = deletes ? directive_target(name, DELETE_FROM) : name;
        if (target == NULL)
            return strategic_fail_format(run, "primitive list");
        if (!deletes && json_is_array(v) && has_order(patch, name))
            continue; /* merged with its order */
        if (!merge_member(run, schema, to, target, v, deletes))
            return false;
    }
    return true;
}

json_t *strategic_map(struct strategic_run *run, const struct api_schema *schema, const json_t *map,
                      const json_t *patch)
{
    json_t *to;

    if (json_object_get(patch, DIRECTIVE) != NULL)
        return directive_of_map(run, patch);
    to = map != NULL ? json_copy((json_t *)map) : json_object();
    if (to != NULL && retain_keys(run, to, patch) && order_lists(run, schema, to, patch) &&
        merge_members(run, schema, to, patch))
        return to;
    json_decref(to);
    return NULL;
}

/* ---- the whole ---- */

enum err_code api_patch_strategic(const struct api_patch_kind *kind, const json_t *live, const json_t *patch,
                                  json_t **ret, json_t **ret_status, struct err *e)
{
    struct strategic_run run = { .status = NULL };
    json_t *merged, *to;

    if (!json_is_object(patch) && !json_is_null(patch))
        return tree_fail(api_status(400, "BadRequest", NULL,
                                    "json: cannot unmarshal %s into Go value of type map[string]interface {}",
                                    tree_go_type(patch)),
                         ret_status, e);
    if (tree_bounded(live, "object", ret_status, e) != ERR_OK ||
        tree_bounded(patch, "patch", ret_status, e) != ERR_OK)
        return e->code;
    merged =
        json_is_object(patch) ? strategic_map(&run, kind->schema, live, patch) : json_incref((json_t *)live);
    if (merged == NULL)
        return tree_fail(run.status, ret_status, e);
    to = json_deep_copy(merged);
    json_decref(merged);
    if (to == NULL)
        return err_nomem(e);
    *ret = to;
    return ERR_OK;
}
