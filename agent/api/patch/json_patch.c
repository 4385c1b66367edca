/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON patch (RFC 6902).  Where the apiserver's library (evanphx/json-patch, version 4) is more lenient than
 * the RFC, so is this: see patch.h.
 */
#include "agent/api/patch/patch.h"
#include "agent/api/patch/tree.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_MAX 1024 /* bytes of one name in a path; our longest keys have 317 */
#define INDEX_MAX 1000000

struct place {
    json_t *holder; /* borrowed: an object or a list; NULL: the path leads nowhere */
    size_t level;   /* of the holder's members */
    char name[TOKEN_MAX];
};

enum outcome {
    APPLIED,
    DOES_NOT_APPLY,
    TOO_MUCH_COPIED,
    NO_MEMORY,
};

struct run {
    json_t *doc;   /* owned */
    size_t copied; /* bytes of JSON text */
};

/* ---- paths ---- */

/* "a~1b" is "a/b"; false: too long. */
static bool token_decode(const char *from, size_t n, char *to)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        if (k + 1 >= TOKEN_MAX)
            return false;
        to[k] = from[i];
        if (from[i] == '~' && i + 1 < n && (from[i + 1] == '0' || from[i + 1] == '1'))
            to[k] = from[++i] == '0' ? '~' : '/';
        k++;
    }
    to[k] = '\0';
    return true;
}

/* An index as Go's Atoi reads it; negative ones count from the end.  `n` elements may be named. */
static bool index_of(const char *name, size_t n, size_t *ret)
{
    const char *digits = name + (name[0] == '-' || name[0] == '+');
    long v;

    if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    v = strtol(name, NULL, 10);
    if (errno != 0 || v > INDEX_MAX || v < -INDEX_MAX)
        return false;
    if (v < 0)
        v += (long)n;
    if (v < 0 || (size_t)v >= n)
        return false;
    *ret = (size_t)v;
    return true;
}

/* A member; *ret is NULL where there is none, or null.  False: not even the place exists. */
static bool member_get(const struct place *p, json_t **ret)
{
    size_t i = 0;

    if (json_is_object(p->holder)) {
        *ret = json_object_get(p->holder, p->name);
    } else {
        if (!index_of(p->name, json_array_size(p->holder), &i))
            return false;
        *ret = json_array_get(p->holder, i);
    }
    if (json_is_null(*ret))
        *ret = NULL;
    return true;
}

/* A path without a "/" names a member of the root, as in the apiserver's library. */
static void place_find(json_t *doc, const char *path, struct place *p)
{
    const char *at = strchr(path, '/'), *end;
    json_t *next = NULL;

    *p = (struct place){ .holder = NULL };
    if (at == NULL || (!json_is_object(doc) && !json_is_array(doc)))
        return;
    p->holder = doc;
    for (at++;; at = end + 1) {
        p->level++;
        end = strchr(at, '/');
        if (!token_decode(at, end != NULL ? (size_t)(end - at) : strlen(at), p->name)) {
            p->holder = NULL;
            return;
        }
        if (end == NULL)
            return;
        if (!member_get(p, &next) || (!json_is_object(next) && !json_is_array(next))) {
            p->holder = NULL;
            return;
        }
        p->holder = next;
    }
}

/* ---- operations ---- */

/* `value` is stolen. */
static enum outcome place_add(const struct place *p, json_t *value)
{
    size_t i = 0, n = json_array_size(p->holder);
    int failed;

    if (value == NULL)
        return NO_MEMORY;
    if (p->level + tree_depth(value, API_PATCH_DEPTH) > API_PATCH_DEPTH) {
        json_decref(value);
        return DOES_NOT_APPLY;
    }
    if (json_is_object(p->holder)) {
        failed = json_object_set_new(p->holder, p->name, value);
    } else if (strcmp(p->name, "-") == 0) {
        failed = json_array_append_new(p->holder, value);
    } else if (index_of(p->name, n + 1, &i)) {
        failed = json_array_insert_new(p->holder, i, value);
    } else {
        json_decref(value);
        return DOES_NOT_APPLY;
    }
    return failed != 0 ? NO_MEMORY : APPLIED;
}

static enum outcome place_remove(const struct place *p)
{
    size_t i = 0;

    if (json_is_object(p->holder))
        return json_object_del(p->holder, p->name) == 0 ? APPLIED : DOES_NOT_APPLY;
    if (!index_of(p->name, json_array_size(p->holder), &i))
        return DOES_NOT_APPLY;
    return json_array_remove(p->holder, i) == 0 ? APPLIED : NO_MEMORY;
}

static json_t *copy_of(const json_t *v)
{
    return v != NULL ? json_deep_copy(v) : json_null();
}

static enum outcome op_add(struct run *r, const char *path, const json_t *op)
{
    struct place p;

    place_find(r->doc, path, &p);
    return p.holder != NULL ? place_add(&p, copy_of(json_object_get(op, "value"))) : DOES_NOT_APPLY;
}

static enum outcome op_remove(struct run *r, const char *path)
{
    struct place p;

    place_find(r->doc, path, &p);
    return p.holder != NULL ? place_remove(&p) : DOES_NOT_APPLY;
}

static enum outcome replace_root(struct run *r, const json_t *value)
{
    json_t *doc;

    if (!json_is_object(value) && !json_is_array(value))
        return DOES_NOT_APPLY;
    doc = json_deep_copy(value);
    if (doc == NULL)
        return NO_MEMORY;
    json_decref(r->doc);
    r->doc = doc;
    return APPLIED;
}

static enum outcome op_replace(struct run *r, const char *path, const json_t *op)
{
    const json_t *value = json_object_get(op, "value");
    json_t *before = NULL;
    struct place p;

