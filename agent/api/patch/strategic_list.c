/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategic merge patch, lists.  The order of a merged list: elements that the patch (or its
 * $setElementOrder) names stand in that order; all others keep their order of the live list, and go before
 * the first of the patch's elements that the live list has behind them.
 */
#include "agent/api/patch/strategic.h"

#include "agent/api/patch/go_text.h"
#include "agent/api/patch/patch.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* ---- checks ---- */

static json_t *fail_too_long(struct strategic_run *run, size_t n)
{
    return strategic_fail(run, api_status(400, "BadRequest", NULL,
                                          "a list of %zu elements cannot be merged, at most %d are allowed",
                                          n, API_LIST_MAX));
}

/* All elements of both lists must be of one type, and no lists. */
static bool one_type(struct strategic_run *run, const json_t *list, const json_t *patch)
{
    const json_t *const lists[] = { list, patch };
    const char *type = NULL;
    str_auto a = NULL;
    str_auto b = NULL;

    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < json_array_size(lists[k]); i++) {
            const json_t *v = json_array_get(lists[k], i);

            if (json_is_array(v) || json_is_null(v))
                return strategic_fail(run, api_status(400, "BadRequest", NULL,
                                                      "an element of a list that is merged may not be %s",
                                                      json_is_null(v) ? "null" : "a list"));
            if (type == NULL)
                type = go_type(v);
            if (strcmp(type, go_type(v)) == 0)
                continue;
            a = go_text(list);
            b = go_text(patch);
            return strategic_fail(run,
                                  api_status(500, NULL, NULL, "list element types are not identical: [%s %s]",
                                             a != NULL ? a : "[]", b != NULL ? b : "[]"));
        }
    }
    return true;
}

/* Each element of a list of objects must have a merge key, and that a scalar. */
static bool have_keys(struct strategic_run *run, const char *merge_key, const json_t *list)
{
    json_t *v;
    size_t i;

    json_array_foreach ((json_t *)list, i, v) {
        const json_t *key = json_object_get(v, merge_key);

        if (key == NULL)
            return strategic_fail_key(run, v, merge_key);
        if (json_is_object(key) || json_is_array(key))
            return strategic_fail(run,
                                  api_status(400, "BadRequest", NULL,
                                             "the merge key %s must be a string or a number", merge_key));
    }
    return true;
}

/* ---- lists of scalars ---- */

static json_t *delete_scalars(const json_t *list, const json_t *patch)
{
    static const struct strategic_list scalars = { .merges = true };
    json_t *to = json_array();

    if (to != NULL && !strategic_take(&scalars, to, list, patch, false)) {
        json_decref(to);
        to = NULL;
    }
    return to;
}

/* Both, each value once. */
static json_t *add_scalars(const struct strategic_list *how, const json_t *list, const json_t *patch)
{
    const json_t *const lists[] = { list, patch };
    json_t *to = json_array(), *v;
    size_t i;

    for (size_t k = 0; k < 2; k++)
        json_array_foreach ((json_t *)lists[k], i, v)
            if (to != NULL && strategic_find(how, to, v) < 0 && json_array_append(to, v) != 0) {
                json_decref(to);
                to = NULL;
            }
    return to;
}

/* ---- lists of objects ---- */

static bool remove_like(const struct strategic_list *how, json_t *list, const json_t *element)
{
    ssize_t at;

    while ((at = strategic_find(how, list, element)) >= 0)
        if (json_array_remove(list, (size_t)at) != 0)
            return false;
    return true;
}

