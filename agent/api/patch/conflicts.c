/* SPDX-License-Identifier: Apache-2.0 */
/* Conflicts of an apply with other managers. */
#include "agent/api/patch/fields.h"
#include "agent/api/patch/managed.h"
#include "agent/api/patch/tree.h"
#include "agent/api/patch/work.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

#define CONFLICTS_MAX 1000 /* causes of one Status */

/* The fields that other managers have and that change: a list of {entry, set}; NULL: out of memory. */
static json_t *all_conflicts(const struct work *w, const struct typed_change *c, const json_t *self)
{
    json_t *changed = fields_union(c->modified, c->added), *list = json_array(), *entry, *both;
    size_t i;

    json_array_foreach (w->entries, i, entry) {
        if (list == NULL || !work_is_other(w, entry, self))
            continue;
        both = fields_intersection(managed_set(entry), changed);
        if (both != NULL && fields_empty(both)) {
            json_decref(both);
            continue;
        }
        if (both == NULL ||
            json_array_append_new(list, json_pack("{s:O, s:o}", "entry", entry, "set", both)) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    json_decref(changed);
    return list;
}

/* The fields that a client-side apply has set and that still have its values; NULL: there was none, or no
 * memory. */
static json_t *fields_last_applied(const struct work *w, const json_t *live)
{
    const json_t *notes = json_object_get(json_object_get(live, "metadata"), "annotations");
    const char *text = json_str(notes, LAST_APPLIED);
    json_t *last = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL, *set, *gone, *kept;
    struct typed_change c = { .removed = NULL };

    if (!json_is_object(last) || tree_depth(last, API_PATCH_DEPTH) > API_PATCH_DEPTH ||
        !str_eq(json_str(last, "apiVersion"), w->kind->row->api_version) ||
        !typed_compare(&w->type, last, live, &c)) {
        json_decref(last);
        return NULL;
    }
    set = typed_fields(&w->type, last);
    for (size_t i = 0; i < 3; i++) {
        gone = i == 0 ? c.removed : i == 1 ? c.modified : c.added;
        kept = set != NULL ? fields_difference(set, gone) : NULL;
        json_decref(set);
        set = kept;
    }
    typed_change_done(&c);
    json_decref(last);
    return set;
}

/* kubectl takes over what it applied from the client's side: those conflicts go, if all go.  False: out of
 * memory. */
static bool hand_over(const struct work *w, const json_t *live, json_t *conflicts)
{
    json_t *mine = NULL, *left, *conflict;
    bool ok = true;

    if (!str_eq(w->by->name, "kubectl") || json_array_size(conflicts) == 0)
        return true;
    mine = fields_last_applied(w, live);
    for (size_t i = json_array_size(conflicts); ok && mine != NULL && i-- > 0;) {
        conflict = json_array_get(conflicts, i);
        left = fields_difference(json_object_get(conflict, "set"), mine);
        ok = left != NULL && json_object_set_new(conflict, "set", left) == 0;
        if (ok && fields_empty(left))
            ok = json_array_remove(conflicts, i) == 0;
    }
    json_decref(mine);
    return ok;
}

json_t *conflicts_find(const struct work *w, const struct typed_change *c, const json_t *live,
                       const json_t *self)
{
    json_t *list = all_conflicts(w, c, self);

    if (list != NULL && hand_over(w, live, list))
        return list;
    json_decref(list);
    return NULL;
}

/* ---- their messages ---- */

struct conflict_texts {
    json_t *causes, *paths; /* causes of all; paths of one manager */
    const char *manager;    /* `"m1" using apps/v1` */
};

static bool add_cause(void *arg, const char *path)
{
    struct conflict_texts *t = arg;
    json_t *cause;

    if (json_array_size(t->causes) >= CONFLICTS_MAX)
        return true;
    cause = api_status_cause("FieldManagerConflict", path, "conflict with %s", t->manager);
    return cause != NULL && json_array_append_new(t->causes, cause) == 0 &&
           json_array_append_new(t->paths, json_string_of(path)) == 0;
}

static char *manager_text(const json_t *entry)
{
    const char *subresource = json_str(entry, "subresource"), *name = json_str(entry, "manager");
    bool update = str_eq(json_str(entry, "operation"), "Update");

    return str_printf("\"%s\"%s%s%s%s%s", name != NULL ? name : "",
                      subresource != NULL ? " with subresource \"" : "",
                      subresource != NULL ? subresource : "", subresource != NULL ? "\"" : "",
                      update ? " using " : "", update ? json_str(entry, "apiVersion") : "");
}

/* Appends one manager's conflicts: its causes, and lines of the message. */
static bool add_conflicts(const json_t *conflict, json_t *causes, struct buf *lines)
{
    str_auto manager = manager_text(json_object_get(conflict, "entry"));
    struct conflict_texts t = { .causes = causes, .paths = json_array(), .manager = manager };
    json_t *path;
    bool ok;
    size_t i;

    ok = manager != NULL && t.paths != NULL && fields_each(json_object_get(conflict, "set"), add_cause, &t);
    buf_addf(lines, "%sconflicts with %s:", lines->n > 0 ? "\n" : "", manager != NULL ? manager : "");
    json_array_foreach (t.paths, i, path)
        buf_addf(lines, "\n- %s", json_string_value(path));
    json_decref(t.paths);
    return ok;
}

/* In the order of their managers. */
static bool sort_conflicts(json_t *conflicts)
{
    for (size_t i = 1; i < json_array_size(conflicts); i++)
        for (size_t k = i; k > 0; k--) {
            json_t *a = json_array_get(conflicts, k - 1), *b = json_incref(json_array_get(conflicts, k));
            const char *x = json_str(json_object_get(a, "entry"), "manager"),
                       *y = json_str(json_object_get(b, "entry"), "manager");
            bool swap = strcmp(x != NULL ? x : "", y != NULL ? y : "") > 0;
            bool ok =
                !swap || (json_array_set(conflicts, k, a) == 0 && json_array_set(conflicts, k - 1, b) == 0);

            json_decref(b);
            if (!ok)
                return false;
        }
    return true;
}

json_t *conflicts_status(json_t *conflicts)
{
    buf_auto lines = BUF_INIT(4 * 1024 * 1024);
    json_t *causes = json_array(), *conflict, *one;

    size_t i, n;

    if (!sort_conflicts(conflicts)) {
        json_decref(causes);
        return NULL;
    }
    json_array_foreach (conflicts, i, conflict)
        if (causes == NULL || !add_conflicts(conflict, causes, &lines)) {
            json_decref(causes);
            return NULL;
        }
    n = json_array_size(causes);
    one = json_array_get(causes, 0);
    if (n == 1)
        return api_status(409, "Conflict", json_pack("{s:o}", "causes", causes),
                          "Apply failed with 1 conflict: %s: %s", json_str(one, "message"),
                          json_str(one, "field"));
    return api_status(409, "Conflict", json_pack("{s:o}", "causes", causes),
                      "Apply failed with %zu conflicts: %s", n, lines.p);
}
