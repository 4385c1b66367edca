/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding as Go does it: types, unknown fields, members that are omitted when empty. */
#include "agent/api/patch/write/write.h"

#include "agent/api/patch/go_text.h"
#include "agent/api/patch/tree.h"
#include "agent/api/quantity.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN_MAX 200 /* fields named in one answer */

struct decoder {
    json_t *unknown; /* borrowed */
    struct buf path; /* "spec.containers[0]": of unknown fields */
    struct buf keys; /* "spec.containers": of errors, as Go names them */
    json_t *why;
    bool converted;
    bool no_memory;
};

struct mark {
    size_t path, keys;
};

static struct mark enter(struct decoder *d, const char *name)
{
    struct mark m = { d->path.n, d->keys.n };

    buf_addf(&d->path, "%s%s", m.path > 0 ? "." : "", name);
    buf_addf(&d->keys, "%s%s", m.keys > 0 ? "." : "", name);
    return m;
}

static struct mark enter_index(struct decoder *d, size_t i)
{
    struct mark m = { d->path.n, d->keys.n };

    buf_addf(&d->path, "[%zu]", i);
    return m;
}

static void leave(struct decoder *d, struct mark m)
{
    d->path.n = m.path;
    d->path.p[m.path] = '\0';
    d->keys.n = m.keys;
    d->keys.p[m.keys] = '\0';
}

/* ---- errors ---- */

static void go_row_type(const struct api_row *row, char *text, size_t size)
{
    static const char *const names[] = {
        [API_STRING] = "string",
        [API_ENUM] = "string",
        [API_INT32] = "int32",
        [API_INT64] = "int64",
        [API_BOOL] = "bool",
        [API_STRINGS] = "[]string",
        [API_INT32S] = "[]int32",
        [API_INT64S] = "[]int64",
        [API_STRING_MAP] = "map[string]string",
        [API_BYTES_MAP] = "map[string][]uint8",
        [API_INT_OR_STRING] = "int32",
    };

    if (row->type == API_OBJECT || row->type == API_LIST)
        snprintf(text, size, "%sv1.%s", row->type == API_LIST ? "[]" : "", row->nested->name);
    else
        snprintf(text, size, "%s",
                 row->type < ARRAY_LEN(names) && names[row->type] != NULL ? names[row->type] : "string");
}

/* The error of a text: "json: cannot unmarshal number into Go struct field Container.spec.image of type
 * string". */
static void wrong_json(struct decoder *d, const struct api_schema *schema, const char *type, const json_t *v)
{
    char number[40] = "";
    str_auto text = NULL;

    if (json_is_real(v) && strncmp(type, "int", 3) == 0)
        snprintf(number, sizeof(number), " %.15g", json_real_value(v));
    else if (json_is_integer(v) && strncmp(type, "int", 3) == 0) /* it does not fit */
        snprintf(number, sizeof(number), " %lld", (long long)json_integer_value(v));
    text = str_printf("json: cannot unmarshal %s%s into Go struct field %s.%s of type %s", tree_go_type(v),
                      number, schema->name, d->keys.p, type);
    if (text != NULL)
        d->why = json_string_of(text);
    d->no_memory = d->why == NULL;
}

/* The error of a conversion. */
static void wrong_converted(struct decoder *d, const char *type, const json_t *v)
{
    const char *from = json_is_object(v) ? "map" : json_is_array(v) ? "slice" : go_type(v);
    const char *to = type[0] == '[' ? "slice" : strncmp(type, "map", 3) == 0 ? "map" : "struct";
    bool holds = type[0] == '[' || strncmp(type, "map", 3) == 0 || strncmp(type, "v1.", 3) == 0;
    str_auto text =
        holds ? str_printf("cannot restore %s from %s%s", to, strcmp(to, "struct") == 0 ? ": " : "", from)
              : str_printf("cannot convert %s to %s", go_type(v), type);

    if (text != NULL)
        d->why = json_string_of(text);
    d->no_memory = d->why == NULL;
}

static bool wrong(struct decoder *d, const struct api_schema *schema, const struct api_row *row,
                  const json_t *v, bool element)
{
    char type[120];
    size_t skip = 0;

    go_row_type(row, type, sizeof(type));
    if (element && type[0] == '[')
        skip = 2;
    else if (element && strncmp(type, "map[string]", 11) == 0)
        skip = 11;
    if (d->converted)
        wrong_converted(d, type + skip, v);
    else
        wrong_json(d, schema, type + skip, v);
    return false;
}

