/* SPDX-License-Identifier: Apache-2.0 */
/* The walker's values: type, range and format checks, and copying to the structs. */
#include "agent/api/schema/internal.h"
#include "agent/api/yaml/yaml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- slots ---- */
void *api_slot(const struct walk *w, const struct api_row *row, size_t at)
{
    char *base = row->flags & API_IN_PARENT ? w->parent : w->out;

    return base == NULL || at == 0 ? NULL : base + at - 1;
}

void api_set_given(const struct walk *w, const struct api_row *row)
{
    bool *has = api_slot(w, row, row->has);

    if (has != NULL)
        *has = true;
}

void api_set_text(const struct walk *w, const struct api_row *row, const char *text)
{
    char **p = api_slot(w, row, row->slot);

    if (p != NULL)
        *p = api_strdup(w->c, text);
}

/* ---- types ---- */
static const char *type_of(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "nothing";
}

static bool schema_value_is_text(struct api_check *c, const json_t *v)
{
    bool scalar = json_is_number(v) || json_is_boolean(v);

    if (!json_is_string(v))
        api_fault(c, "expected a string, got %s%s", type_of(v), scalar ? ": put it in quotes" : "");
    return json_is_string(v);
}

/* For "8080" and "true" where a number or a boolean is expected. */
static const char *unquote_hint(const json_t *v)
{
    const char *problem = NULL;
    json_t *plain = json_is_string(v) ? yaml_plain_value(json_string_value(v), &problem) : NULL;
    bool helps = plain != NULL && !json_is_null(plain);

    json_decref(plain);
    return helps ? ": leave the quotes out" : "";
}

/* True for 8080 and for 8080.0, which are equal for Go's decoder. */
static bool schema_value_whole(struct api_check *c, const json_t *v, int64_t *ret)
{
    double real;

    if (json_is_integer(v)) {
        *ret = json_integer_value(v);
        return true;
    }
    if (!json_is_real(v)) {
        api_fault(c, "expected a whole number, got %s%s", type_of(v), unquote_hint(v));
        return false;
    }
    real = json_real_value(v);
    if (fabs(real) >= 9007199254740992.0 || real != (double)(int64_t)real) {
        api_fault(c, "expected a whole number, got %.15g", real);
        return false;
    }
    *ret = (int64_t)real;
    return true;
}

static bool in_range(struct api_check *c, const struct api_row *row, int64_t v)
{
    bool ranged = row->min < row->max, wide = row->type == API_INT64 || row->type == API_INT64S;
    int64_t min = ranged ? row->min : wide ? INT64_MIN : INT32_MIN;
    int64_t max = ranged ? row->max : wide ? INT64_MAX : INT32_MAX;

    if (v >= min && v <= max)
        return true;
    if (row->flags & API_OCTAL && v >= 0)
        api_fault(c, "0%llo (%lld) is out of range, allowed are 0 to 0%llo (octal)", (long long)v,
                  (long long)v, (long long)max);
    else
        api_fault(c, "%lld is out of range, allowed are %lld to %lld", (long long)v, (long long)min,
                  (long long)max);
    return false;
}

static bool has_format(struct api_check *c, enum api_format format, const char *text)
{
    const char *rule = api_format_rule(format, text);

    if (rule != NULL)
        api_fault(c, "%s %s", QUOTE(text), rule);
    return rule == NULL;
}

static const struct api_value *find_value(struct api_check *c, const struct api_value *values,
                                          const char *text)
{
    char allowed[300];
    size_t n = 0, count = 0, shown;

    for (const struct api_value *v = values; v->text != NULL; v++, count++) {
        if (strcmp(v->text, text) == 0)
            return v;
    }
    shown = count > 12 ? 3 : count; /* for a long list (signals) only examples */
    allowed[0] = '\0';
    for (size_t i = 0; i < shown && n < sizeof(allowed); i++)
        n += (size_t)snprintf(allowed + n, sizeof(allowed) - n, "%s%s",
                              i == 0           ? ""
                              : i + 1 == shown ? " and "
                                               : ", ",
                              values[i].text[0] == '\0' ? "\"\"" : values[i].text);
    api_fault(c, "%s is not supported, allowed are %s%s", QUOTE(text), shown < count ? "names such as " : "",
              allowed);
    return NULL;
}

