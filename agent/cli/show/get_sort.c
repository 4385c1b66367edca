/* SPDX-License-Identifier: Apache-2.0 */
/* get --sort-by, like kubectl: by the value at a path, numbers numerically; objects without it come first. */
#include "agent/cli/show/internal.h"

#include <stdlib.h>
#include <string.h>

struct keyed {
    json_t *item; /* a reference */
    struct buf key;
    size_t at; /* to keep equal ones in order */
};

static bool is_number(const char *text, double *ret)
{
    char *end;

    *ret = strtod(text, &end);
    return end > text && *end == '\0';
}

static int get_sort_by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    double m, n;
    int order;

    if (is_number(x->key.p, &m) && is_number(y->key.p, &n))
        order = m < n ? -1 : m > n;
    else
        order = strcmp(x->key.p, y->key.p);
    return order != 0 ? order : x->at < y->at ? -1 : x->at > y->at;
}

int get_sort(const struct get *g, json_t *items)
{
    const size_t n = json_array_size(items);
    mem_auto struct keyed *v = calloc(n + 1, sizeof(*v));
    struct err e = { 0 };
    size_t i;

    if (g->sort_by == NULL)
        return EXIT_OK;
    if (v == NULL)
        return cli_error(g->cli, "out of memory");
    for (i = 0; i < n; i++) {
        v[i].item = json_incref(json_array_get(items, i));
        v[i].at = i;
        buf_init(&v[i].key, CLI_BODY_MAX);
        if (e.code == ERR_OK)
            ERR_IGNORE(cli_jsonpath(g->sort_by, v[i].item, &v[i].key, &e));
    }
    if (e.code == ERR_OK)
        qsort(v, n, sizeof(*v), get_sort_by_key);
    json_array_clear(items);
    for (i = 0; i < n; i++) {
        json_array_append_new(items, v[i].item);
        buf_done(&v[i].key);
    }
    return e.code != ERR_OK ? cli_failed(g->cli, &e) : EXIT_OK;
}
