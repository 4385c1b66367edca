/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_json - reads consecutive JSON documents within the limits of YAML. */
#include "agent/api/yaml/yaml.h"

#include "agent/api/yaml/internal.h"

#include <stdlib.h>
#include <string.h>

static bool within_limits(const json_t *v, size_t depth, size_t *nodes)
{
    const json_t *child;
    const char *key;
    size_t i;

    if (++*nodes > YAML_NODES_MAX || depth > YAML_DEPTH_MAX)
        return false;
    if (json_is_object(v)) {
        json_object_foreach ((json_t *)v, key, child) {
            if (!within_limits(child, depth + 1, nodes))
                return false;
        }
    }
    json_array_foreach (v, i, child) {
        if (!within_limits(child, depth + 1, nodes))
            return false;
    }
    return true;
}

size_t yaml_skip_separators(const char *text, size_t size, size_t at)
{
    for (;;) {
        while (at < size && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0')
            at++;
        if (size - at >= 3 && memcmp(text + at, "---", 3) == 0 &&
            (size - at == 3 || text[at + 3] == '\n' || text[at + 3] == '\r'))
            at += 3;
        else
            return at;
    }
}

static enum err_code json_fault(int document, const json_error_t *je, size_t line, struct err *e)
{
    char text[JSON_ERROR_TEXT_LENGTH];
    char *near;

    /* The text near the error may be a Secret's value; a duplicate key is not. */
    memcpy(text, je->text, sizeof(text));
    near = strstr(text, " near ");
    if (near != NULL && json_error_code(je) != json_error_duplicate_key)
        *near = '\0';
    if (json_error_code(je) == json_error_null_character)
        snprintf(text, sizeof(text), "a value contains a NUL character");
    return err_set(e, ERR_INVALID, "document %d: line %zu column %d: not JSON: %s", document,
                   line + (size_t)(je->line > 0 ? je->line : 1), je->column > 0 ? je->column : 1, text);
}

enum err_code yaml_read_json(const char *text, size_t size, size_t at, json_t **ret, int **ret_numbers,
                             struct api_places *places, struct err *e)
{
    size_t line = 0, counted = 0, nodes = 0;
    int *numbers = malloc(YAML_DOCS_MAX * sizeof(*numbers));
    json_t *docs = json_array();
    enum err_code code = ERR_OK;
    int document = 0;

    *ret = docs;
    *ret_numbers = numbers;
    if (docs == NULL || numbers == NULL)
        return err_nomem(e);
    for (; code == ERR_OK && at < size; at = yaml_skip_separators(text, size, at)) {
        json_error_t je;
        json_t *v;
        for (; counted < at; counted++)
            line += text[counted] == '\n';
        if (++document > YAML_DOCS_MAX)
            return err_set(e, ERR_INVALID, "document %d: line %zu column 1: more than %d documents", document,
                           line + 1, YAML_DOCS_MAX);
        v = json_loadb(text + at, size - at, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &je);
        if (v == NULL && (je.text[0] == '\0' || json_error_code(&je) == json_error_out_of_memory)) {
            code = err_nomem(e);
        } else if (v == NULL) {
            code = json_fault(document, &je, line, e);
        } else if (!within_limits(v, 1, &nodes)) {
            json_decref(v);
            code = err_set(e, ERR_INVALID,
                           "document %d: line %zu column 1: more than %d levels deep or more than %d values",
                           document, line + 1, YAML_DEPTH_MAX, YAML_NODES_MAX);
        } else {
            numbers[json_array_size(docs)] = document;
            if (json_array_append_new(docs, v) != 0 ||
                !yaml_json_places(text, at, (size_t)je.position, document, line, places))
                code = err_nomem(e);
            at += (size_t)je.position;
        }
    }
    return code;
}
