/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/apiserver/proto.h"

#include "base/clock.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (16u << 20) /* of base64 */
#define NAME_SIZE 64

struct bytes {
    const unsigned char *p;
    size_t n;
};

struct field {                             /* of a message's text */
    char name[NAME_SIZE], type[NAME_SIZE]; /* type: without * and ~ */
    bool list, inlined, drops;
};

struct value { /* of a field */
    unsigned number, wire;
    uint64_t varint;
    struct bytes bytes;
};

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

/* ---- the encoding ---- */

static bool take_varint(struct bytes *b, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (b->n == 0)
            return false;
        b->n--;
        *ret |= (uint64_t)(*b->p & 0x7f) << shift;
        if ((*b->p++ & 0x80) == 0)
            return true;
    }
    return false;
}

static enum err_code take_value(struct bytes *b, struct value *ret, struct err *e)
{
    uint64_t key, n;

    *ret = (struct value){ 0 };
    if (!take_varint(b, &key) || key >> 3 == 0 || key >> 3 > 100000)
        return err_set(e, ERR_INVALID, "protobuf: a field is truncated");
    ret->number = (unsigned)(key >> 3);
    ret->wire = (unsigned)(key & 7);
    if (ret->wire == WIRE_VARINT && take_varint(b, &ret->varint))
        return ERR_OK;
    if (ret->wire == WIRE_BYTES && take_varint(b, &n) && n <= b->n) {
        ret->bytes = (struct bytes){ b->p, (size_t)n };
        b->p += n;
        b->n -= (size_t)n;
        return ERR_OK;
    }
    return err_set(e, ERR_INVALID, "protobuf: field %u cannot be read", ret->number);
}

static enum err_code want(const struct value *v, unsigned wire, const struct field *f, struct err *e)
{
    return v->wire == wire ? ERR_OK : err_set(e, ERR_INVALID, "protobuf: %s has another type", f->name);
}

/* ---- the texts of messages ---- */

static int by_name(const void *key, const void *message)
{
    return strcmp(key, ((const struct proto_message *)message)->name);
}

static const char *fields_of(const char *name)
{
    const struct proto_message *m =
        bsearch(name, proto_messages, proto_n_messages, sizeof(*proto_messages), by_name);

    return m != NULL ? m->fields : NULL;
}

static bool copy_until(const char **text, const char *ends, char ret[NAME_SIZE])
{
    size_t n = strcspn(*text, ends);

    if (n >= NAME_SIZE)
        return false;
    memcpy(ret, *text, n);
    ret[n] = '\0';
    *text += n;
    return true;
}

/* False: it is not known. */
static bool find_field(const char *fields, unsigned number, struct field *ret)
{
    for (const char *at = fields; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
        char *end;

        if (strtoul(at, &end, 10) != number)
            continue;
        at = end;
        *ret = (struct field){ .drops = *at == '-' };
        at += ret->drops;
        if (!copy_until(&at, ":", ret->name) || *at != ':')
            return false;
        for (at++; *at == '*' || *at == '~'; at++) {
            ret->list = ret->list || *at == '*';
            ret->inlined = ret->inlined || *at == '~';
        }
        return copy_until(&at, " ", ret->type);
    }
    return false;
}

/* ---- values ---- */

static enum err_code decode(const char *fields, struct bytes b, unsigned depth, json_t *into, struct err *e);

static json_t *text_of(const struct bytes *b)
{
    return json_stringn((const char *)b->p, b->n); /* NULL: no UTF-8 */
}

static json_t *base64_of(const struct bytes *b)
{
    struct buf text = BUF_INIT(BYTES_MAX);
    json_t *v;

    base64_add(&text, b->p, b->n);
    v = text.failed ? NULL : json_stringn(text.p, text.n);
    buf_wipe(&text);
    return v;
}

/* One member of a message of scalars: `number` as it is; others are ignored. */
static enum err_code inner(struct bytes b, unsigned number, struct value *ret, bool *ret_there, struct err *e)
{
    struct value v;

    *ret_there = false;
    while (b.n > 0) {
        if (take_value(&b, &v, e) != ERR_OK)
            return e->code;
        if (v.number == number) {
            *ret = v;
            *ret_there = true;
        }
    }
    return ERR_OK;
}

static enum err_code add_entry(json_t *map, char type, struct bytes b, struct err *e)
{
    struct value key = { 0 }, value = { 0 }, number = { 0 };
    bool has_key, has_value, there;
    json_t *made;

