/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strs.h"

#include "base/array.h"

#include <string.h>

bool strs_take(struct strs *s, char *text)
{
    if (text == NULL || !array_room(s->v, s->n + 1)) { /* and for the NULL */
        free(text);
        return false;
    }
    s->v[s->n++] = text;
    s->v[s->n] = NULL;
    return true;
}

bool strs_add(struct strs *s, const char *text)
{
    return strs_take(s, strdup(text));
}

bool strs_copy(struct strs *to, const struct strs *from)
{
    for (size_t i = 0; i < from->n; i++)
        if (!strs_add(to, from->v[i]))
            return false;
    return true;
}

bool strs_has(const struct strs *s, const char *text)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->v[i], text) == 0)
            return true;
    }
    return false;
}

bool strs_add_once(struct strs *s, const char *text)
{
    return strs_has(s, text) || strs_add(s, text);
}

static int strs_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void strs_sort(struct strs *s)
{
    if (s->n > 1)
        qsort(s->v, s->n, sizeof(char *), strs_compare);
}

void strs_unique(struct strs *s)
{
    size_t n = s->n;

    strs_sort(s);
    s->n = 0;
    for (size_t i = 0; i < n; i++)
        if (s->n > 0 && strcmp(s->v[s->n - 1], s->v[i]) == 0)
            free(s->v[i]);
        else
            s->v[s->n++] = s->v[i];
    if (s->v != NULL)
        s->v[s->n] = NULL;
}

const char *const *strs_list(const struct strs *s)
{
    static const char *const empty[] = { NULL };

    return s->v != NULL ? (const char *const *)s->v : empty;
}

void strs_done(struct strs *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
    *s = (struct strs){ 0 };
}
