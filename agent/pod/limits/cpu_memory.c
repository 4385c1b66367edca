/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/limits/cpu_memory.h"
#include "agent/pod/limits/admission_fit.h"
#include "agent/pod/limits/limits.h"

#include <string.h>

int64_t cpu_memory_amount(const struct api_resource_list *l, const char *name)
{
    const struct quantity *q = api_resource_get(l, name);

    if (q == NULL)
        return -1;
    return strcmp(name, "cpu") == 0 ? quantity_milli(q) : quantity_value(q);
}

static int64_t pod_sizes_ctr_limit(const struct ctr *c, const char *name)
{
    const struct api_pod_spec *s = &c->pod->api->spec;
    int64_t limit = cpu_memory_amount(&c->spec->resources.limits, name);

    if (limit <= 0 && s->has_resources)
        limit = cpu_memory_amount(&s->resources.limits, name);
    return limit > 0 ? limit : -1; /* 0 means no limit */
}

struct cpu_memory cpu_memory_of_container(const struct ctr *c)
{
    return (struct cpu_memory){
        .known = true,
        .cpu_request = cpu_memory_amount(&c->spec->resources.requests, "cpu"),
        .cpu_limit = pod_sizes_ctr_limit(c, "cpu"),
        .memory_request = cpu_memory_amount(&c->spec->resources.requests, "memory"),
        .memory_limit = pod_sizes_ctr_limit(c, "memory"),
    };
}

/* A pod has a limit only if all of its containers have one. */
static int64_t pod_sizes_pod_limit(const struct api_pod *api, const char *name)
{
    bool all = false;
    struct quantity q = resources_pod_limit(api, name, &all);

    if (!all || quantity_is_zero(&q))
        return -1;
    return strcmp(name, "cpu") == 0 ? quantity_milli(&q) : quantity_value(&q);
}

struct cpu_memory cpu_memory_of_pod(const struct api_pod *api)
{
    return (struct cpu_memory){
        .known = true,
        .cpu_request = admission_fit_request(api, "cpu"),
        .cpu_limit = pod_sizes_pod_limit(api, "cpu"),
        .memory_request = admission_fit_request(api, "memory"),
        .memory_limit = pod_sizes_pod_limit(api, "memory"),
    };
}

bool cpu_memory_same(const struct cpu_memory *a, const struct cpu_memory *b)
{
    return a->known && b->known && a->cpu_request == b->cpu_request && a->cpu_limit == b->cpu_limit &&
           a->memory_request == b->memory_request && a->memory_limit == b->memory_limit;
}

/* Limits: none is larger than any. */
bool cpu_memory_shrink(int64_t from, int64_t to)
{
    return to >= 0 && (from < 0 || to < from);
}

int64_t cpu_memory_wider(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? -1 : a > b ? a : b;
}

struct cpu_memory cpu_memory_widest(const struct cpu_memory *a, const struct cpu_memory *b)
{
    return (struct cpu_memory){
        .known = true,
        .cpu_request = a->cpu_request > b->cpu_request ? a->cpu_request : b->cpu_request,
        .cpu_limit = cpu_memory_wider(a->cpu_limit, b->cpu_limit),
        .memory_request = a->memory_request > b->memory_request ? a->memory_request : b->memory_request,
        .memory_limit = cpu_memory_wider(a->memory_limit, b->memory_limit),
    };
}

void cpu_memory_save(const struct cpu_memory *s, json_t *record)
{
    if (s->known)
        json_object_set_new(record, "sizes",
                            json_pack("[I,I,I,I]", (json_int_t)s->cpu_request, (json_int_t)s->cpu_limit,
                                      (json_int_t)s->memory_request, (json_int_t)s->memory_limit));
}

void cpu_memory_load(struct cpu_memory *s, const json_t *record)
{
    json_int_t v[4];

    if (json_unpack(json_object_get(record, "sizes"), "[I,I,I,I]", &v[0], &v[1], &v[2], &v[3]) == 0)
        *s = (struct cpu_memory){ true, v[0], v[1], v[2], v[3] };
}
