/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/quota/etc_edit.h"

#include "base/array.h"
#include "base/scope.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_PREFIX "coracle" /* kubelet's is "volume": lines that it left are not ours */

/* Cuts the next line off `text`, without its end. False: none is left. */
static bool next_line(struct str *text, struct str *ret)
{
    const char *end;

    if (text->n == 0)
        return false;
    end = memchr(text->p, '\n', text->n);
    *ret = (struct str){ text->p, end == NULL ? text->n : (size_t)(end - text->p) };
    end = end == NULL ? text->p + text->n : end + 1;
    text->n -= (size_t)(end - text->p);
    text->p = end;
    return true;
}

static struct str trim(struct str s)
{
    while (s.n > 0 && isspace((unsigned char)s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && isspace((unsigned char)s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Decimal, as strtoul(3) would read it, which other software uses. */
static bool read_id(struct str s, uint32_t *ret)
{
    uint64_t value = 0;

    s = trim(s);
    if (s.n == 0 || !isdigit((unsigned char)s.p[0]))
        return false;
    for (size_t i = 0; i < s.n && isdigit((unsigned char)s.p[i]); i++) {
        value = value * 10 + (uint64_t)(s.p[i] - '0');
        if (value > UINT32_MAX)
            return false;
    }
    *ret = (uint32_t)value;
    return true;
}

/* The id and the other part of a line. */
static bool split(enum etc_kind kind, struct str line, uint32_t *ret_id, struct str *ret_other)
{
    const char *colon = memchr(line.p, ':', line.n);
    struct str before, after;

    if (colon == NULL || line.p[0] == '#')
        return false;
    before = (struct str){ line.p, (size_t)(colon - line.p) };
    after = (struct str){ colon + 1, line.n - before.n - 1 };
    *ret_other = kind == ETC_PROJECTS ? after : before;
    return read_id(kind == ETC_PROJECTS ? before : after, ret_id);
}

enum err_code etc_ids_add(struct etc_ids *ids, enum etc_kind kind, struct str text, struct err *e)
{
    struct str line, other;
    uint32_t id;

    while (next_line(&text, &line)) {
        if (!split(kind, line, &id, &other))
            continue;
        if (!array_room(ids->v, ids->n))
            return err_nomem(e);
        ids->v[ids->n++] = id;
    }
    return ERR_OK;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

void etc_ids_sort(struct etc_ids *ids)
{
    if (ids->n > 1)
        qsort(ids->v, ids->n, sizeof(*ids->v), compare_ids);
}

bool etc_ids_has(const struct etc_ids *ids, uint32_t id)
{
    return ids->n > 0 && bsearch(&id, ids->v, ids->n, sizeof(*ids->v), compare_ids) != NULL;
}

enum err_code etc_lines_add(struct etc_lines *l, enum etc_kind kind, uint32_t id, const char *path,
                            struct err *e)
{
    char *line = kind == ETC_PROJECTS ? str_printf("%" PRIu32 ":%s", id, path)
                                      : str_printf(NAME_PREFIX "%" PRIu32 ":%" PRIu32, id, id);

    if (line == NULL || !array_room(l->v, l->n)) {
        free(line);
        return err_nomem(e);
    }
    l->v[l->n++] = line;
    return ERR_OK;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void etc_lines_sort(struct etc_lines *l)
{
    if (l->n > 1)
        qsort(l->v, l->n, sizeof(*l->v), compare_lines);
}

void etc_lines_done(struct etc_lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct etc_lines){ 0 };
}

static int compare_with_line(const void *key, const void *element)
{
    const struct str *s = key;
    const char *line = *(char *const *)element;
    size_t n = strlen(line);
    int c = memcmp(s->p, line, s->n < n ? s->n : n);

    return c != 0 ? c : (s->n > n) - (s->n < n);
}

/* Where it is in the list; l->n: it is not. */
static size_t find_line(const struct etc_lines *l, struct str line)
{
    char **found = l->n == 0 ? NULL : bsearch(&line, l->v, l->n, sizeof(*l->v), compare_with_line);

    return found == NULL ? l->n : (size_t)(found - l->v);
}

static void add_line(struct buf *b, struct str line)
{
    buf_add(b, line.p, line.n);
    buf_addc(b, '\n');
}

enum err_code etc_edit(struct buf *ret, struct str text, const struct etc_lines *drop,
                       const struct etc_lines *keep, struct err *e)
{
    mem_auto bool *seen = calloc(keep->n + 1, sizeof(*seen));
    struct str line;

    if (seen == NULL)
        return err_nomem(e);
    while (next_line(&text, &line)) {
        size_t k = find_line(keep, line);

        if (find_line(drop, line) < drop->n || (k < keep->n && seen[k]))
            continue;
        seen[k] = true; /* the last element stands for all foreign lines */
        add_line(ret, line);
    }
    for (size_t i = 0; i < keep->n; i++) {
        line = (struct str){ keep->v[i], strlen(keep->v[i]) };
        if (!seen[i] && find_line(drop, line) == drop->n && (i == 0 || strcmp(keep->v[i - 1], line.p) != 0))
            add_line(ret, line);
    }
    return buf_check(ret, e);
}

/* The ids that are named as ours. */
static enum err_code our_ids(struct str projid, struct etc_ids *ret, struct err *e)
{
    struct str line, name;
    uint32_t id;
    char ours[32];

    while (next_line(&projid, &line)) {
        if (!split(ETC_PROJID, line, &id, &name))
            continue;
        snprintf(ours, sizeof(ours), NAME_PREFIX "%" PRIu32, id);
        if (name.n != strlen(ours) || memcmp(name.p, ours, name.n) != 0)
            continue;
        if (!array_room(ret->v, ret->n))
            return err_nomem(e);
        ret->v[ret->n++] = id;
    }
    etc_ids_sort(ret);
    return ERR_OK;
}

enum err_code etc_each_of_ours(struct str projects, struct str projid,
                               enum err_code (*fn)(uint32_t id, const char *path, void *arg, struct err *e),
                               void *arg, struct err *e)
{
    struct etc_ids ids = { 0 };
    struct str line, path;
    uint32_t id;
    enum err_code code = our_ids(projid, &ids, e);

    while (code == ERR_OK && next_line(&projects, &line)) {
        char *copy;

        if (!split(ETC_PROJECTS, line, &id, &path) || !etc_ids_has(&ids, id))
            continue;
        copy = str_printf("%.*s", (int)path.n, path.p); /* the file is not terminated */
        code = copy == NULL ? err_nomem(e) : fn(id, copy, arg, e);
        free(copy);
    }
    free(ids.v);
    return code;
}