/* ---- scalars ---- */
static bool walk_string(const struct walk *w, const struct api_row *row, const json_t *v)
{
    const struct api_value *value = NULL;
    const char *text;
    void *p = api_slot(w, row, row->slot);

    if (!schema_value_is_text(w->c, v))
        return false;
    text = json_string_value(v);
    if (row->values != NULL)
        value = find_value(w->c, row->values, text);
    if ((row->values != NULL && value == NULL) || !has_format(w->c, row->format, text))
        return false;
    api_set_given(w, row);
    if (row->type == API_STRING)
        api_set_text(w, row, text);
    else if (p != NULL && value != NULL && row->flags & API_BOOL_SLOT)
        *(bool *)p = value->number != 0;
    else if (p != NULL && value != NULL)
        *(int *)p = value->number;
    return true;
}

static bool walk_number(const struct walk *w, const struct api_row *row, json_t *holder, const json_t *v)
{
    void *p = api_slot(w, row, row->slot);
    char text[24];
    int64_t number;

    if (!schema_value_whole(w->c, v, &number) || !in_range(w->c, row, number))
        return false;
    if (json_is_real(v) && json_object_set_new(holder, row->name, json_integer(number)) != 0)
        w->c->no_memory = true;
    api_set_given(w, row);
    if (row->flags & API_AS_TEXT) {
        snprintf(text, sizeof(text), "%lld", (long long)number);
        api_set_text(w, row, text);
    } else if (p != NULL && row->type == API_INT32) {
        *(int32_t *)p = (int32_t)number;
    } else if (p != NULL) {
        *(int64_t *)p = number;
    }
    return true;
}

static bool walk_int_or_string(const struct walk *w, const struct api_row *row, json_t *holder,
                               const json_t *v)
{
    char text[24];
    int64_t number;

    if (json_is_string(v)) {
        if (!has_format(w->c, row->format, json_string_value(v)))
            return false;
        api_set_text(w, row, json_string_value(v));
        return true;
    }
    if (!json_is_number(v)) {
        api_fault(w->c, "expected a number or a string, got %s", type_of(v));
        return false;
    }
    if (!schema_value_whole(w->c, v, &number) || !in_range(w->c, row, number))
        return false;
    if (json_is_real(v) && json_object_set_new(holder, row->name, json_integer(number)) != 0)
        w->c->no_memory = true;
    snprintf(text, sizeof(text), "%lld", (long long)number);
    api_set_text(w, row, text);
    return true;
}

static bool walk_bool(const struct walk *w, const struct api_row *row, const json_t *v)
{
    bool *p = api_slot(w, row, row->slot);

    if (!json_is_boolean(v)) {
        api_fault(w->c, "expected true or false, got %s%s", type_of(v), unquote_hint(v));
        return false;
    }
    api_set_given(w, row);
    if (p != NULL)
        *p = json_is_true(v);
    return true;
}

/* The text of a quantity that may be given as a number; Go prints the shortest digits that yield the same
 * number. */
static bool quantity_text(struct api_check *c, const json_t *v, char *text, size_t size)
{
    const char *s;
    size_t n;

    if (json_is_integer(v)) {
        snprintf(text, size, "%lld", (long long)json_integer_value(v));
        return true;
    }
    if (json_is_real(v)) {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, size, "%.*g", digits, json_real_value(v));
            if (strtod(text, NULL) == json_real_value(v))
                break;
        }
        return true;
    }
    if (!json_is_string(v)) {
        api_fault(c, "expected a quantity (500m, 1.5Gi), got %s", type_of(v));
        return false;
    }
    s = json_string_value(v);
    s += strspn(s, " \t\r\n");
    n = strlen(s);
    while (n > 0 && strchr(" \t\r\n", s[n - 1]) != NULL)
        n--;
    if (n >= size) {
        api_fault(c, "a quantity of %zu characters is too long", n);
        return false;
    }
    memcpy(text, s, n);
    text[n] = '\0';
    return true;
}

