/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_json_places - the positions of values in a JSON document. jansson does not report them, but has
 * already checked syntax and depth. */
#include "agent/api/yaml/internal.h"

#include <string.h>

struct cursor {
    const char *at, *end;
    size_t line, column; /* from 0; a column is a character */
    struct api_places *places;
};

static void step(struct cursor *c)
{
    unsigned char ch = (unsigned char)*c->at++;

    if (ch == '\n') {
        c->line++;
        c->column = 0;
    } else if ((ch & 0xc0) != 0x80) {
        c->column++;
    }
}

static bool is_at(const struct cursor *c, const char *any)
{
    return c->at < c->end && *c->at != '\0' && strchr(any, *c->at) != NULL;
}

static void skip(struct cursor *c, const char *any)
{
    while (is_at(c, any))
        step(c);
}

/* Returns the length between the quotes. An escape in a key is not decoded: nothing is found there. */
static size_t skip_string(struct cursor *c)
{
    const char *from = c->at + 1;

    step(c);
    while (c->at < c->end && *c->at != '"') {
        if (*c->at == '\\')
            step(c);
        if (c->at < c->end)
            step(c);
    }
    if (c->at < c->end)
        step(c);
    return c->at > from ? (size_t)(c->at - 1 - from) : 0;
}

static bool note(struct cursor *c, uint64_t path)
{
    return api_places_add(c->places, path, c->line, c->column);
}

static bool walk_value(struct cursor *c, uint64_t path);

static bool walk_members(struct cursor *c, uint64_t path)
{
    for (step(c), skip(c, " \t\r\n,"); is_at(c, "\""); skip(c, " \t\r\n,")) {
        const char *key = c->at + 1;
        size_t line = c->line, column = c->column;
        uint64_t member = api_path_of_key(path, key, skip_string(c));

        if (!api_places_add(c->places, member, line, column))
            return false;
        skip(c, " \t\r\n:");
        if (!walk_value(c, member))
            return false;
    }
    if (c->at < c->end)
        step(c);
    return true;
}

static bool walk_elements(struct cursor *c, uint64_t path)
{
    step(c);
    skip(c, " \t\r\n");
    for (size_t i = 0; c->at < c->end && *c->at != ']'; i++) {
        uint64_t element = api_path_of_element(path, i);

        if (!note(c, element) || !walk_value(c, element))
            return false;
        skip(c, " \t\r\n,");
    }
    if (c->at < c->end)
        step(c);
    return true;
}

static bool walk_value(struct cursor *c, uint64_t path)
{
    if (is_at(c, "{"))
        return walk_members(c, path);
    if (is_at(c, "["))
        return walk_elements(c, path);
    if (is_at(c, "\""))
        skip_string(c);
    else
        while (c->at < c->end && !is_at(c, ",]} \t\r\n"))
            step(c);
    return true;
}

bool yaml_json_places(const char *text, size_t at, size_t size, int document, size_t line,
                      struct api_places *places)
{
    struct cursor c = { .at = text + at, .end = text + at + size, .line = line, .places = places };
    uint64_t path = api_path_of_document(document);
    const char *start = c.at;

    if (places == NULL)
        return true;
    while (start > text && start[-1] != '\n')
        start--;
    for (const char *p = start; p < c.at; p++)
        c.column += ((unsigned char)*p & 0xc0) != 0x80;
    if (start == text && at >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        c.column--;
    return note(&c, path) && walk_value(&c, path);
}
