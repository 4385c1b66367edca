/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/patch/write/write.h"

#include "agent/api/patch/go_text.h"
#include "agent/api/patch/tree.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One write on its way. */
struct run {
    const struct api_write *w;
    const json_t *live, *body;
    json_t *warnings;
    json_t *object; /* owned */
    json_t *status; /* owned: the failure; NULL with a false result: out of memory */
};

static bool fail(struct run *r, json_t *status)
{
    json_decref(r->status);
    r->status = status;
    return false;
}

/* ---- the change ---- */

static bool change(struct run *r)
{
    const struct api_write *w = r->w;
    struct err e = { 0 };

    switch (w->type) {
    case API_WRITE_CREATE:
    case API_WRITE_UPDATE:
        if (!json_is_object(r->body))
            return fail(r, api_status(400, "BadRequest", NULL, "the body is no object"));
        r->object = json_deep_copy(r->body);
        return r->object != NULL;
    case API_WRITE_JSON:
        return api_patch_json(r->live, r->body, &r->object, &r->status, &e) == ERR_OK;
    case API_WRITE_MERGE:
        return api_patch_merge(r->live, r->body, &r->object, &r->status, &e) == ERR_OK;
    case API_WRITE_STRATEGIC:
        return api_patch_strategic(w->kind, r->live, r->body, &r->object, &r->status, &e) == ERR_OK;
    case API_WRITE_APPLY:
        return api_apply(w->kind, &w->by, w->force, r->live, r->body, &r->object, &r->status, &e) == ERR_OK;
    }
    return false;
}

/* ---- decoding ---- */

/* The Status of an object that cannot be decoded. */
static bool undecodable(struct run *r, const json_t *shown, const char *why)
{
    const struct api_patch_kind *k = r->w->kind;
    mem_auto char *text = NULL;

    if (r->w->type == API_WRITE_CREATE || r->w->type == API_WRITE_UPDATE) {
        const char *kind = json_str(shown, "kind"), *version = json_str(shown, "apiVersion"),
                   *slash = version != NULL ? strchr(version, '/') : NULL;

        return fail(r,
                    api_status(400, "BadRequest", NULL, "%s in version \"%s\" cannot be handled as a %s: %s",
                               kind != NULL ? kind : k->row->kind,
                               slash != NULL     ? slash + 1
                               : version != NULL ? version
                                                 : k->row->version,
                               k->row->kind, why));
    }
    text = r->w->type == API_WRITE_STRATEGIC ? go_text(r->body) : json_dumps(shown, JSON_COMPACT);
    return text != NULL && fail(r, api_status_undecodable(text, why));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(json_string_value(*(json_t *const *)a), json_string_value(*(json_t *const *)b));
}

