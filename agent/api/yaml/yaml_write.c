/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to YAML in kubectl's style: keys sorted, lists not indented, texts quoted only if necessary. */
#include "agent/api/yaml/internal.h"
#include "agent/api/yaml/yaml.h"
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define TEXT_MAX (64 * 1024 * 1024) /* of one object as YAML */

static int yaml_write_collect(void *arg, unsigned char *text, size_t size)
{
    struct buf *b = arg;

    buf_add(b, text, size);
    return !b->failed;
}

static bool emit(yaml_emitter_t *emitter, yaml_event_t *ev, int initialised)
{
    return initialised && yaml_emitter_emit(emitter, ev);
}

static bool emit_scalar(yaml_emitter_t *emitter, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t ev;

    return emit(emitter, &ev,
                yaml_scalar_event_initialize(&ev, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), 1,
                                             1, style));
}

/* Takes a number of at most `digits` digits that is from `min` to `max`. */
static bool take_number(const char **p, int digits, int min, int max)
{
    int n = 0, value = 0;

    for (; n < digits && **p >= '0' && **p <= '9'; n++)
        value = 10 * value + *(*p)++ - '0';
    return n > 0 && value >= min && value <= max;
}

static bool take(const char **p, char c)
{
    if (**p != c)
        return false;
    ++*p;
    return true;
}

/* "Z", "+02:00" */
static bool is_zone(const char *p)
{
    if (strcmp(p, "Z") == 0)
        return true;
    return (take(&p, '+') || take(&p, '-')) && take_number(&p, 2, 0, 23) && take(&p, ':') &&
           take_number(&p, 2, 0, 59) && *p == '\0';
}

/* Texts that YAML 1.1 readers, kubectl's among them, take for a time: "2026-01-02", "2026-01-02T03:04:05Z",
 * "2026-01-02 03:04:05.5". */
static bool is_time(const char *p)
{
    const bool year = strspn(p, "0123456789") == 4;
    bool blank;

    if (!year || !take_number(&p, 4, 0, 9999) || !take(&p, '-') || !take_number(&p, 2, 1, 12) ||
        !take(&p, '-') || !take_number(&p, 2, 1, 31))
        return false;
    if (*p == '\0')
        return true;
    blank = *p == ' ';
    if ((!take(&p, ' ') && !take(&p, 'T') && !take(&p, 't')) || !take_number(&p, 2, 0, 23) ||
        !take(&p, ':') || !take_number(&p, 2, 0, 59) || !take(&p, ':') || !take_number(&p, 2, 0, 59))
        return false;
    if (take(&p, '.'))
        p += strspn(p, "0123456789");
    return blank ? *p == '\0' : is_zone(p);
}

/* "1:30": for YAML 1.1 readers, a number to the base 60. */
static bool is_sexagesimal(const char *p)
{
    bool many = false;

    p += *p == '+' || *p == '-';
    if (*p < '0' || *p > '9')
        return false;
    p += strspn(p, "0123456789_");
    while (take(&p, ':')) {
        if (!take_number(&p, 2, 0, 59))
            return false;
        many = true;
    }
    if (many && take(&p, '.'))
        p += strspn(p, "0123456789_");
    return many && *p == '\0';
}

