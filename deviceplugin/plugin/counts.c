/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/plugin/counts.h"

#include "deviceplugin/inventory.h"

#include <stdlib.h>
#include <string.h>

const struct dp_alloc_bound dp_alloc_bounds[DP_ALLOC_BUCKETS] = {
    { "0.005", 5 }, { "0.01", 10 }, { "0.025", 25 }, { "0.05", 50 }, { "0.1", 100 },  { "0.25", 250 },
    { "0.5", 500 }, { "1", 1000 },  { "2.5", 2500 }, { "5", 5000 },  { "10", 10000 },
};

/* The index of the first count whose name is not less than this one. */
static size_t place_of(const struct dp_counts *c, const char *resource)
{
    size_t low = 0, high = c->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (strcmp(c->v[middle].resource, resource) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL: it is not counted. */
static struct dp_count *count_of(struct dp_counts *c, const char *resource)
{
    size_t at = place_of(c, resource);
    struct dp_count *v;
    char *name;

    if (at < c->n && strcmp(c->v[at].resource, resource) == 0)
        return &c->v[at];
    if (c->n == DP_COUNTS_MAX || strlen(resource) > DP_RESOURCE_NAME_MAX)
        return NULL;
    name = strdup(resource);
    v = realloc(c->v, (c->n + 1) * sizeof(*v));
    if (v != NULL)
        c->v = v;
    if (name == NULL || v == NULL) {
        free(name);
        return NULL;
    }
    memmove(v + at + 1, v + at, (c->n - at) * sizeof(*v));
    v[at] = (struct dp_count){ .resource = name };
    c->n++;
    return &v[at];
}

void dp_counts_registered(struct dp_counts *c, const char *resource)
{
    struct dp_count *one = count_of(c, resource);

    if (one != NULL)
        one->registrations++;
}

void dp_counts_allocated(struct dp_counts *c, const char *resource, uint64_t took_ns)
{
    struct dp_count *one = count_of(c, resource);

    if (one == NULL)
        return;
    one->allocations++;
    one->took_ns += took_ns;
    for (size_t i = 0; i < DP_ALLOC_BUCKETS; i++)
        one->buckets[i] += took_ns <= dp_alloc_bounds[i].ms * 1000000;
}

void dp_counts_done(struct dp_counts *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->v[i].resource);
    free(c->v);
    *c = (struct dp_counts){ 0 };
}