/* Unknown fields are warnings, or a failure. */
static bool tell_unknown(struct run *r, const json_t *unknown, const json_t *shown)
{
    size_t n = json_array_size(unknown), n_strict = json_array_size(r->w->strict);
    mem_auto json_t **order = calloc(n + 1, sizeof(json_t *));
    buf_auto strict = BUF_INIT(GO_TEXT_MAX);

    if (order == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        order[i] = json_array_get(unknown, i);
    qsort(order, n, sizeof(json_t *), by_text);
    if ((n == 0 && n_strict == 0) || r->w->validation == API_FIELDS_IGNORE || r->w->type == API_WRITE_APPLY)
        return true;
    buf_adds(&strict, "strict decoding error: ");
    for (size_t i = 0; i < n_strict; i++) {
        json_t *text = json_array_get(r->w->strict, i);

        if (r->w->validation == API_FIELDS_WARN && json_array_append(r->warnings, text) != 0)
            return false;
        buf_addf(&strict, "%s%s", i > 0 ? ", " : "", json_string_value(text));
    }
    for (size_t i = 0; i < n; i++) {
        str_auto text = str_printf("unknown field \"%s\"", json_string_value(order[i]));

        if (text == NULL || (r->w->validation == API_FIELDS_WARN &&
                             json_array_append_new(r->warnings, json_string_of(text)) != 0))
            return false;
        buf_addf(&strict, "%s%s", i + n_strict > 0 ? ", " : "", text);
    }
    return r->w->validation == API_FIELDS_WARN || undecodable(r, shown, strict.p);
}

/* The type of the object; members that the body may omit come from the live object. */
static bool check_type(struct run *r)
{
    const struct api_patch_kind *k = r->w->kind;
    const char *version = json_str(r->object, "apiVersion"), *kind = json_str(r->object, "kind");
    const char *own = k->row->api_version;
    const bool whole = r->w->type == API_WRITE_CREATE || r->w->type == API_WRITE_UPDATE;
    str_auto why = NULL;

    if (whole && version != NULL && kind != NULL && !(str_eq(version, own) && str_eq(kind, k->row->kind)) &&
        api_kind_of_object(version, kind) != NULL) {
        const struct api_kind_row *other = api_kind_of_object(version, kind);

        why = str_printf("converting (%s.%s) to (%s.%s): unknown conversion", other->version, other->kind,
                         k->row->group[0] != '\0' ? k->row->group : "core", k->row->kind);
        return why != NULL && undecodable(r, r->object, why);
    }
    if (version != NULL && !str_eq(version, own)) {
        why = str_printf("no kind \"%s\" is registered for version \"%s\" in scheme "
                         "\"pkg/api/legacyscheme/scheme.go:30\"",
                         kind != NULL ? kind : k->row->kind, version);
        return why != NULL && undecodable(r, r->object, why);
    }
    if (kind != NULL && !str_eq(kind, k->row->kind)) {
        why = str_printf("the object is a %s, not a %s", kind, k->row->kind);
        return why != NULL && undecodable(r, r->object, why);
    }
    return json_object_set_new(r->object, "apiVersion", json_string(own)) == 0 &&
           json_object_set_new(r->object, "kind", json_string(k->row->kind)) == 0;
}

static bool decode(struct run *r)
{
    json_t *unknown = json_array(), *shown = json_deep_copy(r->object), *why = NULL;
    struct err e = { 0 };
    bool ok = unknown != NULL && shown != NULL;

    if (ok && api_object_decode(r->w->kind, r->object, r->w->type == API_WRITE_STRATEGIC, unknown, &why,
                                &e) != ERR_OK)
        ok = why != NULL && undecodable(r, shown, json_string_value(why));
    ok = ok && tell_unknown(r, unknown, shown);
    json_decref(unknown);
    json_decref(shown);
    json_decref(why);
    return ok;
}

/* ---- metadata ---- */

static bool check_names(struct run *r, json_t *meta)
{
    const struct api_write *w = r->w;
    const char *name = json_str(meta, "name"), *namespace = json_str(meta, "namespace");

    if (w->type == API_WRITE_CREATE && name == NULL)
        name = w->name;
    else if (name == NULL)
        return fail(
            r,
            api_status(400, "BadRequest", NULL,
                       "the name of the object (%s based on URL) was undeterminable: name must be provided",
                       w->name));
    if (w->name != NULL && !str_eq(name, w->name))
        return fail(r, api_status(400, "BadRequest", NULL,
                                  "the name of the object (%s) does not match the name on the URL (%s)", name,
                                  w->name));
    if (namespace != NULL && w->namespace != NULL && !str_eq(namespace, w->namespace))
        return fail(
            r, api_status(400, "BadRequest", NULL,
                          "the namespace of the provided object does not match the namespace sent on the "
                          "request"));
    return w->namespace == NULL || json_put_str(meta, "namespace", w->namespace);
}

static bool check_uid(struct run *r, const char *uid, const char *own)
{
    const struct api_patch_kind *k = r->w->kind;
    str_auto why = NULL;
    json_t *cause;

    if (uid == NULL || str_eq(uid, own) || r->w->type == API_WRITE_CREATE) /* a new object gets its own */
        return true;
    if (own == NULL) {
        why = str_printf(
            "uid mismatch: the provided object specified uid %s, and no existing object was found", uid);
        return why != NULL && fail(r, api_status_conflict(k->row->group, k->row->plural, r->w->name, why));
    }
    if (r->w->type == API_WRITE_UPDATE) {
        why = str_printf(
            "StorageError: invalid object, Code: 4, Key: /registry/%s/%s%s%s, ResourceVersion: 0, "
            "AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
            k->row->plural, r->w->namespace != NULL ? r->w->namespace : "",
            r->w->namespace != NULL ? "/" : "", r->w->name, uid, own);
        return why != NULL && fail(r, api_status_conflict(k->row->group, k->row->plural, r->w->name, why));
    }
    /* Twice, as the two validations of an apiserver say it. */
    cause = api_status_cause("FieldValueInvalid", "metadata.uid", "Invalid value: \"%s\": field is immutable",
                             uid);
    return fail(
        r, api_status_invalid(k->row->group, k->row->kind, r->w->name, json_pack("[O, o]", cause, cause)));
}

static bool check_version(struct run *r, const char *version, const char *own)
{
    const struct api_patch_kind *k = r->w->kind;

    if (version == NULL || version[0] == '\0' || str_eq(version, own) || str_eq(version, "0"))
        return true;
    if (version[strspn(version, "0123456789")] != '\0')
        return fail(
            r, api_status(500, NULL, NULL, "strconv.ParseUint: parsing \"%s\": invalid syntax", version));
    return fail(r, api_status_conflict(k->row->group, k->row->plural, r->w->name, NULL));
}

/* Members that always come from the live object. */
static bool keep(json_t *meta, const json_t *live, const char *name)
{
    json_t *v = json_object_get(live, name);

    if (v != NULL)
        return json_object_set(meta, name, v) == 0;
    json_object_del(meta, name);
    return true;
}

static bool check_deletion(struct run *r, const json_t *meta, const json_t *own)
{
    static const char *const names[] = { "deletionTimestamp", "deletionGracePeriodSeconds" };
    json_t *causes = json_array();
    const struct api_patch_kind *k = r->w->kind;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const json_t *v = json_object_get(meta, names[i]), *before = json_object_get(own, names[i]);
        str_auto path = str_printf("metadata.%s", names[i]);
        mem_auto char *text = v != NULL ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

        if (v == NULL || (before != NULL && json_equal(v, before)))
            continue;
        if (path == NULL || text == NULL || causes == NULL ||
            json_array_append_new(causes, api_status_cause("FieldValueInvalid", path,
                                                           "Invalid value: %s: field is immutable", text)) !=
                0) {
            json_decref(causes);
            return false;
        }
    }
    if (json_array_size(causes) == 0) {
        json_decref(causes);
        return true;
    }
    return fail(r, api_status_invalid(k->row->group, k->row->kind, r->w->name, causes));
}

