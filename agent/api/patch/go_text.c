/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/patch/go_text.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_map(struct buf *b, const json_t *v)
{
    size_t n = 0, size = json_object_size(v);
    const char **names = calloc(size + 1, sizeof(*names)), *name;
    json_t *member;

    if (names == NULL) {
        b->failed = true;
        return;
    }
    json_object_foreach ((json_t *)v, name, member)
        names[n++] = name;
    qsort(names, n, sizeof(*names), by_name);
    buf_adds(b, "map[");
    for (size_t i = 0; i < n; i++) {
        buf_addf(b, "%s%s:", i > 0 ? " " : "", names[i]);
        go_text_add(b, json_object_get(v, names[i]));
    }
    buf_addc(b, ']');
    free(names);
}

void go_text_add(struct buf *b, const json_t *v)
{
    json_t *element;
    size_t i;

    switch (v != NULL ? json_typeof(v) : JSON_NULL) {
    case JSON_OBJECT:
        add_map(b, v);
        return;
    case JSON_ARRAY:
        buf_addc(b, '[');
        json_array_foreach ((json_t *)v, i, element) {
            if (i > 0)
                buf_addc(b, ' ');
            go_text_add(b, element);
        }
        buf_addc(b, ']');
        return;
    case JSON_STRING:
        buf_adds(b, json_string_value(v));
        return;
    case JSON_INTEGER:
        buf_addf(b, "%lld", (long long)json_integer_value(v));
        return;
    case JSON_REAL:
        buf_addf(b, "%.15g", json_real_value(v));
        return;
    case JSON_TRUE:
        buf_adds(b, "true");
        return;
    case JSON_FALSE:
        buf_adds(b, "false");
        return;
    case JSON_NULL:
        break;
    }
    buf_adds(b, "<nil>");
}

char *go_text(const json_t *v)
{
    struct buf b = BUF_INIT(GO_TEXT_MAX);

    go_text_add(&b, v);
    if (!b.failed)
        return buf_detach(&b);
    buf_done(&b);
    return NULL;
}

const char *go_type(const json_t *v)
{
    switch (v != NULL ? json_typeof(v) : JSON_NULL) {
    case JSON_OBJECT:
        return "map[string]interface {}";
    case JSON_ARRAY:
        return "[]interface {}";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "int64";
    case JSON_REAL:
        return "float64";
    case JSON_TRUE:
    case JSON_FALSE:
        return "bool";
    case JSON_NULL:
        break;
    }
    return "%!s(<nil>)";
}
