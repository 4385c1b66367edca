/* SPDX-License-Identifier: Apache-2.0 */
/* Types: the meaning of a table's row for server-side apply; the check of a value; its fields. */
#include "agent/api/patch/apply/typed.h"

#include "agent/api/patch/apply/fields.h"
#include "agent/api/patch/go_text.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

/* ---- types ---- */

struct typed typed_root(const struct api_schema *table)
{
    return (struct typed){ .form = TYPED_OBJECT, .atomic = table->atomic, .table = table };
}

static struct typed list_of(const struct api_row *row)
{
    const char *keys = row->list_keys != NULL ? row->list_keys : row->merge_key;
    struct typed t = { .form = TYPED_LIST, .atomic = true, .table = row->nested };

    if (row->nested == NULL)
        t.atomic = (row->flags & API_SET) == 0;
    else if (keys != NULL && keys[0] != '\0')
        t.atomic = false;
    t.keys = t.atomic || row->nested == NULL ? NULL : keys;
    return t;
}

static struct typed of_row(const struct api_row *row)
{
    struct typed t = { .form = TYPED_ANY };

    switch (row->type) {
    case API_STRING:
    case API_ENUM:
        t.form = TYPED_STRING;
        return t;
    case API_INT32:
    case API_INT64:
        t.form = TYPED_NUMBER;
        return t;
    case API_BOOL:
        t.form = TYPED_BOOL;
        return t;
    case API_QUANTITY:
    case API_INT_OR_STRING:
        t.form = TYPED_SCALAR;
        return t;
    case API_OBJECT:
        return typed_root(row->nested);
    case API_LIST:
        return list_of(row);
    case API_STRINGS:
        t = list_of(row);
        t.element = TYPED_STRING;
        return t;
    case API_INT32S:
    case API_INT64S:
        t = list_of(row);
        t.element = TYPED_NUMBER;
        return t;
    case API_STRING_MAP:
    case API_BYTES_MAP:
    case API_RESOURCES:
        t.form = TYPED_MAP;
        t.atomic = (row->flags & API_ATOMIC) != 0;
        t.element = row->type == API_RESOURCES ? TYPED_SCALAR : TYPED_STRING;
        return t;
    case API_ANY:
        break;
    }
    return t;
}

struct typed typed_member(const struct typed *t, const char *name, bool *ret_known)
{
    const struct api_row *row = t->form == TYPED_OBJECT ? api_row_find(t->table, name) : NULL;

    *ret_known = row != NULL;
    if (row != NULL)
        return of_row(row);
    return (struct typed){ .form = t->form == TYPED_MAP ? t->element : TYPED_ANY };
}

struct typed typed_element(const struct typed *t)
{
    if (t->table != NULL)
        return typed_root(t->table);
    return (struct typed){ .form = t->element };
}

struct typed typed_of_value(const struct typed *t, const json_t *v)
{
    if (t->form != TYPED_ANY)
        return *t;
    if (json_is_object(v))
        return (struct typed){ .form = TYPED_MAP, .element = TYPED_ANY };
    if (json_is_array(v))
        return (struct typed){ .form = TYPED_LIST, .atomic = true, .element = TYPED_ANY };
    return (struct typed){ .form = TYPED_SCALAR };
}

/* ---- elements of lists ---- */

/* One key of an element: its value, the table's default, or Go's zero: a new reference. */
static json_t *key_value(const struct typed *t, const json_t *element, const char *name)
{
    json_t *v = json_object_get(element, name);
    const struct api_row *row = api_row_find(t->table, name);

    if (v != NULL)
        return json_incref(v);
    if (row != NULL && (row->type == API_INT32 || row->type == API_INT64))
        return json_integer(0);
    return json_string(row != NULL && row->otherwise != NULL ? row->otherwise : "");
}

static char *keyed_path(const struct typed *t, const json_t *element)
{
    char names[100], *save = NULL, *text;
    json_t *keys = json_object(), *v;

    snprintf(names, sizeof(names), "%s", t->keys);
    for (char *name = strtok_r(names, ",", &save); name != NULL; name = strtok_r(NULL, ",", &save)) {
        v = key_value(t, element, name);
        if (v == NULL || json_object_set_new(keys, name, v) != 0) {
            json_decref(keys);
            return NULL;
        }
    }
    text = fields_key(keys);
    json_decref(keys);
    return text;
}

