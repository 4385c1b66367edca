/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/problems.h"

#include "base/codec/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The last entry, which counts those that were left out. */
static void count_dropped(struct api_problems *p, const char *file)
{
    struct api_problem *last = &p->v[API_PROBLEMS_MAX - 1];
    char *text;

    p->dropped++;
    if (p->n < API_PROBLEMS_MAX) {
        text = arena_alloc(&p->arena, 64);
        *last = (struct api_problem){ .file = arena_strdup(&p->arena, file), .field = "", .message = text };
        if ((file != NULL && last->file == NULL) || text == NULL)
            return;
        p->n = API_PROBLEMS_MAX;
    }
    snprintf((char *)(uintptr_t)last->message, 64, "and %zu more problems, not shown", p->dropped);
}

/* The problems of one file share its name. */
static const char *keep_file(struct api_problems *p, const char *file)
{
    const char *before = p->n > 0 ? p->v[p->n - 1].file : NULL;

    return file != NULL && before != NULL && strcmp(before, file) == 0 ? before
                                                                       : arena_strdup(&p->arena, file);
}

PRINTF_LIKE(3, 0)
static void problems_addv(struct api_problems *p, const struct api_problem *at, const char *fmt, va_list ap)
{
    struct api_problem kept = *at;
    char text[700];

    if (p->v == NULL) {
        p->v = arena_alloc(&p->arena, API_PROBLEMS_MAX * sizeof(*p->v));
        if (p->v == NULL) {
            p->dropped++;
            return;
        }
    }
    if (p->n >= API_PROBLEMS_MAX - 1) {
        count_dropped(p, at->file);
        return;
    }
    vsnprintf(text, sizeof(text), fmt, ap);
    kept.file = keep_file(p, at->file);
    kept.field = arena_strdup(&p->arena, at->field);
    kept.message = arena_strdup(&p->arena, text);
    if ((at->file != NULL && kept.file == NULL) || kept.field == NULL || kept.message == NULL) {
        p->dropped++;
        return;
    }
    p->v[p->n++] = kept;
}

void api_problems_add(struct api_problems *p, const char *file, const char *fmt, ...)
{
    const struct api_problem at = { .file = file, .field = "" };
    va_list ap;

    va_start(ap, fmt);
    problems_addv(p, &at, fmt, ap);
    va_end(ap);
}

void api_problems_add_at(struct api_problems *p, const struct api_problem *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    problems_addv(p, at, fmt, ap);
    va_end(ap);
}

static bool is_after(const struct api_problem *a, const struct api_problem *b)
{
    if (a->place.line == 0 || b->place.line == 0)
        return a->place.line == 0 && b->place.line != 0;
    return a->place.line != b->place.line ? a->place.line > b->place.line : a->place.column > b->place.column;
}

/* A few, and mostly in order. */
void api_problems_sort(struct api_problems *p)
{
    for (size_t i = 1; i < p->n; i++) {
        struct api_problem moved = p->v[i];
        size_t k = i;

        for (; k > 0 && is_after(&p->v[k - 1], &moved); k--)
            p->v[k] = p->v[k - 1];
        p->v[k] = moved;
    }
}

void api_problems_done(struct api_problems *p)
{
    arena_done(&p->arena);
    *p = (struct api_problems){ 0 };
}

/* ---- as people and programs read them ---- */
void api_problem_add_text(const struct api_problem *p, const char *severity, struct buf *out)
{
    if (p->file != NULL)
        buf_addf(out, "%s:", p->file);
    if (p->file != NULL && p->place.line > 0)
        buf_addf(out, "%u:%u:", (unsigned)p->place.line, (unsigned)p->place.column);
    buf_addf(out, "%s%s%s%s%s", p->file != NULL ? " " : "", severity, p->field, *p->field != '\0' ? ": " : "",
             p->message);
}

json_t *api_problem_json(const struct api_problem *p)
{
    json_t *o = json_object();
    bool ok = o != NULL;

    if (p->file != NULL)
        ok = json_put_str(o, "file", p->file) && ok;
    if (p->place.line > 0)
        ok = json_object_set_new(o, "line", json_integer(p->place.line)) == 0 &&
             json_object_set_new(o, "column", json_integer(p->place.column)) == 0 && ok;
    if (p->document > 0)
        ok = json_object_set_new(o, "document", json_integer(p->document)) == 0 && ok;
    ok = json_put_str(o, "field", p->field) && json_put_str(o, "message", p->message) && ok;
    if (ok)
        return o;
    json_decref(o);
    return NULL;
}
