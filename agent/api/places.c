/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/places.h"

#include "agent/api/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct api_spot {
    uint64_t path;
    struct api_place place;
};

/* ---- paths ---- */
/* FNV-1a: a collision, even a constructed one, only shows another line of the same file. */
#define FNV_START 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

static uint64_t path_add(uint64_t path, char ch)
{
    return (path ^ (unsigned char)ch) * FNV_PRIME;
}

/* A step begins with '.' or '[', and either may be in a key, too. */
static uint64_t path_add_any(uint64_t path, char ch)
{
    if (ch == ']')
        return path;
    return path_add(path, ch == '.' || ch == '[' ? '/' : ch);
}

uint64_t api_path_of_document(int document)
{
    return (FNV_START ^ (uint64_t)document) * FNV_PRIME;
}

/* As api_enter() writes it. */
uint64_t api_path_of_key(uint64_t path, const char *key, size_t n)
{
    path = path_add(path, '/');
    for (size_t i = 0; i < n && i < API_PATH_STEP_MAX && key[i] != '\0'; i++)
        path = path_add_any(path, api_path_char(key[i]));
    return path;
}

uint64_t api_path_of_element(uint64_t path, size_t index)
{
    char text[24] = "";
    int n = snprintf(text, sizeof(text), "%zu", index);

    return api_path_of_key(path, text, (size_t)n);
}

/* ---- the table ---- */
bool api_places_add(struct api_places *p, uint64_t path, size_t line, size_t column)
{
    if (p->n == p->room) {
        size_t room = p->room == 0 ? 64 : p->room * 2;
        struct api_spot *more = reallocarray(p->v, room, sizeof(*more));

        if (more == NULL)
            return false;
        p->v = more;
        p->room = room;
    }
    p->v[p->n++] = (struct api_spot){ path, { (uint32_t)line + 1, (uint32_t)column + 1 } };
    p->sorted = false;
    return true;
}

static int spot_order(const void *a, const void *b)
{
    const struct api_spot *x = a, *y = b;

    if (x->path != y->path)
        return x->path < y->path ? -1 : 1;
    if (x->place.line != y->place.line)
        return x->place.line < y->place.line ? -1 : 1;
    return (x->place.column > y->place.column) - (x->place.column < y->place.column);
}

/* The first one; NULL: none. */
static const struct api_spot *find_spot(const struct api_places *p, uint64_t path)
{
    size_t low = 0, high = p->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (p->v[middle].path < path)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->n && p->v[low].path == path ? &p->v[low] : NULL;
}

struct api_place api_places_find(struct api_places *p, int document, const char *path)
{
    uint64_t hash = api_path_of_document(document);
    struct api_place nearest = { 0 };
    const struct api_spot *spot;

    if (!p->sorted && p->n > 1)
        qsort(p->v, p->n, sizeof(*p->v), spot_order);
    p->sorted = true;
    spot = find_spot(p, hash);
    if (spot != NULL)
        nearest = spot->place;
    if (*path != '\0' && *path != '[')
        hash = path_add(hash, '/');
    for (; *path != '\0'; path++) {
        hash = path_add_any(hash, *path);
        if (path[1] != '\0' && path[1] != '.' && path[1] != '[')
            continue;
        spot = find_spot(p, hash);
        if (spot != NULL)
            nearest = spot->place;
    }
    return nearest;
}

void api_places_done(struct api_places *p)
{
    free(p->v);
    *p = (struct api_places){ 0 };
}
