/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch_lines - for tests: patches and applies, one JSON object a line on standard input, one a line on
 * standard output.
 *   {"do": "json|merge|strategic|apply|update", "apiVersion", "kind", "live", "patch",
 *    "manager", "subresource", "now", "force"}  ->  {"result"} or {"status"}
 * Of an update, "patch" is the new object.
 *   {"write": "create|update|json|merge|strategic|apply", the same, "name", "namespace", "validation",
 *    "dryRun", "forced"}
 *      ->  {"result", "warnings", "same"} or {"status"}
 */
#include "agent/api/patch/write/write.h"
#include "base/buf.h"
#include "base/codec/json.h"

#include <stdio.h>
#include <stdlib.h>

static enum err_code run(const json_t *ask, json_t **ret, json_t **status, struct err *e)
{
    const struct api_patch_kind *kind =
        api_patch_kind_find(json_str(ask, "apiVersion"), json_str(ask, "kind"));
    const char *what = json_str(ask, "do");
    const json_t *live = json_object_get(ask, "live"), *patch = json_object_get(ask, "patch");
    const struct api_manager by = { json_str(ask, "manager"), json_str(ask, "subresource"),
                                    json_str(ask, "now") };

    if (json_is_null(live))
        live = NULL;
    if (str_eq(what, "json"))
        return api_patch_json(live, patch, ret, status, e);
    if (str_eq(what, "merge"))
        return api_patch_merge(live, patch, ret, status, e);
    if (kind == NULL)
        return err_set(e, ERR_NOT_FOUND, "no such kind");
    if (str_eq(what, "strategic"))
        return api_patch_strategic(kind, live, patch, ret, status, e);
    if (str_eq(what, "apply"))
        return api_apply(kind, &by, json_flag(ask, "force"), live, patch, ret, status, e);
    if (!str_eq(what, "update"))
        return err_set(e, ERR_INVALID, "do is json, merge, strategic, apply or update");
    *ret = json_deep_copy(patch);
    return api_update_managed(kind, &by, live, *ret, e);
}

static int index_of(const char *text, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (str_eq(text, names[i]))
            return i;
    return 0;
}

/* A whole write: {"result", "warnings", "same"}, NULL with *status. */
static json_t *write_whole(const json_t *ask, json_t **status)
{
    static const char *const types[] = { "create", "update", "json", "merge", "strategic", "apply" };
    static const char *const validations[] = { "Warn", "Ignore", "Strict" };
    const json_t *live = json_object_get(ask, "live");
    json_t *ret = NULL, *warnings = json_array();
    struct err e = { 0 };
    bool same = false;
    const struct api_write w = {
        .type = (enum api_write_type)index_of(json_str(ask, "write"), types, 6),
        .kind = api_patch_kind_find(json_str(ask, "apiVersion"), json_str(ask, "kind")),
        .name = json_str(ask, "name"),
        .namespace = json_str(ask, "namespace"),
        .by = { json_str(ask, "manager"), json_str(ask, "subresource"), json_str(ask, "now") },
        .validation = (enum api_field_validation)index_of(json_str(ask, "validation"), validations, 3),
        .force = json_flag(ask, "force"),
    };

    if (w.type >= API_WRITE_JSON &&
        api_patch_options_check(w.by.name, json_str(ask, "validation"), json_str(ask, "dryRun"),
                                json_str(ask, "forced"), w.type == API_WRITE_APPLY, status, &e) != ERR_OK) {
        json_decref(warnings);
        return NULL;
    }
    if (w.kind == NULL || api_write(&w, json_is_null(live) ? NULL : live, json_object_get(ask, "patch"),
                                    warnings, &ret, &same, status, &e) != ERR_OK) {
        json_decref(warnings);
        return NULL;
    }
    return json_pack("{s:o, s:o, s:b}", "result", ret, "warnings", warnings, "same", same);
}

static void answer(const char *line)
{
    json_t *ask = json_loads(line, 0, NULL), *ret = NULL, *status = NULL, *out;
    struct err e = { 0 };

    out = json_object_get(ask, "write") != NULL ? write_whole(ask, &status) : NULL;
    if (out == NULL && status == NULL && run(ask, &ret, &status, &e) == ERR_OK)
        out = json_pack("{s:O}", "result", ret);
    else if (out == NULL && status != NULL)
        out = json_pack("{s:O}", "status", status);
    else if (out == NULL)
        out = json_pack("{s:s}", "error", e.text);
    json_dumpf(out, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(out);
    json_decref(ask);
    json_decref(ret);
    json_decref(status);
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) >= 0)
        answer(line);
    free(line);
    return 0;
}