/* Kinds that count it set it themselves. */
static bool check_generation(struct run *r, const json_t *meta)
{
    const struct api_patch_kind *k = r->w->kind;
    const json_int_t n = json_int(meta, "generation", 0);

    if (n >= 0 || k->generation)
        return true;
    return fail(r,
                api_status_invalid(
                    k->row->group, k->row->kind, json_str(meta, "name") != NULL ? json_str(meta, "name") : "",
                    json_pack("[o]", api_status_cause("FieldValueInvalid", "metadata.generation",
                                                      "Invalid value: %lld: must be greater than or equal "
                                                      "to 0",
                                                      (long long)n))));
}

static bool check_references(struct run *r)
{
    const struct api_patch_kind *k = r->w->kind;
    const json_t *meta = json_object_get(r->object, "metadata");
    json_t *causes = json_array();

    if (causes == NULL || !api_reference_rules(meta, causes)) {
        json_decref(causes);
        return false;
    }
    if (json_array_size(causes) > 0)
        return fail(r,
                    api_status_invalid(k->row->group, k->row->kind,
                                       json_str(meta, "name") != NULL ? json_str(meta, "name") : "", causes));
    json_decref(causes);
    return true;
}

/* An object that is being deleted gets no more of them. Said twice, as by the two validations of an
 * apiserver.
 */
static bool check_finalizers(struct run *r, const json_t *meta, const json_t *own)
{
    const struct api_patch_kind *k = r->w->kind;
    const json_t *before = json_object_get(own, "finalizers"), *v;
    buf_auto b = BUF_INIT(64 * 1024);
    json_t *cause;
    size_t i;

    if (json_object_get(own, "deletionTimestamp") == NULL)
        return true;
    json_array_foreach (json_object_get(meta, "finalizers"), i, v)
        if (json_is_string(v) && !json_has(before, json_string_value(v)))
            buf_addf(&b, "%s\"%s\"", b.n > 0 ? ", " : "", json_string_value(v));
    if (b.n == 0)
        return true;
    cause = api_status_cause("FieldValueForbidden", "metadata.finalizers",
                             "Forbidden: no new finalizers can be added if the object is being deleted, "
                             "found new finalizers []string{%s}",
                             b.failed ? "" : b.p);
    return fail(
        r, api_status_invalid(k->row->group, k->row->kind, r->w->name, json_pack("[O, o]", cause, cause)));
}

