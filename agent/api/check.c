/* SPDX-License-Identifier: Apache-2.0 */
/* The check context: the walk's current path, and the problems found there. */
#include "agent/api/check.h"

#include "base/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IGNORED_MAX 500 /* per pod: 100 containers with five probes and hooks each */

/* ---- paths ---- */
char api_path_char(char ch)
{
    return (unsigned char)ch < 0x20 || ch == 0x7f ? '?' : ch;
}

/* Names in a path may come from the file. */
static void api_check_append(struct api_check *c, const char *text)
{
    size_t room = sizeof(c->path) - 1 - c->path_n;
    size_t n = strnlen(text, API_PATH_STEP_MAX);

    for (size_t i = 0; i < n && i < room; i++)
        c->path[c->path_n++] = api_path_char(text[i]);
    c->path[c->path_n] = '\0';
}

size_t api_enter(struct api_check *c, const char *name)
{
    size_t mark = c->path_n;

    if (c->path_n > 0)
        api_check_append(c, ".");
    api_check_append(c, name);
    return mark;
}

size_t api_enter_index(struct api_check *c, size_t index)
{
    size_t mark = c->path_n;
    char text[32];

    snprintf(text, sizeof(text), "[%zu]", index);
    api_check_append(c, text);
    return mark;
}

size_t api_enter_key(struct api_check *c, const char *key)
{
    size_t mark = c->path_n;

    api_check_append(c, "[");
    api_check_append(c, key);
    api_check_append(c, "]");
    return mark;
}

void api_leave(struct api_check *c, size_t mark)
{
    c->path_n = mark;
    c->path[mark] = '\0';
}

/* ---- problems ---- */
static void api_check_report(struct api_check *c, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

static void api_check_report(struct api_check *c, const char *fmt, va_list ap)
{
    struct api_problem at = { .file = c->file, .field = c->path };
    char message[600];

    c->faults++;
    if (c->file != NULL)
        at.document = c->document;
    if (c->places != NULL)
        at.place = api_places_find(c->places, c->document, c->path);
    vsnprintf(message, sizeof(message), fmt, ap);
    api_problems_add_at(c->problems, &at, "%s", message);
}

void api_fault(struct api_check *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    api_check_report(c, fmt, ap);
    va_end(ap);
}

void api_fault_at(struct api_check *c, const char *child, const char *fmt, ...)
{
    size_t mark = api_enter(c, child);
    va_list ap;

    va_start(ap, fmt);
    api_check_report(c, fmt, ap);
    va_end(ap);
    api_leave(c, mark);
}

void api_ignore(struct api_check *c, const char *why)
{
    char *text;

    if (c->n_ignored >= IGNORED_MAX)
        return;
    text = arena_printf(c->arena, "%s: %s", c->path, why);
    if (text == NULL || !array_room(c->ignored, c->n_ignored))
        c->no_memory = true;
    else
        c->ignored[c->n_ignored++] = text;
}

void api_check_done(struct api_check *c)
{
    free(c->ignored);
    c->ignored = NULL;
    c->n_ignored = 0;
}

void *api_alloc(struct api_check *c, size_t n)
{
    void *p = arena_alloc(c->arena, n);

    if (p == NULL)
        c->no_memory = true;
    return p;
}

char *api_strdup(struct api_check *c, const char *s)
{
    char *copy = arena_strdup(c->arena, s);

    if (copy == NULL)
        c->no_memory = true;
    return copy;
}

struct api_quoted api_quote(const char *text)
{
    struct api_quoted q;
    size_t n = 0, max = sizeof(q.s) - 6;

    q.s[n++] = '"';
    for (; *text != '\0' && n < max; text++) {
        unsigned char ch = (unsigned char)*text;
        q.s[n++] = ch < 0x20 || ch == 0x7f ? '?' : (char)ch;
    }
    if (*text != '\0') {
        while (n > 1 && ((unsigned char)q.s[n - 1] & 0xc0) == 0x80) /* do not cut a UTF-8 character in two */
            n--;
        if (((unsigned char)q.s[n - 1] & 0xc0) == 0xc0)
            n--;
        memcpy(q.s + n, "...", 3);
        n += 3;
    }
    q.s[n++] = '"';
    q.s[n] = '\0';
    return q;
}
