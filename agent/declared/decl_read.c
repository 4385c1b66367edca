/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/declared/decl_internal.h"
#include "base/files/fs.h"
#include "base/near.h"

#include <string.h>

/* ---- mappings and lists ---- */

static const struct decl_field *find_field(const struct decl_field *fields, const char *name)
{
    for (; fields->name != NULL; fields++)
        if (strcmp(fields->name, name) == 0)
            return fields;
    return NULL;
}

static void unknown_field(struct decl_parser *p, const struct decl_field *fields, const char *name)
{
    struct near near = { .name = name };
    buf_auto all = BUF_INIT(400);

    for (; fields->name != NULL; fields++) {
        near_try(&near, fields->name);
        buf_addf(&all, "%s%s", all.n > 0 ? ", " : "", fields->name);
    }
    if (near.found != NULL)
        api_fault(&p->c, "unknown field; did you mean %s?", near.found);
    else
        api_fault(&p->c, "unknown field, allowed are %s", all.p);
}

/* null equals an absent field. */
void decl_read_fields(struct decl_parser *p, const struct decl_field *fields, const json_t *object, void *to)
{
    const char *name;
    json_t *v;

    if (!json_is_object(object)) {
        api_fault(&p->c, "not a mapping");
        return;
    }
    json_object_foreach ((json_t *)object, name, v) {
        const struct decl_field *f = find_field(fields, name);
        size_t mark = api_enter(&p->c, name);

        if (f == NULL)
            unknown_field(p, fields, name);
        else if (!json_is_null(v))
            f->read(p, v, to);
        api_leave(&p->c, mark);
    }
}

void *decl_alloc(struct decl_parser *p, size_t n)
{
    void *at = arena_alloc(p->arena, n);

    if (at == NULL)
        p->c.no_memory = true;
    return at;
}

/* The elements of a list, in memory of `size` bytes each; NULL after a problem. */
void *decl_read_list(struct decl_parser *p, const json_t *list, size_t max, size_t size,
                     void (*read)(struct decl_parser *p, const json_t *v, void *to), size_t *ret_n)
{
    size_t i, n = json_array_size(list);
    json_t *item;
    char *v;

    if (!json_is_array(list) || n == 0) {
        api_fault(&p->c, "not a list with an element");
        return NULL;
    }
    if (n > max) {
        api_fault(&p->c, "has %zu elements, allowed are 1 to %zu", n, max);
        return NULL;
    }
    v = decl_alloc(p, n * size);
    json_array_foreach (list, i, item) {
        size_t mark = api_enter_index(&p->c, i);
        if (v != NULL)
            read(p, item, v + i * size);
        api_leave(&p->c, mark);
    }
    *ret_n = v != NULL ? n : 0;
    return v;
}

/* ---- values ---- */

/* NULL after a problem. */
const char *decl_read_text(struct decl_parser *p, const json_t *v, size_t max)
{
    const char *text = json_string_value(v);
    char *copy;

    if (text == NULL) {
        api_fault(&p->c, "not a string%s", json_is_number(v) ? " (a number needs quotes)" : "");
        return NULL;
    }
    if (text[0] == '\0' || strlen(text) > max || strlen(text) != json_string_length(v)) {
        api_fault(&p->c, "%s is not a text of 1 to %zu bytes", QUOTE(text), max);
        return NULL;
    }
    copy = arena_strdup(p->arena, text);
    if (copy == NULL)
        p->c.no_memory = true;
    return copy;
}

bool decl_read_bool(struct decl_parser *p, const json_t *v)
{
    if (!json_is_boolean(v))
        api_fault(&p->c, "neither true nor false");
    return json_is_true(v);
}

unsigned decl_read_number(struct decl_parser *p, const json_t *v)
{
    json_int_t n = json_integer_value(v);

    if (!json_is_integer(v) || n < 1 || n > DECL_COUNT_MAX) {
        api_fault(&p->c, "not a number from 1 to %d", DECL_COUNT_MAX);
        return 1;
    }
    return (unsigned)n;
}

bool decl_is_path(const char *text)
{
    size_t n = strlen(text);
    char relative[DECL_PATH_MAX + 1];

    if (text[0] != '/' || n < 2 || n > DECL_PATH_MAX)
        return false;
    strcpy(relative, text + 1);
    if (relative[n - 2] == '/')
        relative[n - 2] = '\0';
    return fs_path_is_safe(relative);
}

/* Whether the text is a shell pattern of one path: each [ has its ], without a slash inside. */
bool decl_is_pattern(const char *text)
{
    for (const char *at = strchr(text, '['); at != NULL; at = strchr(at, '[')) {
        at += at[1] == '!' || at[1] == '^' ? 2 : 1;
        if (*at == ']')
            at++;
        while (*at != '\0' && *at != ']' && *at != '/')
            at++;
        if (*at != ']')
            return false;
    }
    return strchr(text, '\\') == NULL;
}

const char *decl_read_pattern(struct decl_parser *p, const json_t *v)
{
    const char *text = decl_read_text(p, v, DECL_PATH_MAX);

    if (text != NULL && !decl_is_pattern(text))
        api_fault(&p->c, "%s is not a pattern with *, ? and [...]", QUOTE(text));
    return text;
}
