/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_read - converts YAML documents to JSON values: libyaml's events, anchors, aliases and merges, within
 * limits that include the expansion of aliases. */
#include "agent/api/yaml/yaml.h"

#include "agent/api/check.h"
#include "agent/api/yaml/internal.h"
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define ANCHORS_MAX 256 /* per document; looked up one by one */

struct yaml_anchor {
    char *name;
    json_t *value; /* NULL while its container is open */
    size_t nodes, bytes, height;
};

struct yaml_frame { /* an open mapping or sequence */
    json_t *value;
    json_t *merged; /* from "<<", in order; may be NULL */
    char *key;      /* waiting for its value */
    bool merge_key; /* the key is a plain "<<" */
    uint64_t path;  /* for the table of places */
    uint64_t key_path;
    size_t height;       /* of the values so far */
    size_t nodes, bytes; /* counters at its beginning */
    int anchor;          /* index or -1 */
};

struct yaml_reader {
    yaml_parser_t parser;
    json_t *docs;
    struct api_places *places; /* may be NULL */
    int *numbers;
    int document;
    struct yaml_frame frames[YAML_DEPTH_MAX];
    size_t depth;
    struct yaml_anchor anchors[ANCHORS_MAX];
    size_t n_anchors;
    size_t nodes, bytes; /* of the whole file, aliases expanded */
    json_t *root;        /* of the current document */
    bool loose, ended;   /* yaml_first_to_json(); its document is complete */
};

static enum err_code fault(struct yaml_reader *r, const yaml_mark_t *mark, struct err *e, const char *fmt,
                           ...) PRINTF_LIKE(4, 5);

static enum err_code fault(struct yaml_reader *r, const yaml_mark_t *mark, struct err *e, const char *fmt,
                           ...)
{
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_set(e, ERR_INVALID, "document %d: line %zu column %zu: %s", r->document == 0 ? 1 : r->document,
                   mark->line + 1, mark->column + 1, text);
}

static enum err_code yaml_read_count(struct yaml_reader *r, const yaml_event_t *ev, size_t nodes,
                                     size_t bytes, struct err *e)
{
    if (nodes > YAML_NODES_MAX - r->nodes)
        return fault(r, &ev->start_mark, e, "more than %d values after expanding aliases", YAML_NODES_MAX);
    if (bytes > YAML_BYTES_MAX - r->bytes)
        return fault(r, &ev->start_mark, e, "more than %d MiB after expanding aliases", YAML_BYTES_MAX >> 20);
    r->nodes += nodes;
    r->bytes += bytes;
    return ERR_OK;
}

/* ---- places ---- */
static enum err_code note_place(struct yaml_reader *r, const yaml_event_t *ev, uint64_t path, struct err *e)
{
    if (r->places != NULL && !api_places_add(r->places, path, ev->start_mark.line, ev->start_mark.column))
        return err_nomem(e);
    return ERR_OK;
}

/* The path of the value that begins now. Keys were noted before; elements and documents are noted here. */
static enum err_code begin_value(struct yaml_reader *r, const yaml_event_t *ev, uint64_t *ret, struct err *e)
{
    const struct yaml_frame *f = r->depth > 0 ? &r->frames[r->depth - 1] : NULL;

    if (f != NULL && f->key != NULL) {
        *ret = f->key_path;
        return ERR_OK;
    }
    *ret = f != NULL ? api_path_of_element(f->path, json_array_size(f->value))
                     : api_path_of_document(r->document);
    return note_place(r, ev, *ret, e);
}

/* ---- anchors ---- */
static void forget_anchors(struct yaml_reader *r)
{
    for (size_t i = 0; i < r->n_anchors; i++) {
        free(r->anchors[i].name);
        json_decref(r->anchors[i].value);
    }
    r->n_anchors = 0;
}

static enum err_code new_anchor(struct yaml_reader *r, const yaml_event_t *ev, const yaml_char_t *name,
                                int *ret, struct err *e)
{
    struct yaml_anchor *a = &r->anchors[r->n_anchors];

    *ret = -1;
    if (name == NULL)
        return ERR_OK;
    if (r->n_anchors == ANCHORS_MAX)
        return fault(r, &ev->start_mark, e, "more than %d anchors", ANCHORS_MAX);
    *a = (struct yaml_anchor){ .name = strdup((const char *)name) };
    if (a->name == NULL)
        return err_nomem(e);
    *ret = (int)r->n_anchors++;
    return ERR_OK;
}

