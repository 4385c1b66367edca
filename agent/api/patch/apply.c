/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-side apply: structured-merge-diff's Updater.Apply() and the managers around it in apimachinery's
 * managedfields.
 */
#include "agent/api/patch/fields.h"
#include "agent/api/patch/managed.h"
#include "agent/api/patch/tree.h"
#include "agent/api/patch/work.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

#define BEFORE_FIRST_APPLY "before-first-apply"

/* Removes what only this manager had and no longer has.  `last` is its set before, NULL: none. */
static json_t *pruned(const struct work *w, const json_t *merged, const json_t *last)
{
    json_t *last_named = typed_with_named(&w->type, last), *all = json_object(), *named = NULL,
           *all_named = NULL;
    json_t *cut = NULL, *cut_set = NULL, *whole_set = NULL, *keep = NULL, *gone = NULL, *to = NULL, *entry,
           *sum;
    size_t i;

    cut = last_named != NULL ? typed_remove(&w->type, merged, last_named) : NULL;
    json_array_foreach (w->entries, i, entry) { /* what any manager has now stays */
        sum = fields_union(all, managed_set(entry));
        json_decref(all);
        all = sum;
    }
    all_named = all != NULL ? typed_with_named(&w->type, all) : NULL;
    named = typed_fields(&w->type, merged);
    whole_set = named != NULL ? typed_with_named(&w->type, named) : NULL;
    json_decref(named);
    named = cut != NULL ? typed_fields(&w->type, cut) : NULL;
    cut_set = named != NULL ? typed_with_named(&w->type, named) : NULL;
    if (whole_set != NULL && cut_set != NULL && all_named != NULL) {
        keep = fields_union(cut_set, all_named);
        gone = keep != NULL ? fields_difference(whole_set, keep) : NULL;
        json_decref(keep);
        keep =
            gone != NULL ? fields_intersection(gone, last_named) : NULL; /* the rest was not this manager's */
        to = keep != NULL ? typed_remove(&w->type, merged, keep) : NULL;
    }
    json_decref(last_named);
    json_decref(all);
    json_decref(all_named);
    json_decref(named);
    json_decref(cut);
    json_decref(cut_set);
    json_decref(whole_set);
    json_decref(keep);
    json_decref(gone);
    return to;
}

/* The applier's entry with the configuration's fields: its index; -1: out of memory.  *ret_last: its set
 * before, a new reference; NULL: it had none. */
static ssize_t claim(struct work *w, const json_t *config, json_t **ret_last)
{
    json_t *entry = managed_entry(w->by->name, "Apply", w->kind->row->api_version, w->by->subresource), *set;
    ssize_t at = entry != NULL ? managed_find(w->entries, entry) : -1;

    *ret_last = NULL;
    set = typed_fields(&w->type, config);
    if (set == NULL || entry == NULL || !work_filter(w, &set)) {
        at = -1;
        goto done;
    }
    if (at >= 0) {
        *ret_last = json_incref((json_t *)managed_set(json_array_get(w->entries, (size_t)at)));
        json_object_set_new(json_array_get(w->entries, (size_t)at), "apiVersion",
                            json_string(w->kind->row->api_version));
    } else if (json_array_append(w->entries, entry) == 0) {
        at = (ssize_t)json_array_size(w->entries) - 1;
    }
    if (at >= 0 && json_object_set(json_array_get(w->entries, (size_t)at), "fieldsV1", set) != 0)
        at = -1;
done:
    json_decref(entry);
    json_decref(set);
    return at;
}

/* The managers after the apply, or the Status of its conflicts. */
static bool resolve(struct work *w, const json_t *live, const json_t *object, const json_t *self, bool force)
{
    struct typed_change c = { .removed = NULL };
    json_t *conflicts = NULL;
    bool ok = work_compare(w, live, object, &c);

    if (ok) {
        conflicts = conflicts_find(w, &c, live, self);
        ok = conflicts != NULL;
    }
    if (ok && !force && json_array_size(conflicts) > 0) {
        w->status = conflicts_status(conflicts);
        ok = false;
    }
    ok = ok && work_settle(w, &c, self);
    typed_change_done(&c);
    json_decref(conflicts);
    return ok;
}

/* After an apply of kubectl the annotation of a client-side one, if there is one, is the configuration. */
static bool follow_annotation(const struct work *w, json_t **object, const json_t *config)
{
    json_t *notes = json_object_get(json_object_get(*object, "metadata"), "annotations"), *copy, *to, *line;
    const char *before = json_str(notes, LAST_APPLIED);
    mem_auto char *text = NULL;

    if (!str_eq(w->by->name, "kubectl") || before == NULL || before[0] == '\0')
        return true;
    copy = json_deep_copy(config);
    json_object_del(json_object_get(json_object_get(copy, "metadata"), "annotations"), LAST_APPLIED);
    text = copy != NULL ? json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(copy);
    line = text != NULL ? json_pack("s+", text, "\n") : NULL;
    to = json_deep_copy(*object);
    notes = json_object_get(json_object_get(to, "metadata"), "annotations");
    if (line == NULL || json_object_set_new(notes, LAST_APPLIED, line) != 0) {
        json_decref(to);
        return false;
    }
    json_decref(*object);
    *object = to;
    return true;
}

/* Takes what no manager ever has out of the applier's fields. */
static bool strip(json_t *self)
{
    json_t *no_one = work_stripped(),
           *set = no_one != NULL ? fields_difference(managed_set(self), no_one) : NULL;

    json_decref(no_one);
    return set != NULL && json_object_set_new(self, "fieldsV1", set) == 0;
}

