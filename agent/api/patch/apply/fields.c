/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/patch/apply/fields.h"

#include "agent/api/patch/patch.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

#define SELF "."
#define PATH_TEXT_MAX (64 * 1024)

/* ---- one element ---- */

static bool is_member(const json_t *node)
{
    return node != NULL && (json_object_size(node) == 0 || json_object_get(node, SELF) != NULL);
}

bool fields_has(const json_t *set, const char *element)
{
    return is_member(json_object_get(set, element));
}

const json_t *fields_below(const json_t *set, const char *element)
{
    const json_t *node = json_object_get(set, element);

    return fields_empty(node) ? NULL : node;
}

bool fields_empty(const json_t *set)
{
    size_t n = json_object_size(set);

    return n == 0 || (n == 1 && json_object_get(set, SELF) != NULL);
}

bool fields_put(json_t *set, const char *element, bool member, json_t *below)
{
    if (below == NULL || json_object_size(below) == 0) {
        json_decref(below);
        return !member || json_object_set_new(set, element, json_object()) == 0;
    }
    if (member && json_object_set_new(below, SELF, json_object()) != 0) {
        json_decref(below);
        return false;
    }
    return json_object_set_new(set, element, below) == 0;
}

/* ---- two sets ---- */

typedef json_t *(*combine_fn)(const json_t *a, const json_t *b);

/* Adds the parts of `a` and `b`, both nodes or NULL, that belong in the result. */
static bool combine_into(json_t *to, const char *element, bool member, combine_fn fn, const json_t *a,
                         const json_t *b)
{
    json_t *below = fn(a, b);

    return below != NULL && fields_put(to, element, member, below);
}

json_t *fields_union(const json_t *a, const json_t *b)
{
    json_t *to = json_object(), *node;
    const char *element;
    bool ok = to != NULL;

    json_object_foreach ((json_t *)a, element, node) {
        const json_t *other = json_object_get(b, element);

        if (strcmp(element, SELF) != 0)
            ok = ok &&
                 combine_into(to, element, is_member(node) || is_member(other), fields_union, node, other);
    }
    json_object_foreach ((json_t *)b, element, node)
        if (strcmp(element, SELF) != 0 && json_object_get(a, element) == NULL)
            ok = ok && combine_into(to, element, is_member(node), fields_union, node, NULL);
    if (ok)
        return to;
    json_decref(to);
    return NULL;
}

/* Walks through a and b in parallel. `keep` decides whether an element of a stays (*member: by itself) or at
 * least leads to remaining elements; `fn` continues below it. */
typedef bool (*keep_fn)(const json_t *node, const json_t *other, bool *member);

static json_t *walk(const json_t *a, const json_t *b, keep_fn keep, combine_fn fn)
{
    json_t *to = json_object(), *node;
    const char *element;
    bool ok = to != NULL, member;

    json_object_foreach ((json_t *)a, element, node) {
        const json_t *other = json_object_get(b, element);

        if (strcmp(element, SELF) != 0 && keep(node, other, &member))
            ok = ok && combine_into(to, element, member, fn, node, other);
    }
    if (ok)
        return to;
    json_decref(to);
    return NULL;
}

static bool keep_common(const json_t *node, const json_t *other, bool *member)
{
    *member = is_member(node) && is_member(other);
    return other != NULL;
}

json_t *fields_intersection(const json_t *a, const json_t *b)
{
    return walk(a, b, keep_common, fields_intersection);
}

static bool keep_other(const json_t *node, const json_t *other, bool *member)
{
    *member = is_member(node) && !is_member(other);
    return true;
}

json_t *fields_difference(const json_t *a, const json_t *b)
{
    return walk(a, b, keep_other, fields_difference);
}

static bool keep_outside(const json_t *node, const json_t *other, bool *member)
{
    *member = is_member(node);
    return !is_member(other);
}

json_t *fields_without(const json_t *a, const json_t *b)
{
    return walk(a, b, keep_outside, fields_without);
}

/* ---- texts ---- */

/* Go's encoder escapes <, > and &. */
static char *element_text(const char *prefix, const json_t *v)
{
    mem_auto char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    buf_auto b = BUF_INIT(PATH_TEXT_MAX);

    if (text == NULL)
        return NULL;
    buf_adds(&b, prefix);
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '<' || *p == '>' || *p == '&')
            buf_addf(&b, "\\u%04x", *p);
        else
            buf_addc(&b, *p);
    }
    return b.failed ? NULL : buf_detach(&b);
}