static void bind_anchor(struct yaml_reader *r, int index, json_t *value, size_t nodes, size_t bytes,
                        size_t height)
{
    if (index < 0)
        return;
    r->anchors[index].value = json_incref(value);
    r->anchors[index].nodes = nodes;
    r->anchors[index].bytes = bytes;
    r->anchors[index].height = height;
}

/* ---- inserting values ---- */
static enum err_code merge_value(struct yaml_reader *r, struct yaml_frame *f, const yaml_event_t *ev,
                                 json_t *value, struct err *e)
{
    json_t *element;
    size_t i;
    int failed = 0;

    if (f->merged == NULL)
        f->merged = json_array();
    if (f->merged == NULL)
        return err_nomem(e);
    if (json_is_object(value))
        return json_array_append(f->merged, value) == 0 ? ERR_OK : err_nomem(e);
    if (!json_is_array(value))
        return fault(r, &ev->start_mark, e, "\"<<\" needs a mapping or a list of mappings");
    json_array_foreach (value, i, element) {
        if (!json_is_object(element))
            return fault(r, &ev->start_mark, e, "\"<<\" needs a mapping or a list of mappings");
        failed |= json_array_append(f->merged, element);
    }
    return failed == 0 ? ERR_OK : err_nomem(e);
}

/* Takes the reference. `height`: levels of containers below and including the value. */
static enum err_code yaml_read_place(struct yaml_reader *r, const yaml_event_t *ev, json_t *value,
                                     size_t height, struct err *e)
{
    struct yaml_frame *f = r->depth > 0 ? &r->frames[r->depth - 1] : NULL;
    enum err_code code = ERR_OK;

    if (f == NULL) {
        r->root = value;
        return ERR_OK;
    }
    if (r->depth + height > YAML_DEPTH_MAX) {
        json_decref(value);
        return fault(r, &ev->start_mark, e, "more than %d levels deep", YAML_DEPTH_MAX);
    }
    if (height > f->height)
        f->height = height;
    if (json_is_array(f->value))
        return json_array_append_new(f->value, value) == 0 ? ERR_OK : err_nomem(e);
    if (f->merge_key) {
        code = merge_value(r, f, ev, value, e);
        json_decref(value);
    } else if (json_object_set_new(f->value, f->key, value) != 0) {
        code = err_nomem(e);
    }
    free(f->key);
    f->key = NULL;
    f->merge_key = false;
    return code;
}

static bool expects_key(const struct yaml_reader *r)
{
    const struct yaml_frame *f = r->depth > 0 ? &r->frames[r->depth - 1] : NULL;

    return f != NULL && json_is_object(f->value) && f->key == NULL;
}

static json_t *scalar_of(const struct yaml_reader *r, const yaml_event_t *ev, const char **problem)
{
    const char *text = (const char *)ev->data.scalar.value, *tag = (const char *)ev->data.scalar.tag;
    bool plain = ev->data.scalar.plain_implicit;
    json_t *letter = r->loose && plain && tag == NULL ? yaml_scalar_letter(text) : NULL;

    return letter != NULL ? letter : yaml_scalar_value(text, ev->data.scalar.length, plain, tag, problem);
}

/* A loose reader's key that is no text: as sigs.k8s.io/yaml writes it. */
static enum err_code take_odd_key(struct yaml_reader *r, const yaml_event_t *ev, const json_t *v,
                                  struct err *e)
{
    struct yaml_frame *f = &r->frames[r->depth - 1];

    if (v == NULL || json_is_null(v))
        return fault(r, &ev->start_mark, e, "a key is null");
    f->merge_key = false;
    f->key = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (f->key == NULL)
        return err_nomem(e);
    return yaml_read_count(r, ev, 0, strlen(f->key), e);
}

static enum err_code yaml_read_take_key(struct yaml_reader *r, const yaml_event_t *ev, struct err *e)
{
    struct yaml_frame *f = &r->frames[r->depth - 1];
    const char *text = (const char *)ev->data.scalar.value, *problem = NULL;
    bool plain = ev->data.scalar.plain_implicit;
    json_t *v = scalar_of(r, ev, &problem);
    bool is_string = json_is_string(v), is_null = json_is_null(v);

