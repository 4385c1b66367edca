/* SPDX-License-Identifier: Apache-2.0 */
/* Strategic merge patch, the elements of lists: which are the same, and the order of a merged list. */
#include "agent/api/patch/strategic.h"

const json_t *strategic_identity(const struct strategic_list *how, const json_t *element)
{
    return how->merge_key != NULL ? json_object_get(element, how->merge_key) : element;
}

bool strategic_same(const json_t *a, const json_t *b)
{
    return a != NULL && b != NULL && json_equal(a, b);
}

ssize_t strategic_find(const struct strategic_list *how, const json_t *list, const json_t *element)
{
    const json_t *id = strategic_identity(how, element);

    for (size_t i = 0; i < json_array_size(list); i++)
        if (strategic_same(strategic_identity(how, json_array_get(list, i)), id))
            return (ssize_t)i;
    return -1;
}

bool strategic_take(const struct strategic_list *how, json_t *to, const json_t *from, const json_t *names,
                    bool in)
{
    json_t *v;
    size_t i;

    json_array_foreach ((json_t *)from, i, v)
        if ((strategic_find(how, names, v) >= 0) == in && json_array_append(to, v) != 0)
            return false;
    return true;
}

/* The elements of `from` in the order in which `order` names them; all are named. */
static json_t *sorted(const struct strategic_list *how, const json_t *from, const json_t *order)
{
    json_t *to = json_array(), *v, *other;
    size_t i, k;

    json_array_foreach ((json_t *)order, i, v) {
        if (strategic_find(how, order, v) != (ssize_t)i)
            continue; /* named before */
        json_array_foreach ((json_t *)from, k, other)
            if (to != NULL && strategic_same(strategic_identity(how, v), strategic_identity(how, other)) &&
                json_array_append(to, other) != 0) {
                json_decref(to);
                to = NULL;
            }
    }
    return to;
}

/* Both keep their order; an element of `others` is placed before an element of `named` that follows it in
 * `live`. */
static json_t *interleave(const struct strategic_list *how, const json_t *others, const json_t *named,
                          const json_t *live)
{
    size_t i = 0, k = 0;
    json_t *to = json_array();

    while (to != NULL && (i < json_array_size(others) || k < json_array_size(named))) {
        json_t *other = json_array_get(others, i), *name = json_array_get(named, k);
        ssize_t a = other != NULL ? strategic_find(how, live, other) : -1,
                b = name != NULL ? strategic_find(how, live, name) : -1;
        bool before = name == NULL || (other != NULL && a >= 0 && b >= 0 && a < b);

        if (json_array_append(to, before ? other : name) != 0) {
            json_decref(to);
            return NULL;
        }
        i += before;
        k += !before;
    }
    return to;
}

json_t *strategic_in_order(const struct strategic_list *how, const json_t *merged, const json_t *order,
                           const json_t *live)
{
    json_t *named = json_array(), *others = json_array(), *by_patch = NULL, *by_live = NULL, *to = NULL;

    if (named != NULL && others != NULL && strategic_take(how, named, merged, order, true) &&
        strategic_take(how, others, merged, order, false)) {
        by_patch = sorted(how, named, order);
        by_live = sorted(how, others, live);
        to = by_patch != NULL && by_live != NULL ? interleave(how, by_live, by_patch, live) : NULL;
    }
    json_decref(named);
    json_decref(others);
    json_decref(by_patch);
    json_decref(by_live);
    return to;
}
