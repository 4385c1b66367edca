/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a Table's cells, in the words of kubernetes' printers. */
#include "agent/api/serve/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/duration.h"
#include "base/strs.h"

#include <stdlib.h>
#include <string.h>

enum { CELL_MAX = 64 * 1024 }; /* bytes of one cell; a longer one is cut off at an element */

const char *api_text_at(const json_t *object, const char *path)
{
    const char *text = json_string_value(json_at(object, path));

    return text != NULL ? text : "";
}

int64_t api_number_at(const json_t *object, const char *path)
{
    return json_integer_value(json_at(object, path));
}

const json_t *api_find(const json_t *list, const char *key, const char *text)
{
    const json_t *v;
    size_t i;

    json_array_foreach (list, i, v) {
        if (strcmp(api_text_at(v, key), text) == 0)
            return v;
    }
    return NULL;
}

bool api_condition_is(const json_t *object, const char *type, const char *status)
{
    const json_t *condition = api_find(json_at(object, "status.conditions"), "type", type);

    return strcmp(api_text_at(condition, "status"), status) == 0;
}

void api_cell(json_t **cells, const char *text)
{
    api_append(cells, json_string(text));
}

void api_cell_or(json_t **cells, const char *text, const char *otherwise)
{
    api_cell(cells, text[0] != '\0' ? text : otherwise);
}

void api_cell_number(json_t **cells, int64_t n)
{
    api_append(cells, json_integer(n));
}

void api_cell_since(json_t **cells, const char *when, int64_t now_ns)
{
    int64_t ns;

    if (when[0] == '\0' || clock_parse(when, &ns, ERR_IGNORED) != ERR_OK)
        api_cell(cells, "<unknown>");
    else
        api_cell(cells, duration_human(now_ns - ns).s);
}

void api_cell_age(json_t **cells, const json_t *object, int64_t now_ns)
{
    api_cell_since(cells, api_text_at(object, "metadata.creationTimestamp"), now_ns);
}

void api_cell_list(json_t **cells, const json_t *list, const char *key)
{
    buf_auto text = BUF_INIT(CELL_MAX);
    const json_t *v;
    size_t i;

    json_array_foreach (list, i, v) {
        const char *element = key != NULL ? api_text_at(v, key) : json_string_value(v);
        buf_addf(&text, "%s%s", i == 0 ? "" : ",", element != NULL ? element : "");
    }
    api_cell(cells, text.p);
}

/* Sorted, joined by commas; frees the strings. A text of the form "KEY\1TEXT" is sorted by KEY and shown as
 * TEXT. */
static void cell_joined(json_t **cells, struct strs *texts, bool complete)
{
    buf_auto joined = BUF_INIT(CELL_MAX);

    strs_sort(texts);
    for (size_t i = 0; i < texts->n; i++) {
        const char *shown = strchr(texts->v[i], '\1');
        buf_addf(&joined, "%s%s", i == 0 ? "" : ",", shown != NULL ? shown + 1 : texts->v[i]);
    }
    if (complete)
        api_cell_or(cells, joined.p, "<none>");
    else
        api_append(cells, NULL);
    strs_done(texts);
}

void api_cell_pairs(json_t **cells, const json_t *map)
{
    struct strs texts = { 0 };
    bool complete = true;
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)map, key, value) {
        const char *text = json_string_value(value);
        complete &= strs_take(&texts, str_printf("%s=%s", key, text != NULL ? text : ""));
    }
    cell_joined(cells, &texts, complete);
}

/* One of matchExpressions: "KEY\1key in (a,b)". */
static bool add_expression(struct strs *texts, const json_t *expression)
{
    const char *key = api_text_at(expression, "key"), *operator= api_text_at(expression, "operator");
    const json_t *value;
    struct strs values = { 0 };
    buf_auto text = BUF_INIT(CELL_MAX);
    bool ok = true;
    size_t i;

    buf_addf(&text, "%s\1%s%s", key, strcmp(operator, "DoesNotExist") == 0 ? "!" : "", key);
    if (strcmp(operator, "In") == 0 || strcmp(operator, "NotIn") == 0) {
        json_array_foreach (json_object_get(expression, "values"), i, value)
            ok &= strs_add(&values, json_is_string(value) ? json_string_value(value) : "");
        strs_sort(&values);
        buf_addf(&text, " %s (", operator[0] == 'I' ? "in" : "notin");
        for (i = 0; i < values.n; i++)
            buf_addf(&text, "%s%s", i == 0 ? "" : ",", values.v[i]);
        buf_addc(&text, ')');
        strs_done(&values);
    }
    return ok && strs_add(texts, text.p);
}

void api_cell_selector(json_t **cells, const json_t *selector)
{
    struct strs texts = { 0 };
    bool complete = true;
    const char *key;
    json_t *value;
    size_t i;

    json_object_foreach (json_object_get(selector, "matchLabels"), key, value)
        complete &= strs_take(
            &texts, str_printf("%s\1%s=%s", key, key, json_is_string(value) ? json_string_value(value) : ""));
    json_array_foreach (json_object_get(selector, "matchExpressions"), i, value)
        complete &= add_expression(&texts, value);
    cell_joined(cells, &texts, complete);
}
