/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/claim_resize.h"

#include "agent/kube/decide/patch.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

static bool is_resize_condition(const char *type)
{
    static const char *const types[] = { "FileSystemResizePending", "Resizing", "ControllerResizeError",
                                         "NodeResizeError" };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (str_eq(type, types[i]))
            return true;
    return false;
}

static void put_list(json_t *status, const char *name, json_t *list)
{
    if (json_array_size(list) > 0)
        json_object_set(status, name, list);
    else
        json_object_del(status, name);
    json_decref(list);
}

/* Conditions of a resize that ended go. */
static void drop_conditions(json_t *status)
{
    json_t *list = json_array(), *c;
    size_t i;

    json_array_foreach (json_object_get(status, "conditions"), i, c)
        if (!is_resize_condition(json_str(c, "type")))
            json_array_append(list, c);
    put_list(status, "conditions", list);
}

/* One with the same text stays as it is: each try would write it anew. */
static void add_error(json_t *status, const char *error, const char *now)
{
    json_t *list = json_array(), *c;
    char text[1200];
    size_t i;

    snprintf(text, sizeof(text), "failed to expand pvc with %.1100s", error != NULL ? error : "");
    json_array_foreach (json_object_get(status, "conditions"), i, c) {
        if (!str_eq(json_str(c, "type"), "NodeResizeError")) {
            json_array_append(list, c);
        } else if (str_eq(json_str(c, "message"), text)) {
            json_decref(list);
            return;
        }
    }
    json_array_append_new(list, json_pack("{s:s, s:s, s:n, s:s, s:o}", "type", "NodeResizeError", "status",
                                          "True", "lastProbeTime", "lastTransitionTime", now, "message",
                                          json_string_of(text)));
    put_list(status, "conditions", list);
}

static void set_progress(json_t *status, const char *state)
{
    json_t *all = json_object_get(status, "allocatedResourceStatuses");

    if (all == NULL) {
        all = json_object();
        json_object_set_new(status, "allocatedResourceStatuses", all);
    }
    json_object_set_new(all, "storage", json_string(state));
}

static void set_done(json_t *status, const char *size)
{
    json_t *capacity = json_object_get(status, "capacity"),
           *all = json_object_get(status, "allocatedResourceStatuses");

    if (capacity == NULL) {
        capacity = json_object();
        json_object_set_new(status, "capacity", capacity);
    }
    json_put_str(capacity, "storage", size);
    json_object_del(all, "storage");
    if (json_object_size(all) == 0)
        json_object_del(status, "allocatedResourceStatuses");
    drop_conditions(status);
}

json_t *claim_resize_status(const json_t *status, const json_t *resize, const char *now)
{
    const char *state = json_str(resize, "state"), *size = json_str(resize, "size"),
               *error = json_str(resize, "error");
    json_t *to = status != NULL ? json_deep_copy(status) : json_object();

    if (to == NULL)
        return NULL;
    if (str_eq(state, "progress")) {
        set_progress(to, "NodeResizeInProgress");
    } else if (str_eq(state, "done") && size != NULL) {
        set_done(to, size);
    } else if (str_eq(state, "failed") || str_eq(state, "infeasible")) {
        set_progress(to, str_eq(state, "failed") ? "NodeResizeInProgress" : "NodeResizeInfeasible");
        add_error(to, error, now);
    } else {
        json_decref(to);
        return NULL;
    }
    return to;
}

json_t *claim_resize_patch(const json_t *claim, const json_t *resize, const char *now)
{
    const json_t *before = json_object_get(claim, "status"), *meta = json_object_get(claim, "metadata");
    json_t *status = claim_resize_status(before, resize, now), *inner;

    if (status == NULL)
        return NULL;
    inner = patch_two_way(before, status);
    json_decref(status);
    if (json_object_size(inner) > 0)
        return json_pack("{s:{s:s*, s:s*}, s:o}", "metadata", "uid", json_str(meta, "uid"), "resourceVersion",
                         json_str(meta, "resourceVersion"), "status", inner);
    json_decref(inner);
    return NULL;
}
