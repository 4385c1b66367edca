/* SPDX-License-Identifier: Apache-2.0 */
/* yaml - decides whether a text is JSON or YAML, and repairs YAML that Kubernetes' reader accepts but libyaml
 * does not. */
#include "agent/api/yaml/yaml.h"

#include "agent/api/yaml/internal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MENDED_MAX 64 /* scalars per file: it is read again after each */

static enum err_code read_yaml(const char *text, size_t size, json_t **ret, int **ret_numbers,
                               struct api_places *places, struct err *e)
{
    size_t quoted, mended_size = size;
    char *mended = NULL;
    enum err_code code = yaml_read(text, size, ret, ret_numbers, places, &quoted, e);

    for (int i = 0; i < MENDED_MAX && quoted != SIZE_MAX; i++) {
        struct err again = { 0 };

        if (i == 0) {
            mended = malloc(size);
            if (mended == NULL)
                return err_nomem(e);
            memcpy(mended, text, size);
        }
        if (!yaml_mend_quotes(mended, &mended_size, quoted))
            break;
        json_decref(*ret);
        free(*ret_numbers);
        code = yaml_read(mended, mended_size, ret, ret_numbers, places, &quoted, &again);
        *e = again;
    }
    if (mended != NULL)
        explicit_bzero(mended, size);
    free(mended);
    return code;
}

/* A JSON object continues with a quote or ends; {apiVersion: v1} and {# why ...} are YAML in flow style. */
static bool looks_like_json(const char *text, size_t size, size_t at)
{
    if (at == size || text[at] != '{')
        return false;
    for (at++; at < size && text[at] != '\0' && strchr(" \t\r\n", text[at]) != NULL;)
        at++;
    return at == size || text[at] == '"' || text[at] == '}';
}

enum err_code yaml_to_json(const char *text, size_t size, json_t **ret, int **ret_numbers,
                           struct api_places *places, struct err *e)
{
    struct api_places in_flow = { 0 };
    struct err flow = { 0 };
    json_t *docs = NULL;
    int *numbers = NULL;
    size_t at = 0;

    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        at = 3;
    at = yaml_skip_separators(text, size, at);
    if (!looks_like_json(text, size, at))
        return read_yaml(text, size, ret, ret_numbers, places, e);

    if (yaml_read_json(text, size, at, ret, ret_numbers, places, e) == ERR_OK || e->code != ERR_INVALID)
        return e->code;
    /* Not JSON, but perhaps YAML in flow style with quoted keys. */
    if (read_yaml(text, size, &docs, &numbers, places != NULL ? &in_flow : NULL, &flow) == ERR_OK) {
        json_decref(*ret);
        free(*ret_numbers);
        *ret = docs;
        *ret_numbers = numbers;
        if (places != NULL) {
            api_places_done(places);
            *places = in_flow;
        }
        *e = (struct err){ 0 };
        return ERR_OK;
    }
    json_decref(docs);
    free(numbers);
    api_places_done(&in_flow);
    return e->code;
}

enum err_code yaml_first_to_json(const char *text, size_t size, json_t **ret, struct err *e)
{
    size_t quoted, mended_size = size;
    json_t *docs = NULL;
    char *mended = NULL;
    enum err_code code = yaml_read_first(text, size, &docs, &quoted, e);

    for (int i = 0; i < MENDED_MAX && quoted != SIZE_MAX; i++) {
        if (i == 0 && (mended = malloc(size)) != NULL)
            memcpy(mended, text, size);
        if (mended == NULL || !yaml_mend_quotes(mended, &mended_size, quoted))
            break;
        json_decref(docs);
        *e = (struct err){ 0 };
        code = yaml_read_first(mended, mended_size, &docs, &quoted, e);
    }
    if (mended != NULL)
        explicit_bzero(mended, size);
    free(mended);
    if (code == ERR_OK)
        *ret = json_incref(json_array_get(docs, 0));
    json_decref(docs);
    return code;
}

void yaml_add_problem(struct api_problems *problems, const char *file, const struct err *e)
{
    struct api_problem at = { .file = file, .document = 1, .field = "" };
    unsigned line = 0, column = 0;
    const char *text = e->text;
    int n = 0;

    if (sscanf(text, "document %d: line %u column %u: %n", &at.document, &line, &column, &n) == 3 && n > 0)
        text += n;
    at.place = (struct api_place){ line, column };
    api_problems_add_at(problems, &at, "%s", text);
}
