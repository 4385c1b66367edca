/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.managedFields after a write that is no apply; and of a write that changed nothing. */
#include "agent/api/patch/apply/managed.h"
#include "agent/api/patch/apply/work.h"

/* [] and [{}] ask for no managers. */
static bool is_reset(const json_t *list)
{
    return json_is_array(list) &&
           (json_array_size(list) == 0 ||
            (json_array_size(list) == 1 && json_object_size(json_array_get(list, 0)) == 0));
}

/* The managers to begin with: the new object's if it has good ones, else the live one's. */
static json_t *entries_of(const struct work *w, const json_t *live, const json_t *object)
{
    const json_t *given = w->by->subresource != NULL ? NULL : work_managers_of(object);
    const char *why;
    json_t *entries;

    if (is_reset(given))
        return json_array();
    entries = given != NULL ? managed_decode(given, &why) : NULL;
    if (entries != NULL && json_array_size(entries) > 0)
        return entries;
    json_decref(entries);
    entries = managed_decode(work_managers_of(live), &why);
    return entries != NULL ? entries : json_array();
}

/* An object whose managers were never kept stays so. */
static bool update_object(struct work *w, const json_t *live, json_t *object)
{
    json_t *from, *to;
    bool ok;

    w->entries = entries_of(w, live, object);
    if (w->entries == NULL)
        return false;
    if (json_array_size(w->entries) == 0 && live != NULL)
        return work_set_managers(object, w->entries);
    from = live != NULL ? work_without_managers(live) : json_incref(w->zero);
    to = work_without_managers(object);
    ok = from != NULL && to != NULL && work_update(w, w->by->name, from, to) &&
         work_set_managers(object, w->entries);
    json_decref(from);
    json_decref(to);
    return ok;
}

enum err_code api_update_managed(const struct api_patch_kind *kind, const struct api_manager *by,
                                 const json_t *live, json_t *object, struct err *e)
{
    struct work w = { .kind = kind, .by = by };
    bool ok = work_begin(&w) && update_object(&w, live, object);

    work_done(&w);
    return ok ? ERR_OK : err_nomem(e);
}

/* ---- a write that changed nothing ---- */

static json_t *without_times(const json_t *object)
{
    json_t *to = json_deep_copy(object), *entry;
    size_t i;

    json_array_foreach ((json_t *)work_managers_of(to), i, entry)
        json_object_del(entry, "time");
    return to;
}

enum err_code api_keep_times(const json_t *live, json_t *object, bool *ret_same, struct err *e)
{
    json_t *a = without_times(live), *b = without_times(object), *meta = json_object_get(object, "metadata");
    bool ok = a != NULL && b != NULL;

    *ret_same = ok && json_equal(a, b);
    if (*ret_same && work_managers_of(live) != NULL)
        ok = json_object_set_new(meta, "managedFields", json_deep_copy(work_managers_of(live))) == 0;
    json_decref(a);
    json_decref(b);
    return ok ? ERR_OK : err_nomem(e);
}