    if (r->loose && !is_string && problem == NULL) {
        enum err_code code = take_odd_key(r, ev, v, e);
        json_decref(v);
        return code;
    }

    json_decref(v);
    if (problem == yaml_no_memory)
        return err_nomem(e);
    if (is_null && *text == '\0')
        return fault(r, &ev->start_mark, e, "a key is missing in front of ':'");
    if (!is_string)
        return fault(r, &ev->start_mark, e, "the key %s %s", QUOTE(text),
                     problem != NULL ? problem : "is not read as a text, put it in quotes");
    if (!r->loose && json_object_get(f->value, text) != NULL)
        return fault(r, &ev->start_mark, e, "the key %s is given twice", QUOTE(text));
    f->merge_key = plain && strcmp(text, "<<") == 0;
    if (!r->loose && f->merge_key && f->merged != NULL)
        return fault(r, &ev->start_mark, e, "the key \"<<\" is given twice");
    f->key = strdup(text);
    if (f->key == NULL)
        return err_nomem(e);
    f->key_path = api_path_of_key(f->path, text, ev->data.scalar.length);
    if (note_place(r, ev, f->key_path, e) != ERR_OK)
        return e->code;
    return yaml_read_count(r, ev, 0, ev->data.scalar.length, e);
}

static enum err_code yaml_read_on_scalar(struct yaml_reader *r, const yaml_event_t *ev, struct err *e)
{
    const char *problem = NULL;
    size_t length = ev->data.scalar.length;
    uint64_t path;
    json_t *v;
    int anchor;

    if (new_anchor(r, ev, ev->data.scalar.anchor, &anchor, e) != ERR_OK)
        return e->code;
    if (expects_key(r)) {
        if (anchor >= 0)
            return fault(r, &ev->start_mark, e, "an anchor on a key is not supported");
        return yaml_read_take_key(r, ev, e);
    }
    if (begin_value(r, ev, &path, e) != ERR_OK || yaml_read_count(r, ev, 1, length, e) != ERR_OK)
        return e->code;
    v = scalar_of(r, ev, &problem);
    if (v == NULL && problem != yaml_no_memory)
        return fault(r, &ev->start_mark, e, "this value %s", problem);
    if (v == NULL)
        return err_nomem(e);
    bind_anchor(r, anchor, v, 1, length, 0);
    return yaml_read_place(r, ev, v, 0, e);
}

static enum err_code on_alias(struct yaml_reader *r, const yaml_event_t *ev, struct err *e)
{
    const char *name = (const char *)ev->data.alias.anchor;
    const struct yaml_anchor *a = NULL;
    uint64_t path;
    json_t *copy;

    if (expects_key(r))
        return fault(r, &ev->start_mark, e, "an alias as key is not supported");
    for (size_t i = r->n_anchors; i > 0 && a == NULL; i--) {
        if (strcmp(r->anchors[i - 1].name, name) == 0)
            a = &r->anchors[i - 1];
    }
    /* "password: *hunter2" without quotes: the name may be a Secret's value, and errors are widely
     * visible. */
    if (a == NULL)
        return fault(r, &ev->start_mark, e, "unknown anchor; a text that begins with * needs quotes");
    if (a->value == NULL)
        return fault(r, &ev->start_mark, e, "this anchor contains itself");
    if (begin_value(r, ev, &path, e) != ERR_OK || yaml_read_count(r, ev, a->nodes, a->bytes, e) != ERR_OK)
        return e->code;
    copy = json_deep_copy(a->value);
    if (copy == NULL)
        return err_nomem(e);
    return yaml_read_place(r, ev, copy, a->height, e);
}

