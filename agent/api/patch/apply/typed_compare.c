/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing two typed values: which fields were removed, modified and added. */
#include "agent/api/patch/apply/typed.h"

#include "agent/api/patch/apply/fields.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* The change below a value, and of the value itself. */
struct change {
    struct typed_change below;
    bool removed, modified, added;
};

void typed_change_done(struct typed_change *c)
{
    json_decref(c->removed);
    json_decref(c->modified);
    json_decref(c->added);
    *c = (struct typed_change){ .removed = NULL };
}

static bool change_begin(struct typed_change *c)
{
    c->removed = json_object();
    c->modified = json_object();
    c->added = json_object();
    return c->removed != NULL && c->modified != NULL && c->added != NULL;
}

/* Moves the changes of an element into the sets of its holder. */
static bool change_put(struct typed_change *to, const char *element, struct change *c)
{
    bool ok = fields_put(to->removed, element, c->removed, c->below.removed);

    ok = fields_put(to->modified, element, c->modified, c->below.modified) && ok;
    ok = fields_put(to->added, element, c->added, c->below.added) && ok;
    c->below = (struct typed_change){ .removed = NULL };
    return ok;
}

static bool compare(const struct typed *type, const json_t *from, const json_t *to, struct change *ret);

static bool compare_at(const struct typed *type, const char *element, const json_t *from, const json_t *to,
                       struct typed_change *ret)
{
    struct change c = { .removed = false };

    if (compare(type, from, to, &c))
        return change_put(ret, element, &c);
    typed_change_done(&c.below);
    return false;
}

static bool compare_maps(const struct typed *t, const json_t *from, const json_t *to,
                         struct typed_change *ret)
{
    const json_t *const sides[] = { from, to };
    const char *name;
    json_t *v;

    for (size_t k = 0; k < 2; k++) {
        json_object_foreach ((json_t *)sides[k], name, v) {
            str_auto element = str_printf("f:%s", name);
            bool known;
            struct typed type = typed_member(t, name, &known);

            if (k == 1 && json_object_get(from, name) != NULL)
                continue;
            if (element == NULL ||
                !compare_at(&type, element, json_object_get(from, name), json_object_get(to, name), ret))
                return false;
        }
    }
    return true;
}

/* The elements of a list by their paths: lists, as a path may occur more than once.  NULL: out of memory. */
static json_t *by_path(const struct typed *t, const json_t *list)
{
    json_t *map = json_object(), *element, *same;
    size_t i;

    json_array_foreach ((json_t *)list, i, element) {
        bool missing;
        mem_auto char *path = typed_element_path(t, element, &missing);

        if (path == NULL && missing)
            continue;
        same = path != NULL ? json_object_get(map, path) : NULL;
        if (path == NULL || (same == NULL && json_object_set_new(map, path, same = json_array()) != 0) ||
            json_array_append(same, element) != 0) {
            json_decref(map);
            return NULL;
        }
    }
    return map;
}

/* Elements of one path, which may be duplicates on either side. */
static bool compare_elements(const struct typed *type, const char *path, const json_t *from, const json_t *to,
                             struct typed_change *ret)
{
    size_t a = json_array_size(from), b = json_array_size(to);
    const json_t *one = a < 2 ? json_array_get(from, 0) : NULL, *other = b < 2 ? json_array_get(to, 0) : NULL;
    struct change c = { .removed = false };

    if (a < 2 && b < 2)
        return compare_at(type, path, one, other, ret);
    if (a >= 2 && b >= 2)
        return json_equal(from, to) || fields_put(ret->modified, path, true, NULL);
    if (one == NULL && other == NULL)
        return fields_put(a >= 2 ? ret->removed : ret->added, path, true, NULL);
    if (!compare(type, one, other, &c)) {
        typed_change_done(&c.below);
        return false;
    }
    c.removed = c.removed || a >= 2;
    c.added = c.added || b >= 2;
    return change_put(ret, path, &c);
}

static bool compare_lists(const struct typed *t, const json_t *from, const json_t *to,
                          struct typed_change *ret)
{
    json_t *a = by_path(t, from), *b = by_path(t, to), *same;
    struct typed type = typed_element(t);
    bool ok = a != NULL && b != NULL;
    const char *path;

    json_object_foreach (a, path, same)
        ok = ok && compare_elements(&type, path, same, json_object_get(b, path), ret);
    json_object_foreach (b, path, same)
        if (json_object_get(a, path) == NULL)
            ok = ok && compare_elements(&type, path, NULL, same, ret);
    json_decref(a);
    json_decref(b);
    return ok;
}

static bool is_empty(const json_t *v)
{
    return json_object_size(v) == 0 && json_array_size(v) == 0;
}

/* `from` or `to` may be NULL, not both. */
static bool compare(const struct typed *type, const json_t *from, const json_t *to, struct change *ret)
{
    struct typed t = typed_of_value(type, to != NULL ? to : from);
    bool holds = t.form == TYPED_OBJECT || t.form == TYPED_MAP || t.form == TYPED_LIST;

    if (!change_begin(&ret->below))
        return false;
    ret->added = from == NULL;
    ret->removed = to == NULL;
    if (t.atomic || !holds || (is_empty(from) && is_empty(to))) {
        ret->modified = from != NULL && to != NULL && !json_equal(from, to);
        return true;
    }
    return t.form == TYPED_LIST ? compare_lists(&t, from, to, &ret->below)
                                : compare_maps(&t, from, to, &ret->below);
}

bool typed_compare(const struct typed *t, const json_t *from, const json_t *to, struct typed_change *ret)
{
    struct change c = { .removed = false };

    if (!compare(t, from, to, &c)) {
        typed_change_done(&c.below);
        return false;
    }
    *ret = c.below;
    return true;
}