    if (inner(b, 1, &key, &has_key, e) != ERR_OK || inner(b, 2, &value, &has_value, e) != ERR_OK)
        return e->code;
    if (type == 'q') {
        if (inner(value.bytes, 1, &number, &there, e) != ERR_OK)
            return e->code;
        made = text_of(&number.bytes);
    } else {
        made = type == 'M' ? base64_of(&value.bytes) : text_of(&value.bytes);
    }
    if (made == NULL || json_object_setn_new(map, (const char *)key.bytes.p, key.bytes.n, made) != 0)
        return err_set(e, ERR_INVALID, "protobuf: a string is not UTF-8");
    return ERR_OK;
}

static enum err_code add_to_map(json_t *into, const struct field *f, const struct value *v, struct err *e)
{
    json_t *map = json_object_get(into, f->name);

    if (want(v, WIRE_BYTES, f, e) != ERR_OK)
        return e->code;
    if (map == NULL) {
        map = json_object();
        if (map == NULL || json_object_set_new(into, f->name, map) != 0)
            return err_nomem(e);
    }
    return add_entry(map, f->type[0], v->bytes, e);
}

static enum err_code time_value(struct bytes b, json_t **ret, struct err *e)
{
    struct value seconds = { 0 };
    char text[CLOCK_RFC3339_SIZE];
    bool there;

    if (inner(b, 1, &seconds, &there, e) != ERR_OK)
        return e->code;
    if (there && seconds.varint > INT64_MAX / 1000000000)
        return err_set(e, ERR_INVALID, "protobuf: a time is out of range");
    clock_format_s((int64_t)seconds.varint * 1000000000, text);
    *ret = there ? json_string(text) : json_null();
    return ERR_OK;
}

static enum err_code int_or_text(struct bytes b, json_t **ret, struct err *e)
{
    struct value type = { 0 }, number = { 0 }, text = { 0 };
    bool there;

    if (inner(b, 1, &type, &there, e) != ERR_OK || inner(b, 2, &number, &there, e) != ERR_OK ||
        inner(b, 3, &text, &there, e) != ERR_OK)
        return e->code;
    *ret = type.varint == 0 ? json_integer((json_int_t)number.varint) : text_of(&text.bytes);
    return ERR_OK;
}

static enum err_code scalar(const struct field *f, const struct value *v, json_t **ret, struct err *e)
{
    struct value one = { 0 };
    bool there;

    *ret = NULL;
    if (want(v, strchr("ib", f->type[0]) != NULL ? WIRE_VARINT : WIRE_BYTES, f, e) != ERR_OK)
        return e->code;
    switch (f->type[0]) {
    case 's':
        *ret = text_of(&v->bytes);
        break;
    case 'B':
        *ret = base64_of(&v->bytes);
        break;
    case 'i':
        *ret = json_integer((json_int_t)v->varint);
        break;
    case 'b':
        *ret = json_boolean(v->varint != 0);
        break;
    case 'T':
        return time_value(v->bytes, ret, e);
    case 'I':
        if (int_or_text(v->bytes, ret, e) != ERR_OK)
            return e->code;
        break;
    case 'Q':
        if (inner(v->bytes, 1, &one, &there, e) != ERR_OK)
            return e->code;
        *ret = text_of(&one.bytes);
        break;
    case 'F':
        if (inner(v->bytes, 1, &one, &there, e) != ERR_OK ||
            json_parse((const char *)one.bytes.p, one.bytes.n, one.bytes.n, ret, f->name, e) != ERR_OK)
            return e->code;
        break;
    default:
        return err_set(e, ERR_INVALID, "protobuf: %s is not accepted", f->name);
    }
    return *ret != NULL ? ERR_OK : err_set(e, ERR_INVALID, "protobuf: %s is not UTF-8", f->name);
}

static bool is_empty(const json_t *v)
{
    return json_is_null(v) || json_is_false(v) || (json_is_integer(v) && json_integer_value(v) == 0) ||
           (json_is_string(v) && json_string_length(v) == 0);
}

static enum err_code one_value(const struct field *f, const struct value *v, unsigned depth, json_t **ret,
                               struct err *e)
{
    const char *fields;