/* ---- containers ---- */
static enum err_code open_container(struct yaml_reader *r, const yaml_event_t *ev, json_t *value,
                                    const yaml_char_t *anchor, const yaml_char_t *tag,
                                    const char *allowed_tag, struct err *e)
{
    struct yaml_frame *f;
    int index;

    if (value == NULL)
        return err_nomem(e);
    if (r->depth == YAML_DEPTH_MAX) {
        json_decref(value);
        return fault(r, &ev->start_mark, e, "more than %d levels deep", YAML_DEPTH_MAX);
    }
    f = &r->frames[r->depth];
    *f = (struct yaml_frame){ .value = value, .nodes = r->nodes, .bytes = r->bytes, .anchor = -1 };
    if (expects_key(r)) {
        json_decref(value);
        return fault(r, &ev->start_mark, e, "a key must be a text, not a mapping or a list");
    }
    if (begin_value(r, ev, &f->path, e) != ERR_OK) {
        json_decref(value);
        return e->code;
    }
    r->depth++;
    if (tag != NULL && strcmp((const char *)tag, allowed_tag) != 0 && strcmp((const char *)tag, "!") != 0)
        return fault(r, &ev->start_mark, e,
                     "this tag is not supported here; a text that begins with ! needs quotes");
    if (new_anchor(r, ev, anchor, &index, e) != ERR_OK)
        return e->code;
    f->anchor = index;
    return yaml_read_count(r, ev, 1, 0, e);
}

/* The mapping's own keys take precedence, then mappings merged earlier. */
static enum err_code apply_merges(struct yaml_frame *f, struct err *e)
{
    json_t *from, *value;
    const char *key;
    size_t i;

    json_array_foreach (f->merged, i, from) {
        json_object_foreach (from, key, value) {
            if (json_object_get(f->value, key) == NULL && json_object_set(f->value, key, value) != 0)
                return err_nomem(e);
        }
    }
    json_decref(f->merged);
    f->merged = NULL;
    return ERR_OK;
}

static enum err_code close_container(struct yaml_reader *r, const yaml_event_t *ev, struct err *e)
{
    struct yaml_frame *f = &r->frames[r->depth - 1];
    json_t *value = f->value;
    size_t height = f->height + 1;

    if (f->merged != NULL && apply_merges(f, e) != ERR_OK)
        return e->code;
    bind_anchor(r, f->anchor, value, r->nodes - f->nodes, r->bytes - f->bytes, height);
    f->value = NULL;
    r->depth--;
    return yaml_read_place(r, ev, value, height, e);
}

/* ---- documents ---- */
static enum err_code finish_document(struct yaml_reader *r, struct err *e)
{
    size_t n = json_array_size(r->docs);
    json_t *root = r->root;

    r->root = NULL;
    r->ended = true;
    forget_anchors(r);
    if (root == NULL || json_is_null(root)) {
        json_decref(root);
        return ERR_OK;
    }
    if (!array_room(r->numbers, n)) {
        json_decref(root);
        return err_nomem(e);
    }
    r->numbers[n] = r->document;
    return json_array_append_new(r->docs, root) == 0 ? ERR_OK : err_nomem(e);
}

static enum err_code yaml_read_on_event(struct yaml_reader *r, const yaml_event_t *ev, struct err *e)
{
    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        r->document++;
        if (r->document > YAML_DOCS_MAX)
            return fault(r, &ev->start_mark, e, "more than %d documents", YAML_DOCS_MAX);
        return ERR_OK;
    case YAML_DOCUMENT_END_EVENT:
        return finish_document(r, e);
    case YAML_SCALAR_EVENT:
        return yaml_read_on_scalar(r, ev, e);
    case YAML_ALIAS_EVENT:
        return on_alias(r, ev, e);
    case YAML_MAPPING_START_EVENT:
        return open_container(r, ev, json_object(), ev->data.mapping_start.anchor, ev->data.mapping_start.tag,
                              YAML_MAP_TAG, e);
    case YAML_SEQUENCE_START_EVENT:
        return open_container(r, ev, json_array(), ev->data.sequence_start.anchor,
                              ev->data.sequence_start.tag, YAML_SEQ_TAG, e);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return close_container(r, ev, e);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
        break;
    }
    return ERR_OK;
}

/* True if the first character after that line's blanks is a tab: the most common YAML mistake. */
static bool line_begins_with_tab(const char *text, size_t size, size_t line)
{
    const char *p = text, *end = text + size;

    for (; line > 0; line--) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (p == NULL)
            return false;
        p++;
    }
    while (p < end && *p == ' ')
        p++;
    return p < end && *p == '\t';
}

static enum err_code parser_fault(struct yaml_reader *r, const char *text, size_t size, struct err *e)
{
    const yaml_parser_t *p = &r->parser;
    yaml_mark_t mark = p->problem_mark;