    if (path[0] == '\0')
        return replace_root(r, value);
    place_find(r->doc, path, &p);
    if (p.holder == NULL || !member_get(&p, &before))
        return DOES_NOT_APPLY;
    if (json_is_array(p.holder) && place_remove(&p) != APPLIED)
        return NO_MEMORY;
    return place_add(&p, copy_of(value));
}

static enum outcome op_move(struct run *r, const char *from, const char *path)
{
    struct place source, target;
    json_t *value = NULL;
    enum outcome removed;

    place_find(r->doc, from, &source);
    if (source.holder == NULL || !member_get(&source, &value))
        return DOES_NOT_APPLY;
    value = value != NULL ? json_incref(value) : json_null();
    removed = place_remove(&source);
    if (removed != APPLIED) {
        json_decref(value);
        return removed;
    }
    place_find(r->doc, path, &target);
    if (target.holder == NULL) {
        json_decref(value);
        return DOES_NOT_APPLY;
    }
    return place_add(&target, value);
}

static enum outcome op_copy(struct run *r, const char *from, const char *path)
{
    struct place source, target;
    json_t *value = NULL;

    place_find(r->doc, from, &source);
    if (source.holder == NULL || !member_get(&source, &value))
        return DOES_NOT_APPLY;
    place_find(r->doc, path, &target);
    if (target.holder == NULL)
        return DOES_NOT_APPLY;
    r->copied += value != NULL ? json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) : 4;
    if (r->copied > API_PATCH_COPY_MAX)
        return TOO_MUCH_COPIED;
    return place_add(&target, copy_of(value));
}

static enum outcome op_test(struct run *r, const char *path, const json_t *op)
{
    const json_t *value = json_object_get(op, "value");
    json_t *found = r->doc;
    struct place p;

    if (json_is_null(value))
        value = NULL;
    if (path[0] != '\0') {
        place_find(r->doc, path, &p);
        if (p.holder == NULL || !member_get(&p, &found))
            return DOES_NOT_APPLY;
    }
    if (found == NULL || value == NULL)
        return found == NULL && value == NULL ? APPLIED : DOES_NOT_APPLY;
    return json_equal(found, value) ? APPLIED : DOES_NOT_APPLY;
}

static enum outcome run_op(struct run *r, const json_t *op)
{
    const char *kind = json_str(op, "op"), *path = json_str(op, "path"), *from = json_str(op, "from");

    if (kind == NULL || path == NULL)
        return DOES_NOT_APPLY;
    if (strcmp(kind, "add") == 0)
        return op_add(r, path, op);
    if (strcmp(kind, "remove") == 0)
        return op_remove(r, path);
    if (strcmp(kind, "replace") == 0)
        return op_replace(r, path, op);
    if (strcmp(kind, "test") == 0)
        return op_test(r, path, op);
    if (from != NULL && strcmp(kind, "move") == 0)
        return op_move(r, from, path);
    if (from != NULL && strcmp(kind, "copy") == 0)
        return op_copy(r, from, path);
    return DOES_NOT_APPLY;
}

/* ---- the whole ---- */

/* Patches that Go's decoder refuses before the first operation runs. */
static enum err_code check_types(const json_t *patch, json_t **ret_status, struct err *e)
{
    static const char *const texts[] = { "op", "path", "from" };
    json_t *op, *v;
    size_t i;

    if (!json_is_array(patch) && !json_is_null(patch))
        return tree_fail(api_status(400, "BadRequest", NULL,
                                    "error decoding patch: json: cannot unmarshal %s into Go value of type "
                                    "[]handlers.jsonPatchOp",
                                    tree_go_type(patch)),
                         ret_status, e);
    json_array_foreach ((json_t *)patch, i, op) {
        if (!json_is_object(op) && !json_is_null(op))
            return tree_fail(
                api_status(400, "BadRequest", NULL,
                           "error decoding patch: json: cannot unmarshal %s into Go value of type "
                           "handlers.jsonPatchOp",
                           tree_go_type(op)),
                ret_status, e);
        for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
            v = json_object_get(op, texts[k]);
            if (v != NULL && !json_is_string(v) && !json_is_null(v))
                return tree_fail(
                    api_status(400, "BadRequest", NULL,
                               "error decoding patch: json: cannot unmarshal %s into Go struct field "
                               "jsonPatchOp.%s of type string",
                               tree_go_type(v), texts[k]),
                    ret_status, e);
        }
    }
    if (json_array_size(patch) > API_PATCH_OPS)
        return tree_fail(
            api_status(413, "RequestEntityTooLarge", NULL,
                       "Request entity too large: The allowed maximum operations in a JSON patch is %d, got "
                       "%zu",
                       API_PATCH_OPS, json_array_size(patch)),
            ret_status, e);
    return ERR_OK;
}

enum err_code api_patch_json(const json_t *live, const json_t *patch, json_t **ret, json_t **ret_status,
                             struct err *e)
{
    enum outcome outcome = APPLIED;
    struct run r = { .doc = NULL };

    if (check_types(patch, ret_status, e) != ERR_OK || tree_bounded(live, "object", ret_status, e) != ERR_OK)
        return e->code;
    r.doc = json_deep_copy(live);
    if (r.doc == NULL)
        return err_nomem(e);
    for (size_t i = 0; outcome == APPLIED && i < json_array_size(patch); i++)
        outcome = run_op(&r, json_array_get(patch, i));
    if (outcome == APPLIED) {
        *ret = r.doc;
        return ERR_OK;
    }
    json_decref(r.doc);
    if (outcome == NO_MEMORY)
        return err_nomem(e);
    return tree_fail(api_status_not_applicable(), ret_status, e);
}
