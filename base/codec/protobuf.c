/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec/protobuf.h"

#include "base/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* developers.google.com/protocol-buffers/docs/encoding; 3 and 4 were groups. */
enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

enum { FIELDS_MAX = 16 }; /* of a message in our definitions */

/* ---- reading ---- */

struct reader {
    const uint8_t *p;
    size_t n;
};

static bool read_varint(struct reader *r, uint64_t *ret)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < 10 && i < r->n; i++) {
        value |= (uint64_t)(r->p[i] & 0x7f) << (7 * i);
        if ((r->p[i] & 0x80) == 0) {
            r->p += i + 1;
            r->n -= i + 1;
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool read_bytes(struct reader *r, size_t n, struct reader *ret)
{
    if (n > r->n)
        return false;
    *ret = (struct reader){ r->p, n };
    r->p += n;
    r->n -= n;
    return true;
}

struct field {
    uint32_t number;
    unsigned type;         /* enum wire_type */
    struct reader content; /* of WIRE_BYTES */
};

static bool read_field(struct reader *r, struct field *ret)
{
    uint64_t tag, n;

    if (!read_varint(r, &tag) || tag >> 3 == 0 || tag >> 3 > (1u << 29) - 1)
        return false;
    ret->number = (uint32_t)(tag >> 3);
    ret->type = tag & 7;
    switch (ret->type) {
    case WIRE_VARINT:
        return read_varint(r, &n);
    case WIRE_64:
        return read_bytes(r, 8, &ret->content);
    case WIRE_32:
        return read_bytes(r, 4, &ret->content);
    case WIRE_BYTES:
        return read_varint(r, &n) && n <= r->n && read_bytes(r, (size_t)n, &ret->content);
    default:
        return false;
    }
}

/* ---- the check ---- */

struct check {
    const ProtobufCMessageDescriptor *message; /* the outermost one */
    const struct protobuf_limit *limits;
    size_t n_limits, n_fields;
    struct err *e;
};

/* The path of a message in the outermost one, for texts of errors. */
struct place {
    const struct place *above; /* NULL: it is the outermost one */
    const char *field;
    long index; /* -1: not repeated */
};

static void print_place(const struct place *at, char *ret, size_t size)
{
    size_t n;

    if (at->above == NULL) {
        ret[0] = '\0';
        return;
    }
    print_place(at->above, ret, size);
    n = strlen(ret);
    if (at->index < 0)
        snprintf(ret + n, size - n, "%s%s", n > 0 ? "." : "", at->field);
    else
        snprintf(ret + n, size - n, "%s%s[%ld]", n > 0 ? "." : "", at->field, at->index);
}

static enum err_code wrong(const struct check *c, const struct place *at, enum err_code code, const char *fmt,
                           ...) PRINTF_LIKE(4, 5);

static enum err_code wrong(const struct check *c, const struct place *at, enum err_code code, const char *fmt,
                           ...)
{
    char where[160], what[160];
    va_list ap;

    print_place(at, where, sizeof(where));
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return err_set(c->e, code, "%s: %s%s%s", c->message->name, where, where[0] != '\0' ? ": " : "", what);
}

static size_t most_elements(const struct check *c, const ProtobufCMessageDescriptor *d, uint32_t field)
{
    for (size_t i = 0; i < c->n_limits; i++) {
        if (c->limits[i].message == d && c->limits[i].field == field)
            return c->limits[i].most;
    }
    return PROTOBUF_FIELDS_MAX;
}

static bool type_fits(const ProtobufCFieldDescriptor *f, unsigned type)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return type == WIRE_BYTES;
    default: /* the definitions here have only varints as numbers; repeated ones may be packed */
        return type == WIRE_VARINT || (type == WIRE_BYTES && f->label == PROTOBUF_C_LABEL_REPEATED);
    }
}

static enum err_code check_message(struct check *c, const ProtobufCMessageDescriptor *d, struct reader r,
                                   const struct place *at);