    if (p->error == YAML_MEMORY_ERROR)
        return err_nomem(e);
    if (p->error == YAML_READER_ERROR) {
        memset(&mark, 0, sizeof(mark));
        for (size_t i = 0; i < p->problem_offset && i < size; i++) {
            mark.column = text[i] == '\n' ? 0 : mark.column + 1;
            mark.line += text[i] == '\n';
        }
        return fault(r, &mark, e, "%s (byte 0x%02x), a %s is UTF-8 text", p->problem,
                     (unsigned)p->problem_value & 0xffU, r->loose ? "YAML file" : "manifest");
    }
    if (line_begins_with_tab(text, size, mark.line))
        return fault(r, &mark, e, "a tab cannot be used for indentation, use blanks");
    if (p->context != NULL)
        return fault(r, &mark, e, "%s (%s that began in line %zu)", p->problem, p->context,
                     p->context_mark.line + 1);
    return fault(r, &mark, e, "%s", p->problem != NULL ? p->problem : "not YAML");
}

static enum err_code yaml_read_events(struct yaml_reader *r, const char *text, size_t size, struct err *e)
{
    bool over = false;

    while (!over) {
        yaml_event_t ev;
        enum err_code code;
        if (!yaml_parser_parse(&r->parser, &ev))
            return parser_fault(r, text, size, e);
        code = yaml_read_on_event(r, &ev, e);
        over = ev.type == YAML_STREAM_END_EVENT || (r->loose && r->ended);
        if (ev.type == YAML_SCALAR_EVENT) /* may be a Secret's */
            explicit_bzero(ev.data.scalar.value, ev.data.scalar.length);
        yaml_event_delete(&ev);
        if (code != ERR_OK)
            return code;
    }
    return ERR_OK;
}

static enum err_code read_with(struct yaml_reader *r, const char *text, size_t size, json_t **ret,
                               int **ret_numbers, size_t *ret_quoted, struct err *e)
{
    enum err_code code;

    r->docs = json_array();
    if (r->docs == NULL || !yaml_parser_initialize(&r->parser)) {
        json_decref(r->docs);
        return err_nomem(e);
    }
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, size);
    code = yaml_read_events(r, text, size, e);
    if (r->parser.problem != NULL && strcmp(r->parser.problem, "found unknown escape character") == 0)
        *ret_quoted = r->parser.context_mark.index;
    /* They have text that may belong to a Secret. */
    explicit_bzero(r->parser.raw_buffer.start,
                   (size_t)(r->parser.raw_buffer.end - r->parser.raw_buffer.start));
    explicit_bzero(r->parser.buffer.start, (size_t)(r->parser.buffer.end - r->parser.buffer.start));
    yaml_parser_delete(&r->parser);
    while (r->depth > 0) {
        struct yaml_frame *f = &r->frames[--r->depth];
        json_decref(f->value);
        json_decref(f->merged);
        free(f->key);
    }
    json_decref(r->root);
    forget_anchors(r);
    *ret = r->docs;
    *ret_numbers = r->numbers;
    return code;
}

enum err_code yaml_read(const char *text, size_t size, json_t **ret, int **ret_numbers,
                        struct api_places *places, size_t *ret_quoted, struct err *e)
{
    struct yaml_reader *r = calloc(1, sizeof(*r));
    enum err_code code;

    *ret = NULL;
    *ret_numbers = NULL;
    *ret_quoted = SIZE_MAX;
    if (r == NULL)
        return err_nomem(e);
    if (places != NULL)
        api_places_done(places);
    r->places = places;
    code = read_with(r, text, size, ret, ret_numbers, ret_quoted, e);
    free(r);
    return code;
}

enum err_code yaml_read_first(const char *text, size_t size, json_t **ret, size_t *ret_quoted, struct err *e)
{
    struct yaml_reader *r = calloc(1, sizeof(*r));
    int *numbers = NULL;
    enum err_code code;

    *ret = NULL;
    *ret_quoted = SIZE_MAX;
    if (r == NULL)
        return err_nomem(e);
    r->loose = true;
    code = read_with(r, text, size, ret, &numbers, ret_quoted, e);
    free(numbers);
    free(r);
    return code;
}
