/* SPDX-License-Identifier: Apache-2.0 */
/* The walker: checks a JSON object against a table, adds defaults, fills the struct. */
#include "agent/api/schema/internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void walk_object(struct walk w, const struct api_schema *schema, json_t *object);

/* ---- tables ---- */
const struct api_row *api_row_find(const struct api_schema *schema, const char *name)
{
    do {
        for (const struct api_row *row = schema->rows; row->name != NULL; row++) {
            if (strcmp(row->name, name) == 0)
                return row;
        }
        schema = schema->base;
    } while (schema != NULL);
    return NULL;
}

/* Levenshtein distance; 99 if a name is long. */
static size_t schema_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), line[64];

    if (n >= 64 || m >= 64)
        return 99;
    for (size_t j = 0; j <= m; j++)
        line[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = line[0];
        line[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = line[j];
            if (line[j] + 1 < best)
                best = line[j] + 1;
            if (line[j - 1] + 1 < best)
                best = line[j - 1] + 1;
            line[j] = best;
        }
    }
    return line[m];
}

const char *api_row_similar(const struct api_schema *schema, const char *name)
{
    const char *found = NULL;
    size_t best = 3;

    for (; schema != NULL; schema = schema->base) {
        for (const struct api_row *row = schema->rows; row->name != NULL; row++) {
            size_t d = strcasecmp(row->name, name) == 0 ? 0 : schema_distance(row->name, name);
            if (d < best && d * 3 <= strlen(name)) {
                best = d;
                found = row->name;
            }
        }
    }
    return found;
}

/* Its `support` refuses it here. */
static bool not_acted_on(const struct api_check *c, const struct api_row *row)
{
    if (row->support < API_IGNORED || (row->flags & API_IN_CLUSTER && c->joined))
        return false;
    return !(row->flags & API_NOT_STATIC) || c->static_node != NULL;
}

/* ---- nested objects ---- */
static bool walk_nested(const struct walk *w, const struct api_row *row, json_t *v, bool quiet)
{
    struct walk below = { .c = w->c, .parent = w->out, .quiet = quiet };
    void *p = api_slot(w, row, row->slot);

    if (!api_is_object(w->c, v))
        return false;
    if (p != NULL && row->flags & (API_POINTER | API_ONE)) {
        size_t *count = api_slot(w, row, row->count);
        below.out = api_alloc(w->c, row->nested->size);
        *(void **)p = below.out;
        if (count != NULL)
            *count = below.out != NULL;
    } else {
        below.out = p;
    }
    api_set_given(w, row);
    walk_object(below, row->nested, v);
    return true;
}

static bool walk_list(const struct walk *w, const struct api_row *row, json_t *v, bool quiet)
{
    void **p = api_slot(w, row, row->slot);
    size_t *count = api_slot(w, row, row->count), i;
    char *structs = NULL;
    json_t *element;

    if (!api_is_list(w->c, v))
        return false;
    if (p != NULL) {
        structs = api_alloc(w->c, (json_array_size(v) + 1) * row->nested->size);
        *p = structs;
        *count = structs == NULL ? 0 : json_array_size(v);
    }
    json_array_foreach (v, i, element) {
        struct walk below = { .c = w->c, .parent = w->out, .quiet = quiet };
        size_t mark = api_enter_index(w->c, i);
        if (structs != NULL)
            below.out = structs + i * row->nested->size;
        if (api_is_object(w->c, element))
            walk_object(below, row->nested, element);
        api_leave(w->c, mark);
    }
    return true;
}

static bool walk_value(const struct walk *w, const struct api_row *row, json_t *holder, json_t *v, bool quiet)
{
    if (row->flags & API_ELSEWHERE)
        return api_is_object(w->c, v);
    if (row->type == API_OBJECT) {
        if (!walk_nested(w, row, v, quiet))
            return false;
        api_set_given(w, row);
        return true;
    }
    if (row->type == API_LIST) {
        if (!walk_list(w, row, v, quiet))
            return false;
        api_set_given(w, row);
        return true;
    }
    return api_walk_plain(w, row, holder, v);
}

/* ---- objects ---- */
static bool harmless(struct api_check *c, const struct api_row *row, const json_t *v)
{
    json_t *value;
    bool same;

    if (row->harmless == NULL)
        return false;
    value = json_loads(row->harmless, JSON_DECODE_ANY, NULL);
    if (value == NULL)
        c->no_memory = true;
    same = value != NULL && json_equal(value, v);
    json_decref(value);
    return same;
}

static void report_support(const struct walk *w, const struct api_row *row, const json_t *v)
{
    if (w->quiet || !not_acted_on(w->c, row) || harmless(w->c, row, v))
        return;
    if (row->support == API_IGNORED)
        api_ignore(w->c, row->why);
    else
        api_fault(w->c, "not supported: %s", row->why);
}