/* Parses it, and replaces holder[name] with the canonical text. */
static bool read_quantity(struct api_check *c, json_t *holder, const char *name, const json_t *v,
                          bool to_milli, struct quantity *ret)
{
    char text[256], canonical[QUANTITY_TEXT_SIZE];
    const __int128 milli = 1000000;
    struct err e = { 0 };

    if (!quantity_text(c, v, text, sizeof(text)))
        return false;
    if (quantity_parse(text, ret, &e) != ERR_OK) {
        api_fault(c, "%s", e.text);
        return false;
    }
    if (to_milli && ret->nano % milli != 0)
        ret->nano += ret->nano > 0 ? milli - ret->nano % milli : -(milli + ret->nano % milli);
    quantity_format(ret, canonical);
    if (json_object_set_new(holder, name, json_string(canonical)) != 0)
        c->no_memory = true;
    return true;
}

static bool walk_quantity(const struct walk *w, const struct api_row *row, json_t *holder, const json_t *v)
{
    struct quantity *p = api_slot(w, row, row->slot), q;

    if (!read_quantity(w->c, holder, row->name, v, false, &q))
        return false;
    api_set_given(w, row);
    if (p != NULL)
        *p = q;
    return true;
}

/* ---- lists and maps ---- */
bool api_is_list(struct api_check *c, const json_t *v)
{
    if (!json_is_array(v)) {
        api_fault(c, "expected a list, got %s", type_of(v));
        return false;
    }
    if (json_array_size(v) > API_LIST_MAX) {
        api_fault(c, "%zu elements are too many, at most %d are allowed", json_array_size(v), API_LIST_MAX);
        return false;
    }
    return true;
}

bool api_is_object(struct api_check *c, const json_t *v)
{
    if (!json_is_object(v))
        api_fault(c, "expected an object, got %s", type_of(v));
    return json_is_object(v);
}

static bool walk_strings(const struct walk *w, const struct api_row *row, const json_t *v)
{
    struct api_strs *p = api_slot(w, row, row->slot), list = { 0 };
    json_t *element;
    size_t i;

    if (!api_is_list(w->c, v))
        return false;
    if (p != NULL)
        list.v = api_alloc(w->c, (json_array_size(v) + 1) * sizeof(*list.v));
    json_array_foreach (v, i, element) {
        size_t mark = api_enter_index(w->c, i);
        if (schema_value_is_text(w->c, element) &&
            has_format(w->c, row->format, json_string_value(element)) &&
            (row->values == NULL || find_value(w->c, row->values, json_string_value(element)) != NULL) &&
            list.v != NULL) {
            list.v[list.n] = api_strdup(w->c, json_string_value(element));
            list.n += list.v[list.n] != NULL;
        }
        api_leave(w->c, mark);
    }
    if (list.n > 0)
        api_set_given(w, row);
    if (p != NULL)
        *p = list;
    return true;
}

static bool walk_numbers(const struct walk *w, const struct api_row *row, const json_t *v)
{
    int64_t **p = api_slot(w, row, row->slot), *list = NULL, number;
    size_t *count = api_slot(w, row, row->count), n = 0, i;
    json_t *element;

    if (!api_is_list(w->c, v))
        return false;
    if (p != NULL)
        list = api_alloc(w->c, (json_array_size(v) + 1) * sizeof(*list));
    json_array_foreach (v, i, element) {
        size_t mark = api_enter_index(w->c, i);
        if (schema_value_whole(w->c, element, &number) && in_range(w->c, row, number) && list != NULL)
            list[n++] = number;
        api_leave(w->c, mark);
    }
    if (p != NULL && count != NULL) {
        *p = list;
        *count = n;
    }
    return true;
}

