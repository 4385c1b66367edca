/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/placement/internal.h"

static enum pl_kind kind_of(const struct ctr *c)
{
    switch (c->kind) {
    case CTR_INIT:
        return PL_INIT;
    case CTR_SIDECAR:
        return PL_SIDECAR;
    case CTR_REGULAR:
    case CTR_EPHEMERAL: /* requests nothing */
        break;
    }
    return PL_REGULAR;
}

/* Pods with pod-level resources (spec.resources) are not placed, as in kubelet without the feature gate
 * PodLevelResourceManagers. */
static bool is_placed(const struct pod *p)
{
    return p->api->qos == API_QOS_GUARANTEED && !p->api->spec.has_resources;
}

static unsigned whole_cpus(const struct ctr *c)
{
    const struct quantity *q = api_resource_get(&c->spec->resources.requests, "cpu");
    int64_t milli = q != NULL ? quantity_milli(q) : 0;

    return milli > 0 && milli % 1000 == 0 && milli / 1000 <= INT32_MAX ? (unsigned)(milli / 1000) : 0;
}

void placement_cpu_wants(const struct pod *p, struct pl_cpu_want *ret)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        ret[i] =
            (struct pl_cpu_want){ p->uid, p->ctrs[i]->spec->name, kind_of(p->ctrs[i]),
                                  is_placed(p) && p->ctrs[i]->kind != CTR_EPHEMERAL ? whole_cpus(p->ctrs[i])
                                                                                    : 0 };
}

static void add_amounts(const struct ctr *c, struct pl_memory_want *ret)
{
    const struct api_resource_list *l = &c->spec->resources.requests;

    for (size_t i = 0; i < l->n && ret->n < PL_TYPES_MAX; i++) {
        const char *type = l->v[i].name;
        int64_t bytes = quantity_value(&l->v[i].amount);

        if ((strcmp(type, "memory") != 0 && !str_starts(type, "hugepages-")) ||
            strlen(type) >= PL_TYPE_NAME_MAX || bytes < 0)
            continue;
        ret->v[ret->n].bytes = (uint64_t)bytes;
        snprintf(ret->v[ret->n++].type, PL_TYPE_NAME_MAX, "%s", type);
    }
}

void placement_memory_wants(const struct pod *p, struct pl_memory_want *ret)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        ret[i] = (struct pl_memory_want){ .pod = p->uid,
                                          .container = p->ctrs[i]->spec->name,
                                          .kind = kind_of(p->ctrs[i]) };
        if (is_placed(p) && p->ctrs[i]->kind != CTR_EPHEMERAL)
            add_amounts(p->ctrs[i], &ret[i]);
    }
}