static enum err_code check_field(struct check *c, const ProtobufCFieldDescriptor *f,
                                 const struct field *field, const struct place *at)
{
    if (!type_fits(f, field->type))
        return wrong(c, at, ERR_INVALID, "wrong wire type %u", field->type);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return check_message(c, f->descriptor, field->content, at);
    if (f->type != PROTOBUF_C_TYPE_STRING)
        return ERR_OK;
    if (!utf8_is_valid((const char *)field->content.p, field->content.n))
        return wrong(c, at, ERR_INVALID, "string field contains invalid UTF-8");
    if (field->content.n > 0 && memchr(field->content.p, '\0', field->content.n) != NULL)
        return wrong(c, at, ERR_INVALID, "string field contains a NUL");
    return ERR_OK;
}

static enum err_code check_message(struct check *c, const ProtobufCMessageDescriptor *d, struct reader r,
                                   const struct place *at)
{
    size_t counts[FIELDS_MAX] = { 0 };

    assert(d->n_fields <= FIELDS_MAX);
    while (r.n > 0) {
        const ProtobufCFieldDescriptor *f;
        struct field field = { 0 };
        struct place inner;
        size_t *count, most;

        if (!read_field(&r, &field))
            return wrong(c, at, ERR_INVALID, "not a message: it is truncated, or its fields are damaged");
        if (++c->n_fields > PROTOBUF_FIELDS_MAX)
            return wrong(c, &(struct place){ 0 }, ERR_EXHAUSTED, "more than %d fields", PROTOBUF_FIELDS_MAX);
        f = protobuf_c_message_descriptor_get_field(d, field.number);
        if (f == NULL)
            continue;
        count = &counts[f - d->fields];
        inner = (struct place){ at, f->name, f->label == PROTOBUF_C_LABEL_REPEATED ? (long)*count : -1 };
        ++*count;
        most = f->label == PROTOBUF_C_LABEL_REPEATED ? most_elements(c, d, field.number) : SIZE_MAX;
        if (*count > most)
            return wrong(c, &inner, ERR_EXHAUSTED, "more than %zu elements", most);
        if (f->label != PROTOBUF_C_LABEL_REPEATED && f->type == PROTOBUF_C_TYPE_MESSAGE && *count > 1)
            return wrong(c, &inner, ERR_INVALID, "given twice");
        if (check_field(c, f, &field, &inner) != ERR_OK)
            return c->e->code;
    }
    return ERR_OK;
}

/* ---- unpacking ---- */

static void *wire_alloc(void *arg, size_t n)
{
    struct arena *a = arg;

    return n <= PROTOBUF_MEMORY_MAX && a->used <= PROTOBUF_MEMORY_MAX - n ? arena_alloc(a, n) : NULL;
}

static void wire_free(void *arg, void *p) /* everything is freed at once: arena_done() */
{
    (void)arg;
    (void)p;
}

enum err_code protobuf_unpack(const ProtobufCMessageDescriptor *d, const struct protobuf_limit *limits,
                              size_t n_limits, const uint8_t *p, size_t n, struct arena *memory,
                              ProtobufCMessage **ret, struct err *e)
{
    static const uint8_t nothing[1]; /* protobuf-c needs a pointer even for no bytes */
    struct check c = { .message = d, .limits = limits, .n_limits = n_limits, .e = e };
    ProtobufCAllocator allocator = { wire_alloc, wire_free, memory };
    ProtobufCMessage *m;

    if (check_message(&c, d, (struct reader){ p, n }, &(struct place){ 0 }) != ERR_OK)
        return e->code;
    m = protobuf_c_message_unpack(d, &allocator, n, n > 0 ? p : nothing);
    if (m == NULL)
        return err_set(e, ERR_EXHAUSTED, "%s: damaged, or too large for memory", d->name);
    *ret = m;
    return ERR_OK;
}

const uint8_t *protobuf_first(const uint8_t *p, size_t n, uint32_t field, size_t *ret_n)
{
    struct reader r = { p, n };
    struct field f;

    while (r.n > 0 && read_field(&r, &f)) {
        if (f.number == field && f.type == WIRE_BYTES) {
            *ret_n = f.content.n;
            return f.content.p;
        }
    }
    return NULL;
}

enum err_code protobuf_pack(const ProtobufCMessage *m, uint8_t **ret, size_t *ret_n, struct err *e)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *p = malloc(n == 0 ? 1 : n);

    if (p == NULL)
        return err_nomem(e);
    protobuf_c_message_pack(m, p);
    *ret = p;
    *ret_n = n;
    return ERR_OK;
}