static bool wrong_quantity(struct decoder *d)
{
    d->why = json_string(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    d->no_memory = d->why == NULL;
    return false;
}

/* ---- values ---- */

/* holder[name] becomes the canonical text of a quantity. */
static bool decode_quantity(struct decoder *d, json_t *holder, const char *name, const json_t *v)
{
    char text[64], canonical[QUANTITY_TEXT_SIZE];
    struct quantity q;

    if (json_is_string(v))
        snprintf(text, sizeof(text), "%s", json_string_value(v));
    else if (json_is_integer(v))
        snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        snprintf(text, sizeof(text), "%.15g", json_real_value(v));
    else
        snprintf(text, sizeof(text), "%s", json_is_null(v) ? "0" : "?");
    if (quantity_parse(text, &q, ERR_IGNORED) != ERR_OK)
        return wrong_quantity(d);
    quantity_format(&q, canonical);
    d->no_memory = d->no_memory || json_object_set_new(holder, name, json_string(canonical)) != 0;
    return true;
}

static bool decode_bytes(struct decoder *d, const json_t *v)
{
    size_t at;
    str_auto why = NULL;

    if (go_base64(json_string_value(v), json_string_length(v), &at))
        return true;
    why = str_printf("illegal base64 data at input byte %zu", at);
    d->why = why != NULL ? json_string(why) : NULL;
    d->no_memory = d->why == NULL;
    return false;
}

static bool decode_map(struct decoder *d, const struct api_schema *schema, const struct api_row *row,
                       json_t *map)
{
    const char *name;
    json_t *v;
    void *next;

    json_object_foreach_safe (map, next, name, v) {
        if (row->type == API_RESOURCES) {
            if (!decode_quantity(d, map, name, v))
                return false;
        } else if (json_is_null(v)) {
            d->no_memory = d->no_memory || json_object_set_new(map, name, json_string("")) != 0;
        } else if (!json_is_string(v)) {
            return wrong(d, schema, row, v, true);
        } else if (row->type == API_BYTES_MAP && !decode_bytes(d, v)) {
            return false;
        }
    }
    return true;
}

static bool decode_object(struct decoder *d, const struct api_schema *schema, json_t *object);

static bool fits_int32(const json_t *v)
{
    return json_integer_value(v) >= INT32_MIN && json_integer_value(v) <= INT32_MAX;
}

/* null is the empty value of the type. */
static bool decode_scalar(struct decoder *d, const struct api_schema *schema, const struct api_row *row,
                          json_t *list, size_t i)
{
    const bool numbers = row->type == API_INT32S || row->type == API_INT64S;
    json_t *v = json_array_get(list, i);

    if (json_is_null(v)) {
        d->no_memory =
            d->no_memory || json_array_set_new(list, i, numbers ? json_integer(0) : json_string("")) != 0;
        return true;
    }
    if (numbers ? json_is_integer(v) && (row->type == API_INT64S || fits_int32(v)) : json_is_string(v))
        return true;
    return wrong(d, schema, row, v, true);
}

static bool decode_list(struct decoder *d, const struct api_schema *schema, const struct api_row *row,
                        json_t *list)
{
    bool ok = true;
    json_t *v;
    size_t i;

    json_array_foreach (list, i, v) {
        struct mark m = enter_index(d, i);

        if (row->type == API_LIST && json_is_object(v))
            ok = decode_object(d, row->nested, v);
        else if (row->type == API_LIST && json_is_null(v))
            d->no_memory = d->no_memory || json_array_set_new(list, i, json_object()) != 0;
        else if (row->type == API_LIST)
            ok = wrong(d, schema, row, v, true);
        else
            ok = decode_scalar(d, schema, row, list, i);
        leave(d, m);
        if (!ok)
            return false;
    }
    return true;
}

static bool decode_value(struct decoder *d, const struct api_schema *schema, const struct api_row *row,
                         json_t *holder, json_t *v)
{
    bool fits = true;

    switch (row->type) {
    case API_STRING:
    case API_ENUM:
        fits = json_is_string(v);
        break;
    case API_INT32:
        fits = json_is_integer(v) && fits_int32(v);
        break;
    case API_INT64:
        fits = json_is_integer(v);
        break;
    case API_BOOL:
        fits = json_is_boolean(v);
        break;
    case API_QUANTITY:
        return decode_quantity(d, holder, row->name, v);
    case API_OBJECT:
        return json_is_object(v) ? decode_object(d, row->nested, v) : wrong(d, schema, row, v, false);
    case API_LIST:
    case API_STRINGS:
    case API_INT32S:
    case API_INT64S:
        return json_is_array(v) ? decode_list(d, schema, row, v) : wrong(d, schema, row, v, false);
    case API_STRING_MAP:
    case API_BYTES_MAP:
    case API_RESOURCES:
        return json_is_object(v) ? decode_map(d, schema, row, v) : wrong(d, schema, row, v, false);
    case API_INT_OR_STRING:
        fits = (json_is_integer(v) && fits_int32(v)) || json_is_string(v);
        break;
    case API_ANY:
        break;
    }
    return fits || wrong(d, schema, row, v, false);
}

static void note_unknown(struct decoder *d)
{
    if (json_array_size(d->unknown) < UNKNOWN_MAX &&
        json_array_append_new(d->unknown, json_string_of(d->path.p)) != 0)
        d->no_memory = true;
}

static bool decode_object(struct decoder *d, const struct api_schema *schema, json_t *object)
{
    const char *name;
    json_t *v;
    void *next;

    json_object_foreach_safe (object, next, name, v) {
        const struct api_row *row = api_row_find(schema, name);
        struct mark m = enter(d, name);
        bool ok = true;

        if (row == NULL)
            note_unknown(d);
        else if (!json_is_null(v))
            ok = decode_value(d, schema, row, object, v);
        leave(d, m);
        if (!ok || d->no_memory || d->path.failed || d->keys.failed)
            return false;
        if (row == NULL || api_row_is_absent(row, json_object_get(object, name)))
            json_object_del(object, name);
    }
    return true;
}

enum err_code api_object_decode(const struct api_patch_kind *kind, json_t *object, bool converted,
                                json_t *unknown, json_t **ret_why, struct err *e)
{
    struct decoder d = { .unknown = unknown,
                         .path = BUF_INIT(GO_TEXT_MAX),
                         .keys = BUF_INIT(GO_TEXT_MAX),
                         .converted = converted };
    bool ok;

    buf_adds(&d.path, "");
    buf_adds(&d.keys, "");
    ok = decode_object(&d, kind->schema, object);
    buf_done(&d.path);
    buf_done(&d.keys);
    if (ok)
        return ERR_OK;
    if (d.why == NULL)
        return err_nomem(e);
    *ret_why = d.why;
    return err_set(e, ERR_INVALID, "%s", json_string_value(d.why));
}