static bool walk_map(const struct walk *w, const struct api_row *row, json_t *v)
{
    struct api_kvs *p = api_slot(w, row, row->slot), map = { 0 };
    const char *key;
    json_t *value;
    void *next;

    if (!api_is_object(w->c, v))
        return false;
    if (p != NULL)
        map.v = api_alloc(w->c, (json_object_size(v) + 1) * sizeof(*map.v));
    json_object_foreach_safe (v, next, key, value) {
        size_t mark = api_enter_key(w->c, key);
        if (json_is_null(value)) /* Go's decoder makes it an empty string */
            value = json_object_set_new(v, key, json_string("")) == 0 ? json_object_get(v, key) : value;
        if (schema_value_is_text(w->c, value) && map.v != NULL) {
            struct api_kv *kv = &map.v[map.n];
            kv->key = api_strdup(w->c, key);
            kv->value = api_strdup(w->c, json_string_value(value));
            map.n += kv->key != NULL && kv->value != NULL;
        }
        api_leave(w->c, mark);
    }
    if (p != NULL) {
        api_kvs_sort(&map);
        *p = map;
    }
    return true;
}

static int resource_order(const void *a, const void *b)
{
    const struct api_resource *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static bool walk_resources(const struct walk *w, const struct api_row *row, json_t *v)
{
    struct api_resource_list *p = api_slot(w, row, row->slot), list = { 0 };
    const char *key;
    json_t *value;
    void *next;

    if (!api_is_object(w->c, v))
        return false;
    if (json_object_size(v) > API_RESOURCES_MAX) {
        api_fault(w->c, "%zu resources are too many, at most %d are allowed", json_object_size(v),
                  API_RESOURCES_MAX);
        return false;
    }
    if (p != NULL)
        list.v = api_alloc(w->c, (json_object_size(v) + 1) * sizeof(*list.v));
    json_object_foreach_safe (v, next, key, value) {
        size_t mark = api_enter_key(w->c, key);
        struct quantity q = { 0 };
        /* null is the quantity 0, as for Go's decoder */
        if ((json_is_null(value) && json_object_set_new(v, key, json_string("0")) == 0) ||
            read_quantity(w->c, v, key, value, true, &q)) {
            if (list.v != NULL) {
                list.v[list.n].name = api_strdup(w->c, key);
                list.v[list.n].amount = q;
                list.n += list.v[list.n].name != NULL;
            }
        }
        api_leave(w->c, mark);
    }
    if (p != NULL) {
        if (list.n > 1)
            qsort(list.v, list.n, sizeof(*list.v), resource_order);
        *p = list;
    }
    return true;
}

/* ---- all of them ---- */
bool api_walk_plain(const struct walk *w, const struct api_row *row, json_t *holder, json_t *v)
{
    switch (row->type) {
    case API_STRING:
    case API_ENUM:
        return walk_string(w, row, v);
    case API_INT32:
    case API_INT64:
        return walk_number(w, row, holder, v);
    case API_BOOL:
        return walk_bool(w, row, v);
    case API_QUANTITY:
        return walk_quantity(w, row, holder, v);
    case API_STRINGS:
        return walk_strings(w, row, v);
    case API_INT32S:
    case API_INT64S:
        return walk_numbers(w, row, v);
    case API_STRING_MAP:
    case API_BYTES_MAP:
        return walk_map(w, row, v);
    case API_RESOURCES:
        return walk_resources(w, row, v);
    case API_INT_OR_STRING:
        return walk_int_or_string(w, row, holder, v);
    case API_OBJECT: /* handled by the walker */
    case API_LIST:
    case API_ANY:
        break;
    }
    return true;
}