/* The apply itself; `live` has no managers.  NULL: failed. */
static json_t *apply(struct work *w, const json_t *live, const json_t *config, bool force)
{
    json_t *last = NULL, *object = typed_merge(&w->type, live, config), *kept, *self;
    ssize_t at = object != NULL ? claim(w, config, &last) : -1;

    if (at >= 0 && last != NULL && !fields_empty(last)) {
        kept = pruned(w, object, last);
        json_decref(object);
        object = kept;
    }
    json_decref(last);
    self = at >= 0 ? json_array_get(w->entries, (size_t)at) : NULL;
    if (object == NULL || self == NULL || !resolve(w, live, object, self, force) || !strip(self) ||
        (!json_equal(live, object) && !json_put_str(self, "time", w->by->now)) ||
        !follow_annotation(w, &object, config)) {
        json_decref(object);
        return NULL;
    }
    for (size_t i = json_array_size(w->entries); i-- > 0;)
        if (fields_empty(managed_set(json_array_get(w->entries, i))))
            json_array_remove(w->entries, i);
    return object;
}

/* ---- what is checked before ---- */

static json_t *problem_status(const struct work *w, const json_t *config, const json_t *problems)
{
    const json_t *meta = json_object_get(config, "metadata");
    const char *name = json_str(meta, "name"), *namespace = json_str(meta, "namespace");
    buf_auto b = BUF_INIT(1024 * 1024);
    json_t *problem;
    size_t i;

    if (json_array_size(problems) > 1)
        buf_adds(&b, "errors:");
    json_array_foreach ((json_t *)problems, i, problem)
        buf_addf(&b, "%s%s", json_array_size(problems) > 1 ? "\n  " : "", json_string_value(problem));
    return api_status(500, NULL, NULL, "failed to create typed patch object (%s/%s; %s%s, Kind=%s): %s",
                      namespace != NULL ? namespace : "", name != NULL ? name : "",
                      w->kind->row->group[0] == '\0' ? "/" : "", w->kind->row->api_version,
                      w->kind->row->kind, b.p);
}

/* Sets w->status if the configuration cannot be applied; false only when out of memory. */
static bool check_config(struct work *w, const json_t *config)
{
    const char *version = json_str(config, "apiVersion"), *kind = json_str(config, "kind");
    json_t *problems = NULL;
    bool ok = true;

    if (!str_eq(version, w->kind->row->api_version) || !str_eq(kind, w->kind->row->kind)) {
        w->status = api_status(400, "BadRequest", NULL, "invalid object type: %s%s, Kind=%s",
                               version == NULL || strchr(version, '/') == NULL ? "/" : "",
                               version != NULL ? version : "", kind != NULL ? kind : "");
        return w->status != NULL;
    }
    if (work_managers_of(config) != NULL && !json_is_null(work_managers_of(config))) {
        w->status = api_status(400, "BadRequest", NULL, "metadata.managedFields must be nil");
        return w->status != NULL;
    }
    if (!typed_check(&w->type, config, false, &problems))
        return false;
    if (json_array_size(problems) > 0) {
        w->status = problem_status(w, config, problems);
        ok = w->status != NULL;
    }
    json_decref(problems);
    return ok;
}

static bool apply_begin(struct work *w, const json_t *live, const json_t *plain)
{
    const char *why = NULL;
    struct api_manager before = *w->by;
    const struct api_manager *by = w->by;
    bool ok;

    w->entries = managed_decode(work_managers_of(live), &why);
    if (w->entries == NULL) {
        if (why != NULL)
            w->status = api_status(500, NULL, NULL, "failed to decode managed fields: %s", why);
        return false;
    }
    if (json_array_size(w->entries) > 0 || live == NULL)
        return true;
    before.name = BEFORE_FIRST_APPLY;
    w->by = &before;
    ok = work_update(w, before.name, w->zero, plain);
    w->by = by;
    return ok;
}

enum err_code api_apply(const struct api_patch_kind *kind, const struct api_manager *by, bool force,
                        const json_t *live, const json_t *config, json_t **ret, json_t **ret_status,
                        struct err *e)
{
    struct work w = { .kind = kind, .by = by };
    json_t *plain = NULL, *object = NULL, *to = NULL;

    if (!json_is_object(config))
        return tree_fail(
            api_status(400, "BadRequest", NULL,
                       "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: "
                       "cannot unmarshal %s into Go value of type "
                       "map[string]interface {}",
                       tree_go_type(config)),
            ret_status, e);
    if ((live != NULL && tree_bounded(live, "object", ret_status, e) != ERR_OK) ||
        tree_bounded(config, "configuration", ret_status, e) != ERR_OK)
        return e->code;
    if (work_begin(&w) && check_config(&w, config) && w.status == NULL) {
        plain = live != NULL ? work_without_managers(live) : json_incref(w.zero);
        if (plain != NULL && apply_begin(&w, live, plain))
            object = apply(&w, plain, config, force);
        to = object != NULL ? json_deep_copy(object) : NULL;
        if (to != NULL && !work_set_managers(to, w.entries)) {
            json_decref(to);
            to = NULL;
        }
    }
    json_decref(plain);
    json_decref(object);
    if (to != NULL)
        *ret = to;
    else
        tree_fail(json_incref(w.status), ret_status, e);
    work_done(&w);
    return to != NULL ? ERR_OK : e->code;
}