/* Obeys the elements that are directives; *rest gets the others.  A `replace` empties the list. */
static bool obey_directives(struct strategic_run *run, const struct strategic_list *how, json_t *list,
                            const json_t *patch, json_t *rest)
{
    bool replace = false;
    json_t *v;
    size_t i;

    json_array_foreach ((json_t *)patch, i, v) {
        const json_t *directive = json_object_get(v, DIRECTIVE);
        const char *text = json_string_value(directive);

        if (directive == NULL) {
            if (json_array_append(rest, v) != 0)
                return false;
        } else if (str_eq(text, "delete")) {
            if (json_object_get(v, how->merge_key) == NULL)
                return strategic_fail_key(run, v, how->merge_key);
            if (!remove_like(how, list, v))
                return false;
        } else if (str_eq(text, "replace")) {
            replace = true;
        } else if (str_eq(text, "merge")) {
            return strategic_fail(
                run, api_status(500, NULL, NULL, "merging lists cannot yet be specified in the patch"));
        } else {
            str_auto shown = go_text(directive);
            str_auto map = go_text(v);

            return strategic_fail(run, api_status(500, NULL, NULL, "unknown patch type: %s in map: %s",
                                                  shown != NULL ? shown : "", map != NULL ? map : ""));
        }
    }
    return !replace || json_array_clear(list) == 0;
}

/* Merges elements into the list, or appends them. */
static bool merge_elements(struct strategic_run *run, const struct strategic_list *how, json_t *list,
                           const json_t *rest)
{
    json_t *v, *merged;
    ssize_t at;
    size_t i;

    json_array_foreach ((json_t *)rest, i, v) {
        at = strategic_find(how, list, v);
        if (at < 0) {
            if (json_array_append(list, v) != 0)
                return false;
            continue;
        }
        merged = strategic_map(run, how->element, json_array_get(list, (size_t)at), v);
        if (merged == NULL || json_array_set_new(list, (size_t)at, merged) != 0)
            return false;
    }
    return true;
}

static bool has_replace(const json_t *patch)
{
    json_t *v;
    size_t i;

    json_array_foreach ((json_t *)patch, i, v)
        if (str_eq(json_str(v, DIRECTIVE), "replace"))
            return true;
    return false;
}

/* *ret_live is the live list without the elements that the patch deletes. */
static json_t *merge_objects(struct strategic_run *run, const struct strategic_list *how, const json_t *list,
                             const json_t *patch)
{
    json_t *live = json_copy((json_t *)list), *rest = json_array(), *to = NULL, *merged = NULL;

    if (live != NULL && rest != NULL && obey_directives(run, how, live, patch, rest)) {
        if (has_replace(patch)) {
            to = have_keys(run, how->merge_key, rest) ? json_incref(rest) : NULL;
        } else if (have_keys(run, how->merge_key, rest) && have_keys(run, how->merge_key, live)) {
            merged = json_copy(live);
            if (merged != NULL && merge_elements(run, how, merged, rest))
                to = strategic_in_order(how, merged, rest, live);
        }
    }
    json_decref(merged);
    json_decref(live);
    json_decref(rest);
    return to;
}

/* ---- both ---- */

json_t *strategic_list(struct strategic_run *run, const struct strategic_list *how, const json_t *list,
                       const json_t *patch, bool deletes)
{
    static const struct strategic_list scalars = { .merges = true };
    size_t n = json_array_size(list) + json_array_size(patch);
    json_t *merged, *to;

    if (!how->merges && !deletes)
        return json_incref((json_t *)patch);
    if (n == 0)
        return json_incref((json_t *)list);
    if (n > API_LIST_MAX)
        return fail_too_long(run, n);
    if (!one_type(run, list, patch))
        return NULL;
    if (json_is_object(json_array_get(json_array_size(list) > 0 ? list : patch, 0))) {
        if (how->merge_key != NULL)
            return merge_objects(run, how, list, patch);
        return strategic_fail(
            run, api_status(500, NULL, NULL, "cannot merge lists without merge key for %s", "struct"));
    }
    if (deletes)
        return delete_scalars(list, patch);
    merged = add_scalars(&scalars, list, patch);
    to = merged != NULL ? strategic_in_order(&scalars, merged, patch, list) : NULL;
    json_decref(merged);
    return to;
}

