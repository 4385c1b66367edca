/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting of printed objects. */
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
