/* SPDX-License-Identifier: Apache-2.0 */
/* The managers of an object while one of them writes: structured-merge-diff's Updater, for objects of one
 * version.  Entries of another version stay as they are. */
#include "agent/api/patch/apply/work.h"

#include "agent/api/patch/apply/fields.h"
#include "agent/api/patch/apply/managed.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

void work_done(struct work *w)
{
    json_decref(w->entries);
    json_decref(w->status);
    json_decref(w->zero);
    json_decref(w->reset);
}

/* Never part of a manager's fields. */
json_t *work_stripped(void)
{
    return json_pack("{s:{}, s:{}, s:{s:{}, s:{}, s:{}, s:{}, s:{}, s:{}, s:{}, s:{}, s:{}, s:{}}}",
                     "f:apiVersion", "f:kind", "f:metadata", ".", "f:name", "f:namespace",
                     "f:creationTimestamp", "f:selfLink", "f:uid", "f:clusterName", "f:generation",
                     "f:managedFields", "f:resourceVersion");
}

static bool is_status(const struct work *w)
{
    return str_eq(w->by->subresource, "status");
}

bool work_begin(struct work *w)
{
    bool has_status = api_row_find(w->kind->schema, "status") != NULL;

    w->type = typed_root(w->kind->schema);
    w->zero = json_loads(w->kind->zero, 0, NULL);
    if (is_status(w) && str_eq(w->kind->row->kind, "Deployment"))
        w->reset = json_pack("{s:{}, s:{s:{}}}", "f:spec", "f:metadata", "f:labels");
    else if (is_status(w) && str_eq(w->kind->row->kind, "Pod"))
        w->reset = json_pack("{s:{}, s:{s:{}, s:{}}}", "f:spec", "f:metadata", "f:deletionTimestamp",
                             "f:ownerReferences");
    else if (is_status(w))
        w->reset = json_pack("{s:{}}", "f:spec");
    else if (has_status)
        w->reset = json_pack("{s:{}}", "f:status");
    else
        w->reset = json_object();
    return w->zero != NULL && w->reset != NULL;
}

/* ---- fields that a path of the API can change ---- */

/* Of a set only the part below spec.<list>; with `each`: of each element only these members. */
static json_t *below_lists(const json_t *set, const char *const *lists, const char *const *each)
{
    json_t *spec = json_object(), *to = json_object(), *element, *node, *kept;
    const json_t *from = fields_below(set, "f:spec"), *list;
    const char *path;
    bool ok = spec != NULL && to != NULL;

    for (size_t i = 0; ok && lists[i] != NULL; i++) {
        list = json_object_get(from, lists[i]);
        if (list == NULL)
            continue;
        if (each == NULL) {
            ok = json_object_set_new(spec, lists[i], json_deep_copy(list)) == 0;
            continue;
        }
        kept = json_object();
        json_object_foreach ((json_t *)list, path, node) {
            element = json_object();
            for (size_t k = 0; each[k] != NULL; k++)
                if (json_object_get(node, each[k]) != NULL)
                    ok = ok && json_object_set_new(element, each[k],
                                                   json_deep_copy(json_object_get(node, each[k]))) == 0;
            ok = fields_put(kept, path, false, element) && ok;
        }
        ok = fields_put(spec, lists[i], false, kept) && ok;
    }
    if (ok && fields_put(to, "f:spec", false, spec))
        return to;
    if (!ok)
        json_decref(spec);
    json_decref(to);
    return NULL;
}

static json_t *filtered(const struct work *w, const json_t *set)
{
    static const char *const debug[] = { "f:ephemeralContainers", NULL };
    static const char *const containers[] = { "f:containers", "f:initContainers", NULL };
    static const char *const resized[] = { "f:resources", "f:resizePolicy", NULL };

    if (str_eq(w->by->subresource, "ephemeralcontainers"))
        return below_lists(set, debug, NULL);
    if (str_eq(w->by->subresource, "resize"))
        return below_lists(set, containers, resized);
    return fields_without(set, w->reset);
}

bool work_filter(const struct work *w, json_t **set)
{
    json_t *kept = filtered(w, *set);

    if (kept == NULL)
        return false;
    json_decref(*set);
    *set = kept;
    return true;
}

/* ---- the managers after a change ---- */

/* Puts `a` minus `b` into an entry. */
static bool take_away(struct work *w, size_t index, const json_t *b)
{
    return managed_put(w->entries, index,
                       fields_difference(managed_set(json_array_get(w->entries, index)), b));
}