bool api_row_is_absent(const struct api_row *row, const json_t *v)
{
    if (json_is_null(v))
        return true;
    switch (row->type) {
    case API_STRING:
    case API_ENUM:
        return json_is_string(v) && json_string_length(v) == 0 && !(row->flags & API_KEEP_EMPTY);
    case API_INT32:
    case API_INT64:
        return row->flags & API_ZERO_ABSENT && json_is_integer(v) && json_integer_value(v) == 0;
    case API_BOOL:
        return row->flags & API_ZERO_ABSENT && json_is_false(v);
    case API_LIST:
    case API_STRINGS:
    case API_INT32S:
    case API_INT64S:
        return json_is_array(v) && json_array_size(v) == 0;
    case API_STRING_MAP:
    case API_BYTES_MAP:
    case API_RESOURCES:
        return json_is_object(v) && json_object_size(v) == 0;
    case API_QUANTITY:
    case API_OBJECT:
    case API_INT_OR_STRING:
    case API_ANY:
        break;
    }
    return false;
}

static void check_members(struct api_check *c, const struct api_schema *schema, json_t *object)
{
    const char *name;
    json_t *value;
    void *next;

    json_object_foreach_safe (object, next, name, value) {
        const struct api_row *row = api_row_find(schema, name);
        const char *meant =
            row == NULL && !c->served && c->faults < API_PROBLEMS_MAX ? api_row_similar(schema, name) : NULL;
        if (row == NULL ? c->served : api_row_is_absent(row, value))
            json_object_del(object, name);
        else if (row == NULL && meant != NULL)
            api_fault_at(c, name, "unknown field, did you mean %s?", meant);
        else if (row == NULL)
            api_fault_at(c, name, "unknown field");
    }
}

static void add_default(struct api_check *c, const struct api_row *row, json_t *object)
{
    json_t *v = NULL;

    switch (row->type) {
    case API_STRING:
    case API_ENUM:
    case API_QUANTITY:
        v = json_string(row->otherwise);
        break;
    case API_INT32:
    case API_INT64:
        v = json_integer(strtoll(row->otherwise, NULL, 10));
        break;
    case API_BOOL:
        v = json_boolean(strcmp(row->otherwise, "true") == 0);
        break;
    default:
        v = json_object();
        break;
    }
    if (json_object_set_new(object, row->name, v) != 0)
        c->no_memory = true;
}

static void set_absent(const struct walk *w, const struct api_row *row)
{
    void *p = api_slot(w, row, row->slot);

    if (p != NULL && row->absent != 0)
        *(int32_t *)p = row->absent;
    if (row->flags & API_EMPTY_TEXT)
        api_set_text(w, row, "");
}

static void walk_row(const struct walk *w, const struct api_row *row, json_t *object)
{
    json_t *v = json_object_get(object, row->name);
    size_t mark;
    bool settled = w->quiet || not_acted_on(w->c, row);
    int *tag;

    if (v == NULL && row->otherwise != NULL) {
        add_default(w->c, row, object);
        v = json_object_get(object, row->name);
    }
    mark = api_enter(w->c, row->name);
    if (v == NULL) {
        if (row->flags & API_REQUIRED)
            api_fault(w->c, "required");
        set_absent(w, row);
        api_leave(w->c, mark);
        return;
    }
    tag = api_slot(w, row, row->tag);
    if (tag != NULL)
        *tag = row->tag_value;
    json_incref(v); /* a canonical value may replace it in the object */
    if (walk_value(w, row, object, v, settled))
        report_support(w, row, v);
    else
        set_absent(w, row);
    json_decref(v);
    if (row->flags & API_DROP && !(row->flags & API_KEPT_EXPANDED && w->c->expanded))
        json_object_del(object, row->name);
    api_leave(w->c, mark);
}

static void check_one_of(struct api_check *c, const struct api_schema *schema, const json_t *object)
{
    bool counting = schema->one_of_first == NULL;
    size_t given = 0;

    for (const struct api_row *row = schema->rows; row->name != NULL; row++) {
        if (schema->one_of_first != NULL && strcmp(row->name, schema->one_of_first) == 0)
            counting = true;
        given += counting && json_object_get(object, row->name) != NULL;
        if (schema->one_of_last != NULL && strcmp(row->name, schema->one_of_last) == 0)
            counting = false;
    }
    if (given > 1)
        api_fault(c, "%s", schema->one_of);
    if (given == 0 && schema->one_of_none != NULL)
        api_fault(c, "%s", schema->one_of_none);
}

static void walk_object(struct walk w, const struct api_schema *schema, json_t *object)
{
    check_members(w.c, schema, object);
    if (schema->one_of != NULL)
        check_one_of(w.c, schema, object);
    if (w.out != NULL && schema->init != 0)
        *(int *)((char *)w.out + schema->init - 1) = schema->init_value;
    if (w.out != NULL && schema->init_true != 0)
        *(bool *)((char *)w.out + schema->init_true - 1) = true;
    for (const struct api_schema *s = schema; s != NULL; s = s->base) {
        for (const struct api_row *row = s->rows; row->name != NULL; row++) {
            if (s == schema || api_row_find(schema, row->name) == row)
                walk_row(&w, row, object);
        }
    }
}

void api_walk(struct api_check *c, const struct api_schema *schema, json_t *object, void *out)
{
    walk_object((struct walk){ .c = c, .out = out }, schema, object);
}