char *typed_element_path(const struct typed *t, const json_t *element, bool *ret_missing)
{
    *ret_missing = false;
    if (t->keys != NULL && json_is_object(element))
        return keyed_path(t, element);
    if (t->keys == NULL && !json_is_object(element) && !json_is_array(element) && !json_is_null(element))
        return fields_value(element);
    *ret_missing = true;
    return NULL;
}

/* ---- check ---- */

struct checker {
    json_t *problems;
    struct buf path;
    bool duplicates;
    bool failed; /* out of memory */
};

static void problem(struct checker *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void problem(struct checker *c, const char *fmt, ...)
{
    buf_auto b = BUF_INIT(GO_TEXT_MAX);
    va_list ap;

    buf_addf(&b, "%s: ", c->path.p);
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    if (b.failed || json_array_append_new(c->problems, json_string_of(b.p)) != 0)
        c->failed = true;
}

static void check(struct checker *c, const struct typed *type, const json_t *v);

static void check_below(struct checker *c, const char *element, const struct typed *type, const json_t *v)
{
    size_t n = c->path.n;

    fields_add_text(&c->path, element);
    check(c, type, v);
    c->path.n = n;
    c->path.p[n] = '\0';
}

static void check_map(struct checker *c, const struct typed *t, const json_t *v)
{
    const char *name;
    json_t *member;

    json_object_foreach ((json_t *)v, name, member) {
        str_auto element = str_printf("f:%s", name);
        bool known;
        struct typed below = typed_member(t, name, &known);
        size_t n = c->path.n;

        if (element == NULL) {
            c->failed = true;
            return;
        }
        if (t->form == TYPED_OBJECT && !known) {
            fields_add_text(&c->path, element);
            problem(c, "field not declared in schema");
            c->path.n = n;
            c->path.p[n] = '\0';
            return; /* the first one ends the object */
        }
        check_below(c, element, &below, member);
    }
}

/* The path of an element, whose duplicates are reported; NULL: it has none, which is reported, too. */
static char *check_key(struct checker *c, const struct typed *t, const json_t *v, size_t i, json_t *seen)
{
    bool missing;
    char *path = typed_element_path(t, v, &missing);
    buf_auto text = BUF_INIT(GO_TEXT_MAX);

    if (missing && t->keys == NULL) {
        problem(c, "element %zu: associative list without keys has an element that's %s", i,
                json_is_null(v) ? "an explicit null" : "no scalar");
    } else if (missing) {
        problem(c, "element %zu: associative list with keys may not have %s", i,
                json_is_null(v) ? "a null element" : "non-map elements");
    } else if (path == NULL) {
        c->failed = true;
    } else if (json_object_get(seen, path) != NULL && !c->duplicates) {
        fields_add_text(&text, path);
        problem(c, "duplicate entries for key %s", text.p);
    } else if (json_object_set_new(seen, path, json_true()) != 0) {
        c->failed = true;
    }
    return path;
}

static void check_list(struct checker *c, const struct typed *t, const json_t *v)
{
    struct typed below = typed_element(t);
    json_t *seen = json_object(), *element;
    size_t i, n = c->path.n;

    json_array_foreach ((json_t *)v, i, element) {
        mem_auto char *path = NULL;

        if (t->atomic) {
            buf_addf(&c->path, "[%zu]", i);
            check(c, &below, element);
            c->path.n = n;
            c->path.p[n] = '\0';
            continue;
        }
        path = check_key(c, t, element, i, seen);
        if (path == NULL)
            break;
        check_below(c, path, &below, element);
    }
    json_decref(seen);
}

static void check(struct checker *c, const struct typed *type, const json_t *v)
{
    struct typed t = typed_of_value(type, v);
    str_auto shown = NULL;

    if (c->failed || c->path.failed || json_is_null(v)) {
        c->failed = c->failed || c->path.failed;
        return;
    }
    if ((t.form == TYPED_OBJECT || t.form == TYPED_MAP) && json_is_object(v)) {
        check_map(c, &t, v);
        return;
    }
    if (t.form == TYPED_LIST && json_is_array(v)) {
        check_list(c, &t, v);
        return;
    }
    shown = go_text(v);
    if (t.form == TYPED_OBJECT || t.form == TYPED_MAP)
        problem(c, "expected map, got &{%s}", shown != NULL ? shown : "");
    else if (t.form == TYPED_LIST)
        problem(c, "expected list, got &{%s}", shown != NULL ? shown : "");
    else if (t.form == TYPED_STRING && !json_is_string(v))
        problem(c, "expected string, got &value.valueUnstructured{Value:%s}", shown != NULL ? shown : "");
    else if (t.form == TYPED_NUMBER && !json_is_number(v))
        problem(c, "expected numeric (int or float), got %s", go_type(v));
    else if (t.form == TYPED_BOOL && !json_is_boolean(v))
        problem(c, "expected boolean, got &{%s}", shown != NULL ? shown : "");
    else if (json_is_object(v) || json_is_array(v))
        problem(c, "expected any scalar, got &{%s}", shown != NULL ? shown : "");
}

bool typed_check(const struct typed *t, const json_t *v, bool duplicates, json_t **ret)
{
    struct checker c = { .problems = json_array(), .path = BUF_INIT(GO_TEXT_MAX), .duplicates = duplicates };

    buf_adds(&c.path, "");
    if (c.problems != NULL)
        check(&c, t, v);
    buf_done(&c.path);
    if (c.problems == NULL || c.failed) {
        json_decref(c.problems);
        return false;
    }
    *ret = c.problems;
    return true;
}

/* ---- fields ---- */

/* The fields below a value; *ret_self: the value itself is one. */
static json_t *fields_of(const struct typed *type, const json_t *v, bool *ret_self);

static bool fields_of_map(const struct typed *t, const json_t *v, json_t *set)
{
    const char *name;
    json_t *member;

    json_object_foreach ((json_t *)v, name, member) {
        str_auto element = str_printf("f:%s", name);
        bool known, self;
        struct typed type = typed_member(t, name, &known);
        json_t *below = element != NULL ? fields_of(&type, member, &self) : NULL;

        if (below == NULL)
            return false;
        self = self || !known || json_is_null(member) ||
               (json_is_object(member) && json_object_size(member) == 0);
        if (!fields_put(set, element, self, below))
            return false;
    }
    return true;
}

/* How often each path occurs in a list; NULL: out of memory. */
static json_t *count_paths(const struct typed *t, const json_t *v)
{
    json_t *counts = json_object(), *element;
    size_t i;

    json_array_foreach ((json_t *)v, i, element) {
        bool missing;
        mem_auto char *path = typed_element_path(t, element, &missing);

        if (path == NULL && missing)
            continue;
        if (path == NULL ||
            json_object_set_new(counts, path,
                                json_integer(json_integer_value(json_object_get(counts, path)) + 1)) != 0) {
            json_decref(counts);
            return NULL;
        }
    }
    return counts;
}

static bool fields_of_list(const struct typed *t, const json_t *v, json_t *set)
{
    json_t *counts = count_paths(t, v), *element;
    struct typed type = typed_element(t);
    bool ok = counts != NULL;
    size_t i;

    json_array_foreach ((json_t *)v, i, element) {
        bool missing, self;
        mem_auto char *path = typed_element_path(t, element, &missing);
        json_t *below = NULL;

        if (path == NULL)
            continue;
        if (json_integer_value(json_object_get(counts, path)) == 1)
            below = fields_of(&type, element, &self);
        ok = ok && fields_put(set, path, true, below);
    }
    json_decref(counts);
    return ok;
}

static json_t *fields_of(const struct typed *type, const json_t *v, bool *ret_self)
{
    struct typed t = typed_of_value(type, v);
    json_t *set = json_object();
    bool ok = set != NULL;

    *ret_self = t.atomic || (t.form != TYPED_OBJECT && t.form != TYPED_MAP && t.form != TYPED_LIST);
    if (*ret_self)
        return set;
    if (t.form == TYPED_LIST)
        ok = ok && fields_of_list(&t, v, set);
    else
        ok = ok && fields_of_map(&t, v, set);
    if (ok)
        return set;
    json_decref(set);
    return NULL;
}

json_t *typed_fields(const struct typed *t, const json_t *v)
{
    bool self;

    return fields_of(t, v, &self);
}

json_t *typed_with_named(const struct typed *t, const json_t *set)
{
    json_t *to = json_object(), *node, *below;
    const char *element;

    json_object_foreach ((json_t *)set, element, node) {
        struct typed type = { .form = TYPED_ANY };
        bool known = false;

        if (strcmp(element, ".") == 0)
            continue;
        if (element[0] == 'f')
            type = typed_member(t, element + 2, &known);
        else if (element[0] == 'k')
            type = typed_element(t);
        below = typed_with_named(&type, node);
        if (to == NULL || below == NULL ||
            !fields_put(to, element, fields_has(set, element) || (known && !fields_empty(node)), below)) {
            json_decref(to);
            return NULL;
        }
    }
    return to;
}
