/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/entries.h"

#include <stdlib.h>
#include <string.h>

static void *element(const void *v, size_t i, size_t size)
{
    return (char *)v + i * size;
}

static void owner_done(struct pl_owner *o)
{
    free(o->pod);
    free(o->container);
}

struct pl_position pl_entries_find(const void *v, size_t n, size_t size, const char *pod,
                                   const char *container)
{
    struct pl_position at = { 0 };
    int order = -1;

    for (; at.i < n; at.i++) {
        const struct pl_owner *o = element(v, at.i, size);

        order = strcmp(o->pod, pod);
        order = order == 0 ? strcmp(o->container, container) : order;
        if (order >= 0)
            break;
    }
    at.found = at.i < n && order == 0;
    return at;
}

bool pl_entries_insert(void *v, size_t *n, size_t size, size_t at, const char *pod, const char *container)
{
    struct pl_owner owner = { .pod = strdup(pod), .container = strdup(container) };

    if (owner.pod == NULL || owner.container == NULL) {
        owner_done(&owner);
        return false;
    }
    memmove(element(v, at + 1, size), element(v, at, size), (*n - at) * size);
    memset(element(v, at, size), 0, size);
    *(struct pl_owner *)element(v, at, size) = owner;
    ++*n;
    return true;
}

void pl_entries_remove(void *v, size_t *n, size_t size, const char *pod, const char *container)
{
    struct pl_position at = pl_entries_find(v, *n, size, pod, container);

    if (!at.found)
        return;
    owner_done(element(v, at.i, size));
    --*n;
    memmove(element(v, at.i, size), element(v, at.i + 1, size), (*n - at.i) * size);
}

void pl_entries_free(void *v, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++)
        owner_done(element(v, i, size));
    free(v);
}
