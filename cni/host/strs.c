/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/host/strs.h"

#include <stdlib.h>
#include <string.h>

bool strs_take(struct strs *s, char *text)
{
    char **v = text != NULL ? reallocarray(s->v, s->n + 2, sizeof(char *)) : NULL;

    if (v == NULL) {
        free(text);
        return false;
    }
    s->v = v;
    v[s->n++] = text;
    v[s->n] = NULL;
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

static int cni_strs_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void strs_sort(struct strs *s)
{
    if (s->n > 1)
        qsort(s->v, s->n, sizeof(char *), cni_strs_compare);
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