bool work_is_other(const struct work *w, const json_t *entry, const json_t *self)
{
    return entry != self && str_eq(json_str(entry, "apiVersion"), w->kind->row->api_version);
}

/* Others lose changed and removed fields; managers without fields are removed. `self` is left alone. */
bool work_settle(struct work *w, const struct typed_change *c, const json_t *self)
{
    json_t *changed = fields_union(c->modified, c->added), *gone = fields_union(changed, c->removed);
    bool ok = gone != NULL;

    for (size_t i = json_array_size(w->entries); ok && i-- > 0;) {
        const json_t *entry = json_array_get(w->entries, i);

        if (work_is_other(w, entry, self))
            ok = take_away(w, i, gone);
        else if (fields_empty(managed_set(entry)) && entry != self)
            ok = json_array_remove(w->entries, i) == 0;
    }
    json_decref(changed);
    json_decref(gone);
    return ok;
}

bool work_compare(const struct work *w, const json_t *from, const json_t *to, struct typed_change *c)
{
    if (!typed_compare(&w->type, from, to, c))
        return false;
    if (work_filter(w, &c->removed) && work_filter(w, &c->modified) && work_filter(w, &c->added))
        return true;
    typed_change_done(c);
    return false;
}

/* ---- updates ---- */

/* The fields that an update adds to its manager: changed ones, without those that no manager may own. */
static json_t *fields_of_update(const struct typed_change *c)
{
    json_t *all = fields_union(c->modified, c->added), *no_one = work_stripped(), *to = NULL;

    if (all != NULL && no_one != NULL)
        to = fields_difference(all, no_one);
    json_decref(all);
    json_decref(no_one);
    return to;
}

/* Adds a set to the manager's entry, at this time; makes the entry if need be.  `set` is stolen. */
static bool add_to(struct work *w, const char *manager, json_t *set)
{
    json_t *entry = managed_entry(manager, "Update", w->kind->row->api_version, w->by->subresource);
    ssize_t at = entry != NULL ? managed_find(w->entries, entry) : -1;
    json_t *to = NULL;

    if (entry != NULL && at < 0 && json_array_append(w->entries, entry) == 0)
        at = (ssize_t)json_array_size(w->entries) - 1;
    json_decref(entry);
    if (at < 0) {
        json_decref(set);
        return false;
    }
    to = json_array_get(w->entries, (size_t)at);
    if (!json_put_str(to, "time", w->by->now)) {
        json_decref(set);
        return false;
    }
    json_t *sum = fields_union(managed_set(to), set);

    json_decref(set);
    return managed_put(w->entries, (size_t)at, sum);
}

/* The managers after an update from one object to another. */
bool work_update(struct work *w, const char *manager, const json_t *from, const json_t *to)
{
    struct typed_change c = { .removed = NULL };
    json_t *set = NULL;
    bool ok;

    if (!work_compare(w, from, to, &c))
        return false;
    ok = work_settle(w, &c, NULL);
    set = ok ? fields_of_update(&c) : NULL;
    typed_change_done(&c);
    if (set == NULL)
        return false;
    if (!fields_empty(set))
        ok = add_to(w, manager, set);
    else
        json_decref(set);
    return ok && managed_cap(w->entries);
}

/* A copy without metadata.managedFields. */
json_t *work_without_managers(const json_t *object)
{
    json_t *to = json_copy((json_t *)object), *meta = json_object_get(object, "metadata");

    if (to == NULL || !json_is_object(meta))
        return to;
    meta = json_copy(meta);
    if (meta == NULL || json_object_set_new(to, "metadata", meta) != 0) {
        json_decref(to);
        return NULL;
    }
    json_object_del(meta, "managedFields");
    return to;
}

const json_t *work_managers_of(const json_t *object)
{
    return json_object_get(json_object_get(object, "metadata"), "managedFields");
}

bool work_set_managers(json_t *object, const json_t *entries)
{
    json_t *meta = json_object_get(object, "metadata");

    if (json_array_size(entries) == 0) {
        json_object_del(meta, "managedFields");
        return true;
    }
    if (!json_is_object(meta)) {
        meta = json_object();
        if (meta == NULL || json_object_set_new(object, "metadata", meta) != 0)
            return false;
    }
    return json_object_set_new(meta, "managedFields", managed_encode(entries)) == 0;
}