/* The patch's elements must be named by the order, in its order. */
static bool order_names(struct strategic_run *run, const struct strategic_list *how, const json_t *patch,
                        const json_t *order)
{
    size_t at = 0, i;
    str_auto shown = NULL;
    str_auto names = NULL;
    json_t *v;

    if (json_array_size(order) == 0)
        return true;
    json_array_foreach ((json_t *)patch, i, v) {
        if (how->merge_key != NULL && json_object_get(v, DIRECTIVE) != NULL)
            continue;
        if (how->merge_key != NULL && json_object_get(v, how->merge_key) == NULL)
            return strategic_fail_key(run, v, how->merge_key);
        while (
            at < json_array_size(order) &&
            !strategic_same(strategic_identity(how, v), strategic_identity(how, json_array_get(order, at))))
            at++;
        if (at++ < json_array_size(order))
            continue;
        shown = go_text(patch);
        names = go_text(order);
        return strategic_fail(
            run, api_status(500, NULL, NULL, "The order in patch list:\n%s\n doesn't match %s list:\n%s\n",
                            shown != NULL ? shown : "", ELEMENT_ORDER, names != NULL ? names : ""));
    }
    return true;
}

static bool has_objects(const json_t *list)
{
    json_t *v;
    size_t i;

    json_array_foreach ((json_t *)list, i, v)
        if (json_is_object(v) || json_is_array(v))
            return true;
    return false;
}

/* Without a merge key only scalars can be put in order. */
static bool can_order(struct strategic_run *run, const struct strategic_list *how, const json_t *list,
                      const json_t *patch, const json_t *order)
{
    size_t n = json_array_size(list) + json_array_size(patch) + json_array_size(order);

    if (n > API_LIST_MAX)
        return fail_too_long(run, n);
    if (how->merge_key == NULL && (has_objects(list) || has_objects(patch) || has_objects(order)))
        return strategic_fail(run, api_status(400, "BadRequest", NULL,
                                              ELEMENT_ORDER " is not allowed for a list without merge key"));
    return how->merge_key == NULL || have_keys(run, how->merge_key, order);
}

/* The order to go by.  An apiserver deletes and adds in the live list in place, so that for it the first of
 * the elements that are added stand where deleted ones leave room, behind the others. */
static json_t *worked_on(const struct strategic_list *how, const json_t *list, const json_t *patch)
{
    const size_t n = json_array_size(list);
    json_t *to = json_copy((json_t *)list), *v;
    bool ok = to != NULL;
    size_t i;

    if (how->merge_key == NULL || has_replace(patch))
        return to;
    json_array_foreach ((json_t *)patch, i, v)
        if (ok && str_eq(json_str(v, DIRECTIVE), "delete"))
            ok = remove_like(how, to, v);
    json_array_foreach ((json_t *)patch, i, v)
        if (ok && json_object_get(v, DIRECTIVE) == NULL && json_array_size(to) < n &&
            strategic_find(how, to, v) < 0)
            ok = json_array_append(to, v) == 0;
    if (ok)
        return to;
    json_decref(to);
    return NULL;
}

json_t *strategic_ordered_list(struct strategic_run *run, const struct strategic_list *how,
                               const json_t *list, const json_t *patch, const json_t *order)
{
    json_t *merged = NULL, *to = NULL, *none = NULL, *live = NULL;

    if (!can_order(run, how, list, patch, order) || !order_names(run, how, patch, order))
        return NULL;
    if (list == NULL) {
        none = json_array();
        list = none;
        if (!strategic_clean(run, patch, true, &merged))
            merged = NULL;
    } else if (patch == NULL) {
        merged = json_incref((json_t *)list);
    } else {
        merged = strategic_list(run, how, list, patch, false);
    }
    if (merged != NULL && json_array_size(merged) == 0)
        to = json_incref(merged);
    else if (merged != NULL && list != NULL && one_type(run, list, merged) &&
             (how->merge_key == NULL || have_keys(run, how->merge_key, merged)) &&
             (live = worked_on(how, list, patch)) != NULL)
        to = strategic_in_order(how, merged, order, live);
    json_decref(none);
    json_decref(live);
    json_decref(merged);
    return to;
}