    if (f->type[1] == '\0')
        return scalar(f, v, ret, e);
    fields = fields_of(f->type);
    if (fields == NULL || want(v, WIRE_BYTES, f, e) != ERR_OK)
        return err_set(e, ERR_INVALID, "protobuf: %s is not accepted", f->name);
    *ret = json_object();
    if (*ret == NULL)
        return err_nomem(e);
    if (decode(fields, v->bytes, depth + 1, *ret, e) == ERR_OK)
        return ERR_OK;
    json_decref(*ret);
    *ret = NULL;
    return e->code;
}

static enum err_code put(json_t *into, const struct field *f, json_t *v, struct err *e)
{
    json_t *list;

    if (json_is_null(v) || (f->drops && is_empty(v))) {
        json_decref(v);
        return ERR_OK;
    }
    if (!f->list)
        return json_object_set_new(into, f->name, v) == 0 ? ERR_OK : err_nomem(e);
    list = json_object_get(into, f->name);
    if (list == NULL) {
        list = json_array();
        if (list == NULL || json_object_set_new(into, f->name, list) != 0) {
            json_decref(v);
            return err_nomem(e);
        }
    }
    return json_array_append_new(list, v) == 0 ? ERR_OK : err_nomem(e);
}

static enum err_code decode(const char *fields, struct bytes b, unsigned depth, json_t *into, struct err *e)
{
    struct value v;
    struct field f;
    json_t *made = NULL;

    if (depth > PROTO_DEPTH)
        return err_set(e, ERR_INVALID, "protobuf: more than %d levels", PROTO_DEPTH);
    while (b.n > 0) {
        if (take_value(&b, &v, e) != ERR_OK)
            return e->code;
        if (!find_field(fields, v.number, &f))
            return err_set(e, ERR_INVALID, "protobuf: field %u is unknown", v.number);
        if (f.type[0] == 'x' && f.type[1] == '\0')
            continue; /* a status: the server's */
        if (f.inlined) {
            const char *more = fields_of(f.type);

            if (more == NULL || want(&v, WIRE_BYTES, &f, e) != ERR_OK)
                return err_set(e, ERR_INVALID, "protobuf: %s is not accepted", f.name);
            if (decode(more, v.bytes, depth + 1, into, e) != ERR_OK)
                return e->code;
        } else if (f.type[1] == '\0' && strchr("mMq", f.type[0]) != NULL) {
            if (add_to_map(into, &f, &v, e) != ERR_OK)
                return e->code;
        } else if (one_value(&f, &v, depth, &made, e) != ERR_OK || put(into, &f, made, e) != ERR_OK) {
            return e->code;
        }
    }
    return ERR_OK;
}

/* ---- the whole ---- */

static enum err_code set_text(json_t *object, const char *key, const struct bytes *b, struct err *e)
{
    json_t *v = text_of(b);

    return v != NULL && json_object_set_new(object, key, v) == 0
               ? ERR_OK
               : err_set(e, ERR_INVALID, "protobuf: %s is not UTF-8", key);
}

enum err_code proto_to_json(const void *data, size_t n, json_t **ret, struct err *e)
{
    struct bytes b = { data, n };
    struct value type = { 0 }, raw = { 0 }, version = { 0 }, kind = { 0 };
    json_auto_t *object = json_object();
    const char *fields;
    bool there;

    if (object == NULL)
        return err_nomem(e);
    if (n < 4 || memcmp(data, "k8s", 4) != 0)
        return err_set(e, ERR_INVALID, "protobuf: the prefix \"k8s\" is missing");
    b.p += 4;
    b.n -= 4;
    if (inner(b, 1, &type, &there, e) != ERR_OK || inner(b, 2, &raw, &there, e) != ERR_OK ||
        inner(type.bytes, 1, &version, &there, e) != ERR_OK ||
        inner(type.bytes, 2, &kind, &there, e) != ERR_OK ||
        set_text(object, "apiVersion", &version.bytes, e) != ERR_OK ||
        set_text(object, "kind", &kind.bytes, e) != ERR_OK)
        return e->code;
    fields = fields_of(json_str(object, "kind"));
    if (fields == NULL)
        return err_set(e, ERR_UNIMPLEMENTED, "protobuf: objects of kind %.64s are not supported",
                       json_str(object, "kind"));
    if (decode(fields, raw.bytes, 0, object, e) != ERR_OK)
        return e->code;
    *ret = json_incref(object);
    return ERR_OK;
}
