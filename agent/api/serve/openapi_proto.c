/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenAPI document of version 2, from JSON to protobuf. The numbers are those of gnostic's
 * OpenAPIv2.proto; only what our documents have is known here. */
#include "agent/api/serve/internal.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <stdint.h>
#include <string.h>

enum { PROTO_MAX = 8 * 1024 * 1024 }; /* of one message */

static void add_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_addc(b, (char)(v | 0x80));
    buf_addc(b, (char)v);
}

/* Texts and messages have the wire type 2. */
static void add_bytes(struct buf *b, unsigned field, const void *data, size_t n)
{
    add_varint(b, field << 3 | 2);
    add_varint(b, n);
    buf_add(b, data, n);
}

static void add_text(struct buf *b, unsigned field, const char *text)
{
    if (text != NULL && text[0] != '\0')
        add_bytes(b, field, text, strlen(text));
}

static void add_texts(struct buf *b, unsigned field, const json_t *list)
{
    const json_t *v;
    size_t i;

    json_array_foreach (list, i, v)
        add_text(b, field, json_string_value(v));
}

/* A nested message, which `fill` writes. */
static void add_message(struct buf *b, unsigned field, const json_t *v,
                        void (*fill)(struct buf *b, const json_t *v))
{
    buf_auto inner = BUF_INIT(PROTO_MAX);

    fill(&inner, v);
    b->failed |= inner.failed;
    add_bytes(b, field, inner.p, inner.n);
}

/* An element of a map: its name, and its value in a message. */
static void add_named(struct buf *b, unsigned field, const char *name, const json_t *v,
                      void (*fill)(struct buf *b, const json_t *v))
{
    buf_auto inner = BUF_INIT(PROTO_MAX);

    add_text(&inner, 1, name);
    add_message(&inner, 2, v, fill);
    b->failed |= inner.failed;
    add_bytes(b, field, inner.p, inner.n);
}

/* Any: YAML, of which JSON is a part. */
static void fill_any(struct buf *b, const json_t *v)
{
    mem_auto char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

    b->failed |= text == NULL;
    add_text(b, 2, text);
}

static void add_extensions(struct buf *b, unsigned field, const json_t *o)
{
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)o, key, v) {
        if (str_starts(key, "x-"))
            add_named(b, field, key, v, fill_any);
    }
}

/* ---- schemas ---- */

static void fill_schema(struct buf *b, const json_t *o);

static void fill_type(struct buf *b, const json_t *type)
{
    add_text(b, 1, json_string_value(type));
}

static void fill_items(struct buf *b, const json_t *items)
{
    add_message(b, 1, items, fill_schema);
}

static void fill_schemas(struct buf *b, const json_t *map)
{
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)map, key, v)
        add_named(b, 1, key, v, fill_schema);
}

static void fill_schema(struct buf *b, const json_t *o)
{
    const json_t *v;
    size_t i;

    add_text(b, 1, json_str(o, "$ref"));
    add_text(b, 2, json_str(o, "format"));
    add_text(b, 4, json_str(o, "description"));
    if ((v = json_object_get(o, "default")) != NULL)
        add_message(b, 5, v, fill_any);
    add_texts(b, 19, json_object_get(o, "required"));
    json_array_foreach (json_object_get(o, "enum"), i, v)
        add_message(b, 20, v, fill_any);
    if ((v = json_object_get(o, "additionalProperties")) != NULL)
        add_message(b, 21, v, fill_items); /* its field 1 is a schema, too */
    if ((v = json_object_get(o, "type")) != NULL)
        add_message(b, 22, v, fill_type);
    if ((v = json_object_get(o, "items")) != NULL)
        add_message(b, 23, v, fill_items);
    if ((v = json_object_get(o, "properties")) != NULL)
        add_message(b, 25, v, fill_schemas);
    add_extensions(b, 31, o);
}

/* ---- paths ---- */

static void fill_query_parameter(struct buf *b, const json_t *o)
{
    add_text(b, 2, json_str(o, "in"));
    add_text(b, 3, json_str(o, "description"));
    add_text(b, 4, json_str(o, "name"));
    add_text(b, 6, json_str(o, "type"));
}

static void fill_non_body(struct buf *b, const json_t *o)
{
    add_message(b, 3, o, fill_query_parameter);
}

static void fill_parameter(struct buf *b, const json_t *o)
{
    add_message(b, 2, o, fill_non_body);
}

static void fill_parameters_item(struct buf *b, const json_t *o)
{
    add_message(b, 1, o, fill_parameter);
}

static void fill_response(struct buf *b, const json_t *o)
{
    add_text(b, 1, json_str(o, "description"));
}

static void fill_response_value(struct buf *b, const json_t *o)
{
    add_message(b, 1, o, fill_response);
}

static void fill_responses(struct buf *b, const json_t *map)
{
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)map, key, v)
        add_named(b, 1, key, v, fill_response_value);
}

static void fill_operation(struct buf *b, const json_t *o)
{
    const json_t *v;
    size_t i;

    json_array_foreach (json_object_get(o, "parameters"), i, v)
        add_message(b, 8, v, fill_parameters_item);
    add_message(b, 9, json_object_get(o, "responses"), fill_responses);
    add_extensions(b, 13, o);
}

static void fill_path(struct buf *b, const json_t *o)
{
    static const struct {
        const char *method;
        unsigned field;
    } methods[] = { { "get", 2 }, { "put", 3 }, { "post", 4 }, { "delete", 5 }, { "patch", 8 } };

    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        const json_t *v = json_object_get(o, methods[i].method);
        if (v != NULL)
            add_message(b, methods[i].field, v, fill_operation);
    }
}

static void fill_paths(struct buf *b, const json_t *map)
{
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)map, key, v)
        add_named(b, 2, key, v, fill_path);
}

static void fill_info(struct buf *b, const json_t *o)
{
    add_text(b, 1, json_str(o, "title"));
    add_text(b, 2, json_str(o, "version"));
}

void api_openapi_v2_proto(const json_t *document, struct buf *out)
{
    add_text(out, 1, json_str(document, "swagger"));
    add_message(out, 2, json_object_get(document, "info"), fill_info);
    add_message(out, 8, json_object_get(document, "paths"), fill_paths);
    add_message(out, 9, json_object_get(document, "definitions"), fill_schemas);
}
