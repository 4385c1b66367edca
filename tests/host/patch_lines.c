/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch_lines - for tests: patches and applies, one JSON object a line on standard input, one a line on
 * standard output.
 *   {"do": "json|merge|strategic|apply|update", "apiVersion", "kind", "live", "patch",
 *    "manager", "subresource", "now", "force"}  ->  {"result"} or {"status"}
 * Of an update, "patch" is the new object.
 */
#include "agent/api/patch/patch.h"
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

static void answer(const char *line)
{
    json_t *ask = json_loads(line, 0, NULL), *ret = NULL, *status = NULL, *out;
    struct err e = { 0 };

    if (run(ask, &ret, &status, &e) == ERR_OK)
        out = json_pack("{s:O}", "result", ret);
    else if (status != NULL)
        out = json_pack("{s:O}", "status", status);
    else
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