static bool check_meta(struct run *r)
{
    static const char *const kept[] = { "uid",
                                        "resourceVersion",
                                        "generation",
                                        "creationTimestamp",
                                        "selfLink",
                                        "deletionTimestamp",
                                        "deletionGracePeriodSeconds" };
    json_t *meta = json_object_get(r->object, "metadata");
    const json_t *own = json_object_get(r->live, "metadata");

    if (!json_is_object(meta)) {
        meta = json_object();
        if (meta == NULL || json_object_set_new(r->object, "metadata", meta) != 0)
            return false;
    }
    if (!check_generation(r, meta) || !check_names(r, meta) ||
        !check_uid(r, json_str(meta, "uid"), json_str(own, "uid")))
        return false;
    if (r->live != NULL &&
        (!check_version(r, json_str(meta, "resourceVersion"), json_str(own, "resourceVersion")) ||
         !check_deletion(r, meta, own)))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        if (!keep(meta, own, kept[i]))
            return false;
    return check_references(r) && check_finalizers(r, meta, own);
}

/* ---- parts that the path cannot change ---- */

/* The member of the live object. */
static bool keep_member(struct run *r, const char *name)
{
    json_t *v = json_object_get(r->live, name);

    if (v != NULL)
        return json_object_set_new(r->object, name, json_deep_copy(v)) == 0;
    json_object_del(r->object, name);
    return true;
}

/* Of the object's spec only the members `names` of each container; the rest is the live one's. */
static bool keep_but_resources(struct run *r)
{
    static const char *const lists[] = { "containers", "initContainers" }, *const names[] = {
        "resources", "resizePolicy"
    };
    json_t *wanted = json_incref(json_object_get(r->object, "spec")), *spec, *v, *to;
    bool ok = keep_member(r, "spec");
    size_t i;

    spec = json_object_get(r->object, "spec");
    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        json_array_foreach (json_object_get(wanted, lists[k]), i, v) {
            to = json_array_get(json_object_get(spec, lists[k]), i);
            for (size_t n = 0; to != NULL && n < ARRAY_LEN(names); n++)
                ok = ok && (json_object_get(v, names[n]) == NULL ||
                            json_object_set(to, names[n], json_object_get(v, names[n])) == 0);
        }
    json_decref(wanted);
    return ok;
}

/* The node's members of a pod: its manifest has none of them, and may replace the object. */
static bool keep_of_node(struct run *r)
{
    static const char *const names[] = { "nodeName", "priority", "ephemeralContainers" };
    json_t *from = json_object_get(r->live, "spec"), *to = json_object_get(r->object, "spec");
    bool ok = true;

    for (size_t i = 0; i < ARRAY_LEN(names) && json_is_object(to); i++)
        if (json_object_get(to, names[i]) == NULL && json_object_get(from, names[i]) != NULL)
            ok = ok && json_object_set(to, names[i], json_object_get(from, names[i])) == 0;
    return ok;
}

static bool keep_but_ephemeral(struct run *r)
{
    json_t *wanted = json_incref(json_object_get(json_object_get(r->object, "spec"), "ephemeralContainers"));
    bool ok = keep_member(r, "spec");

    if (wanted != NULL)
        ok = ok && json_object_set(json_object_get(r->object, "spec"), "ephemeralContainers", wanted) == 0;
    json_decref(wanted);
    return ok;
}

/* A new object has the status of one of which nothing is known. */
static bool begin_status(struct run *r)
{
    json_t *zero = json_loads(r->w->kind->zero, 0, NULL), *status = json_object_get(zero, "status");
    bool ok = zero != NULL && (status == NULL || json_object_set(r->object, "status", status) == 0);

    json_decref(zero);
    return ok;
}

