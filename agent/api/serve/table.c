/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and metadata: the forms in which objects are shown. */
#include "agent/api/serve/internal.h"

#include "base/codec/json.h"

#include <stdio.h>
#include <string.h>

static const struct api_column plain_columns[] = {
    API_COLUMN_NAME,
    { "Created At", "date", 0, "The time at which the object was created." },
    { 0 },
};

static void plain_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    (void)now_ns;
    api_cell(cells, api_text_at(o, "metadata.name"));
    api_cell(cells, api_text_at(o, "metadata.creationTimestamp"));
}

static const struct api_columns plain = { .columns = plain_columns, .cells = plain_cells };

static const struct api_columns *columns_of(const struct api_kind_row *kind)
{
    static const struct api_columns *const tables[] = { api_columns_core, api_columns_node, api_columns_work,
                                                        api_columns_shown };

    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        for (const struct api_columns *c = tables[i]; c->kind != NULL; c++) {
            if (strcmp(c->kind, kind->kind) == 0 && strcmp(c->group, kind->group) == 0)
                return c;
        }
    }
    return &plain;
}

bool api_include_read(const char *text, enum api_include *ret, json_t **ret_status)
{
    static const char *const names[] = {
        [API_INCLUDE_METADATA] = "Metadata", [API_INCLUDE_OBJECT] = "Object", [API_INCLUDE_NONE] = "None"
    };

    *ret_status = NULL;
    if (text == NULL || text[0] == '\0')
        text = names[API_INCLUDE_METADATA];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum api_include)i;
            return true;
        }
    }
    *ret_status = api_status(400, "BadRequest", NULL,
                             "Unable to convert to Table as requested: includeObject: Invalid value: "
                             "\"%.100s\": must be 'Metadata', 'Object', 'None', or empty",
                             text);
    return false;
}

static const char *meta_version(const struct api_form_options *options)
{
    return options->beta ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1";
}

/* ---- metadata only ---- */

static json_t *partial(const json_t *object, const struct api_form_options *options)
{
    json_t *metadata = json_object_get(object, "metadata");

    return json_pack("{s:s, s:s, s:O}", "kind", "PartialObjectMetadata", "apiVersion", meta_version(options),
                     "metadata", metadata != NULL ? metadata : json_null());
}

static json_t *partial_list(const json_t *list, const struct api_form_options *options)
{
    json_t *o = json_pack("{s:s, s:s, s:O}", "kind", "PartialObjectMetadataList", "apiVersion",
                          meta_version(options), "metadata", json_object_get(list, "metadata"));
    json_t *items = json_array(), *item;
    size_t i;

    json_array_foreach (json_object_get(list, "items"), i, item)
        api_append(&items, partial(item, options));
    api_put(&o, "items", items);
    return o;
}

/* ---- tables ---- */

static json_t *definitions(const struct api_columns *columns)
{
    json_t *list = json_array();

    for (const struct api_column *c = columns->columns; c->name != NULL; c++)
        api_append(&list, json_pack("{s:s, s:s, s:s, s:s, s:i}", "name", c->name, "type", c->type, "format",
                                    strcmp(c->name, "Name") == 0 ? "name" : "", "description", c->about,
                                    "priority", c->priority));
    return list;
}

/* A pod that has ended is marked, so that clients can show it less prominently. */
static json_t *ended_condition(const struct api_kind_row *kind, const json_t *object)
{
    const char *phase = api_text_at(object, "status.phase");
    const bool failed = strcmp(phase, "Failed") == 0;

    if (strcmp(kind->kind, "Pod") != 0 || (!failed && strcmp(phase, "Succeeded") != 0))
        return NULL;
    return json_pack("[{s:s, s:s, s:s, s:s}]", "type", "Completed", "status", "True", "reason", phase,
                     "message", failed ? "The pod failed." : "The pod has completed successfully.");
}

static json_t *row_of(const struct api_kind_row *kind, const struct api_columns *columns, json_t *object,
                      const struct api_form_options *options)
{
    json_t *row = json_object(), *cells = json_array(), *conditions = ended_condition(kind, object);

    columns->cells(&cells, object, options->now_ns);
    api_put(&row, "cells", cells);
    if (conditions != NULL)
        api_put(&row, "conditions", conditions);
    switch (options->include) {
    case API_INCLUDE_METADATA:
        api_put(&row, "object", partial(object, options));
        break;
    case API_INCLUDE_OBJECT:
        api_put(&row, "object", json_incref(object));
        break;
    case API_INCLUDE_NONE:
        api_put(&row, "object", json_null());
        break;
    }
    return row;
}

/* The table's metadata: the continue token of a list, and its version. */
static json_t *table_metadata(const json_t *value)
{
    static const char *const names[] = { "resourceVersion", "continue", "remainingItemCount" };
    const bool list = json_object_get(value, "items") != NULL;
    json_t *o = json_object();

    for (size_t i = 0; i < (list ? ARRAY_LEN(names) : 1); i++) {
        json_t *member = json_object_get(json_object_get(value, "metadata"), names[i]);
        if (member != NULL)
            api_put(&o, names[i], json_incref(member));
    }
    return o;
}

static json_t *table(const struct api_kind_row *kind, json_t *value, const struct api_form_options *options)
{
    const struct api_columns *columns = columns_of(kind);
    json_t *o = json_pack("{s:s, s:s}", "kind", "Table", "apiVersion", meta_version(options));
    json_t *rows = json_array(), *items = json_object_get(value, "items"), *item;
    size_t i;

    api_put(&o, "metadata", table_metadata(value));
    api_put(&o, "columnDefinitions", options->no_columns ? json_null() : definitions(columns));
    json_array_foreach (items, i, item)
        api_append(&rows, row_of(kind, columns, item, options));
    if (items == NULL)
        api_append(&rows, row_of(kind, columns, value, options));
    api_put(&o, "rows", rows);
    return o;
}

/* ---- the choice ---- */

/* As the apiserver names its own types: "*apps.Deployment". */
static json_t *wrong_form(const struct api_kind_row *kind, bool list)
{
    const bool core = kind->group[0] == '\0' || strcmp(kind->group, "events.k8s.io") == 0;
    const char *group = core ? "core" : kind->group;

    return api_status(
        406, "NotAcceptable", NULL, "you requested %s, but the requested object is %s (*%.*s.%s%s)",
        list ? "PartialObjectMetadata" : "PartialObjectMetadataList", list ? "a list" : "not a list",
        (int)strcspn(group, "."), group, kind->kind, list ? "List" : "");
}

json_t *api_form_of(const struct api_kind_row *kind, const json_t *value,
                    const struct api_form_options *options, json_t **ret_status)
{
    json_t *v = (json_t *)(uintptr_t)value; /* only its count of references changes */
    const bool list = json_is_array(json_object_get(value, "items"));

    *ret_status = NULL;
    switch (options->form) {
    case API_FORM_OBJECT:
        return json_incref(v);
    case API_FORM_TABLE:
        return table(kind, v, options);
    case API_FORM_METADATA:
        if (!list)
            return partial(value, options);
        break;
    case API_FORM_METADATA_LIST:
        if (list)
            return partial_list(value, options);
        break;
    }
    *ret_status = wrong_form(kind, list);
    return NULL;
}
