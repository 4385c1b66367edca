/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the line of each key in a text of YAML (or JSON, read as YAML): for messages and for `coracle
 * config`. */
#include "agent/config/internal.h"

#include <string.h>
#include <yaml.h>

#define LEVELS 8 /* deeper keys are parts of values */
#define KEYS_MAX 4000
#define KEY_SIZE 200

struct lines {
    json_t *found;
    char path[LEVELS][KEY_SIZE]; /* of the mapping at each level; "" at the top */
    bool mapping[LEVELS];
    bool has_key[LEVELS]; /* its key was read, the value follows */
    char key[LEVELS][KEY_SIZE];
    size_t depth;
    size_t n;
};

static void config_where_add(struct lines *l, const char *name, size_t line)
{
    size_t at = l->depth - 1;
    const char *above = l->path[at];
    char key[KEY_SIZE];

    if (above[0] != '\0')
        snprintf(key, sizeof(key), "%.120s.%.70s", above, name);
    else
        snprintf(key, sizeof(key), "%.190s", name);
    memcpy(l->key[at], key, sizeof(key));
    if (l->n++ < KEYS_MAX && json_object_get(l->found, key) == NULL)
        json_object_set_new(l->found, key, json_integer((json_int_t)line));
}

static void open_level(struct lines *l, bool mapping)
{
    bool below = l->depth > 0 && l->depth <= LEVELS && l->mapping[l->depth - 1];
    size_t at = l->depth;

    if (l->depth > 0 && l->depth <= LEVELS)
        l->has_key[l->depth - 1] = false;
    if (l->depth < LEVELS) {
        if (below)
            memcpy(l->path[at], l->key[at - 1], sizeof(l->path[0]));
        else
            l->path[at][0] = '\0';
        /* Keys in a list belong to the list's values. */
        l->mapping[l->depth] = mapping && (l->depth == 0 || l->mapping[l->depth - 1]);
        l->has_key[l->depth] = false;
    }
    l->depth++;
}

static void config_where_on_scalar(struct lines *l, const yaml_event_t *ev)
{
    size_t at = l->depth - 1;

    if (l->depth == 0 || l->depth > LEVELS || !l->mapping[at])
        return;
    if (!l->has_key[at])
        config_where_add(l, (const char *)ev->data.scalar.value, ev->start_mark.line + 1);
    l->has_key[at] = !l->has_key[at];
}

/* False: this was the last relevant event. */
static bool config_where_on_event(struct lines *l, const yaml_event_t *ev, int number, int *document)
{
    bool here = *document == number;

    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        ++*document;
        break;
    case YAML_DOCUMENT_END_EVENT:
        return !here;
    case YAML_STREAM_END_EVENT:
        return false;
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        if (here)
            open_level(l, ev->type == YAML_MAPPING_START_EVENT);
        break;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        if (here && l->depth > 0)
            l->depth--;
        break;
    case YAML_SCALAR_EVENT:
        if (here)
            config_where_on_scalar(l, ev);
        break;
    case YAML_ALIAS_EVENT:
        if (here && l->depth > 0 && l->depth <= LEVELS)
            l->has_key[l->depth - 1] = false;
        break;
    default:
        break;
    }
    return true;
}

json_t *config_lines(const char *text, size_t n, int number)
{
    struct lines l = { .found = json_object() };
    yaml_parser_t parser;
    yaml_event_t ev;
    int document = 0;
    bool more = true;

    if (l.found == NULL || yaml_parser_initialize(&parser) == 0)
        return l.found;
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    while (more && yaml_parser_parse(&parser, &ev) != 0) {
        more = config_where_on_event(&l, &ev, number, &document);
        yaml_event_delete(&ev);
    }
    yaml_parser_delete(&parser);
    return l.found;
}
