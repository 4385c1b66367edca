/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting of printed objects and keys. */
#include "agent/cli/print/print.h"

#include <stdlib.h>
#include <string.h>

int cli_by_namespace_and_name(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int order = strcmp(cli_text(x, "metadata.namespace"), cli_text(y, "metadata.namespace"));

    return order != 0 ? order : strcmp(cli_text(x, "metadata.name"), cli_text(y, "metadata.name"));
}

json_t *cli_sorted(const json_t *items, int (*order)(const void *a, const void *b))
{
    size_t n = json_array_size(items), i;
    mem_auto json_t **v = calloc(n + 1, sizeof(*v));
    json_t *ret = json_array(), *item;

    json_array_foreach (items, i, item) {
        if (v != NULL)
            v[i] = item;
    }
    if (v != NULL)
        qsort(v, n, sizeof(*v), order);
    for (i = 0; v != NULL && i < n; i++)
        json_array_append(ret, v[i]);
    return ret;
}

static int order_by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **cli_sorted_keys(const json_t *object)
{
    const char **keys = calloc(json_object_size(object) + 1, sizeof(*keys));
    const char *key;
    json_t *value;
    size_t n = 0;

    if (keys == NULL)
        return NULL;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value)
        keys[n++] = key;
    qsort(keys, n, sizeof(*keys), order_by_key);
    return keys;
}