static bool restrict_path(struct run *r)
{
    bool has_status = api_row_find(r->w->kind->schema, "status") != NULL;
    json_t *meta = json_object_get(r->object, "metadata"), *own = json_object_get(r->live, "metadata");

    if (r->live == NULL)
        return begin_status(r);
    if (r->w->by.subresource == NULL)
        return (!has_status || keep_member(r, "status")) &&
               (!str_eq(r->w->kind->row->kind, "Pod") || keep_of_node(r));
    if (str_eq(r->w->by.subresource, "resize"))
        return keep_but_resources(r) && keep_member(r, "status");
    if (str_eq(r->w->by.subresource, "ephemeralcontainers"))
        return keep_but_ephemeral(r) && keep_member(r, "status");
    if (!str_eq(r->w->by.subresource, "status"))
        return true;
    if (str_eq(r->w->kind->row->kind, "Deployment") && !keep(meta, own, "labels"))
        return false;
    return keep_member(r, "spec");
}

/* ---- the rest ---- */

static bool set_managers(struct run *r)
{
    struct err e = { 0 };

    return r->w->type == API_WRITE_APPLY ||
           api_update_managed(r->w->kind, &r->w->by, r->live, r->object, &e) == ERR_OK;
}

static bool same_member(const json_t *a, const json_t *b, const char *name)
{
    const json_t *x = json_object_get(a, name), *y = json_object_get(b, name);

    return x == y || (x != NULL && y != NULL && json_equal(x, y));
}

static bool count_generation(struct run *r)
{
    json_t *meta = json_object_get(r->object, "metadata");
    const json_t *own = json_object_get(r->live, "metadata");
    json_int_t before = json_int(own, "generation", 0);
    bool changed = !same_member(r->object, r->live, "spec");

    if (!r->w->kind->generation)
        return true;
    if (str_eq(r->w->kind->row->kind, "Deployment")) /* its annotations count, too */
        changed = changed || !same_member(meta, own, "annotations");
    if (r->live == NULL || (changed && !str_eq(r->w->by.subresource, "status")))
        before++;
    return before == 0 || json_object_set_new(meta, "generation", json_integer(before)) == 0;
}

/* 422 if the update makes a forbidden change. */
static bool check_rules(struct run *r)
{
    const struct api_patch_kind *k = r->w->kind;
    json_t *causes;

    const bool resize = str_eq(r->w->by.subresource, "resize"),
               ephemeral = str_eq(r->w->by.subresource, "ephemeralcontainers");

    if (r->live == NULL || (r->w->by.subresource != NULL && !resize && !ephemeral))
        return true;
    causes = json_array();
    if (causes == NULL || !(resize      ? api_resize_rules(r->live, r->object, causes)
                            : ephemeral ? api_ephemeral_rules(r->live, r->object, causes)
                                        : api_update_rules(k, r->live, r->object, causes))) {
        json_decref(causes);
        return false;
    }
    if (json_array_size(causes) > 0)
        return fail(r, api_status_invalid(k->row->group, k->row->kind, r->w->name, causes));
    json_decref(causes);
    return true;
}

static bool allocate(struct run *r)
{
    struct err e = { 0 };

    return api_object_allocate(r->w->kind, r->object, &e) == ERR_OK;
}

static bool finish(struct run *r, bool *ret_same)
{
    struct err e = { 0 };

    *ret_same = false;
    if (!restrict_path(r) || api_object_default_own(r->w->kind, r->object, &e) != ERR_OK ||
        (r->live != NULL && !allocate(r)) || !check_rules(r) || !set_managers(r) ||
        (r->live == NULL && !allocate(r)) || !count_generation(r))
        return false;
    return r->live == NULL || api_keep_times(r->live, r->object, ret_same, &e) == ERR_OK;
}

static bool create_by_patch(struct run *r)
{
    const struct api_patch_kind *k = r->w->kind;

    if (r->live != NULL || r->w->type == API_WRITE_CREATE || r->w->type == API_WRITE_APPLY)
        return true;
    return fail(r, api_status_not_found(k->row->group, k->row->plural, r->w->name));
}

enum err_code api_write(const struct api_write *w, const json_t *live, const json_t *body, json_t *warnings,
                        json_t **ret, bool *ret_same, json_t **ret_status, struct err *e)
{
    struct run r = { .w = w, .live = live, .body = body, .warnings = warnings };
    bool ok = create_by_patch(&r) && change(&r) && check_type(&r) && decode(&r) && check_meta(&r) &&
              finish(&r, ret_same);

    if (ok) {
        *ret = r.object;
        return ERR_OK;
    }
    json_decref(r.object);
    return tree_fail(r.status, ret_status, e);
}