char *fields_key(const json_t *keys)
{
    return element_text("k:", keys);
}

char *fields_value(const json_t *value)
{
    return element_text("v:", value);
}

static void add_value(struct buf *b, const json_t *v)
{
    mem_auto char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

    if (text == NULL)
        b->failed = true;
    else
        buf_adds(b, text);
}

void fields_add_text(struct buf *b, const char *element)
{
    json_t *v, *member;
    const char *name;
    bool first = true;

    if (element[0] == 'f') {
        buf_addf(b, ".%s", element + 2);
        return;
    }
    v = json_loads(element + 2, JSON_DECODE_ANY, NULL);
    buf_addc(b, '[');
    if (element[0] == 'k') {
        json_object_foreach (v, name, member) {
            buf_addf(b, "%s%s=", first ? "" : ",", name);
            add_value(b, member);
            first = false;
        }
    } else {
        buf_addc(b, '=');
        add_value(b, v);
    }
    buf_addc(b, ']');
    json_decref(v);
}

/* ---- from outside ---- */

/* The canonical form of an element; NULL: it is none. */
static char *decode_element(const char *element)
{
    char *text = NULL;
    json_t *v;

    if (element[0] == '\0' || element[1] != ':')
        return NULL;
    if (element[0] == 'f' || element[0] == 'i')
        return strdup(element);
    v = json_loads(element + 2, JSON_DECODE_ANY, NULL);
    if (element[0] == 'k' && json_is_object(v))
        text = fields_key(v);
    else if (element[0] == 'v' && v != NULL)
        text = fields_value(v);
    json_decref(v);
    return text;
}

static json_t *decode(const json_t *v, size_t depth)
{
    json_t *to = json_is_object(v) && depth < API_PATCH_DEPTH ? json_object() : NULL, *node;
    const char *element;
    bool ok = to != NULL;

    json_object_foreach ((json_t *)v, element, node) {
        mem_auto char *canonical = NULL;
        json_t *below;

        if (!ok)
            break;
        if (strcmp(element, SELF) == 0)
            continue;
        canonical = decode_element(element);
        below = canonical != NULL ? decode(node, depth + 1) : NULL;
        ok = below != NULL && fields_put(to, canonical, is_member(node), below);
    }
    if (ok)
        return to;
    json_decref(to);
    return NULL;
}

json_t *fields_decode(const json_t *v)
{
    return decode(v, 0);
}

/* ---- each path ---- */

static int rank(char kind)
{
    return kind == 'f' ? 0 : kind == 'k' ? 1 : kind == 'v' ? 2 : 3;
}

static int by_element(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;

    return rank(x[0]) != rank(y[0]) ? rank(x[0]) - rank(y[0]) : strcmp(x, y);
}

static bool each(const json_t *set, struct buf *path, fields_fn fn, void *arg);

/* The members of a set first, then those below, as Go's sets do. */
static bool each_element(const json_t *set, const char *element, bool below, struct buf *path, fields_fn fn,
                         void *arg)
{
    const json_t *node = json_object_get(set, element);
    size_t n = path->n;
    bool ok = true;

    fields_add_text(path, element);
    if (path->failed)
        return false;
    if (!below && is_member(node))
        ok = fn(arg, path->p);
    else if (below && !fields_empty(node))
        ok = each(node, path, fn, arg);
    path->n = n;
    path->p[n] = '\0';
    return ok;
}

static bool each(const json_t *set, struct buf *path, fields_fn fn, void *arg)
{
    mem_auto const char **elements = calloc(json_object_size(set) + 1, sizeof(*elements));
    const char *element;
    json_t *node;
    size_t n = 0;
    bool ok = elements != NULL;

    if (!ok)
        return false;
    json_object_foreach ((json_t *)set, element, node)
        if (strcmp(element, SELF) != 0)
            elements[n++] = element;
    qsort(elements, n, sizeof(*elements), by_element);
    for (size_t i = 0; ok && i < n; i++)
        ok = each_element(set, elements[i], false, path, fn, arg);
    for (size_t i = 0; ok && i < n; i++)
        ok = each_element(set, elements[i], true, path, fn, arg);
    return ok;
}

bool fields_each(const json_t *set, fields_fn fn, void *arg)
{
    buf_auto path = BUF_INIT(PATH_TEXT_MAX);

    buf_adds(&path, "");
    return each(set, &path, fn, arg);
}
