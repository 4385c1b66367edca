/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAPI documents: version 3 by group, version 2 as a whole. Their paths contain only the data that clients
 * look up: the kind of a path, and the parameters of a write. */
#include "agent/api/serve/internal.h"

#include <stdio.h>
#include <string.h>

static bool of_group(const struct api_kind_row *k, const char *group, const char *version)
{
    return group == NULL || (strcmp(k->group, group) == 0 && strcmp(k->version, version) == 0);
}

static json_t *parameter(const struct api_openapi *doc, const char *name, const char *about)
{
    return doc->v2 ? json_pack("{s:s, s:s, s:s, s:s}", "name", name, "in", "query", "type", "string",
                               "description", about)
                   : json_pack("{s:s, s:s, s:{s:s}, s:s}", "name", name, "in", "query", "schema", "type",
                               "string", "description", about);
}

/* kubectl sends dryRun and fieldValidation where these are listed. */
static json_t *write_parameters(const struct api_openapi *doc, const char *verb)
{
    json_t *list = json_array();

    api_append(&list, parameter(doc, "dryRun", "\"All\": the answer is made, and nothing is written."));
    if (strcmp(verb, "delete") == 0)
        return list;
    api_append(&list, parameter(doc, "fieldManager", "The name under which the written fields are kept."));
    api_append(&list, parameter(doc, "fieldValidation",
                                "What unknown and duplicate fields are: Ignore, Warn or Strict."));
    if (strcmp(verb, "patch") == 0)
        api_append(&list, parameter(doc, "force", "An apply takes fields from other managers."));
    return list;
}

static json_t *operation(const struct api_openapi *doc, const struct api_kind_row *k, const char *verb,
                         const char *action)
{
    json_t *o = json_pack("{s:{s:{s:s}}, s:s, s:{s:s, s:s, s:s}}", "responses", "200", "description", "OK",
                          "x-kubernetes-action", action, "x-kubernetes-group-version-kind", "group", k->group,
                          "kind", k->kind, "version", k->version);

    if (strcmp(verb, "get") != 0)
        api_put(&o, "parameters", write_parameters(doc, verb));
    return o;
}

static void add_path(const struct api_openapi *doc, json_t **paths, const struct api_kind_row *k, bool item)
{
    static const struct {
        unsigned verb;
        bool item;
        const char *method, *action;
    } operations[] = {
        { API_VERB_LIST, false, "get", "list" },
        { API_VERB_CREATE, false, "post", "post" },
        { API_VERB_DELETECOLLECTION, false, "delete", "deletecollection" },
        { API_VERB_GET, true, "get", "get" },
        { API_VERB_UPDATE, true, "put", "put" },
        { API_VERB_PATCH, true, "patch", "patch" },
        { API_VERB_DELETE, true, "delete", "delete" },
    };
    json_t *o = json_object();
    char path[200];

    snprintf(path, sizeof(path), "/%s%s/%s%s/%s%s", k->group[0] == '\0' ? "api" : "apis/", k->group,
             k->version, k->namespaced ? "/namespaces/{namespace}" : "", k->plural, item ? "/{name}" : "");
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        if (operations[i].item == item && api_service_of(k)->verbs & operations[i].verb)
            api_put(&o, operations[i].method, operation(doc, k, operations[i].method, operations[i].action));
    }
    if (o != NULL && json_object_size(o) == 0)
        json_decref(o);
    else
        api_put(paths, path, o);
}

/* Definitions and paths of the kinds of a group; NULL: of all. */
static json_t *make_paths(struct api_openapi *doc, const char *group, const char *version)
{
    json_t *paths = json_object();

    api_openapi_define_scalars(doc);
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++) {
        if (!of_group(k, group, version))
            continue;
        api_openapi_define(doc, k->schema, k->kind, k);
        add_path(doc, &paths, k, false);
        add_path(doc, &paths, k, true);
    }
    return paths;
}

json_t *api_openapi_v3(const char *group, const char *version)
{
    struct api_openapi doc = { .schemas = json_object() };
    json_t *paths = make_paths(&doc, group, version);

    return json_pack("{s:s, s:{s:s, s:s}, s:o, s:{s:o}}", "openapi", "3.0.0", "info", "title", "Coracle",
                     "version", CORACLE_VERSION, "paths", paths, "components", "schemas", doc.schemas);
}

json_t *api_openapi_v2(void)
{
    struct api_openapi doc = { .schemas = json_object(), .v2 = true };
    json_t *paths = make_paths(&doc, NULL, NULL);

    return json_pack("{s:s, s:{s:s, s:s}, s:o, s:o}", "swagger", "2.0", "info", "title", "Coracle", "version",
                     CORACLE_VERSION, "paths", paths, "definitions", doc.schemas);
}