static bool emit_string(yaml_emitter_t *emitter, const char *text)
{
    const char *problem = NULL;
    json_t *other = yaml_plain_value(text, &problem);
    /* y and n are booleans for other readers */
    bool ambiguous = other != NULL || problem != NULL || strcmp(text, "<<") == 0 || is_time(text) ||
                     is_sexagesimal(text) || (strlen(text) == 1 && strchr("yYnN", text[0]) != NULL);

    json_decref(other);
    if (ambiguous)
        return emit_scalar(emitter, text, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
    if (strchr(text, '\n') != NULL)
        return emit_scalar(emitter, text, YAML_LITERAL_SCALAR_STYLE);
    return emit_scalar(emitter, text, YAML_ANY_SCALAR_STYLE);
}

static bool emit_value(yaml_emitter_t *emitter, const json_t *v);

static bool emit_list(yaml_emitter_t *emitter, const json_t *v)
{
    json_t *element;
    yaml_event_t ev;
    size_t i;

    if (!emit(emitter, &ev,
              yaml_sequence_start_event_initialize(&ev, NULL, NULL, 1,
                                                   json_array_size(v) == 0 ? YAML_FLOW_SEQUENCE_STYLE
                                                                           : YAML_BLOCK_SEQUENCE_STYLE)))
        return false;
    json_array_foreach (v, i, element) {
        if (!emit_value(emitter, element))
            return false;
    }
    return emit(emitter, &ev, yaml_sequence_end_event_initialize(&ev));
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool emit_members(yaml_emitter_t *emitter, const json_t *v)
{
    size_t n = 0, size = json_object_size(v);
    const char **names = calloc(size + 1, sizeof(*names)), *key;
    json_t *value;
    bool ok = names != NULL;

    if (names != NULL) {
        json_object_foreach ((json_t *)v, key, value)
            names[n++] = key;
        qsort(names, n, sizeof(*names), name_order);
    }
    for (size_t i = 0; ok && i < n; i++)
        ok = emit_string(emitter, names[i]) && emit_value(emitter, json_object_get(v, names[i]));
    free(names);
    return ok;
}

static bool emit_value(yaml_emitter_t *emitter, const json_t *v)
{
    yaml_event_t ev;
    char text[64];

    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return emit(emitter, &ev,
                    yaml_mapping_start_event_initialize(
                        &ev, NULL, NULL, 1,
                        json_object_size(v) == 0 ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE)) &&
               emit_members(emitter, v) && emit(emitter, &ev, yaml_mapping_end_event_initialize(&ev));
    case JSON_ARRAY:
        return emit_list(emitter, v);
    case JSON_STRING:
        return emit_string(emitter, json_string_value(v));
    case JSON_INTEGER:
        snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(v));
        return emit_scalar(emitter, text, YAML_PLAIN_SCALAR_STYLE);
    case JSON_REAL:
        snprintf(text, sizeof(text), "%.15g", json_real_value(v));
        return emit_scalar(emitter, text, YAML_PLAIN_SCALAR_STYLE);
    case JSON_TRUE:
        return emit_scalar(emitter, "true", YAML_PLAIN_SCALAR_STYLE);
    case JSON_FALSE:
        return emit_scalar(emitter, "false", YAML_PLAIN_SCALAR_STYLE);
    case JSON_NULL:
        return emit_scalar(emitter, "null", YAML_PLAIN_SCALAR_STYLE);
    }
    return false;
}

char *yaml_from_json(const json_t *value)
{
    buf_auto text = BUF_SECRET(TEXT_MAX);
    yaml_emitter_t emitter;
    yaml_event_t ev;
    bool ok;

    if (!yaml_emitter_initialize(&emitter))
        return NULL;
    yaml_emitter_set_output(&emitter, yaml_write_collect, &text);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    ok = emit(&emitter, &ev, yaml_stream_start_event_initialize(&ev, YAML_UTF8_ENCODING)) &&
         emit(&emitter, &ev, yaml_document_start_event_initialize(&ev, NULL, NULL, NULL, 1)) &&
         emit_value(&emitter, value) && emit(&emitter, &ev, yaml_document_end_event_initialize(&ev, 1)) &&
         emit(&emitter, &ev, yaml_stream_end_event_initialize(&ev));
    /* They have text that may belong to a Secret. */
    explicit_bzero(emitter.raw_buffer.start, (size_t)(emitter.raw_buffer.end - emitter.raw_buffer.start));
    explicit_bzero(emitter.buffer.start, (size_t)(emitter.buffer.end - emitter.buffer.start));
    yaml_emitter_delete(&emitter);
    return ok && !text.failed ? buf_detach(&text) : NULL;
}
